"""What is told of a wish is what is sent: whatever the model, the endpoint and the wish.

The bodies are read here by rules of their own, not by the code that writes them.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from conversations import snapshot, target
from effort import tried
from every_model import every_target
from mull.catalog.load import load
from mull.catalog.resolve import resolve
from mull.dialects.registry import encode_request
from mull.history.log import Log
from mull.neutral.errors import BudgetError
from mull.neutral.messages import user
from mull.neutral.thinking import LADDER, WRITERS, as_level, write_thinking
from mull.policy.prepare import prepare
from mull.policy.thinking.plan import level_table, plan_thinking
from mull.settings.layers import Settings
from mull.settings.presets import preset_values
from rows import for_each

DIALECTS = {
    "anthropic": ("anthropic-budget", "anthropic-adaptive", "usual", "none"),
    "gemini": ("gemini-budget", "gemini-level", "usual", "none"),
    "openai-responses": ("responses", "usual", "none"),
    "openai-chat": tuple(name for name in WRITERS if name.partition("-")[0] != "gemini"),
}
OPTIONS = (
    {"type": "toggle"},
    {"type": "effort", "values": ("none", "low", "high")},
    {"type": "effort", "values": ("minimal", "medium", "max")},
    {"type": "effort", "values": ("none", "default")},
    {"type": "budget_tokens", "min": 1024, "max": 32_000},
    {"type": "budget_tokens", "min": 0, "max": 24_576},
    {"type": "budget_tokens"},
)
WISHES: list[dict[str, Any]] = [
    {},
    {"enabled": True},
    {"enabled": False},
    *({"effort": level} for level in LADDER),
    {"maxTokens": 2_000},
    {"maxTokens": 5_000},
    {"enabled": True, "maxTokens": 12_345},
]


class Read:
    """What a body says of thinking: `off`, `on`, the words and the numbers in it."""

    def __init__(self, fragment: Any) -> None:
        self.words: set[str] = set()
        self.numbers: set[int] = set()
        self.switch: set[bool] = set()
        self._walk(fragment)

    def _walk(self, value: Any) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                if name not in ("includeThoughts", "display", "summary"):
                    self._walk(inner)
        elif isinstance(value, bool):
            self.switch.add(value)
        elif isinstance(value, int):
            self.numbers.add(value)
        elif value in ("enabled", "adaptive", "disabled", "between_tools"):
            self.switch.add(value in ("enabled", "adaptive"))
        else:
            self.words.add(value.lower())

    @property
    def off(self) -> bool:
        return False in self.switch or "none" in self.words or 0 in self.numbers

    @property
    def on(self) -> bool:
        thinks = {word for word in self.words if as_level(word) and word != "none"}
        return bool(True in self.switch or thinks or self.numbers - {0})


def check(target, planned):
    """Everything that an outcome may claim, held against the fragment it quotes."""
    outcome, facts = planned.notes[-1], target.facts
    fragment = write_thinking(planned.plan)
    told = outcome.effective
    assert outcome.kind == "outcome"
    assert outcome.sent_as == (msgspec.json.encode(fragment).decode() if fragment else None)
    assert told == planned.summary
    if planned.plan.state == "off" and planned.plan.effort not in (None, "none"):
        # told not to, though it is known to always think: its lowest word goes along
        fragment = write_thinking(msgspec.structs.replace(planned.plan, effort=None))
    read = Read(fragment)
    assert not (read.on and read.off), fragment
    by_itself = told.startswith("default (") and facts.default_effort
    numbers = {int(n.replace(",", "")) for n in re.findall(r"(\d[\d,]*) tokens", told)}
    assert numbers == read.numbers - {0}, (told, fragment)
    words = {
        word for word in re.findall(r"[a-z]+", told.partition(" (")[0].lower()) if word in LADDER
    }
    if "effort" in told or "level" in told:
        assert words == read.words & set(LADDER), (told, fragment)
    elif not by_itself and not numbers:
        assert not read.words - {"none"}, (told, fragment)
    silent_off = facts.thinks_by_default is False or not planned.thinks
    if told.startswith("off"):
        says_nothing = not (read.words or read.numbers or read.switch)  # only what is shown
        assert read.off or (says_nothing and silent_off), (told, fragment)
    else:
        assert not read.off, (told, fragment)
    if told in ("on", "adaptive"):
        assert read.on, (told, fragment)
    if told.startswith("on ("):
        assert facts.thinks_by_default
    if told == "always on":
        assert facts.can_be_off is False or facts.reasoning_options
    if "may continue" in told:
        assert planned.thinks
        assert any("may continue" in note.text for note in planned.notes if note.warning)


def check_told(wish, planned):
    """A number or level that is not in the body is not passed over in silence."""
    read = Read(write_thinking(planned.plan))
    told = [note for note in planned.notes if note.warning or note.kind == "shrunk"]
    if "maxTokens" in wish:
        assert wish["maxTokens"] in read.numbers or told
    elif wish.get("effort", "none") != "none":
        assert wish["effort"] in read.words or planned.summary.startswith(wish["effort"]) or told
    elif wish.get("enabled") is False or "effort" in wish:
        assert read.off or not planned.thinks or told


@st.composite
def targets(draw):
    dialect = draw(st.sampled_from(sorted(DIALECTS)))
    known = draw(st.booleans())
    return target(
        draw(st.sampled_from(DIALECTS[dialect])),
        dialect=dialect,
        options=draw(st.lists(st.sampled_from(OPTIONS), max_size=3)),
        known=known,
        reasoning=draw(st.booleans()),
        output=draw(st.sampled_from([None, 8_000, 64_000])),
        compat={"budget_field": draw(st.sampled_from([None, "thinking_token_budget"]))},
        can_be_off=draw(st.sampled_from([None, True, False])),
        thinks_by_default=draw(st.sampled_from([None, True, False])),
        default_effort=draw(st.sampled_from([None, "none", "high"])),
        off_type=draw(st.sampled_from(["disabled", "between_tools"])),
    )


@tried(2)
@given(targets(), st.sampled_from(WISHES), st.sampled_from([None, 6_000]))
@example(target("template-kwargs", known=False, reasoning=False), {"maxTokens": 5_000}, None)
@example(target("openai-effort", options=[OPTIONS[0]]), {"effort": "high"}, None)
def test_an_outcome_claims_what_the_body_says(where, wish, max_tokens):
    try:
        planned = plan_thinking(where, snapshot(**wish), max_tokens=max_tokens)
    except BudgetError:
        assume(False)
    check(where, planned)
    check_told(wish, planned)


@given(targets(), st.sampled_from(WISHES))
def test_without_a_wish_an_endpoint_nobody_knows_is_sent_nothing(where, wish):
    unknown = msgspec.structs.replace(
        where, compat=msgspec.structs.replace(where.compat, thinking_writer="usual")
    )
    assert write_thinking(plan_thinking(unknown, snapshot()).plan) == {}
    mulls_own = Settings().snapshot(preset={"reasoning.enabled": False})
    assert write_thinking(plan_thinking(unknown, mulls_own).plan) == {}


CATALOG = load()
PROVIDERS = sorted({*CATALOG.providers, "openai-compatible"})


def sent(where, **wish):
    """The request as it goes out, and its plan's outcome."""
    settings = Settings()
    for key, value in wish.items():
        settings.set(f"reasoning.{key}", value)
    chosen = settings.snapshot(preset=preset_values(where.facts))
    prepared = prepare(Log([user("q")]), chosen, where)
    body = json.loads(encode_request(prepared.request, where).body)
    body |= body.get("additionalModelRequestFields", {})
    names = ("thinking", "output_config", "reasoning_effort", "reasoning", "think")
    names = (
        *names,
        "reasoningConfig",
        "enable_thinking",
        "chat_template_kwargs",
        where.compat.budget_field,
    )
    fragment = {name: body[name] for name in names if name in body}
    config = body.get("generationConfig", {}).get("thinkingConfig")
    return fragment if config is None else {**fragment, "thinkingConfig": config}, prepared


