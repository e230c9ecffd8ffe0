"""What real endpoints refuse, as functions on request bodies.

Each check returns the provider's own words for the first rule a body breaks, or None. They cover
what concerns reasoning and tool pairs, not every field of an API.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mull.neutral.messages import Dialect

__all__ = ["check_anthropic", "check_chat", "check_gemini", "check_responses", "refusal"]

Body = Mapping[str, Any]


def refusal(dialect: Dialect, body: Body) -> str | None:
    """Why an endpoint of this dialect, with its strictest known rules, would refuse the body."""
    return _CHECKS[dialect](body)


def check_anthropic(body: Body) -> str | None:
    """The Messages API: signed thinking in place, tool pairs whole, budgets under max_tokens."""
    messages: Sequence[Body] = body["messages"]
    for index, message in enumerate(messages):
        before = messages[index - 1] if index else None
        after = messages[index + 1] if index + 1 < len(messages) else None
        problem = (
            _anthropic_blocks(index, message)
            or _anthropic_results(index, message, before)
            or _anthropic_calls(index, message, after)
        )
        if problem:
            return problem
    return _anthropic_thinking(body)


def _anthropic_blocks(index: int, message: Body) -> str | None:
    blocks = message["content"]
    if isinstance(blocks, str):
        return None if blocks else f"messages.{index}: content must be non-empty"
    if not blocks:
        return f"messages.{index}: content must be non-empty"
    for at, block in enumerate(blocks):
        place = f"messages.{index}.content.{at}"
        if block["type"] == "text" and not block["text"]:
            return f"{place}: text content blocks must be non-empty"
        if block["type"] == "thinking" and not isinstance(block.get("signature"), str):
            return f"{place}.thinking.signature: Field required"
    if message["role"] == "assistant" and blocks[-1]["type"] in _THOUGHTS:
        return f"messages.{index}: The final block in an assistant message cannot be `thinking`."
    return None


def _anthropic_results(index: int, message: Body, before: Body | None) -> str | None:
    called = set(_ids(before, "tool_use", "id")) if before else set()
    for call_id in _ids(message, "tool_result", "tool_use_id"):
        if call_id not in called:
            return (
                f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks:"
                f" {call_id}. Each `tool_result` block must have a corresponding `tool_use` block"
                " in the previous message."
            )
    return None


def _anthropic_calls(index: int, message: Body, after: Body | None) -> str | None:
    answered = set(_ids(after, "tool_result", "tool_use_id")) if after else set()
    for call_id in _ids(message, "tool_use", "id"):
        if call_id not in answered:
            return (
                f"messages.{index}: `tool_use` ids were found without `tool_result` blocks"
                f" immediately after: {call_id}."
            )
    return None


_THOUGHTS = ("thinking", "redacted_thinking")


def _anthropic_thinking(body: Body) -> str | None:
    thinking = body.get("thinking") or {}
    enabled = thinking.get("type") == "enabled"
    if enabled and thinking["budget_tokens"] < 1024:
        return "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
    if enabled and thinking["budget_tokens"] >= body["max_tokens"]:
        return "`max_tokens` must be greater than `thinking.budget_tokens`."
    forced = (body.get("tool_choice") or {}).get("type") in ("any", "tool")
    if enabled and forced:
        return "Thinking may not be enabled when tool_choice forces tool use."
    if enabled and body.get("temperature", 1) != 1:
        return "`temperature` may only be set to 1 when thinking is enabled."
    messages = body["messages"]
    in_chain = bool(messages) and bool(_ids(messages[-1], "tool_result", "tool_use_id"))
    last = next((m for m in reversed(messages) if m["role"] == "assistant"), None)
    if not in_chain or last is None or isinstance(last["content"], str):
        return None
    kinds = [block["type"] for block in last["content"]]
    if enabled and kinds[0] not in _THOUGHTS:
        return f"Expected `thinking` or `redacted_thinking`, but found `{kinds[0]}`."
    if thinking.get("type", "disabled") == "disabled" and set(kinds) & set(_THOUGHTS):
        return (
            "When thinking is disabled, an `assistant` message in the final position cannot"
            " contain `thinking`."
        )
    return None


def _ids(message: Body, kind: str, key: str) -> list[str]:
    blocks = message["content"]
    if isinstance(blocks, str):
        return []
    return [block[key] for block in blocks if block["type"] == kind]


def check_gemini(body: Body) -> str | None:
    """generateContent of Gemini 3: one way of steering, signed calls, answered calls."""
    config = (body.get("generationConfig") or {}).get("thinkingConfig") or {}
    if "thinkingLevel" in config and "thinkingBudget" in config:
        return "You can only set only one of thinking budget and thinking level."
    contents = body["contents"]
    for index, content in enumerate(contents):
        calls = [part for part in content["parts"] if "functionCall" in part]
        after = contents[index + 1]["parts"] if index + 1 < len(contents) else []
        if calls and len(calls) != sum("functionResponse" in part for part in after):
            return (
                "Please ensure that the number of function response parts is equal to the number"
                " of function call parts of the function call turn."
            )
        if calls and index > _last_question(contents) and not calls[0].get("thoughtSignature"):
            name = calls[0]["functionCall"]["name"]
            return (
                "Function call is missing a thought_signature in functionCall parts."
                f" Additional data, function call `{name}`, position {index}."
            )
    return None


def _last_question(contents: Sequence[Body]) -> int:
    """Where the current turn began: the last content in which a user really speaks."""
    for index in range(len(contents) - 1, -1, -1):
        content = contents[index]
        if content["role"] == "user" and not all("functionResponse" in p for p in content["parts"]):
            return index
    return -1


def check_responses(body: Body) -> str | None:
    """The Responses API without storage: items in pairs, reasoning with its encrypted content."""
    items = [{"type": "message", **item} for item in body["input"]]
    called = {item["call_id"] for item in items if item["type"] == "function_call"}
    answered = {item["call_id"] for item in items if item["type"] == "function_call_output"}
    for index, item in enumerate(items):
        kind = item["type"]
        if kind == "function_call_output" and item["call_id"] not in called:
            return f"No tool call found for function call output with call_id {item['call_id']}."
        if kind == "function_call" and item["call_id"] not in answered:
            return f"No tool output found for function call {item['call_id']}."
        if kind != "reasoning":
            continue
        name = item.get("id", "")
        if not item.get("encrypted_content"):
            return (
                f"Item with id '{name}' not found."
                " Items are not persisted when `store` is set to false."
            )
        follower = items[index + 1] if index + 1 < len(items) else {"type": "none"}
        if follower["type"] in ("none", "function_call_output") or follower.get("role") == "user":
            return (
                f"Item '{name}' of type 'reasoning' was provided without its required"
                " following item."
            )
    return None


def check_chat(body: Body) -> str | None:
    """Chat Completions as Kimi and DeepSeek enforce it while thinking is on."""
    messages = body["messages"]
    waiting: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return (
                    "Messages with role 'tool' must be a response to a preceding message with"
                    " 'tool_calls'."
                )
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return (
                "An assistant message with 'tool_calls' must be followed by tool messages"
                f" responding to each 'tool_call_id': {', '.join(waiting)}"
            )
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        off = (body.get("thinking") or {}).get("type") == "disabled"
        if waiting and not off and not message.get("reasoning_content"):
            return (
                "thinking is enabled but reasoning_content is missing in assistant tool call"
                f" message at index {index}"
            )
    return f"tool calls without an answer: {', '.join(waiting)}" if waiting else None


_CHECKS: Mapping[Dialect, Callable[[Body], str | None]] = {
    "anthropic": check_anthropic,
    "gemini": check_gemini,
    "openai-responses": check_responses,
    "openai-chat": check_chat,
}
