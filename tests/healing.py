"""What the tests of healing share: refused requests, and what must hold of every repair."""

from __future__ import annotations

import json
from typing import Any

from conversations import snapshot
from mull.dialects.registry import encode_request
from mull.history.log import Log
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock, Wire
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import RequestOptions, Tool
from mull.neutral.target import Target
from mull.policy.failure import Failure
from mull.policy.heal.healing import Repaired, heal
from mull.policy.heal.lessons import Lessons, apply_lessons
from mull.policy.prepare import Prepared, prepare

LOOK = Tool("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})

ASK = [user("question")]


def signed(name: str, **more: Any) -> ThinkingBlock:
    return ThinkingBlock(f"T{name}", "thinking", signature=f"SIG-{name}", **more)


def thinking(target: Target, name: str) -> ThinkingBlock:
    """A thought as an endpoint of the target's dialect gives it."""
    match target.dialect:
        case "anthropic":
            return signed(name)
        case "openai-responses":
            more: dict[str, Any] = {"encrypted": f"ENC-{name}", "id": f"rs_{name}"}
            return ThinkingBlock(f"T{name}", "summary", kind="summary", **more)
        case "gemini":
            return ThinkingBlock(f"T{name}", "thought")
        case _:
            return ThinkingBlock(f"T{name}", "reasoning_content")


def call(target: Target, name: str, **more: Any) -> ToolCallBlock:
    if target.dialect == "gemini":
        more.setdefault("signature", f"SIG-{name}")
    if target.dialect == "openai-responses":
        more.setdefault("wire", Wire("openai-responses", {"id": f"fc_{name}"}))
    return ToolCallBlock(f"call_{name}", "look", {"at": name}, **more)


def plain_turn(target: Target, name: str) -> list[Message]:
    is_item = target.dialect == "openai-responses"
    wire = Wire("openai-responses", {"id": f"msg_{name}"}) if is_item else None
    answer = TextBlock(f"answer {name}", wire=wire)
    return [
        user(f"question {name}"),
        assistant(thinking(target, name), answer, origin=target.origin),
    ]


def open_turn(target: Target, name: str, **more: Any) -> list[Message]:
    step = assistant(
        thinking(target, name),
        call(target, name, **more),
        origin=target.origin,
        stop_reason="tool_calls",
    )
    result = ToolResultBlock(f"call_{name}", f"saw {name}")
    return [user(f"look at {name}"), step, Message(role="tool", blocks=(result,))]


def conversation(target: Target, *, chain: bool = True) -> list[Message]:
    """Two complete turns, then a question or an open tool chain."""
    last = open_turn(target, "c") if chain else [user("question c")]
    return [*plain_turn(target, "a"), *plain_turn(target, "b"), *last]


def prepared(
    target: Target,
    messages: list[Message] | None = None,
    *,
    settings: dict[str, Any] | None = None,
    **parts: Any,
) -> Prepared:
    """The request that would be sent, with thinking in the context and a tool."""
    parts.setdefault("tools", (LOOK,))
    wanted = snapshot(**{"includeInContext": True, **(settings or {})})
    history = conversation(target) if messages is None else messages
    return prepare(Log(history), wanted, target, RequestOptions(**parts))


def body(request: Prepared | Repaired) -> dict[str, Any]:
    wire = encode_request(request.request, request.target)
    return json.loads(wire.body)


def said(messages: tuple[Message, ...]) -> list[str]:
    """Everything visible: texts, calls and results, in order."""
    out = []
    for message in messages:
        for block in message.blocks:
            match block:
                case TextBlock() if block.text.strip():
                    out.append(block.text)
                case ToolCallBlock():
                    out.append(f"{block.id} {block.name} {block.input} {block.arguments}")
                case ToolResultBlock():
                    out.append(f"{block.call_id} {block.output}")
    return out


def mended(refused: Prepared, text: str, status: int = 400, **more: Any) -> Repaired:
    """The repair, after checking what holds of every repair."""
    refusal = Failure(text, status, **more)
    before = encode_request(refused.request, refused.target).body
    repaired = heal(refused, refusal)
    assert repaired is not None, text
    assert encode_request(repaired.request, repaired.target).body != before
    assert heal(repaired.prepared, refusal) is None
    assert said(repaired.request.messages) == said(refused.request.messages)
    assert encode_request(refused.request, refused.target).body == before
    assert repaired.reason
    assert repaired.change
    assert repaired.prepared.notes[-1].warning
    return repaired


def thoughts(wire: dict[str, Any]) -> list[str]:
    """The thoughts in an Anthropic body."""
    content = [b for m in wire["messages"] if isinstance(m["content"], list) for b in m["content"]]
    return [b.get("thinking", b.get("data")) for b in content if "thinking" in b["type"]]


def steered(wire):
    """What a body says of thinking, whatever its dialect."""
    names = ("thinking", "output_config", "reasoning_effort", "reasoning", "think")
    names = (*names, "enable_thinking", "thinking_budget", "chat_template_kwargs")
    said = {name: wire[name] for name in names if name in wire}
    config = wire.get("generationConfig", {}).get("thinkingConfig")
    return said if config is None else {**said, "thinkingConfig": config}


def again(repaired, refused, **settings):
    """The body of a later request, with the lesson applied before it is prepared."""
    lessons = Lessons().learn(refused.target, repaired.learn)
    taught = apply_lessons(refused.target, lessons)
    return body(prepared(taught, ASK, settings=settings))