def outcome_of(prepared):
    (outcome,) = [note for note in prepared.notes if note.kind == "outcome"]
    return outcome


@pytest.mark.sweep
def test_a_model_that_is_not_listed_is_told_off_wherever_its_provider_can_be_told():
    for_each(PROVIDERS, check_off)


def check_off(provider):
    """BR-006: off is said, or the user learns that thinking may continue."""
    where = resolve(f"{provider}/nobody-knows-this", catalog=CATALOG)
    for wish in ({"enabled": False}, {"effort": "none"}):
        body, prepared = sent(where, **wish)
        outcome = outcome_of(prepared)
        warned = [note.text for note in prepared.notes if note.warning]
        assert "always on" not in outcome.effective
        assert not any("does not support disabling" in text for text in warned)
        if Read(body).off:
            guessed = is_guess(where)
            assert outcome.effective == ("off (thinking may continue)" if guessed else "off")
            assert guessed == any("may continue" in text for text in warned)
        else:
            assert not body
            assert where.compat.thinking_writer == "none"
            assert "may continue" in outcome.effective
            assert any("may continue" in text for text in warned)


def is_guess(where):
    return where.compat.thinking_writer == "usual" or where.compat.thinking_is_guess


@pytest.mark.sweep
def test_a_model_that_is_not_listed_is_sent_what_was_asked_and_nothing_else():
    for_each(PROVIDERS, check_asked)


