"""Runs the tool calls of one answer: asks for approval where needed, runs all at once, loses none.

Every call gets a result, whatever happens: an unknown tool, invalid arguments, a refusal, a
failure, an interrupt. The user is asked, and sees the results, in the order of the calls, whichever
finishes first. A call on a file that an earlier call changes waits for that one, so that what was
shown is still true when it runs. If something changes while the user is asked, mull asks again. Who
is asked, and which calls need approval, is decided elsewhere.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec.structs import replace

from mull.agent.tools.output import fitted
from mull.agent.tools.tool import (
    LONGEST_FAILURE,
    PreparedCall,
    RunnableTool,
    ToolContext,
    ToolFailure,
    explain,
    unfinished,
)
from mull.agent.tools.trained import own_call
from mull.dialects.traits import TRAITS
from mull.neutral.blocks import ToolCallBlock, ToolResultBlock
from mull.neutral.events import Event, ToolOutput, ToolRan, ToolStarted
from mull.neutral.messages import Message
from mull.policy.allowance import BYTES_PER_TOKEN
from mull.policy.view.calls import names_on_wire

__all__ = ["STOPPED", "Approve", "Calls", "allow_all"]

Approve: TypeAlias = Callable[[PreparedCall], Awaitable[str | None]]
"""None lets the call run; a text is what the model is told instead."""

_REMARKS = 1000
"""Bytes reserved for remarks of a tool beside its text: what was left out, how a command ended."""

_MOST_CHANGES = 10
"""How often one call is prepared again before mull gives up."""

STOPPED = "Interrupted by the user before it finished."


async def allow_all(call: PreparedCall) -> str | None:
    """Let everything run."""
    return None


class Calls:
    """The calls of one answer, and their results as they arrive."""

    def __init__(
        self,
        calls: Sequence[ToolCallBlock],
        tools: Mapping[str, RunnableTool],
        approve: Approve,
        put: Callable[[Event], None],
        tokens: int | None = None,
        *,
        deps: Any = None,
        messages: Sequence[Message] = (),
    ) -> None:
        """`tokens` is the part of the context window that each result may take; None if it is
        unknown. Functions see `deps` and the `messages` so far in their context.
        """
        self._calls = [own_call(call, tools) for call in calls]
        self._tools = tools
        self._approve = approve
        self._put = put
        self._tokens = tokens
        self._deps = deps
        self._messages = messages
        self._results: list[ToolResultBlock | None] = [None] * len(calls)
        self._untold = [call.id for call in calls]
        self._early: list[ToolRan] = []
        self._preparing = asyncio.Lock()
        self._changing: dict[str, asyncio.Task[Any]] = {}
        self._contexts: dict[str, ToolContext] = {}

    async def run(self) -> None:
        """Run them all at once."""
        async with asyncio.TaskGroup() as group:
            for at, call in enumerate(self._calls):
                group.create_task(self._run_one(at, call))

    @property
    def all_ran(self) -> bool:
        """Whether every call has its result."""
        return None not in self._results

    def results(self) -> tuple[ToolResultBlock, ...]:
        """A result for every call, in the order of the calls."""
        return tuple(
            result or self._stopped(call)
            for call, result in zip(self._calls, self._results, strict=True)
        )

    def _stopped(self, call: ToolCallBlock) -> ToolResultBlock:
        """The result of an interrupted call: its output is not lost."""
        context = self._contexts.get(call.id)
        return _failure(call, unfinished(context, STOPPED) if context else STOPPED)

    def in_order(self, event: Event) -> Iterator[Event]:
        """What may be shown after this event: a result waits for those before it."""
        if not isinstance(event, ToolRan):
            yield event
            return
        self._early.append(event)
        while ready := [ran for ran in self._early if ran.call_id == self._untold[0]]:
            del self._untold[0]
            self._early.remove(ready[0])
            yield ready[0]

    async def _run_one(self, at: int, call: ToolCallBlock) -> None:
        try:
            result = await self._result(call)
            result = replace(result, output=self._fitted(_whole(result.output)))
        except ToolFailure as failure:
            result = _failure(call, str(failure))
        except Exception as error:  # a tool that breaks its contract must not affect the others
            result = _failure(call, explain(error))
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            result = self._stopped(call)  # the tool cancelled itself: the others continue
        self._results[at] = result
        self._put(ToolRan(call.id, call.name, result.output, result.is_error, result.diff))

    def _fitted(self, output: str) -> str:
        """Tools limit their results themselves; what still exceeds the window is cut here."""
        if self._tokens is None:
            return output
        return fitted(output, self._tokens * BYTES_PER_TOKEN + _REMARKS)

    async def _result(self, call: ToolCallBlock) -> ToolResultBlock:
        tool = self._tools.get(call.name) or self._renamed(call.name)
        if tool is None:
            known = ", ".join(self._tools)
            return _failure(call, f"unknown tool {call.name}: use {known}")
        async with self._preparing:  # in order: approvals keep the order of the calls
            prepared = await self._prepare(tool, call)
        refusal = await self._approve(prepared)
        for _ in range(_MOST_CHANGES):
            if refusal is not None:
                return _failure(call, refusal)
            now = await self._look_again(tool, call, prepared)
            if now is prepared:
                break
            prepared, refusal = now, await self._approve(_changed(now))
        else:
            return _failure(call, "not run: its target keeps changing")
        preview = prepared.preview
        self._put(ToolStarted(call.id, call.name, call.input, preview.title, preview.detail))
        context = self._contexts[call.id] = ToolContext(
            self._deps,
            call=call,
            messages=self._messages,
            tokens=self._tokens,
            on_emit=lambda text: self._put(ToolOutput(call.id, _whole(text))),
        )
        return await prepared.run(context)

    def _renamed(self, name: str) -> RunnableTool | None:
        """The tool with this name on the wire, if its own name is not accepted."""
        for dialect in TRAITS:
            for own, wire in names_on_wire(self._tools, dialect).items():
                if wire == name:
                    return self._tools[own]
        return None

    async def _look_again(
        self, tool: RunnableTool, call: ToolCallBlock, prepared: PreparedCall
    ) -> PreparedCall:
        """The same call, unless its target has changed: an approval takes time."""
        if not prepared.pin:
            return prepared
        now = await asyncio.to_thread(tool.prepare, call)
        if now.is_same(prepared):
            return prepared
        self._mark(now)
        return now

    async def _prepare(self, tool: RunnableTool, call: ToolCallBlock) -> PreparedCall:
        try:
            prepared = await asyncio.to_thread(tool.prepare, call)  # a diff reads the file
            waiting = [self._changing[path] for path in _paths(prepared) if path in self._changing]
        except ToolFailure:
            waiting = list(self._changing.values())  # what it lacks may be what they create
            if not waiting:
                raise
        if waiting:
            await asyncio.wait(waiting)
            prepared = await asyncio.to_thread(tool.prepare, call)
        self._mark(prepared)
        return prepared

    def _mark(self, prepared: PreparedCall) -> None:
        """Let later calls on the same files wait for this one."""
        if prepared.asked.changes and (task := asyncio.current_task()):
            self._changing.update(dict.fromkeys(_paths(prepared), task))


def _changed(prepared: PreparedCall) -> PreparedCall:
    """The call as shown when the user is asked again."""
    title = f"{prepared.preview.title}, changed since you were asked"
    return dataclasses.replace(prepared, preview=replace(prepared.preview, title=title))


def _paths(prepared: PreparedCall) -> list[str]:
    """The files that a call affects."""
    return [asked.subject.full for asked in prepared.every if asked.subject.full]


def _failure(call: ToolCallBlock, said: str) -> ToolResultBlock:
    return ToolResultBlock(call.id, fitted(_whole(said), LONGEST_FAILURE), is_error=True)


def _whole(text: str) -> str:
    """Text that can be stored and sent: a lone surrogate, or a subclass of `str`, would ruin the
    session.
    """
    return str.__str__(text) if text.isascii() else text.encode("utf-8", "replace").decode()
