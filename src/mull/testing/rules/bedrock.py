"""What Converse rejects in requests to Claude: the rules of Messages, and a few of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mull.testing.rules.anthropic import check_anthropic

__all__ = ["check_bedrock"]

Body = Mapping[str, Any]

_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NO_TOOLS = "The toolConfig field must be defined when using toolUse and toolResult content blocks."


def check_bedrock(body: Body) -> str | None:
    """Calls only with tools, short ids, no blank text; the rest as in Messages."""
    for index, message in enumerate(body["messages"]):
        for at, block in enumerate(message["content"]):
            if problem := _bad_block(block, f"messages.{index}.content.{at}", body):
                return problem
    return check_anthropic(_as_messages(body))


def _bad_block(block: Body, place: str, body: Body) -> str | None:
    if len(block) != 1:
        return f"{place}: a content block must have exactly one member"
    if "text" in block and not block["text"].strip():
        return f"The text field in the ContentBlock object at {place} is blank. Add text to it."
    held = block.get("toolUse") or block.get("toolResult")
    if held is None:
        return None
    if "toolConfig" not in body:
        return _NO_TOOLS
    if not _ID.fullmatch(held["toolUseId"]):
        return f"{place}.toolUseId failed to satisfy constraint: [a-zA-Z0-9_-]+, at most 64"
    return None


def _as_messages(body: Body) -> dict[str, Any]:
    """The same request in the format of Messages, as far as its rules look at it."""
    config = body.get("inferenceConfig") or {}
    fields = body.get("additionalModelRequestFields") or {}
    choice = next(iter((body.get("toolConfig") or {}).get("toolChoice") or {}), "auto")
    return {
        **fields,
        "max_tokens": config.get("maxTokens", 1 << 20),
        "temperature": config.get("temperature", 1),
        "tool_choice": {"type": choice},
        "messages": [
            {
                "role": message["role"],
                "content": [
                    _as_block(block) for block in message["content"] if "cachePoint" not in block
                ],
            }
            for message in body["messages"]
        ],
    }


def _as_block(block: Body) -> dict[str, Any]:
    match block:
        case {"text": text}:
            return {"type": "text", "text": text}
        case {"reasoningContent": {"redactedContent": data}}:
            return {"type": "redacted_thinking", "data": data}
        case {"reasoningContent": {"reasoningText": thought}}:
            return {"type": "thinking", "thinking": thought["text"], **thought}
        case {"toolUse": call}:
            return {**call, "type": "tool_use", "id": call["toolUseId"]}
        case {"toolResult": result}:
            return {**result, "type": "tool_result", "tool_use_id": result["toolUseId"]}
    return {"type": next(iter(block)), **block}
