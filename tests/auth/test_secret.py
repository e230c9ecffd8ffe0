"""A secret is shown nowhere, and what cannot be a key is refused without being told."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import traceback

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.auth.secret import Secret, parse_secret
from mull.auth.variables import key_variables
from mull.catalog.load import shipped
from mull.neutral.errors import ConfigError

CANARY = "canary-5b1f"


def test_no_way_of_printing_shows_it(caplog):
    secret = Secret(CANARY)
    logging.getLogger("x").error("%s %r %s", secret, secret, [secret])
    shown = [
        str(secret), repr(secret), f"{secret}", f"{secret!r}", f"{secret:>9}", "%s" % secret,  # noqa: UP031
        str({"a": [secret]}), caplog.text, repr(vars(type("X", (), {"key": secret}))),
    ]  # fmt: skip
    assert not any(CANARY in text for text in shown)
    assert str(secret) == "***"
    assert secret.reveal() == CANARY


def test_nothing_can_write_it_to_a_file():
    for write in (
        pickle.dumps,
        copy.deepcopy,
        json.dumps,
        msgspec.json.encode,
        msgspec.to_builtins,
    ):
        with pytest.raises(TypeError) as caught:
            write(Secret(CANARY))
        assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_it_is_equal_by_content_and_to_no_string():
    assert Secret("a") == Secret("a")
    assert len({Secret("a"), Secret("a"), Secret("b")}) == 2
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"


def test_blanks_around_a_key_are_not_part_of_it():
    assert parse_secret(f"  {CANARY}\r\n", "x").reveal() == CANARY


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        (f"{CANARY}\n{CANARY}", "contains a blank, a line break or"),
        (f"Bearer {CANARY}", "contains a blank"),
        (f"{CANARY}é", "non-ASCII"),
        (f"{CANARY}\x00", "non-ASCII"),
        (CANARY * 2_000, "has 22,000 characters"),
    ],
)
def test_what_cannot_be_a_key_is_refused_without_showing_it(text, reason):
    with pytest.raises(ConfigError) as caught:
        parse_secret(text, "OPENAI_API_KEY")
    assert str(caught.value).startswith("OPENAI_API_KEY ")
    assert reason in str(caught.value)
    assert CANARY not in str(caught.value)


@given(st.text())
def test_a_key_is_always_one_header_value(text):
    try:
        key = parse_secret(text, "x").reveal()
    except ConfigError:
        return
    assert key == text.strip()
    assert key.isascii()
    assert key.isprintable()
    assert not set(key) & set(" \t\r\n")


@pytest.mark.parametrize(
    ("names", "keys"),
    [
        ("OPENAI_API_KEY", "OPENAI_API_KEY"),
        ("MY_GATEWAY", "MY_GATEWAY"),
        ("", ""),
        ("GOOGLE_API_KEY GEMINI_API_KEY", "GOOGLE_API_KEY GEMINI_API_KEY"),
        ("AZURE_RESOURCE_NAME AZURE_API_KEY", "AZURE_API_KEY"),
        (
            "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_REGION AWS_BEARER_TOKEN_BEDROCK",
            "AWS_BEARER_TOKEN_BEDROCK",
        ),
        ("CLOUDFLARE_ACCOUNT_ID CLOUDFLARE_API_KEY", "CLOUDFLARE_API_KEY"),
        ("SNOWFLAKE_ACCOUNT SNOWFLAKE_CORTEX_PAT", "SNOWFLAKE_CORTEX_PAT"),
        ("GOOGLE_VERTEX_PROJECT GOOGLE_VERTEX_LOCATION GOOGLE_APPLICATION_CREDENTIALS", ""),
    ],
)
def test_which_variables_hold_a_key(names, keys):
    assert key_variables(names.split()) == tuple(keys.split())


def test_every_provider_of_the_catalog_has_a_key_that_is_sent():
    without = [p.id for p in shipped().providers.values() if p.env and not key_variables(p.env)]
    assert without == []
