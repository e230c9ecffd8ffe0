"""What holds of healing whatever an endpoint says and whatever was sent."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import messages, origins, snapshot, target, texts
from effort import tried
from growth import ends
from healing import prepared, said
from mull.dialects.registry import encode_request
from mull.history.log import Log
from mull.neutral.errors import LocalError
from mull.neutral.messages import messages_to_json
from mull.neutral.request import NamedTool, RequestOptions, Tool
from mull.neutral.thinking import LADDER, WRITERS, write_thinking
from mull.policy.failure import Failure
from mull.policy.heal.advice import explain
from mull.policy.heal.causes import CAUSES
from mull.policy.heal.healing import heal
from mull.policy.heal.lessons import Lessons, apply_lessons, lessons_from_json, lessons_to_json
from mull.policy.parts import Parts, count_parts
from mull.policy.prepare import prepare
from mull.policy.tokens import CHARACTERS, count_block
from mull.settings.registry import REGISTRY
from refusals import HISTORY

DIALECTS = {
    "anthropic": ("anthropic-budget", "anthropic-adaptive", "none"),
    "gemini": ("gemini-budget", "gemini-level"),
    "openai-responses": ("responses",),
    "openai-chat": tuple(name for name in WRITERS if name.partition("-")[0] != "gemini"),
}
OPTIONS = (
    {"type": "toggle"},
    {"type": "effort", "values": ("none", "low", "high")},
    {"type": "effort", "values": ("minimal", "medium", "max")},
    {"type": "budget_tokens", "min": 1024, "max": 32_000},
)
KNOWN = (
    "messages.1.content.0: Invalid `signature` in `thinking` block",
    "messages.3.content.8: `thinking` blocks in the latest assistant message cannot be modified",
    "Invalid `signature` in `thinking` block. The block is bound to a different conversation.",
    "messages.2.content.1.thinking.signature: Field required",
    "messages.1.content.0.text.id: Extra inputs are not permitted",
    "each thinking block must contain thinking",
    "The final block in an assistant message cannot be `thinking`.",
    "Expected `thinking` or `redacted_thinking`, but found `tool_use`",
    "When thinking is disabled, an `assistant` message in the final position cannot contain it",
    "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    "Encrypted content is not supported with this model.",
    "Function call is missing a thought_signature in functionCall parts.",
    "Corrupted thought signature",
    "thinking is enabled but reasoning_content is missing in assistant tool call message",
    "property 'messages.1.assistant.reasoning_content' is unsupported",
    '"thinking.type.enabled" is not supported for this model',
    "adaptive thinking is not supported on this model",
    "Thinking level is not supported for this model",
    '"thinking.type.disabled" is not supported for this model',
    "Unsupported value: 'high'. Supported values are: 'low', 'medium'.",
    "think value high is not supported",
    "This model does not support the effort parameter.",
    "`max_tokens` must be greater than `thinking.budget_tokens`.",
    "thinking_budget parameter must be a positive integer and not greater than 2048",
    "The thinking budget (52428) is invalid.",
    "Function tools with reasoning_effort are not supported",
    "This model only support stream mode",
    "Thinking may not be enabled when tool_choice forces tool use.",
    "Json mode response is not supported when enable_thinking is true",
    "Assistant response prefill is incompatible with enable_thinking.",
    "max_tokens is not supported with this model. Use max_completion_tokens instead.",
    "`temperature` may only be set to 1 when thinking is enabled.",
    "model does not support thinking",
    "Unsupported parameter: 'reasoning_effort'",
)


@st.composite
def targets(draw):
    dialect = draw(st.sampled_from(sorted(DIALECTS)))
    return target(
        draw(st.sampled_from(DIALECTS[dialect])),
        dialect=dialect,
        options=draw(st.lists(st.sampled_from(OPTIONS), max_size=3)),
        known=draw(st.booleans()),
        reasoning=draw(st.booleans()),
        compat={
            "requires_reasoning": draw(st.sampled_from(["no", "tool_calls", "all"])),
            "missing_reasoning": draw(st.sampled_from([None, "", " "])),
            "reasoning_out": draw(st.sampled_from(["same", "never", "reasoning_content"])),
            "extra_body": draw(st.sampled_from([{}, {"reasoning_effort": "x"}, {"top_p": 0.1}])),
        },
        can_be_off=draw(st.sampled_from([None, True, False])),
    )


@st.composite
def requests(draw):
    one = draw(targets())
    history = draw(st.lists(messages, max_size=6))
    own = draw(st.sampled_from([None, one.origin]))
    for at, message in enumerate(history):
        if message.role == "assistant" and draw(st.booleans()):
            history[at] = type(message)(
                role="assistant", status="complete", origin=own, blocks=message.blocks
            )
    wishes = {"includeInContext": True, "enabled": draw(st.booleans())}
    level = draw(st.sampled_from([None, *LADDER]))
    wishes |= {"effort": level} if level else {}
    options = RequestOptions(
        tools=draw(st.sampled_from([(), (Tool("look"),)])),
        tool_choice=draw(st.sampled_from([None, "auto", "required", NamedTool("look")])),
        temperature=draw(st.sampled_from([None, 0.2])),
        max_tokens=draw(st.sampled_from([None, 500, 4_000])),
        stream=draw(st.booleans()),
    )
    try:
        return prepare(Log(history), snapshot(**wishes), one, options)
    except LocalError:  # a tool that cannot be forced there
        free = msgspec.structs.replace(options, tool_choice=None)
        return prepare(Log(history), snapshot(**wishes), one, free)


words = st.sampled_from([*KNOWN, *(text.pattern.pattern for c in CAUSES for text in c.texts)])
refusals = st.builds(
    Failure,
    st.lists(words | texts, min_size=1, max_size=3).map(" ".join),
    st.sampled_from([200, 400, 404, 422, 500]),
    st.none() | texts,
    st.none() | texts,
)


def check_counted(healed):
    """The count is of what is sent, and so are the notes."""
    counted = count_parts(healed.request.messages, lambda block: count_block(block, CHARACTERS))
    assert healed.parts == Parts(tools=healed.parts.tools) + counted
    assert healed.estimate == healed.parts.total
    assert healed.thinking == next(n.text for n in healed.notes if n.kind == "outcome")
    assert [note.about for note in healed.notes].count("healing") == 1


def check_wishes(refused, repaired, said):
    """It is made from the user's own settings and options, and keeps what the refusal leaves."""
    made, request = repaired.prepared.made, repaired.request
    assert made.log is refused.made.log
    assert made.options == refused.made.options
    for key in REGISTRY:
        if refused.made.snapshot.explicit(key):
            assert made.snapshot[key] == refused.made.snapshot[key]
    asked, told = made.options, {note.about for note in repaired.prepared.notes}
    if request.temperature != asked.temperature:
        assert request.temperature is None
        assert "temperature" in told or "temperature" in said
    if request.tool_choice != asked.tool_choice:
        assert "toolChoice" in told or "tool_choice" in said
    if asked.max_tokens is not None and request.max_tokens != asked.max_tokens:
        assert request.max_tokens < asked.max_tokens
        assert re.search("limit|max_|budget", said)


