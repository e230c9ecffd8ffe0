"""Conversations, targets and hypothesis strategies that several tests share."""

from __future__ import annotations

import string
from typing import Any

import msgspec
from hypothesis import strategies as st

from mull.neutral.blocks import (
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Wire,
    wire_of,
)
from mull.neutral.messages import Message, Origin, assistant, user
from mull.neutral.target import Compat, Limit, ModelFacts, ReasoningOption, Target
from mull.neutral.usage import Usage
from mull.policy.view.intake import intake_of, taken
from mull.settings.layers import Settings, Snapshot


def snapshot(**values: Any) -> Snapshot:
    """A snapshot with `reasoning.` keys given by name: snapshot(includeInContext=True)."""
    settings = Settings()
    keys = {
        name: name.replace("__", ".") if "__" in name else f"reasoning.{name}" for name in values
    }
    settings.say({keys[name]: value for name, value in values.items()})
    return settings.snapshot()


def decided(prepared: Any) -> dict[str, Any]:
    """All that a prepared request decides, without the inputs that it was prepared from."""
    fields = msgspec.structs.asdict(prepared)
    del fields["made"]
    return fields


def listed(entries: list[dict[str, Any]] | None) -> Wire | None:
    """What a thought of Chat keeps of `reasoning_details`."""
    return wire_of("openai-chat", {"reasoning_details": entries} if entries else {})


def wired(block: Any) -> dict[str, Any]:
    """What a block keeps for its dialect alone."""
    return block.wire.data if block.wire else {}


def target(
    writer: str = "none",
    *,
    dialect: str = "openai-chat",
    options: list[dict[str, Any]] | None = None,
    model: str = "thinker",
    reasoning: bool = True,
    context: int | None = 200_000,
    output: int | None = 64_000,
    known: bool = True,
    compat: dict[str, Any] | None = None,
    **facts: Any,
) -> Target:
    """A made-up target with exactly these facts."""
    steering = tuple(ReasoningOption(**option) for option in options or [])
    return Target(
        provider="acme",
        provider_name="Acme",
        model=model,
        dialect=dialect,
        endpoint="https://acme.example/v1",
        facts=ModelFacts(
            reasoning=reasoning,
            reasoning_options=steering,
            limit=Limit(context=context, output=output),
            **facts,
        ),
        compat=Compat(thinking_writer=writer, **(compat or {})),
        known=known,
    )


ELSEWHERE = Origin("other", "openai-chat", "stranger", "https://other.example/v1")


def thought(text: str, **more: Any) -> ThinkingBlock:
    return ThinkingBlock(text, source_field="reasoning_content", **more)


def tool_turn(name: str, rounds: int = 1, origin: Origin | None = None) -> list[Message]:
    """A user's question, `rounds` tool rounds with a thought each, and an answer."""
    turn = [user(f"question {name}")]
    for index in range(rounds):
        call = ToolCallBlock(f"{name}-{index}", "look", {"at": index})
        turn.append(assistant(thought(f"T{name}.{index}"), call, origin=origin))
        result = ToolResultBlock(call.id, f"seen {index}")
        turn.append(Message(role="tool", blocks=(result,)))
    turn.append(assistant(thought(f"T{name}"), TextBlock(f"answer {name}"), origin=origin))
    return turn


def plain_turn(name: str, *, thinks: bool = True, origin: Origin | None = None) -> list[Message]:
    blocks = (thought(f"T{name}"),) if thinks else ()
    return [
        user(f"question {name}"),
        assistant(*blocks, TextBlock(f"answer {name}"), origin=origin),
    ]


def thoughts(messages: tuple[Message, ...]) -> list[str]:
    return [block.thought for message in messages for block in message.thinking]


texts = st.text(max_size=40)
names = st.text(alphabet=string.ascii_letters + "_-.", min_size=1, max_size=12)
optional_text = st.none() | texts
numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(texts, json_values, max_size=3)

dialects = st.sampled_from(["openai-chat", "openai-responses", "anthropic", "gemini"])
_inside = json_objects | st.dictionaries(
    st.sampled_from(
        "id type function part parts item thinking reasoning_details extra_content refusal".split()
    ),
    json_values | st.lists(json_objects, max_size=2),
    max_size=3,
)
wires = st.none() | st.builds(Wire, st.none() | dialects, _inside)
"""What a dialect kept, also in shapes that it never writes."""
media = st.builds(MediaBlock, names, optional_text, optional_text, optional_text)
blocks = st.one_of(
    st.builds(TextBlock, texts, optional_text, wires),
    st.builds(
        ThinkingBlock,
        texts,
        st.none() | names,
        st.booleans(),
        optional_text,
        optional_text,
        optional_text,
        optional_text,
        st.sampled_from(["raw", "summary"]),
        wires,
    ),
    st.builds(
        ToolCallBlock,
        texts,
        names,
        json_objects,
        optional_text,
        optional_text,
        wires,
    ),
    st.builds(ToolResultBlock, texts, texts, st.booleans(), st.lists(media, max_size=1).map(tuple)),
    media,
    st.builds(OpaqueBlock, json_objects),
)
counts = st.none() | st.integers(0, 2**40)
origins = st.builds(
    Origin,
    names,
    dialects,
    names,
    optional_text,
)
statuses = st.sampled_from(
    ["complete", "interrupted", "truncated", "truncated_in_reasoning", "no_answer", "error"]
)
messages = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    st.none() | statuses,
    optional_text,
    st.none() | origins,
    st.lists(blocks, max_size=4).map(tuple),
    st.none() | st.builds(Usage, counts, counts, counts, counts, counts, counts),
)


def as_taken(request, to):
    """The request with the thoughts that policy leaves in for this target, in their form."""
    intake = intake_of(to, thinks=request.thinking.thinks, only=request.reasoning_field)
    messages = []
    for message in request.messages:
        if message.role == "assistant":
            paused = message.is_paused
            forms = [form for _, form in taken(message.blocks, intake, paused=paused)]
            blocks = tuple(form for form in forms if not isinstance(form, str))
            message = msgspec.structs.replace(message, blocks=blocks)
        messages.append(message)
    return msgspec.structs.replace(request, messages=tuple(messages))
