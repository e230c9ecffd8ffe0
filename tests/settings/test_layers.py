"""Which layer wins, what a model's name adds, and that a refused change changes nothing."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.neutral.errors import SettingError
from mull.neutral.target import Interleaved, ModelFacts
from mull.settings.layers import LAYERS, Settings
from mull.settings.presets import preset_values
from mull.settings.registry import REGISTRY, parse_all

KIMI = preset_values(ModelFacts(interleaved=Interleaved("reasoning_content")))


def test_everything_is_the_default_at_first():
    snapshot = Settings().snapshot()
    assert dict(snapshot.items()) == {key: s.default for key, s in REGISTRY.items()}
    assert {snapshot.origin(key) for key in REGISTRY} == {"default"}
    assert snapshot.differing() == {}
    assert (snapshot.model, snapshot.model_origin) == (None, None)


def test_later_layers_win_in_this_order():
    assert LAYERS == (
        "default", "preset", "config", "profile", "stored", "environment", "session", "request",
    )  # fmt: skip
    settings, key = Settings(), "reasoning.effort"
    levels = iter(("none", "minimal", "low", "medium", "high", "xhigh", "max"))
    preset = {key: next(levels)}
    assert settings.snapshot(preset=preset).origin(key) == "preset"
    for layer in ("config", "profile", "stored", "environment", "session"):
        level = next(levels)
        settings.set(key, level, layer)
        snapshot = settings.snapshot(preset=preset)
        assert (snapshot[key], snapshot.origin(key)) == (level, layer)
    snapshot = settings.snapshot(preset=preset, request={key: next(levels)})
    assert (snapshot[key], snapshot.origin(key)) == ("max", "request")
    assert settings.snapshot(preset=preset)[key] == "xhigh"


def test_unset_uncovers_the_layer_below_and_reset_covers_it():
    settings, key = Settings(), "reasoning.stripFromContext"
    settings.set(key, "all", "config")
    settings.set(key, "allButLast")
    settings.unset(key.upper())
    assert (settings.snapshot()[key], settings.snapshot().origin(key)) == ("all", "config")
    settings.reset(key)
    assert (settings.snapshot()[key], settings.snapshot().origin(key)) == ("none", "session")


def test_br_008_and_ec_004_a_change_holds_from_the_next_snapshot():
    settings = Settings()
    before = settings.snapshot()
    settings.set("reasoning.includeInContext", "true")
    after = settings.snapshot()
    assert before["reasoning.includeInContext"] is False
    assert after["reasoning.includeInContext"] is True
    assert before.fingerprint != after.fingerprint
    assert hash(after.fingerprint) == hash(settings.snapshot().fingerprint)


def test_br_003_display_and_context_are_independent():
    settings = Settings()
    settings.set("reasoning.includeInResponse", False)
    assert settings.snapshot()["reasoning.includeInContext"] is False
    settings.set("reasoning.includeInContext", True)
    assert settings.snapshot()["reasoning.includeInResponse"] is False


def test_a_snapshot_cannot_be_changed():
    snapshot = Settings().snapshot()
    with pytest.raises(TypeError):
        snapshot.values["reasoning.enabled"] = False
    with pytest.raises(AttributeError):
        snapshot.model = "x"


def test_br_001_the_preset_turns_context_on_and_the_user_overrules_it():
    settings, key = Settings(), "reasoning.includeInContext"
    snapshot = settings.snapshot(preset=KIMI)
    assert (snapshot[key], snapshot.origin(key), snapshot.explicit(key)) == (True, "preset", False)
    settings.set(key, "off", "config")
    snapshot = settings.snapshot(preset=KIMI)
    assert (snapshot[key], snapshot.explicit(key)) == (False, True)


def test_presets_can_be_turned_off_in_any_layer_but_not_by_a_preset():
    settings, key = Settings(), "reasoning.includeInContext"
    assert settings.snapshot(preset=KIMI | {"model.presets": False})[key] is True
    assert settings.snapshot(preset=KIMI, request={"model.presets": False})[key] is False
    settings.set("model.presets", False, "profile")
    assert settings.snapshot(preset=KIMI)[key] is False


def test_presets_come_from_facts():
    assert preset_values(ModelFacts()) == {}
    assert preset_values(ModelFacts(interleaved=True)) == {"reasoning.includeInContext": True}
    facts = ModelFacts(interleaved=True, presets={"reasoning.effort": "MED"})
    assert preset_values(facts) == {
        "reasoning.includeInContext": True,
        "reasoning.effort": "medium",
    }
    with pytest.raises(SettingError):
        preset_values(ModelFacts(presets={"reasoning.colour": "blue"}))


def test_the_last_model_wins_and_keeps_its_layer():
    settings = Settings()
    settings.replace("config", {}, "a/one")
    settings.set_model("b/two", "environment")
    snapshot = settings.snapshot()
    assert (snapshot.model, snapshot.model_origin) == ("b/two", "environment")
    snapshot = settings.snapshot(model="c/three/high")
    assert (snapshot.model, snapshot.model_origin) == ("c/three", "request")
    settings.set_model(None, "environment")
    assert settings.snapshot().model == "a/one"


def test_a_level_in_the_model_acts_at_its_layer_and_clears_lower_budgets():
    settings = Settings()
    settings.set("reasoning.maxTokens", 4000, "config")
    settings.set("reasoning.maxTokens", 5000, "profile")
    settings.replace("stored", {"reasoning.effort": "low"}, "a/b/med")
    snapshot = settings.snapshot()
    assert snapshot.model == "a/b"
    assert (snapshot["reasoning.effort"], snapshot["reasoning.maxTokens"]) == ("medium", None)
    assert snapshot.origin("reasoning.effort") == "stored"
    settings.set("reasoning.maxTokens", 6000)
    assert settings.snapshot()["reasoning.maxTokens"] == 6000
    assert settings.snapshot()["reasoning.effort"] == "medium"


def test_a_level_in_the_model_and_a_budget_said_in_the_same_place_are_two_wishes():
    settings = Settings()
    settings.replace("profile", {"reasoning.maxTokens": 5000, "reasoning.effort": "low"}, "a/b/med")
    snapshot = settings.snapshot()
    assert (snapshot["reasoning.effort"], snapshot["reasoning.maxTokens"]) == ("medium", 5000)


def test_a_session_goes_on_with_its_model_and_the_environment_may_say_its_level():
    settings = Settings()
    settings.set_model("a/b/low", "stored")
    settings.set_model("c/d/high", "environment")
    assert (settings.snapshot().model, settings.model_name) == ("a/b", "a/b/low")
    assert settings.snapshot()["reasoning.effort"] == "low"
    settings.set_model("b/high", "environment")
    assert settings.snapshot().model == "a/b"
    assert settings.snapshot()["reasoning.effort"] == "high"
    settings.set_model("b", "environment")
    assert settings.snapshot()["reasoning.effort"] == "low"
    settings.set_model("c/d")
    assert (settings.snapshot().model, settings.snapshot()["reasoning.effort"]) == ("c/d", None)


def test_what_is_said_later_in_one_layer_replaces_what_it_contradicts():
    settings, effort, budget = Settings(), "reasoning.effort", "reasoning.maxTokens"
    settings.set("reasoning.enabled", False)
    settings.set(budget, 5000)
    assert settings.snapshot()["reasoning.enabled"] is True
    settings.set(effort, "low")
    assert (settings.snapshot()[effort], settings.snapshot()[budget]) == ("low", None)
    settings.set(budget, 6000)
    assert (settings.snapshot()[effort], settings.snapshot()[budget]) == ("low", 6000)
    settings.set_model("a/b/none")
    assert (settings.snapshot()[effort], settings.snapshot()[budget]) == ("none", None)
    settings.set("reasoning.enabled", True)
    assert settings.snapshot()[effort] is None


@pytest.mark.parametrize(
    ("model", "values"),
    [
        ("a/b/low", {"reasoning.effort": "high"}),
        ("a/b/low", {"reasoning.effort": "none"}),
        ("a/b/low", {"reasoning.enabled": False}),
        ("a/b/none", {"reasoning.enabled": True}),
        ("a/b/none", {"reasoning.maxTokens": 5000}),
        ("a/b/4000", {"reasoning.maxTokens": 5000}),
        ("a/b/4000", {"reasoning.effort": "none"}),
        ("a/b/4000", {"reasoning.enabled": False}),
    ],
)
def test_words_said_together_that_contradict_each_other_are_refused(model, values):
    settings = Settings()
    before = settings.snapshot()
    ((key, value),) = values.items()
    shown = {True: "true", False: "false"}.get(value, value)
    text = f'{key}={shown} and "{model}" contradict each other: keep one of them'
    with pytest.raises(SettingError, match=f"^{re.escape(text)}$"):
        settings.say(values, model)
    assert settings.snapshot() == before


@pytest.mark.parametrize(
    ("model", "values"),
    [
        ("a/b/low", {"reasoning.effort": "LOW"}),
        ("a/b/low", {"reasoning.maxTokens": 5000}),
        ("a/b/low", {"reasoning.enabled": True}),
        ("a/b/none", {"reasoning.enabled": False}),
        ("a/b/4000", {"reasoning.effort": "high"}),
        ("a/b", {"reasoning.effort": "high", "reasoning.maxTokens": 5000}),
    ],
)
def test_words_said_together_that_agree_all_hold(model, values):
    settings = Settings()
    settings.say(values, model)
    assert settings.said().items() >= parse_all(values).items()


def test_a_number_in_the_model_is_a_budget():
    snapshot = Settings().snapshot(model="openrouter/moonshotai/kimi-k2-thinking/50000")
    assert snapshot.model == "openrouter/moonshotai/kimi-k2-thinking"
    assert snapshot["reasoning.maxTokens"] == 50_000
    assert snapshot.origin("reasoning.maxTokens") == "request"


def test_a_level_of_a_model_that_is_not_in_effect_says_nothing():
    settings = Settings()
    settings.replace("config", {"reasoning.maxTokens": 4000}, "a/b/high")
    settings.set_model("c/d")
    snapshot = settings.snapshot()
    assert (snapshot["reasoning.effort"], snapshot["reasoning.maxTokens"]) == (None, 4000)


def test_what_is_set_after_the_model_overrules_its_level():
    settings = Settings()
    settings.set_model("a/b/high")
    settings.set("reasoning.effort", "low")
    assert settings.snapshot()["reasoning.effort"] == "low"
    settings.set_model("a/b/max")
    assert settings.snapshot()["reasoning.effort"] == "max"
    settings.unset("reasoning.effort")
    assert settings.snapshot()["reasoning.effort"] is None


def test_a_level_without_a_budget_below_leaves_the_budget_at_its_default():
    assert Settings().snapshot(model="a/b/high").origin("reasoning.maxTokens") == "default"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", 'the model cannot be "": use a name such as provider/model'),
        ("a b", 'the model cannot be "a b": use a name such as provider/model'),
        ("a/b/0", '"a/b/0" asks for a budget of 0: for no thinking use a/b/none'),
    ],
)
def test_err_001_a_bad_model_is_refused(name, message):
    settings = Settings()
    settings.set_model("a/b/low")
    before = settings.snapshot()
    with pytest.raises(SettingError) as caught:
        settings.set_model(name)
    assert str(caught.value) == message
    assert settings.snapshot() == before


def test_err_001_replace_is_all_or_nothing():
    settings = Settings()
    settings.replace("profile", {"reasoning.effort": "low"}, "a/b")
    before = settings.snapshot()
    for values, model in (
        ({"reasoning.effort": "high", "reasoning.format": "xml"}, "c/d"),
        ({"reasoning.effort": "high", "nonsense": 1}, "c/d"),
        ({"reasoning.effort": "high"}, "c/d/0"),
    ):
        with pytest.raises(SettingError):
            settings.replace("profile", values, model)
        assert settings.snapshot() == before


def test_ec_005_a_loaded_profile_holds_at_once_over_the_session():
    settings = Settings()
    settings.replace("config", {"context.limit": 9000})
    settings.set_model("a/b/high")
    settings.set("reasoning.includeInResponse", False)
    settings.replace("stored", {"reasoning.maxSeconds": 3}, "a/b")
    gone = settings.load_profile({"reasoning.stripFromContext": "all"}, "c/d")
    snapshot = settings.snapshot()
    assert gone == ("reasoning.includeInResponse", "reasoning.effort", "reasoning.maxSeconds")
    assert snapshot.model == "c/d"
    assert snapshot["reasoning.includeInResponse"] is True
    assert snapshot["reasoning.stripFromContext"] == "all"
    assert snapshot["context.limit"] == 9000


def test_ec_005_a_profile_that_cannot_be_loaded_changes_nothing():
    settings = Settings()
    settings.set("reasoning.effort", "low")
    before = settings.snapshot()
    with pytest.raises(SettingError):
        settings.load_profile({"reasoning.format": "xml"}, "c/d")
    assert settings.snapshot() == before


def test_ec_005_a_profile_without_a_model_leaves_the_sessions():
    settings = Settings()
    settings.set_model("a/b")
    settings.load_profile({})
    assert settings.snapshot().model == "a/b"


def test_chosen_leaves_presets_out_and_keeps_what_overrules_them():
    settings = Settings()
    settings.set("reasoning.effort", "high")
    settings.set("reasoning.format", "field")
    said = {"reasoning.effort": "high", "reasoning.format": "field"}
    assert settings.snapshot(preset=KIMI).chosen() == said
    settings.set("reasoning.includeInContext", False)
    assert settings.snapshot(preset=KIMI).chosen() == said | {"reasoning.includeInContext": False}
    settings.set("reasoning.includeInContext", True)
    assert settings.snapshot(preset=KIMI).chosen()["reasoning.includeInContext"] is True
    assert "reasoning.includeInContext" in Settings().snapshot(preset=KIMI).differing()


def test_what_was_chosen_to_be_unset_is_chosen():
    settings = Settings()
    settings.replace("config", {"reasoning.effort": "high", "reasoning.maxTokens": 4000})
    settings.reset("reasoning.effort")
    assert settings.snapshot().chosen() == {
        "reasoning.effort": None,
        "reasoning.maxTokens": 4000,
    }
    settings.set_model("a/b/low")  # a level ends every budget below it
    assert settings.snapshot().chosen() == {
        "reasoning.effort": "low",
        "reasoning.maxTokens": None,
    }


def test_a_layer_can_unset_what_lower_ones_say_and_only_what_can_be_unset():
    settings = Settings()
    settings.replace("config", {"reasoning.effort": "high", "reasoning.summary": "none"})
    settings.replace("profile", {"reasoning.effort": None, "reasoning.summary": None})
    snapshot = settings.snapshot()
    assert (snapshot["reasoning.effort"], snapshot.origin("reasoning.effort")) == (None, "profile")
    assert snapshot["reasoning.summary"] == "none"
    assert settings.snapshot(request={"context.limit": None}).origin("context.limit") == "default"


def test_one_requests_values_have_no_layer_to_stay_in():
    with pytest.raises(ValueError, match="request"):
        Settings().set("reasoning.effort", "low", "request")


@given(
    key=st.one_of(st.text(), st.sampled_from(list(REGISTRY))),
    value=st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none()),
    layer=st.sampled_from(["config", "profile", "stored", "environment", "session"]),
)
def test_err_001_a_refused_change_leaves_every_value_and_an_accepted_one_all_others(
    key, value, layer
):
    settings = Settings()
    settings.replace("config", {"reasoning.effort": "low"}, "a/b")
    settings.set("context.limit", 7)
    before = settings.snapshot()
    try:
        settings.set(key, value, layer)
    except SettingError:
        assert settings.snapshot() == before
        return
    after = settings.snapshot()
    changed = {name for name, _ in before.items() if before[name] != after[name]}
    assert changed <= {next(name for name in REGISTRY if name.lower() == key.strip().lower())}
