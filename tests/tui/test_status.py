"""The status line at every width, and the levels that a key goes through."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.catalog.load import load
from mull.catalog.resolve import resolve
from mull.policy.cost import CostSum
from mull.policy.thinking.levels import level_rows, next_level
from mull.policy.thinking.plan import plan_thinking
from mull.settings.layers import Settings
from mull.settings.presets import preset_values
from mull.tui.conversation.status import Status, Working, level_word, status_line
from mull.tui.screen.colour import Rgb
from mull.tui.screen.theme import theme_for
from mull.tui.text.lines import line_width, plain_text

PLAIN_THEME = theme_for("plain", None, "none")
DARK = theme_for("dark", Rgb(20, 20, 24), "truecolor")
FULL = Status(
    model="anthropic/claude-sonnet-4-5",
    level="medium",
    meter="123000/212000",
    fullness="ok",
    cost=CostSum(0.4231, 0, 3),
    profile="careful",
    approval="ask",
    view="preview",
)


def text(status, width, theme=PLAIN_THEME, tick=0):
    return plain_text([status_line(status, theme, width, tick)])


def test_a_wide_terminal_shows_everything():
    assert text(FULL, 140) == (
        "anthropic/claude-sonnet-4-5/medium · 123000/212000 · ask · $0.423 · thoughts: preview"
        " · careful"
    )


def test_sixty_columns_show_model_meter_and_mode():
    assert text(FULL, 60) == "claude-sonnet-4-5/medium · 123000/212000 · ask · $0.423"
    long = FULL_WITH(model="openrouter/moonshotai/kimi-k2-thinking-turbo-preview-0905")
    shown = text(long, 60)
    assert shown.endswith("…/medium · 123000/212000 · ask · $0.423")
    assert shown.startswith("moonshotai/kimi")


def FULL_WITH(**changes):
    from msgspec.structs import replace

    return replace(FULL, **changes)


def test_the_least_important_goes_first():
    kept = [text(FULL, width).split(" · ") for width in range(20, 120)]
    gone = ["careful", "thoughts: preview", "$0.423", "ask", "123000/212000"]
    for parts in kept:
        missing = [part for part in gone if part not in parts]
        assert missing == gone[: len(missing)]


@given(
    st.integers(1, 200),
    st.text(max_size=60),
    st.sampled_from(["", "medium", "off"]),
    st.none() | st.text(max_size=20),
    st.none() | st.builds(Working, st.just("tools"), st.integers(0, 50)),
)
def test_no_width_is_exceeded(width, model, level, profile, working):
    status = FULL_WITH(model=model, level=level, profile=profile, working=working)
    assert line_width(status_line(status, DARK, width)) <= width


@pytest.mark.parametrize(
    ("cost", "shown"),
    [
        (CostSum(0.5, 0, 2), "$0.50"),
        (CostSum(0.5, 1, 3), "≥ $0.50"),
        (CostSum(0.0, 2, 2), "$?"),
        (CostSum(0.0, 0, 2), "$0"),
    ],
)
def test_an_unknown_cost_is_not_nothing(cost, shown):
    assert shown in text(FULL_WITH(cost=cost), 120).split(" · ")


def test_nothing_was_asked_costs_nothing_to_say():
    assert "$" not in text(FULL_WITH(cost=CostSum()), 120)


@pytest.mark.parametrize(
    ("fullness", "role"), [("ok", "status"), ("warn", "warning"), ("full", "error")]
)
def test_the_meter_has_the_colour_of_its_share(fullness, role):
    line = status_line(FULL_WITH(fullness=fullness), DARK, 120)
    (meter,) = [span for span in line if span.text == "123000/212000"]
    assert meter.style == getattr(DARK, role)


def test_running_without_questions_is_worth_a_warning():
    line = status_line(FULL_WITH(approval="yes"), DARK, 120)
    assert [span.style for span in line if span.text == "yes"] == [DARK.warning]


def test_what_goes_on_is_told_with_its_round():
    busy = FULL_WITH(working=Working("tools", 12), view="full", profile=None)
    assert "⠋ running tools, round 12" in text(busy, 100, DARK).split(" · ")
    assert "⠙ running tools, round 12" in text(busy, 100, DARK, tick=1).split(" · ")
    assert "/ running tools, round 12" in text(busy, 100, tick=1).split(" · ")
    assert text(busy, 60) == "claude-sonnet-4-5/medium · 123000/212000 · ask · | · $0.423"
    first = FULL_WITH(working=Working("sending", 1))
    assert "| waiting" in text(first, 140).split(" · ")


# levels


@pytest.fixture(scope="module")
def catalog():
    return load()


def standing(catalog, name, **settings):
    target = resolve(name, catalog=catalog)
    said = Settings()
    said.set_model(name)
    for key, value in settings.items():
        said.set(f"reasoning.{key}", value)
    return target, said.snapshot(preset=preset_values(target.facts))


@pytest.mark.parametrize(
    ("name", "levels"),
    [
        ("openai/o3", ["low", "medium", "high"]),
        ("openai/gpt-5.1", ["none", "low", "medium", "high"]),
        ("anthropic/claude-sonnet-4-5", ["none", "minimal", "low", "medium", "high"]),
        ("google/gemini-2.5-pro", ["minimal", "low", "medium", "high"]),
        ("google/gemini-3-pro-preview", ["low", "high"]),
        ("zai/glm-4.7", ["none", "high"]),
        ("openai/gpt-4o", []),
        ("moonshotai/kimi-k2-thinking", []),
    ],
)
def test_the_levels_are_those_that_the_model_really_has(catalog, name, levels):
    assert [row.level for row in level_rows(*standing(catalog, name))] == levels


@pytest.mark.parametrize(
    ("name", "settings", "after"),
    [
        ("openai/o3", {}, "high"),  # it thinks at medium by itself
        ("openai/o3/low", {}, "medium"),
        ("openai/o3/high", {}, "low"),
        ("openai/o3", {"enabled": False}, "medium"),  # which is low there
        ("openai/o3/xhigh", {}, "low"),  # which is high there
        ("zai/glm-4.7", {"effort": "none"}, "high"),
        ("zai/glm-4.7", {"effort": "low"}, "none"),
        ("anthropic/claude-sonnet-4-5", {"maxTokens": 5000}, "high"),
        ("openai/gpt-4o", {}, None),
    ],
)
def test_the_key_goes_on_from_what_is_in_effect(catalog, name, settings, after):
    assert next_level(*standing(catalog, name, **settings)) == after


@pytest.mark.parametrize(
    ("name", "settings", "word"),
    [
        ("openai/o3/none", {}, "low"),
        ("openai/o3", {}, ""),
        ("anthropic/claude-sonnet-4-5/med", {}, "medium"),
        ("anthropic/claude-sonnet-4-5", {}, "10k"),
        ("anthropic/claude-sonnet-4-5/50000", {}, "50k"),
        ("anthropic/claude-sonnet-4-5", {"enabled": False}, "off"),
        ("zai/glm-4.7/high", {}, "on"),
        ("openai/gpt-4o/high", {}, ""),
    ],
)
def test_the_level_that_is_shown_is_the_one_in_effect(catalog, name, settings, word):
    target, snapshot = standing(catalog, name, **settings)
    assert level_word(target, snapshot, plan_thinking(target, snapshot).plan) == word
