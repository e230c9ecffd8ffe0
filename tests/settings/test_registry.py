"""The table of settings: defaults, what each takes, and how a refusal reads."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.neutral.errors import SettingError
from mull.neutral.thinking import LADDER
from mull.settings.registry import (
    CLEARING_WORDS,
    REGISTRY,
    find,
    format_value,
    parse,
    parse_all,
)

KEYS = st.sampled_from(list(REGISTRY))
SCALARS = st.one_of(
    st.text(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=True),
    st.none(),
    st.lists(st.none()),
)


def refusal(key, raw):
    with pytest.raises(SettingError) as caught:
        parse(key, raw)
    return str(caught.value)


def test_req_think_006_1_enabled_defaults_to_true():
    assert REGISTRY["reasoning.enabled"].default is True


def test_req_think_006_2_include_in_context_defaults_to_false():
    """BR-001 too: nothing is sent back to a model that may not expect it."""
    assert REGISTRY["reasoning.includeInContext"].default is False


def test_req_think_006_3_include_in_response_defaults_to_true():
    assert REGISTRY["reasoning.includeInResponse"].default is True


def test_req_think_006_4_format_defaults_to_field():
    assert REGISTRY["reasoning.format"].default == "field"


def test_req_think_006_5_strip_from_context_defaults_to_none():
    assert REGISTRY["reasoning.stripFromContext"].default == "none"


def test_the_other_defaults():
    assert {key: setting.default for key, setting in REGISTRY.items()} == {
        "reasoning.enabled": True,
        "reasoning.includeInContext": False,
        "reasoning.includeInResponse": True,
        "reasoning.effort": None,
        "reasoning.maxTokens": None,
        "reasoning.format": "field",
        "reasoning.stripFromContext": "none",
        "reasoning.maxSeconds": None,
        "reasoning.fieldName": None,
        "reasoning.summary": "auto",
        "reasoning.handoff": "drop",
        "reasoning.dynamicBudget": True,
        "reasoning.dynamicBudgetOver": 150_000,
        "reasoning.dynamicBudgetCap": 10_000,
        "reasoning.condenseOver": None,
        "context.limit": None,
        "compression.threshold": 0.85,
        "compression.strategy": "middle-out",
        "compression.model": None,
        "tools.mode": None,
        "tools.sandbox": "auto",
        "tools.onDemandOver": 40,
        "tools.onDemandTokens": 12_000,
        "terminal.notify": "bell",
        "terminal.notifyAfter": 20.0,
        "terminal.title": True,
        "model.presets": True,
    }


@pytest.mark.parametrize("setting", REGISTRY.values(), ids=lambda setting: setting.key)
def test_every_row_is_whole(setting):
    assert find(setting.key.upper()) is setting
    assert setting.help
    assert "\n" not in setting.help
    assert len(setting.help) <= 80
    assert (setting.kind == "choice") == bool(setting.choices)
    if setting.default is not None:
        assert parse(setting.key, setting.default) == setting.default
        assert parse(setting.key, format_value(setting.default)) == setting.default


@pytest.mark.parametrize(
    ("key", "raw", "value"),
    [
        ("reasoning.effort", "HIGH", "high"),
        ("reasoning.effort", "med", "medium"),
        ("reasoning.effort", "Off", "none"),
        ("reasoning.stripFromContext", "allbutlast", "allButLast"),
        ("Reasoning.StripFromContext", " ALL ", "all"),
        ("reasoning.format", "native", "native"),
        ("reasoning.enabled", "on", True),
        ("reasoning.enabled", "No", False),
        ("reasoning.enabled", 0, False),
        ("reasoning.enabled", True, True),
        ("reasoning.maxTokens", "50000", 50_000),
        ("reasoning.maxTokens", "50_000", 50_000),
        ("reasoning.maxTokens", "50,000", 50_000),
        ("reasoning.maxTokens", 50_000.0, 50_000),
        ("reasoning.maxSeconds", "1.5", 1.5),
        ("reasoning.maxSeconds", "1,000", 1000.0),
        ("compression.threshold", ".5", 0.5),
        ("compression.threshold", 1, 1.0),
        ("reasoning.fieldName", "reasoning_text", "reasoning_text"),
        (
            "compression.model",
            "openrouter/moonshotai/kimi-k2/low",
            "openrouter/moonshotai/kimi-k2/low",
        ),
    ],
)
def test_a_value_is_stored_in_its_canonical_form(key, raw, value):
    parsed = parse(key, raw)
    assert parsed == value
    assert type(parsed) is type(value)


def test_every_level_of_the_ladder_is_an_effort():
    assert REGISTRY["reasoning.effort"].choices == LADDER


@pytest.mark.parametrize(
    ("key", "raw", "message"),
    [
        ("reasoning.format", "xml", 'reasoning.format cannot be "xml": use field or native'),
        (
            "reasoning.effort",
            "hgh",
            'reasoning.effort cannot be "hgh": use none, minimal, low, medium, high, xhigh or max',
        ),
        ("reasoning.enabled", "maybe", 'reasoning.enabled cannot be "maybe": use true or false'),
        (
            "reasoning.maxTokens",
            0,
            "reasoning.maxTokens cannot be 0: use a whole number from 1 to 1,000,000,000, "
            "such as 50000",
        ),
        (
            "compression.threshold",
            "85%",
            'compression.threshold cannot be "85%": use a number from 0 to 1, such as 0.85',
        ),
        (
            "reasoning.effort",
            ["high"],
            "reasoning.effort cannot be a list: use none, minimal, low, medium, high, xhigh or max",
        ),
    ],
)
def test_err_001_a_refusal_lists_what_is_allowed(key, raw, message):
    assert refusal(key, raw) == message


@pytest.mark.parametrize(
    ("key", "raw"),
    [
        ("reasoning.maxTokens", True),
        ("reasoning.maxTokens", "5,00"),
        ("reasoning.maxTokens", "-1"),
        ("reasoning.maxTokens", "٣"),
        ("reasoning.maxTokens", "9" * 5000),
        ("reasoning.maxTokens", 10**400),
        ("reasoning.maxTokens", math.inf),
        ("reasoning.maxTokens", math.nan),
        ("reasoning.maxTokens", None),
        ("reasoning.maxSeconds", "nan"),
        ("reasoning.maxSeconds", math.nan),
        ("reasoning.maxSeconds", 10**400),
        ("reasoning.maxSeconds", "1e999"),
        ("reasoning.enabled", 2),
        ("reasoning.fieldName", "two words"),
        ("reasoning.fieldName", "unset"),
        ("compression.model", "/x"),
        ("compression.model", "a\u2028b"),
        ("compression.model", "default"),
        ("reasoning.effort", {"level": "high"}),
    ],
)
def test_err_001_what_only_resembles_a_value_is_refused(key, raw):
    assert "\n" not in refusal(key, raw)


def test_a_refusal_stays_on_one_short_line_whatever_it_quotes():
    message = refusal("reasoning.format", "\x1b[31m\n\t" + "x" * 1000)
    assert message.isprintable()
    assert len(message) < 200
    assert '"\\x1b[31m\\n\\txxx' in message


def test_a_refusal_does_not_repeat_a_key():
    message = refusal("reasoning.effort", "sk-" + "a1B2" * 8)
    assert "a1B2" not in message
    assert message.startswith('reasoning.effort cannot be "…" (not shown: it looks like a key)')


def test_an_unknown_key_is_met_with_the_closest():
    with pytest.raises(SettingError) as caught:
        find("reasoning.efort")
    assert str(caught.value) == (
        'there is no setting "reasoning.efort": did you mean reasoning.effort? '
        "`mull settings` lists all"
    )
    with pytest.raises(SettingError, match=r'^there is no setting "": `mull settings` lists all$'):
        find("")


def test_a_key_given_twice_in_different_case_is_refused():
    with pytest.raises(SettingError, match=r"^reasoning\.effort is given twice: keep one$"):
        parse_all({"reasoning.effort": "low", "Reasoning.Effort": "high"})
    assert parse_all({"reasoning.effort": None, "context.limit": "9"}) == {"context.limit": 9}


def test_no_clearing_word_is_ever_a_value():
    for key in REGISTRY:
        for word in CLEARING_WORDS:
            with pytest.raises(SettingError):
                parse(key, word)


@given(key=KEYS, raw=SCALARS)
def test_what_is_accepted_reads_back_from_its_own_text(key, raw):
    try:
        value = parse(key, raw)
    except SettingError as error:
        message = str(error)
    else:
        message = format_value(value)
        assert parse(key, message) == parse(key, value) == value
    assert message.isprintable()


@given(
    st.floats(min_value=0, max_value=1e9, exclude_min=True),
    st.integers(min_value=1, max_value=10**9),
)
def test_numbers_read_back_exactly(seconds, count):
    assert parse("reasoning.maxSeconds", format_value(seconds)) == seconds
    assert parse("context.limit", f"{count:,}") == parse("context.limit", f"{count:_}") == count


def test_unset_is_shown_as_such():
    assert format_value(None) == "unset"
