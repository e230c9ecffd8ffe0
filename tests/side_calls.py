"""A session's side and situation, and scripted answers in every dialect, for several tests."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from compressing import OPTIONS, snapshot_for
from mull.agent.engine import Engine
from mull.agent.run import Situation
from mull.agent.setup import load_setup
from mull.agent.side import Side
from mull.client.exchange import ExchangeOptions
from mull.client.retry import RetryRules
from mull.neutral.target import Target
from mull.policy.tokens import CHARACTERS
from mull.testing.server import Reply

T = TypeVar("T")
QUICK = ExchangeOptions(retry=RetryRules(attempts=1))
USAGE = {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100}


def engine_at(url: str) -> Engine:
    """A new engine that reaches every model at this address."""
    engine = Engine(load_setup())
    way_to = engine.way_to
    engine.way_to = lambda target, **_: way_to(target, base_url=url, key="k")  # type: ignore[method-assign]
    return engine


def side_at(url: str, target: Target, **more: Any) -> Side:
    engine = engine_at(url)
    return Side(engine, target, engine.sender(engine.way_to(target), QUICK), **more)


def run(side: Side, work: Coroutine[Any, Any, T]) -> T:
    """Do it on a loop of its own, and close the connections."""

    async def whole() -> T:
        try:
            return await work
        finally:
            await side.engine.close()

    return asyncio.run(whole())


def situation_of(side: Side, **values: Any) -> Situation:
    snapshot = snapshot_for(side.target, **values)
    return Situation(side.target, snapshot, OPTIONS, CHARACTERS, side.send)


def chat(
    text: str = "",
    *,
    thought: str = "",
    finish: str = "stop",
    calls: bool = False,
    usage: dict[str, int] | None = USAGE,
) -> Reply:
    deltas = [{"reasoning_content": thought}] if thought else []
    deltas += [{"content": text[at : at + 200]} for at in range(0, len(text), 200)]
    if calls:
        called = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": "{}"}}
        deltas.append({"tool_calls": [called]})
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage}
    return Reply.events(*chunks, end, "[DONE]")


def _anthropic(text: str) -> Reply:
    block = {"type": "text", "text": ""}
    return Reply.events(
        {"type": "message_start", "message": {"id": "m", "model": "x", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    )


def _responses(text: str) -> Reply:
    content = [{"type": "output_text", "text": text}]
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
    done = {"id": "r", "status": "completed", "output": [item]}
    return Reply.events(
        {"type": "response.created", "response": {"id": "r", "status": "in_progress"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    )


def _gemini(text: str) -> Reply:
    content = {"parts": [{"text": text}]}
    return Reply.events({"candidates": [{"content": content, "finishReason": "STOP"}]})


_BY_PATH = {
    "/chat/completions": chat,
    "/messages": _anthropic,
    "/responses": _responses,
    ":streamGenerateContent": _gemini,
}


def answering(text: str) -> Any:
    """A script that answers so in whatever dialect it is asked."""
    return lambda asked: next(say for end, say in _BY_PATH.items() if end in asked.path)(text)


def last_text(body: dict[str, Any]) -> str:
    """The last words of a request, whatever its dialect."""
    if "contents" in body:
        return body["contents"][-1]["parts"][-1]["text"]
    content = (body.get("messages") or body["input"])[-1]["content"]
    return content if isinstance(content, str) else content[-1]["text"]
