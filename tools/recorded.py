"""Reads recorded request bodies as a system prompt, tools and messages.

The four dialects, and Bedrock's Converse because models answer there that answer nowhere else in
the recordings. Only what counts as tokens is read; a body with something that the provider fills
in by itself (its own tools, a stored conversation, a file) is not comparable and says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from mull.neutral.blocks import (
    Block,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.neutral.messages import Message, Role
from mull.neutral.request import Tool

__all__ = ["Asked", "NotComparable", "Wire", "read_body"]

Wire = Literal["openai-chat", "openai-responses", "anthropic", "gemini", "converse"]


Spoken = tuple[Role, list[Block]]
_ROLES: Mapping[str, Role] = {
    "developer": "system",
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "model": "assistant",
    "tool": "tool",
}
_SCHEMAS = (
    "parameters",
    "parametersJsonSchema",
    "parameters_json_schema",
    "input_schema",
    "inputSchema",
)
_NOT_COMPARABLE = {
    "previous_response_id": "a stored conversation",
    "models": "a model that the router chose",
}


class NotComparable(Exception):
    """The provider adds something of its own to this request."""


class Asked(NamedTuple):
    """What a recorded request holds, in neutral form."""

    system: str
    tools: tuple[Tool, ...]
    messages: tuple[Message, ...]


def read_body(wire: Wire, body: Mapping[str, Any]) -> Asked:
    """What the body asks.

    Raises:
        NotComparable: it holds something whose size only the provider knows.
    """
    for key, what in _NOT_COMPARABLE.items():
        if body.get(key):
            raise NotComparable(what)
    if (body.get("reasoning") or {}).get("mode") == "pro":
        raise NotComparable("an answer of several passes")
    system, messages = "", list[Message]()
    for role, blocks in _READERS[wire](body):
        if role == "system":
            system += "".join(block.text for block in blocks if isinstance(block, TextBlock))
        elif blocks:
            if messages and messages[-1].role == role == "assistant":  # items of one answer
                blocks = [*messages.pop().blocks, *blocks]
            messages.append(Message(role=role, blocks=tuple(blocks)))
    return Asked(system, tuple(_tools(body)), tuple(messages))


def _tools(body: Mapping[str, Any]) -> Iterator[Tool]:
    for tool in body.get("tools") or body.get("toolConfig", {}).get("tools") or ():
        one = tool.get("function") or tool.get("toolSpec") or tool
        for function in tool.get("functionDeclarations", [one]):
            schema = next((function[key] for key in _SCHEMAS if key in function), None)
            own = tool.get("type", "function") != "function"
            if own or schema is None or function.get("defer_loading"):
                raise NotComparable("tools of the provider's own")
            yield Tool(function["name"], function.get("description") or "", schema)


def _chat(body: Mapping[str, Any]) -> Iterator[Spoken]:
    for message in body["messages"]:
        role = _ROLES[message["role"]]
        blocks: list[Block] = []
        if thought := message.get("reasoning_content") or message.get("reasoning"):
            blocks.append(ThinkingBlock(thought, "reasoning_content"))
        if role == "tool":
            yield role, [ToolResultBlock(message["tool_call_id"], _text(message["content"]))]
            continue
        blocks += _contents(message.get("content"))
        for call in message.get("tool_calls") or ():
            function = call["function"]
            blocks.append(_call(call["id"], function["name"], function["arguments"]))
        yield role, blocks


def _responses(body: Mapping[str, Any]) -> Iterator[Spoken]:
    yield "system", [TextBlock(body.get("instructions") or "")]
    asked = body["input"]
    for item in [{"role": "user", "content": asked}] if isinstance(asked, str) else asked:
        match item.get("type", "message"):
            case "message":
                yield _ROLES[item["role"]], _contents(item["content"])
            case "function_call":
                yield "assistant", [_call(item["call_id"], item["name"], item["arguments"])]
            case "function_call_output":
                yield "tool", [ToolResultBlock(item["call_id"], _text(item["output"]))]
            case "reasoning":
                texts = [*(item.get("content") or ()), *item["summary"]]
                thought = "\n\n".join(part["text"] for part in texts)
                hidden = item.get("encrypted_content")
                yield "assistant", [ThinkingBlock(thought, encrypted=hidden)]
            case other:
                raise NotComparable(f"an item of type {other}")


def _anthropic(body: Mapping[str, Any]) -> Iterator[Spoken]:
    yield "system", _contents(body.get("system"))
    for message in body["messages"]:
        yield message["role"], _contents(message["content"])


def _gemini(body: Mapping[str, Any]) -> Iterator[Spoken]:
    yield "system", [_gemini_part(p) for p in body.get("systemInstruction", {}).get("parts", ())]
    for content in body["contents"]:
        yield _ROLES[content["role"]], [_gemini_part(part) for part in content["parts"]]


def _gemini_part(part: Mapping[str, Any]) -> Block:
    signature = part.get("thoughtSignature")
    match part:
        case {"text": text, "thought": True}:
            return ThinkingBlock(text, signature=signature)
        case {"text": text}:
            return TextBlock(text, signature=signature)
        case {"functionCall": call}:
            return ToolCallBlock("", call["name"], call.get("args", {}), signature=signature)
        case {"functionResponse": answer}:
            return ToolResultBlock("", json.dumps(answer["response"]))
    raise NotComparable(f"a part with {', '.join(part)}")


def _converse(body: Mapping[str, Any]) -> Iterator[Spoken]:
    yield "system", [_converse_part(part) for part in body.get("system") or ()]
    for message in body["messages"]:
        yield message["role"], [_converse_part(part) for part in message["content"]]


def _converse_part(part: Mapping[str, Any]) -> Block:
    match part:
        case {"text": text}:
            return TextBlock(text)
        case {"reasoningContent": {"reasoningText": thought}}:
            return ThinkingBlock(thought["text"], signature=thought.get("signature"))
        case {"reasoningContent": {"redactedContent": data}}:
            return ThinkingBlock(redacted=data)
        case {"toolUse": call}:
            return ToolCallBlock(call["toolUseId"], call["name"], call["input"])
        case {"toolResult": result}:
            texts = "".join(piece.get("text", "") for piece in result["content"])
            return ToolResultBlock(result["toolUseId"], texts)
    raise NotComparable(f"a part with {', '.join(part)}")


def _contents(content: Any) -> list[Block]:
    if isinstance(content, str):
        return [TextBlock(content)]
    return [_part(part) for part in content or ()]


def _part(part: Mapping[str, Any]) -> Block:
    match part.get("type"):
        case "text" | "input_text" | "output_text":
            return TextBlock(part["text"])
        case "thinking":
            return ThinkingBlock(part["thinking"], signature=part.get("signature"))
        case "redacted_thinking":
            return ThinkingBlock(redacted=part["data"])
        case "tool_use":
            return ToolCallBlock(part["id"], part["name"], part["input"])
        case "tool_result":
            return ToolResultBlock(part["tool_use_id"], _text(part.get("content")))
        case "image_url" | "image" | "input_image":
            raise NotComparable("an image")
    raise NotComparable(f"a part of type {part.get('type')}")


def _text(content: Any) -> str:
    return "".join(b.text for b in _contents(content) if isinstance(b, TextBlock))


def _call(name: str, function: str, arguments: str) -> ToolCallBlock:
    return ToolCallBlock(name, function, arguments=arguments)


_READERS: Mapping[Wire, Callable[[Mapping[str, Any]], Iterator[Spoken]]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "converse": _converse,
}
