"""How the shipped file is made out of its two sources."""

from __future__ import annotations

import json

import pytest
from tools.build_catalog import NEWER, SOURCES, build, convert, merge


def steered(**entry):
    return convert({"supports_reasoning": True, **entry}).get("reasoning_options")


@pytest.mark.parametrize(
    ("entry", "options"),
    [
        ({}, None),
        ({"supports_minimal_reasoning_effort": False}, None),
        ({"supports_reasoning": False, "supports_xhigh_reasoning_effort": True}, None),
        (
            {"reasoning_effort_levels": ["none", "high"]},
            [{"type": "effort", "values": ["none", "high"]}],
        ),
        (
            {"supports_xhigh_reasoning_effort": True, "supports_none_reasoning_effort": True},
            [{"type": "effort", "values": ["none", "low", "medium", "high", "xhigh"]}],
        ),
        (
            {"supports_xhigh_reasoning_effort": True, "supports_low_reasoning_effort": False},
            [{"type": "effort", "values": ["medium", "high", "xhigh"]}],
        ),
        (
            {"supports_adaptive_thinking": True},
            [{"type": "effort", "values": ["low", "medium", "high"]}],
        ),
        (
            {
                "supports_adaptive_thinking": True,
                "thinking_always_on": False,
                "supports_max_reasoning_effort": True,
            },
            [{"type": "toggle"}, {"type": "effort", "values": ["low", "medium", "high", "max"]}],
        ),
    ],
)
def test_steering_is_derived_only_where_the_file_tells(entry, options):
    assert steered(**entry) == options


def test_a_newer_entry_in_models_devs_fields():
    assert convert(
        {
            "context": 100,
            "output": None,
            "cost": {"input": 1.0},
            "output_cost_per_reasoning_token": 4e-06,
            "supports_reasoning": True,
            "default_reasoning_effort": "none",
            "thinking_always_on": True,
            "mode": "chat",
            "new": True,
        }
    ) == {
        "limit": {"context": 100},
        "cost": {"input": 1.0, "reasoning": 4.0},
        "reasoning": True,
        "default_effort": "none",
        "can_be_off": False,
    }


def test_models_dev_wins_field_by_field():
    known = {"name": "A", "reasoning": True, "limit": {"context": 1, "output": 0}, "cost": {"x": 1}}
    added = {
        "reasoning": False,
        "limit": {"context": 2, "output": 3},
        "cost": {"x": 2, "y": 3},
        "can_be_off": False,
    }
    assert merge(known, added) == {
        "name": "A",
        "reasoning": True,
        "limit": {"context": 1, "output": 3},
        "cost": {"x": 1, "y": 3},
        "can_be_off": False,
        "source": NEWER,
    }


def test_an_entry_that_gains_nothing_names_no_source():
    known = {"reasoning": False, "limit": {"context": 1}}
    assert merge(known, {"reasoning": True, "limit": {"context": 2}}) == known


def test_no_steering_is_added_to_a_model_that_does_not_reason():
    known = {"reasoning": False}
    assert merge(known, {"reasoning": True, "reasoning_options": [], "can_be_off": False}) == known


def test_the_file():
    providers = {
        "b": {"name": "B", "env": [], "npm": "n", "doc": "d", "models": {"z": {"name": "Z"}}},
        "a": {"name": "A", "env": ["K"], "npm": "n", "api": "u", "doc": "d", "models": {}},
    }
    newer = {"b": {"y": {"mode": "responses", "context": 5}, "image": {"mode": "image"}}}
    data = build(providers, newer)
    assert data == build(dict(reversed(providers.items())), newer)
    assert [json.loads(line) for line in data.splitlines()] == [
        {"format": 1, "sources": SOURCES, "providers": 2},
        {"id": "a", "name": "A", "env": ["K"], "npm": "n", "api": "u", "doc": "d", "models": {}},
        {
            "id": "b",
            "name": "B",
            "env": [],
            "npm": "n",
            "doc": "d",
            "models": {"y": {"limit": {"context": 5}, "source": NEWER}, "z": {"name": "Z"}},
        },
    ]
    assert data.splitlines()[1].startswith(b'{"id":"a","name":"A","env":["K"],')


def test_a_provider_that_models_dev_lacks_is_refused():
    with pytest.raises(SystemExit, match="x"):
        build({}, {"x": {}})
