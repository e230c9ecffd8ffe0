"""What the built-in tools have in common: typed arguments in, a plan out."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import msgspec

from mull.agent.tools.shown import shown_name
from mull.agent.tools.tool import (
    BUILT_IN,
    PreparedCall,
    Preview,
    ToolContext,
    Work,
    clamped,
    inlined,
    input_of,
    read_arguments,
    schema_of,
)
from mull.agent.tools.workspace import Located, Workspace
from mull.neutral.blocks import ToolCallBlock
from mull.neutral.request import Tool
from mull.policy.approval import Asked, Rule, Subject, decide

__all__ = ["LOOKING", "BuiltinTool", "Plan", "in_thread", "path_subject"]

LOOKING = 30
"""Seconds that examining files may take."""

A = TypeVar("A", bound=msgspec.Struct)
T = TypeVar("T")


class Plan(NamedTuple):
    """What a call amounts to: what rules are matched against, what it would do, and doing it.

    `also` is what else it touches. `tool` is the one asked about instead of the one called. `pin`
    represents the state that was found.
    """

    subject: Subject
    preview: Preview
    work: Work
    also: tuple[Asked, ...] = ()
    tool: str = ""
    pin: str = ""


class BuiltinTool(ABC, Generic[A]):
    """A built-in tool in a workspace."""

    name: ClassVar[str]
    description: ClassVar[str]
    arguments: type[A]
    unlisted: ClassVar[Mapping[str, type[msgspec.Struct]]] = {}
    """Forms that models know although they are not offered, by the argument that marks them."""
    changes = False
    source = BUILT_IN

    def __init__(self, workspace: Workspace, rules: Sequence[Rule] = ()) -> None:
        self.workspace = workspace
        self._rules = rules

    @cached_property
    def definition(self) -> Tool:
        """Name, description and schema, as the model gets them."""
        return Tool(self.name, self.description, inlined(schema_of(self.arguments)))

    def prepare(self, call: ToolCallBlock) -> PreparedCall:
        """Validate the arguments and plan the call.

        Raises:
            ToolFailure: they are invalid, or lead out of the working folder.
        """
        schema = self.definition.parameters
        said = input_of(call, schema)
        form = next((self.unlisted[key] for key in self.unlisted if key in said), None)
        shape = schema if form is None else schema_of(form)
        given = read_arguments(clamped(said, shape), form or self.arguments, shape, strict=False)
        plan = self.plan(given)
        asked = Asked(plan.tool or self.name, self.changes, plan.subject)
        return PreparedCall(call, self.source, asked, plan.preview, plan.work, plan.also, plan.pin)

    def may_be_read(self, file: Subject) -> bool:
        """Whether rules allow `read`, and this tool, to show it: what they protect must not be
        available by a detour.
        """
        return all(
            decide(Asked(tool, False, file), "ask", self._rules).verdict == "run"
            for tool in ("read", self.name)
        )

    @abstractmethod
    def plan(self, given: Any) -> Plan:
        """The plan for these arguments; paths are located here and nowhere else.

        Raises:
            ToolFailure: it cannot be done, whoever allows it.
        """


def path_subject(place: Located) -> Subject:
    """The path that rules are matched against: where it really leads."""
    return Subject("path", place.name, shown_name(place.path))


def in_thread(
    work: Callable[[threading.Event, int | None], T],
) -> Callable[[ToolContext], Awaitable[T]]:
    """Work that runs beside the event loop; its event is set when the result is no longer wanted.
    It also gets the tokens that its result may have.
    """

    async def run(context: ToolContext) -> T:
        left = threading.Event()
        try:
            return await asyncio.to_thread(work, left, context.tokens)
        finally:
            left.set()

    return run
