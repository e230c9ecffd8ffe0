"""The environment layer: our own variables are strict, the ones we share are not."""

import pytest

from mull.neutral.errors import SettingError
from mull.settings.environment import env_name, read_environment
from mull.settings.registry import REGISTRY, format_value

EXAMPLES = {
    "boolean": False,
    "count": 1234,
    "seconds": 1.5,
    "share": 0.5,
    "field": "reasoning_text",
    "model": "a/b",
}


def refusal(environ):
    with pytest.raises(SettingError) as caught:
        read_environment(environ)
    return str(caught.value)


def test_nothing_is_said_by_an_empty_environment():
    environment = read_environment({"HOME": "/", "PATH": ""})
    assert environment.values == {}
    assert (environment.model, environment.debug, environment.warnings) == (None, False, ())


@pytest.mark.parametrize("setting", REGISTRY.values(), ids=lambda setting: setting.key)
def test_every_setting_has_a_variable(setting):
    value = setting.choices[0] if setting.choices else EXAMPLES[setting.kind]
    written = env_name(setting.key)
    plain = "MULL_" + setting.key.replace(".", "_").upper()
    for name in (written, plain, plain.lower()):
        assert read_environment({name: format_value(value)}).values == {setting.key: value}


def test_the_variables_name_is_written_in_words():
    assert env_name("reasoning.includeInContext") == "MULL_REASONING_INCLUDE_IN_CONTEXT"
    assert len({env_name(key) for key in REGISTRY}) == len(REGISTRY)


@pytest.mark.parametrize(
    ("environ", "values"),
    [
        ({"THINKING": "on"}, {"reasoning.enabled": True}),
        ({"THINKING": "off"}, {"reasoning.enabled": False}),
        ({"REASONING_EFFORT": "XHIGH"}, {"reasoning.effort": "xhigh"}),
        ({"CLEAR_THINKING": "true"}, {"reasoning.stripFromContext": "all"}),
        (
            {"CLEAR_THINKING": "false"},
            {"reasoning.includeInContext": True, "reasoning.stripFromContext": "none"},
        ),
        ({"THINKING": "", "REASONING_EFFORT": " "}, {}),
    ],
)
def test_the_short_names(environ, values):
    assert read_environment(environ).values == values


def test_debug_is_on_at_1_only():
    assert read_environment({"DEBUG": "1"}).debug is True
    assert read_environment({"DEBUG": "app:*"}).debug is False


def test_our_own_variable_beats_the_short_name():
    environ = {"REASONING_EFFORT": "low", "MULL_REASONING_EFFORT": "high"}
    assert read_environment(environ).values == {"reasoning.effort": "high"}


def test_a_short_name_that_means_nothing_is_a_warning():
    environment = read_environment(
        {"THINKING": "hard", "REASONING_EFFORT": "banana", "CLEAR_THINKING": "x"}
    )
    assert environment.values == {}
    assert environment.warnings == (
        'THINKING is ignored: "hard" is not a valid value, use on or off',
        'REASONING_EFFORT is ignored: "banana" is not a valid value, '
        "use none, minimal, low, medium, high, xhigh or max",
        'CLEAR_THINKING is ignored: "x" is not a valid value, use true or false',
    )


def test_err_001_a_bad_value_names_the_variable():
    assert refusal({"MULL_REASONING_FORMAT": "xml"}) == (
        'MULL_REASONING_FORMAT: reasoning.format cannot be "xml": use field or native'
    )


def test_a_variable_that_is_almost_a_setting_is_an_error():
    assert refusal({"MULL_REASONING_EFORT": "high"}) == (
        '"MULL_REASONING_EFORT" matches no setting: '
        "did you mean MULL_REASONING_EFFORT? `mull settings` lists all"
    )
    assert refusal({"MULL_MODEL_PRESET": "no"}).startswith('"MULL_MODEL_PRESET" matches no setting')


def test_other_variables_of_ours_are_left_alone():
    environ = {"MULL_CONFIG_DIR": "/x", "MULL_MODELS_FILE": "y", "MULL_": "z", "MULLED": "wine"}
    assert read_environment(environ).values == {}


def test_two_spellings_must_agree():
    both = {"MULL_REASONING_MAX_TOKENS": "5", "MULL_REASONING_MAXTOKENS": "5"}
    assert read_environment(both).values == {"reasoning.maxTokens": 5}
    assert refusal(both | {"MULL_REASONING_MAXTOKENS": "6"}) == (
        "MULL_REASONING_MAXTOKENS and MULL_REASONING_MAX_TOKENS disagree about "
        "reasoning.maxTokens: keep one of them"
    )


@pytest.mark.parametrize("word", ["", " ", "unset", "Default"])
def test_a_variable_can_be_there_and_say_nothing(word):
    assert read_environment({"MULL_REASONING_EFFORT": word, "MULL_MODEL": ""}).values == {}


def test_the_model_has_a_variable():
    assert read_environment({"MULL_MODEL": "a/b/high"}).model == "a/b/high"
    assert refusal({"MULL_MODEL": "a b"}).startswith('MULL_MODEL: the model cannot be "a b"')
    assert refusal({"MULL_MODEL": "a/0"}).startswith('MULL_MODEL: "a/0" asks for a budget of 0')


def test_a_level_in_the_model_and_another_beside_it_are_told():
    said = read_environment({"MULL_MODEL": "a/b/low", "REASONING_EFFORT": "high"})
    assert said.warnings == (
        'MULL_MODEL is "a/b/low": reasoning.effort=high in the environment holds for other models'
        " only",
    )
    assert read_environment({"MULL_MODEL": "a/b/low", "REASONING_EFFORT": "low"}).warnings == ()
    assert read_environment({"MULL_MODEL": "a/b/low", "MULL_CONTEXT_LIMIT": "9"}).warnings == ()


@pytest.mark.parametrize(
    ("level", "environ", "word"),
    [
        ("low", {"THINKING": "off"}, "reasoning.enabled=false"),
        ("5000", {"THINKING": "off"}, "reasoning.enabled=false"),
        ("none", {"THINKING": "on"}, "reasoning.enabled=true"),
        ("5000", {"REASONING_EFFORT": "none"}, "reasoning.effort=none"),
        ("none", {"MULL_REASONING_MAX_TOKENS": "5000"}, "reasoning.maxTokens=5000"),
    ],
)
def test_a_level_in_the_model_and_a_variable_that_contradicts_it_are_told(level, environ, word):
    said = read_environment({"MULL_MODEL": f"a/b/{level}", **environ})
    assert said.warnings == (
        f'in the environment {word} and "a/b/{level}" contradict each other: keep one of them',
    )


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("reasoning.enabled=false", "reasoning.effort=high"),
        ("reasoning.enabled=false", "reasoning.maxTokens=5000"),
        ("reasoning.enabled=true", "reasoning.effort=none"),
        ("reasoning.effort=none", "reasoning.maxTokens=5000"),
    ],
)
def test_variables_that_contradict_each_other_on_thinking_are_told(one, two):
    environ = {env_name(key): value for key, value in (one.split("="), two.split("="))}
    (told,) = read_environment(environ).warnings
    assert one in told
    assert two in told
    assert told.endswith("contradict each other: keep one of them")


def test_an_effort_and_a_budget_in_the_environment_are_two_requests():
    environ = {"THINKING": "on", "REASONING_EFFORT": "high", "MULL_REASONING_MAX_TOKENS": "5000"}
    assert read_environment(environ).warnings == ()
