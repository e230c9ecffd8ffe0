"""Addresses as they are stored and shown."""

import pytest

from mull.settings.addresses import without_secrets
from mull.settings.words import looks_secret


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://h/v1", "https://h/v1"),
        ("http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1/"),
        ("https://name:word@h/v1", "https://h/v1"),
        ("https://h/v1?token=abc#x", "https://h/v1?token=${BASE_URL_KEY}"),
        ("https://h?key=abc", "https://h?key=${BASE_URL_KEY}"),
        ("https://h/v1?api-version=2024-10-21", None),
        ("https://h/k3y9f8a7b6c5d4e3f2a1b0/v1", "https://h/${BASE_URL_KEY}/v1"),
        ("https://h/sk-proj-abcdefghijklmnop1234/v1", "https://h/${BASE_URL_KEY}/v1"),
        ("https://h/${TOKEN}/v1", "https://h/${TOKEN}/v1"),
        (
            "https://h/my-team-2024-reports-of-sales/v1",
            "https://h/my-team-2024-reports-of-sales/v1",
        ),
        ("https://h/openai/deployments/gpt-4o-mini-2024-07-18", None),
        ("no address", "no address"),
    ],
)
def test_an_address_is_kept_without_its_secrets(given, kept):
    assert without_secrets(given) == (kept or given)


@pytest.mark.parametrize("text", ["xoxb-0123456789", "Bearer 12345678", "AKIA0123456789AB"])
def test_the_shortest_keys_are_recognised(text):
    assert looks_secret(text)
    assert not looks_secret(text[:-1])