@tried(2)
@given(requests(), refusals)
def test_a_repair_changes_something_keeps_what_is_visible_and_happens_once(refused, refusal):
    before = messages_to_json(refused.request.messages)
    repaired = heal(refused, refusal)
    assert messages_to_json(refused.request.messages) == before
    if repaired is None:
        return
    assert (repaired.request, repaired.target) != (refused.request, refused.target)
    check_counted(repaired.prepared)
    check_wishes(refused, repaired, refusal.text)
    assert said(repaired.request.messages) == said(refused.request.messages)
    assert heal(repaired.prepared, refusal) is None
    fragment = write_thinking(repaired.request.thinking)
    quoted = [note.sent_as for note in repaired.prepared.notes if note.kind == "outcome"]
    assert quoted == [msgspec.json.encode(fragment).decode() if fragment else None]
    encode_request(repaired.request, repaired.target)
    if repaired.learn is not None:
        lessons = Lessons().learn(refused.target, repaired.learn)
        assert lessons_from_json(lessons_to_json(lessons)) == lessons
        taught = apply_lessons(refused.target, lessons)
        assert taught.dialect == repaired.target.dialect
        assert taught.compat == repaired.target.compat
        later = refused.anew(taught)
        assert said(later.request.messages) == said(refused.request.messages)


@pytest.mark.sweep
@pytest.mark.parametrize("writer", WRITERS)
def test_a_repair_of_an_ordinary_conversation_changes_the_bytes(writer):
    dialects = [dialect for dialect, writers in DIALECTS.items() if writer in writers]
    compat = {"requires_reasoning": "tool_calls"}
    for dialect in dialects:
        one = target(writer, dialect=dialect, options=list(OPTIONS[:2]), compat=compat)
        for parts in ({}, {"tool_choice": "required", "temperature": 0.2, "stream": False}):
            refused = prepared(one, settings={"effort": "high"}, **parts)
            before = encode_request(refused.request, refused.target)
            for text in KNOWN:
                repaired = heal(refused, Failure(text, 400))
                if repaired is not None:
                    after = encode_request(repaired.request, repaired.target)
                    assert (after.path, after.body) != (before.path, before.body), text


@pytest.mark.sweep
@pytest.mark.parametrize(
    "row", HISTORY, ids=[f"{n}-{one.text[:40]}" for n, one in enumerate(HISTORY)]
)
@pytest.mark.parametrize("wish", [{"effort": "high"}, {"maxTokens": 3_000}, {"enabled": True}])
def test_a_refusal_of_the_history_leaves_the_wish_to_think_alone(row, wish):
    refused = prepared(row.target, row.history, settings=wish, **{"max_tokens": 9_000, **row.parts})
    repaired = heal(refused, row.refusal)
    if repaired is None or "thinking: off" in repaired.change:
        return  # no thoughts to leave out, or a chain that lost the thought it began with
    plan, before = repaired.request.thinking, refused.request.thinking
    assert repaired.request.max_tokens == 9_000
    if repaired.learn is None or not repaired.learn.compat.get("thinkingWriter"):
        assert write_thinking(plan) == write_thinking(before)


@given(targets(), st.integers(0, 999), st.text(max_size=200), st.none() | texts, origins)
def test_no_text_makes_it_stumble(one, status, text, code, origin):
    refusal = Failure(text, status, code)
    heal(prepared(one, []), refusal)
    assert len(explain(refusal, one).splitlines()) <= 2


@pytest.mark.parametrize("filler", ["messages.1", "thinking ", "effort", "a", "extra_forbidden "])
def test_an_endless_text_is_read_in_no_time(filler):
    refused = prepared(target("openai-effort"))
    with ends():
        heal(refused, Failure(filler * 200_000, 400))
        explain(Failure(filler * 200_000, 400), refused.target)