def check_asked(provider):
    where = resolve(f"{provider}/nobody-knows-this", catalog=CATALOG)
    assert sent(where)[0] == {}
    for wish in ({"effort": "high"}, {"effort": "low"}, {"maxTokens": 5_000}, {"enabled": True}):
        body, prepared = sent(where, **wish)
        check(where, plan_thinking(where, _settings(wish)))
        outcome = outcome_of(prepared)
        assert "cannot be controlled" not in json.dumps([note.text for note in prepared.notes])
        if where.compat.thinking_writer == "none":
            assert not body
            continue
        if provider.startswith("ollama") and "enabled" in wish:
            assert not body  # thinks unless it is told not to
            continue
        assert Read(body).on, (body, outcome)
        guessed = any("[[compat]]" in note.text for note in prepared.notes if note.warning)
        assert guessed == is_guess(where)


def _settings(wish):
    settings = Settings()
    for key, value in wish.items():
        settings.set(f"reasoning.{key}", value)
    return settings.snapshot()


@pytest.mark.sweep
@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_outcomes_of_every_listed_model_are_true(provider):
    listed = CATALOG.providers[provider].models if provider in CATALOG.providers else ()
    for model in listed:
        where = resolve(f"{provider}/{model}", catalog=CATALOG)
        for wish in WISHES:
            try:
                planned = plan_thinking(where, _settings(wish))
            except BudgetError:
                continue
            check(where, planned)
            check_told(wish, planned)
        unset, *levels = level_table(where, Settings().snapshot())
        for row in levels:
            planned = plan_thinking(where, _settings({"effort": row.level}))
            assert (row.text, row.sent_as) == (planned.summary, planned.sent_as or "nothing")
        planned = plan_thinking(where, _settings({}))
        assert (unset.text, unset.sent_as) == (planned.summary, planned.sent_as or "nothing")


NOT_TOLD = {
    "usual": "no row says in which field its endpoint takes a switch or a budget, and its entry"
    " lists no words: without a wish nothing is invented",
}
"""Why a model with a switch, whose default is off or unknown, is not told to think: by writer."""


def test_every_model_with_a_switch_that_may_not_think_by_itself_is_told_to():
    told = 0
    for where in every_target().values():
        facts = where.facts
        if not facts.reasoning or not facts.reasoning_options or facts.thinks_by_default:
            continue
        reads = Read(sent(where)[0])
        if where.compat.thinking_writer in NOT_TOLD:
            assert not reads.on, where.name
            continue
        assert reads.on, where.name
        assert not reads.off, where.name
        assert not facts.efforts or reads.words <= set(facts.efforts), where.name
        told += 1
    assert told > 600


def test_nobody_claims_a_default_that_nobody_knows():
    for where in every_target().values():
        if where.facts.reasoning and where.facts.thinks_by_default is None:
            rows = level_table(where, Settings().snapshot(preset=preset_values(where.facts)))
            assert not [row for row in rows if "model's default" in row.text], where.name


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("mistral/mistral-small-2603", {"reasoning_effort": "high"}),
        ("mistral/mistral-medium-3-5", {"reasoning_effort": "high"}),
        ("mistral/mistral-small-latest", {"reasoning_effort": "high"}),
        ("openrouter/mistralai/mistral-small-2603", {"reasoning": {"effort": "high"}}),
        ("openrouter/deepseek/deepseek-v3.2", {"reasoning": {"enabled": True}}),
        ("openrouter/aion-labs/aion-2.0", {"reasoning": {"enabled": True}}),
        ("xiaomi/mimo-v2-flash", {"thinking": {"type": "enabled"}}),
        ("alibaba/qwen3-omni-flash", {"enable_thinking": True}),
        (
            "amazon-bedrock/amazon.nova-2-lite-v1:0",
            {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "medium"}},
        ),
        ("amazon-bedrock/deepseek.v3.2", {"reasoning_effort": "high"}),
        ("requesty/openai/gpt-5.1", {"reasoning_effort": "medium"}),
    ],
)
def test_a_model_whose_default_is_off_or_unknown_is_told_to_think(name, says):
    where = resolve(name)
    assert sent(where)[0] == says
    assert not Read(sent(where, enabled=False)[0]).on
