"""A tool that is another tool, except for how its calls are run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias

from mull.agent.tools.tool import Outcome, PreparedCall, RunnableTool, ToolContext, Work
from mull.neutral.blocks import ToolCallBlock

__all__ = ["Around", "ToolAround"]

Around: TypeAlias = Callable[[Work, ToolContext], Awaitable[Outcome]]
"""Runs the work of a call in its own way."""


class ToolAround:
    """The tool, whose calls are run by `around`."""

    def __init__(self, tool: RunnableTool, around: Around) -> None:
        self._tool = tool
        self._around = around
        self.definition = tool.definition
        self.changes = tool.changes
        self.source = tool.source

    def prepare(self, call: ToolCallBlock) -> PreparedCall:
        """The same call, run by `around`."""
        prepared = self._tool.prepare(call)

        async def work(context: ToolContext) -> Outcome:
            return await self._around(prepared.work, context)

        return replace(prepared, work=work)
