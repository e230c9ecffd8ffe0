"""Long conversations in every dialect, and what compression leaves of them, for several tests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from mull.catalog.load import load
from mull.catalog.resolve import resolve
from mull.dialects.registry import encode_request
from mull.history.log import Log
from mull.neutral.blocks import (
    Block,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Wire,
)
from mull.neutral.messages import Message, Origin, assistant, user
from mull.neutral.request import RequestOptions, Tool
from mull.neutral.target import Target
from mull.policy.prepare import Prepared, prepare
from mull.settings.layers import Settings, Snapshot
from mull.settings.presets import preset_values

CATALOG = load()
MODELS = {
    "anthropic": "anthropic/claude-sonnet-4-5",
    "openai-responses": "openai/gpt-5",
    "gemini": "google/gemini-3-pro-preview",
    "openai-chat": "moonshotai/kimi-k2.5",
}
TARGETS = {dialect: resolve(name, catalog=CATALOG) for dialect, name in MODELS.items()}
STRANGER = Origin("other", "openai-chat", "stranger", "https://other.example/v1")
OPTIONS = RequestOptions(
    system="be brief", tools=(Tool("look", "looks", {"type": "object", "properties": {}}),)
)


def snapshot_for(target: Target, **values: Any) -> Snapshot:
    """`context__limit=9000` sets context.limit; names without a namespace are reasoning's."""
    settings = Settings()
    for name, value in values.items():
        settings.set(name.replace("__", ".") if "__" in name else f"reasoning.{name}", value)
    return settings.snapshot(preset=preset_values(target.facts))


def prepared_for(log: Log, target: Target, **values: Any) -> Prepared:
    return prepare(log, snapshot_for(target, **values), target, OPTIONS)


def body_of(prepared: Prepared) -> dict[str, Any]:
    return json.loads(encode_request(prepared.request, prepared.target).body)


def thought(target: Target, name: str, text: str) -> ThinkingBlock:
    match target.dialect:
        case "anthropic":
            return ThinkingBlock(text, "thinking", signature=f"SIG-{name}")
        case "openai-responses":
            details = [{"type": "summary_text", "text": text}]
            return ThinkingBlock(
                text,
                "reasoning",
                encrypted=f"ENC-{name}",
                id=f"rs_{name}",
                kind="summary",
                wire=Wire("openai-responses", {"parts": details}),
            )
        case "gemini":
            return ThinkingBlock(text, "thought")
        case _:
            return ThinkingBlock(text, "reasoning_content")


def call(target: Target, name: str, *, first: bool = True) -> ToolCallBlock:
    made = ToolCallBlock(f"call_{name}", "look", {"at": name})
    if target.dialect == "gemini" and first:
        return ToolCallBlock(made.id, "look", {"at": name}, signature=f"SIG-{name}")
    if target.dialect == "openai-responses":
        return ToolCallBlock(
            made.id, "look", {"at": name}, wire=Wire("openai-responses", {"id": f"fc_{name}"})
        )
    return made


def round_of(target: Target, name: str, *, calls: int = 1, size: int = 400) -> list[Message]:
    """A thought, some calls, and their results of about `size` characters each."""
    made = [call(target, f"{name}x{n}", first=not n) for n in range(calls)]
    results = tuple(ToolResultBlock(c.id, filler(f"saw {c.id}", size)) for c in made)
    blocks: tuple[Block, ...] = (thought(target, name, filler(f"because {name}", size)), *made)
    return [
        assistant(*blocks, origin=target.origin, stop_reason="tool_calls"),
        Message(role="tool", blocks=results),
    ]


def answer(target: Target, name: str, size: int = 400) -> Message:
    blocks = thought(target, f"end{name}", f"so {name}"), TextBlock(filler(f"answer {name}", size))
    return assistant(*blocks, origin=target.origin, stop_reason="stop")


def filler(text: str, size: int) -> str:
    return text + " ." * ((size - len(text)) // 2)


def turn(
    target: Target, name: str, *, rounds: int = 0, size: int = 400, closed: bool = True
) -> list[Message]:
    """A question, its tool rounds and its answer."""
    said = [user(filler(f"question {name}", size))]
    for number in range(rounds):
        said += round_of(target, f"{name}r{number}", size=size)
    return [*said, answer(target, name, size)] if closed else said


def flat(turns: Iterable[Iterable[Message]]) -> list[Message]:
    return [message for one in turns for message in one]


@st.composite
def conversations(draw: st.DrawFn, target: Target) -> list[Message]:
    """Turns with and without tools, signed, foreign, interrupted; the last one waits for more."""
    said: list[Message] = []
    for number in range(draw(st.integers(1, 6))):
        said.append(user(filler(f"question {number}", draw(st.integers(20, 1500)))))
        for step in range(draw(st.integers(0, 4))):
            name, calls = f"{number}s{step}", draw(st.integers(1, 3))
            said += round_of(target, name, calls=calls, size=draw(st.integers(20, 1500)))
        said += draw(st.sampled_from(_ENDS))(target, number)
    if said[-1].role == "assistant" and not said[-1].tool_calls:
        said.append(user("and now?"))
    return said


def _answered(target: Target, number: int) -> list[Message]:
    return [answer(target, str(number))]


def _foreign(target: Target, number: int) -> list[Message]:
    block = ThinkingBlock(f"foreign {number}", "reasoning_content")
    return [assistant(block, TextBlock(f"foreign answer {number}"), origin=STRANGER)]


def _interrupted(target: Target, number: int) -> list[Message]:
    half = (thought(target, f"half{number}", "half a"), TextBlock("half"))
    return [assistant(*half, origin=target.origin, status="interrupted")]


def _cut_short(target: Target, number: int) -> list[Message]:
    return []


_ENDS = (_answered, _answered, _answered, _foreign, _interrupted, _cut_short)
