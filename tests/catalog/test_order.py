"""The order in which models are offered."""

from __future__ import annotations

from mull.catalog.load import load, makers, shipped
from mull.catalog.order import ranked


def names(*providers, overlay=None):
    catalog = load([overlay]) if overlay else shipped()
    return [one.model for one in ranked(catalog, providers)]


def test_every_maker_is_a_provider_and_has_models_of_its_own():
    for provider in makers():
        assert any(one.own for one in ranked(shipped(), [provider])), provider


def test_models_without_a_date_stand_where_their_version_belongs():
    models = {
        "claude-opus-4-0": {"release_date": "2025-05-22"},
        "claude-opus-4-8": {"release_date": "2026-05-28"},
        "claude-opus-4-8-20260528": {},
        "claude-opus-5-5": {},
        "claude-opus-4-3": {},
        "claude-2": {},
        "claude-image-1": {"release_date": "2027-01-01", "tool_call": False},
        "embed": {},
    }
    row = {"x": {"name": "X", "api": "https://x.test/v1", "models": models}}
    assert names("x", overlay=row) == [
        "claude-opus-5-5",
        "claude-opus-4-8",
        "claude-opus-4-3",
        "claude-opus-4-0",
        "claude-2",
        "embed",
        "claude-opus-4-8-20260528",
        "claude-image-1",
    ]


def test_a_makers_own_models_come_before_those_of_resellers():
    found = ranked(shipped(), ["openrouter", "302ai", "anthropic", "moonshotai"])
    own = [one.own for one in found]
    assert own == sorted(own, reverse=True)
    assert {one.provider for one in found if one.own} == {"anthropic", "moonshotai"}
