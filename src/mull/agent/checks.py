"""The self-test of an endpoint's reasoning: asked live, answered in plain words.

Does it think, and in which field does that come? Is the reasoning accepted back after a tool
call? Does the model still know a number that it only thought of? Each check is one small
conversation; what it cost is told at the end.
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
    """One thing that was looked at. `good` None means that it cannot be told."""

    name: str
    good: bool | None
    said: str


def secret_number() -> int:
    """Gives a number that only this tool knows."""
    return 7391


async def check_live(
    engine: Engine, model: str, base_url: str | None = None
) -> AsyncIterator[Check]:
    """Run the checks one after the other; one that fails does not keep the next from running."""
    for name, check in (
        ("thinks", _thinks),
        ("takes its thinking back after a tool call", _tool_round),
        ("remembers what it thought", _remembers),
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
        return True, f"yes, {counted:,} tokens, but none of it is shown"
    return False, "no reasoning came"


async def _tool_round(talk: Conversation) -> tuple[bool | None, str]:
    result = await talk.ask_async("Call secret_number and tell me the number it gives.")
    called = any(message.tool_calls for message in result.messages)
    if not called:
        return None, "cannot be told: the model called no tool"
    if not any(message.thinking for message in result.messages if message.tool_calls):
        return None, "cannot be told: no thought came before the call"
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
        return None, "cannot be told: no readable thought came"
    result = await talk.ask_async("Now tell me the second number. Answer with the number alone.")
    for number in re.findall(r"\d{4,}", result.text):
        if number in thought and number not in first.text:
            return True, f"yes: {number} is in its first thought"
    said = result.text.strip()[:60]
    kept = "which is not what its first thought kept back"
    return None, f"not shown: it says {said!r}, {kept}; small models rarely manage this"
