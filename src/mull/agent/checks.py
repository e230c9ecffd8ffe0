"""The live test of an endpoint's reasoning.

Does the model think, and in which field does the thinking arrive? Is reasoning accepted back after
a tool call? Does the model still know a number that it only thought of? Each check is one small
conversation; the cost is reported at the end.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import NamedTuple

from mull.agent.engine import Engine
from mull.agent.library import Conversation
from mull.agent.results import Result
from mull.neutral.errors import MullError

__all__ = ["Check", "check_live"]

_LIMIT = 4096


class Check(NamedTuple):
    """The result of one check. `good` is None if it is inconclusive."""

    name: str
    good: bool | None
    said: str


def secret_number() -> int:
    """Returns a number that only this tool knows."""
    return 7391


async def check_live(
    engine: Engine, model: str, base_url: str | None = None
) -> AsyncIterator[Check]:
    """Run the checks one after the other; a failing one does not prevent the next."""
    for name, check in (
        ("thinks", _thinks),
        ("accepts its thinking back after a tool call", _tool_round),
        ("uses its earlier thinking", _remembers),
    ):
        talk = Conversation(
            model,
            engine=engine,
            base_url=base_url,
            tools=[secret_number] if check is _tool_round else [],
            max_tokens=_limit(engine, model, base_url),
            settings={"reasoning.includeInContext": True},
        )
        try:
            yield Check(name, *await check(talk))
        except MullError as error:
            yield Check(name, False, str(error))


def _limit(engine: Engine, model: str, base_url: str | None) -> int | None:
    known = engine.target(model, base_url=base_url).facts.limit.output
    return min(_LIMIT, known) if known else None


async def _thinks(talk: Conversation) -> tuple[bool | None, str]:
    result = await talk.ask_async("Which is larger, 9.11 or 9.9? Think it through, then answer.")
    return _seen(result)


def _seen(result: Result) -> tuple[bool | None, str]:
    blocks = result.message.thinking
    counted = result.usage.reasoning if result.usage else None
    if blocks:
        fields = ", ".join(dict.fromkeys(block.source_field or "?" for block in blocks))
        readable = "readable" if result.thinking.strip() else "without readable text"
        count = f", {counted:,} tokens" if counted else ""
        return True, f"yes, in {fields}, {readable}{count}"
    if counted:
        return True, f"yes, {counted:,} tokens, but the text is not sent"
    return False, "no reasoning received"


async def _tool_round(talk: Conversation) -> tuple[bool | None, str]:
    result = await talk.ask_async("Call secret_number and tell me the number it gives.")
    called = any(message.tool_calls for message in result.messages)
    if not called:
        return None, "unknown: the model called no tool"
    if not any(message.thinking for message in result.messages if message.tool_calls):
        return None, "unknown: the model did not think before the call"
    if healed := next((note.text for note in result.notes if note.about == "healed"), None):
        return False, f"refused: {healed}"
    if result.status != "complete":
        return False, f"the second request ended as {result.status}"
    right = "and the number is right" if "7391" in result.text else "but the number is wrong"
    return True, f"accepted, {right}"


async def _remembers(talk: Conversation) -> tuple[bool | None, str]:
    first = await talk.ask_async(
        "Think of two different four-digit numbers, silently. Tell me only the first one."
    )
    thought = "".join(block.thought for m in talk.messages for block in m.thinking)
    if not thought.strip():
        return None, "unknown: no readable thinking received"
    result = await talk.ask_async("Now tell me the second number. Answer with the number alone.")
    for number in re.findall(r"\d{4,}", result.text):
        if number in thought and number not in first.text:
            return True, f"yes: {number} is in its earlier thinking"
    said = result.text.strip()[:60]
    kept = "which is not the number in its earlier thinking"
    return None, f"not shown: it answered {said!r}, {kept}; small models often fail this test"
