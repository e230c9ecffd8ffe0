"""What a profile's JSON holds, and how each kind of damage is told."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.catalog.load import shipped
from mull.catalog.resolve import resolve
from mull.neutral.errors import ProfileError, SettingError
from mull.settings.layers import Settings
from mull.settings.presets import preset_values
from mull.settings.profile import (
    Parameters,
    Profile,
    profile_from_json,
    profile_of,
    profile_to_json,
)
from mull.settings.registry import REGISTRY, parse
from mull.settings.words import looks_secret

PROVIDERS = ("anthropic", "moonshotai")
CLAUDE, KIMI = "anthropic/claude-sonnet-4-5", "moonshotai/kimi-k2-thinking"
KEY = "sk-" + "a1B2" * 8  # built here, so that no scanner takes this file for a leak


def written(**changes):
    whole = {
        "version": 1,
        "provider": "anthropic",
        "model": "claude-sonnet-4-5",
        "parameters": {"temperature": 0.5, "maxTokens": 8000},
        "settings": {"reasoning.effort": "high"},
    }
    return json.dumps(whole | changes).encode()


def refusal(data, providers=PROVIDERS):
    with pytest.raises(ProfileError) as caught:
        profile_from_json(data, "work", providers)
    return str(caught.value)


def test_a_profile_reads_back():
    profile = profile_from_json(written(), "work", PROVIDERS)
    assert profile == Profile(
        provider="anthropic",
        model="claude-sonnet-4-5",
        parameters=Parameters(0.5, 8000),
        settings={"reasoning.effort": "high"},
    )
    assert profile.model_name == "anthropic/claude-sonnet-4-5"
    assert profile_from_json(profile_to_json(profile, "work"), "work", PROVIDERS) == profile


def test_the_file_is_readable_and_leaves_out_what_is_not_said():
    assert profile_to_json(Profile(model="m"), "work").decode() == (
        '{\n  "version": 1,\n  "model": "m"\n}\n'
    )


def test_keys_and_values_are_canonical_once_read():
    data = written(settings={"Reasoning.StripFromContext": "ALLBUTLAST"})
    profile = profile_from_json(data, "work", PROVIDERS)
    assert profile.settings == {"reasoning.stripFromContext": "allButLast"}


def test_req_think_006_6_every_setting_can_be_saved():
    other = {
        "boolean": lambda s: not s.default,
        "choice": lambda s: next((c for c in s.choices if c != s.default), s.default),
        "count": lambda s: 1234,
        "seconds": lambda s: 1.5,
        "share": lambda s: 0.5,
        "field": lambda s: "reasoning_text",
        "model": lambda s: "a/b",
    }
    settings = Settings()
    others = {key: other[setting.kind](setting) for key, setting in REGISTRY.items()}
    settings.replace("session", others)
    chosen = settings.snapshot().chosen()
    assert set(chosen) == set(REGISTRY)
    data = profile_to_json(Profile(settings=chosen), "work")
    loaded = Settings()
    loaded.load_profile(profile_from_json(data, "work", ()).settings)
    assert loaded.snapshot().fingerprint == settings.snapshot().fingerprint


@given(
    key=st.sampled_from(list(REGISTRY)),
    raw=st.one_of(st.text(), st.integers(), st.floats(), st.booleans()),
)
def test_any_accepted_value_survives_a_profile(key, raw):
    try:
        value = parse(key, raw)
    except SettingError:
        return
    profile = Profile(settings={key: value})
    assert profile_from_json(profile_to_json(profile, "work"), "work") == profile


VALUES = {
    "boolean": st.booleans(),
    "choice": st.nothing(),
    "count": st.integers(1, 10**9),
    "seconds": st.floats(0.001, 10**9),
    "share": st.floats(0, 1),
    "field": st.sampled_from(["reasoning_text", "thinking"]),
    "model": st.sampled_from(["a/b", "c/d/high"]),
}
MODELS = st.none() | st.sampled_from([CLAUDE, f"{CLAUDE}/high", f"{CLAUDE}/5000", f"{KIMI}/off"])


def layers(*, unset):
    """What one layer may say: some keys, each with any value that it allows."""
    said = {}
    for key, setting in REGISTRY.items():
        value = st.sampled_from(setting.choices) if setting.choices else VALUES[setting.kind]
        said[key] = st.none() | value if unset and setting.default is None else value
    return st.fixed_dictionaries({}, optional=said)


@given(config=layers(unset=False), model=MODELS, said=layers(unset=True), asked=MODELS)
def test_req_think_006_6_a_profile_brings_back_what_was_chosen_over_any_config(
    config, model, said, asked
):
    before, after = Settings(), Settings()
    for settings in (before, after):
        settings.replace("config", config, model)
    before.replace("session", said, asked)
    name = before.snapshot().model
    target = resolve(name, catalog=shipped()) if name else None
    saved = profile_of(before.snapshot(), target, Parameters())
    loaded = profile_from_json(profile_to_json(saved, "work"), "work")
    assert loaded == saved
    after.load_profile(loaded.settings, loaded.model_name)
    preset = preset_values(target.facts) if target else {}
    assert dict(after.snapshot(preset=preset).items()) == dict(
        before.snapshot(preset=preset).items()
    )
    assert after.snapshot().model == name


def test_a_name_that_asks_for_thinking_is_saved_as_such():
    settings = Settings()
    for name in ("claude-sonnet-4-5-thinking/low", "Anthropic/claude-sonnet-4-5-thinking"):
        settings.set_model(name)
        target = resolve(name)
        saved = profile_of(settings.snapshot(), target, Parameters())
        assert saved.model_name == "anthropic/claude-sonnet-4-5-thinking"
        assert resolve(saved.model_name).wants_thinking


def test_a_file_that_says_null_unsets_and_old_files_say_what_they_said():
    data = written(settings={"reasoning.effort": None, "reasoning.summary": None})
    assert profile_from_json(data, "work").settings == {"reasoning.effort": None}
    assert profile_from_json(written(), "work").settings == {"reasoning.effort": "high"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            written()[:-30],
            'profile "work" is damaged (input data was truncated): fix its file or save it again',
        ),
        (
            b"",
            'profile "work" is damaged (input data was truncated): fix its file or save it again',
        ),
        (
            b'{"version":1,}',
            'profile "work" is damaged (trailing comma in object (byte 13)): '
            "fix its file or save it again",
        ),
        (b"[1]", 'profile "work" is damaged: it holds a list, not a profile'),
        (b"{}", 'profile "work" is damaged: its version is nothing'),
        (
            written(version=2),
            'profile "work" has version 2 and this mull reads up to 1: '
            "upgrade mull, or save the profile again",
        ),
        (
            written(provider="antropic"),
            'profile "work" names an unknown provider, "antropic": '
            "did you mean anthropic? [providers.antropic] in config.toml adds one",
        ),
        (
            written(provider="a/b"),
            'profile "work": provider cannot be "a/b": use a name such as anthropic',
        ),
        (
            written(colour="blue"),
            'profile "work": "colour" is unknown, '
            "use version, provider, model, baseUrl, parameters or settings",
        ),
        (
            written(settings={"reasoning.efort": "high"}),
            'profile "work": there is no setting "reasoning.efort": '
            "did you mean reasoning.effort? `mull settings` lists all",
        ),
        (
            written(settings={"reasoning.format": "xml"}),
            'profile "work": reasoning.format cannot be "xml": use field or native',
        ),
        (written(settings=[]), 'profile "work": settings cannot be a list: use a table'),
        (written(parameters=3), 'profile "work": parameters cannot be 3: use a table'),
        (
            written(parameters={"topP": 1}),
            'profile "work": "topP" is unknown, use temperature or maxTokens',
        ),
        (
            written(parameters={"temperature": 3}),
            'profile "work": temperature cannot be 3: use a number from 0 to 2',
        ),
        (
            written(parameters={"maxTokens": 1.5}),
            'profile "work": maxTokens cannot be 1.5: use a whole number above 0',
        ),
        (
            written(model="a b"),
            'profile "work": the model cannot be "a b": use a name such as provider/model',
        ),
        (
            written(apiKey="x"),
            'profile "work": take "apiKey" out, '
            "profiles do not hold secrets: put API keys into environment variables",
        ),
    ],
)
def test_damage_is_told_and_nothing_is_returned(data, message):
    assert refusal(data) == message


@given(st.binary(max_size=200))
def test_no_file_brings_it_down(data):
    try:
        profile_from_json(data, "work", PROVIDERS)
    except ProfileError as error:
        told = str(error)
    else:
        told = ""
    assert told.isprintable()


def test_without_a_list_of_providers_any_will_do():
    assert profile_from_json(written(provider="acme"), "work").provider == "acme"


@pytest.mark.parametrize(
    "profile",
    [
        Profile(model=KEY),
        Profile(settings={"compression.model": "AIza" + "a1B2" * 9}),
        Profile(settings={"reasoning.fieldName": "ghp_" + "a1B2" * 9}),
        Profile(settings={"apiKey": "x"}),
        Profile(settings={"reasoning.secret": "x"}),
        Profile(settings={"authorization": "x"}),
    ],
)
def test_a_secret_is_never_saved_nor_shown(profile):
    with pytest.raises(ProfileError) as caught:
        profile_to_json(profile, "work")
    assert str(caught.value).startswith('profile "work" was not saved: ')
    assert "a1B2" not in str(caught.value)


def test_no_model_of_the_catalog_is_taken_for_a_secret():
    for provider, model in shipped().pairs():
        assert not looks_secret(f"{provider}/{model}")
        assert not looks_secret(model)


def test_names_that_only_resemble_secrets_are_saved():
    settings = {"reasoning.maxTokens": 5, "compression.model": "risk-model/ask-me-anything-about"}
    profile = Profile(parameters=Parameters(max_tokens=5), settings=settings)
    assert profile_from_json(profile_to_json(profile, "work"), "work") == profile
