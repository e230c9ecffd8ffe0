"""What the settings wish: which of them decides, and whether the user chose it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.policy.thinking.wish import Wish, wish_of
from mull.settings.environment import read_environment
from mull.settings.layers import Settings

ENABLED, EFFORT, BUDGET = "reasoning.enabled", "reasoning.effort", "reasoning.maxTokens"
HELD = ("config", "profile", "stored", "environment", "session")


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


@given(st.permutations(HELD))
def test_of_contradicting_words_the_stronger_layer_wins(layers):
    one, two = layers[:2]
    one_is_later = HELD.index(one) > HELD.index(two)
    off, level = Wish(ENABLED, level="none"), Wish(EFFORT, level="high")
    budget = Wish(BUDGET, budget=5000)
    both = Wish(BUDGET, level="high", budget=5000)

    def of(first, second):
        return wish_of(settings_of((one, *first), (two, *second)))

    assert of((ENABLED, False), (EFFORT, "high")) == (off if one_is_later else level)
    assert of((ENABLED, False), (BUDGET, 5000)) == (off if one_is_later else budget)
    assert of((EFFORT, "high"), (BUDGET, 5000)) == (level if one_is_later else both)
    none = Wish(EFFORT, level="none")
    assert of((EFFORT, "none"), (BUDGET, 5000)) == (none if one_is_later else budget)


def test_words_said_together_are_two_wishes_and_off_overrides_both():
    settings = Settings()
    settings.replace("config", {BUDGET: 5000, EFFORT: "high"})
    assert wish_of(settings.snapshot()) == Wish(BUDGET, level="high", budget=5000)
    assert wish_of(settings.snapshot()).words == "5,000 tokens, else high"
    settings.replace("config", {BUDGET: 5000, EFFORT: "high", ENABLED: False})
    assert wish_of(settings.snapshot()) == Wish(ENABLED, level="none")
