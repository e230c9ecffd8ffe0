"""What mull's own tools have in common: typed arguments in, a result or a failure out."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import msgspec

from mull.agent.tools.arguments import input_of, read_arguments, schema_of
from mull.agent.tools.shown import one_line, shown_name
from mull.agent.tools.tool import Preview, ToolContext, ToolFailure
from mull.agent.tools.workspace import Located, Workspace
from mull.neutral.blocks import MediaBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.request import Tool
from mull.policy.approval import Subject

__all__ = ["BuiltinTool", "Outcome", "in_thread", "path_subject"]

A = TypeVar("A", bound=msgspec.Struct)
T = TypeVar("T")


class Outcome(NamedTuple):
    """What a call came to; `failed` marks it as an error for the model."""

    text: str
    failed: bool = False
    media: tuple[MediaBlock, ...] = ()


class BuiltinTool(ABC, Generic[A]):
    """One of mull's own tools, at work in a workspace."""

    name: ClassVar[str]
    description: ClassVar[str]
    arguments: type[A]
    changes = False
    source = "built in"

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    @cached_property
    def definition(self) -> Tool:
        """Name, description and schema, as the model gets them."""
        return Tool(self.name, self.description, schema_of(self.arguments))

    def subject(self, call: ToolCallBlock) -> Subject:
        """What rules are compared with.

        Raises:
            ToolFailure: the call cannot be done anyway; says why.
        """
        return self.about(self._given(call))

    def preview(self, input: dict[str, Any]) -> Preview:
        """What this call would do, or why it cannot."""
        try:
            return self.show(self._read(input))
        except (ToolFailure, OSError) as failure:
            return Preview(f"{self.name}: {one_line(str(failure))}", str(failure))

    async def run(self, call: ToolCallBlock, context: ToolContext) -> ToolResultBlock:
        """Do it; whatever goes wrong is an error result."""
        try:
            outcome = await self.work(self._given(call), context)
        except ToolFailure as failure:
            outcome = Outcome(str(failure), failed=True)
        except OSError as error:
            outcome = Outcome(f"{self.name} failed: {error.strerror or error}", failed=True)
        except Exception as error:  # a fault of ours must not end the turn
            outcome = Outcome(f"{self.name} failed: {type(error).__name__}: {error}", failed=True)
        return ToolResultBlock(call.id, outcome.text, outcome.failed, outcome.media)

    @abstractmethod
    def about(self, given: A) -> Subject:
        """What rules are compared with."""

    @abstractmethod
    def show(self, given: A) -> Preview:
        """What it would do."""

    @abstractmethod
    async def work(self, given: A, context: ToolContext) -> Outcome:
        """Do it."""

    def _given(self, call: ToolCallBlock) -> A:
        return self._read(input_of(call, self.definition.parameters))

    def _read(self, input: dict[str, Any]) -> A:
        return read_arguments(input, self.arguments, self.definition.parameters, strict=False)


def path_subject(place: Located) -> Subject:
    """The path that rules are compared with: where it really leads."""
    return Subject("path", place.name, shown_name(place.path))


async def in_thread(work: Callable[[threading.Event], T]) -> T:
    """Run it beside the event loop; the event is set when nobody waits for it any more."""
    left = threading.Event()
    try:
        return await asyncio.to_thread(work, left)
    finally:
        left.set()
