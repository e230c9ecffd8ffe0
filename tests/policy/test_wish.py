"""What the settings wish: which of them decides, and whether the user chose it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.policy.thinking.wish import Wish, wish_of
from mull.settings.environment import read_environment
from mull.settings.layers import Settings

ENABLED, EFFORT, BUDGET = "reasoning.enabled", "reasoning.effort", "reasoning.maxTokens"
HELD = ("config", "profile", "environment", "session")


def settings_of(*said):
    settings = Settings()
    for layer, key, value in said:
        settings.set(key, value, layer)
    return settings.snapshot()


def test_nothing_said_is_no_wish():
    wish = wish_of(Settings().snapshot())
    assert not wish.is_said
    assert wish.words == "unset"


@pytest.mark.parametrize("layer", HELD)
def test_a_plain_on_is_a_wish_wherever_it_is_said(layer):
    wish = wish_of(settings_of((layer, ENABLED, True)))
    assert wish == Wish(ENABLED, on=True)
    assert wish.words == "on"


def test_an_argument_of_one_request_is_a_wish_too():
    assert wish_of(Settings().snapshot(request={ENABLED: True})).on
    assert wish_of(Settings().snapshot().having({ENABLED: True})).on


def test_what_a_preset_says_is_not_the_users_wish():
    wish = wish_of(Settings().snapshot(preset={ENABLED: False}))
    assert wish == Wish(ENABLED, level="none", explicit=False)
    assert not wish_of(Settings().snapshot(preset={ENABLED: True})).on


def test_document_003_the_variables_are_wishes():
    def of(**environ):
        settings = Settings()
        settings.replace("environment", read_environment(environ).values)
        return wish_of(settings.snapshot())

    assert of(THINKING="on") == Wish(ENABLED, on=True)
    assert of(THINKING="off") == Wish(ENABLED, level="none")
    assert of(THINKING="on", REASONING_EFFORT="high") == Wish(EFFORT, level="high")
    assert of(THINKING="on", REASONING_EFFORT="none") == Wish(EFFORT, level="none")


@given(st.permutations(HELD), st.sampled_from(["none", "low", "max"]))
def test_an_effort_of_none_gives_way_to_a_stronger_on_only(layers, level):
    on, effort = layers[:2]
    wish = wish_of(settings_of((on, ENABLED, True), (effort, EFFORT, level)))
    if level == "none" and HELD.index(on) > HELD.index(effort):
        assert wish == Wish(ENABLED, on=True)
    else:
        assert wish == Wish(EFFORT, level=level)


@given(st.sampled_from(HELD), st.sampled_from(HELD), st.sampled_from(HELD))
def test_br_006_off_beats_a_budget_and_a_budget_beats_a_level_and_on(one, two, three):
    low = ((two, BUDGET, 5000), (three, EFFORT, "high"))
    assert wish_of(settings_of((one, ENABLED, False), *low)) == Wish(ENABLED, level="none")
    assert wish_of(settings_of((one, ENABLED, True), *low)) == Wish(BUDGET, budget=5000)
