"""One turn: ask, run the tools that were called, ask again, until there is an answer.

Whatever happens is in the log when this returns: a whole answer, a broken one, or the part of one
that came before the caller went away (`interrupted`). Events come out as they happen.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from msgspec.structs import replace

from mull.agent.functions import FunctionTool
from mull.history.log import Log
from mull.neutral.assemble import Assembler
from mull.neutral.blocks import ToolCallBlock, ToolResultBlock
from mull.neutral.errors import LocalError
from mull.neutral.events import Event, Healed, ToolRan
from mull.neutral.messages import Message
from mull.neutral.request import Note, RequestOptions
from mull.neutral.target import Target
from mull.policy.prepare import Prepared, prepare
from mull.policy.tokens import Counter
from mull.settings.layers import Snapshot

__all__ = ["MOST_ROUNDS", "Turn", "run_turn"]

QUICKLY_COUNTED = 8192
"""Tokens up to which the character estimate will do: no limit or budget is near."""

MOST_ROUNDS = 50
"""Requests of one turn; a model that calls tools for longer is going in circles."""


@dataclass
class Turn:
    """What a turn needs, and what it leaves: the messages it added and what there is to say."""

    log: Log
    target: Target
    snapshot: Snapshot
    options: RequestOptions
    counter: Counter
    send: Callable[[Prepared], AsyncGenerator[Event, None]]
    tools: Mapping[str, FunctionTool] = field(default_factory=dict)
    adjust: Callable[[Prepared], Prepared] = lambda prepared: prepared
    learnt: Callable[[Target], Target] = lambda target: target
    messages: list[Message] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    prepared: Prepared | None = None

    def add(self, message: Message) -> None:
        """Put a message into the log."""
        self.log.append(message)
        self.messages.append(message)

    def note(self, *notes: Note) -> None:
        """Say something once."""
        self.notes += [note for note in notes if note not in self.notes]


async def run_turn(turn: Turn) -> AsyncGenerator[Event, None]:
    """Run the turn that the log's last message begins or goes on with.

    Raises:
        RemoteError: the endpoint refused or could not be reached before it said anything.
        LocalError: the request cannot be made, or the tools never come to an end.
    """
    for _ in range(MOST_ROUNDS):
        async with aclosing(_ask(turn)) as events:
            async for event in events:
                yield event
        answer = turn.messages[-1]
        calls = answer.tool_calls
        if not calls or not turn.tools or answer.status != "complete":
            return
        results = await _run_tools(turn, calls)
        turn.add(Message(role="tool", blocks=tuple(results)))
        for call, result in zip(calls, results, strict=True):
            yield ToolRan(call.id, call.name, result.output, result.is_error)
    raise LocalError(f"the model called tools {MOST_ROUNDS} times without an answer: stopped")


async def _ask(turn: Turn) -> AsyncGenerator[Event, None]:
    """One request and its answer."""
    turn.target = turn.learnt(turn.target)
    prepared = turn.prepared = _prepare(turn)
    turn.note(*prepared.notes)
    folding = Assembler(turn.target.origin)
    try:
        async with aclosing(turn.send(prepared)) as events:
            async for event in events:
                if isinstance(event, Healed):
                    folding = Assembler(turn.target.origin)
                    turn.note(Note("healed", f"{event.change} ({event.reason})", warning=True))
                folding.add(event)
                yield event
    finally:
        # what a healed answer came from, and in which dialect, is known once it is whole
        message = replace(folding.message(), origin=turn.learnt(turn.target).origin)
        if message.blocks or message.status != "interrupted":
            turn.add(message)


def _prepare(turn: Turn) -> Prepared:
    """The request; a short one is not worth loading a tokenizer for, its estimate is high."""
    arguments = turn.log, turn.snapshot, turn.target, turn.options
    prepared = prepare(*arguments)
    if prepared.tokens > QUICKLY_COUNTED:
        prepared = prepare(*arguments, counter=turn.counter)
    return turn.adjust(prepared)


async def _run_tools(turn: Turn, calls: tuple[ToolCallBlock, ...]) -> list[ToolResultBlock]:
    """Run all calls at once; the results stand in the order of the calls."""
    return list(await asyncio.gather(*(_run_tool(turn, call) for call in calls)))


async def _run_tool(turn: Turn, call: ToolCallBlock) -> ToolResultBlock:
    tool = turn.tools.get(call.name)
    if tool is None:
        known = ", ".join(turn.tools)
        return ToolResultBlock(
            call.id, f"no tool is called {call.name}: use {known}", is_error=True
        )
    return await tool.run(call)
