"""Claude behind Bedrock's InvokeModel, which takes bodies of the Messages API: a request in the
names of Converse, so that the same rules and checks judge it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["as_converse"]

Body = Mapping[str, Any]


def as_converse(body: Body) -> dict[str, Any]:
    """The same request for Converse, as far as rules and checks look at it."""
    choice = (body.get("tool_choice") or {"type": "auto"})["type"]
    tools = [
        {"toolSpec": {"name": tool["name"], "inputSchema": {"json": tool["input_schema"]}}}
        for tool in body.get("tools") or ()
    ]
    sampling = {"maxTokens": body["max_tokens"], "temperature": body.get("temperature", 1)}
    return {
        "messages": [
            {"role": one["role"], "content": _blocks(one["content"])} for one in body["messages"]
        ],
        "inferenceConfig": sampling,
        "additionalModelRequestFields": {"thinking": body.get("thinking")},
        **({"toolConfig": {"tools": tools, "toolChoice": {choice: {}}}} if tools else {}),
    }


def _blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"text": content}]
    return [_block(block) for block in content]


def _block(block: Body) -> dict[str, Any]:
    match block:
        case {"type": "text", "text": text}:
            return {"text": text}
        case {"type": "thinking", "thinking": text}:
            thought = {"text": text, "signature": block.get("signature")}
            return {"reasoningContent": {"reasoningText": thought}}
        case {"type": "redacted_thinking", "data": data}:
            return {"reasoningContent": {"redactedContent": data}}
        case {"type": "tool_use", "id": name}:
            call = {"toolUseId": name, "name": block["name"], "input": block["input"]}
            return {"toolUse": call}
        case {"type": "tool_result", "tool_use_id": name}:
            return {"toolResult": {"toolUseId": name, "content": block.get("content")}}
    return {str(block["type"]): block}
