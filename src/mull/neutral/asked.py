"""A client's request in neutral form.

A `Request` is what mull sends, with everything decided; an `Asked` is what mull received, with
everything the client wrote. Whatever has no field here is in `rest`, under its path in the body.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec.structs import replace

from mull.neutral.blocks import Value
from mull.neutral.messages import Message
from mull.neutral.parameters import Parameters
from mull.neutral.request import AnswerFormat, HostedTool, NamedTool, Tool, ToolChoice

__all__ = ["Asked", "ThinkingAsked"]


class ThinkingAsked(Value, frozen=True):
    """What a request says about thinking; `unsaid` leaves it to the server.

    `effort` is the client's own word for the effort, `off` its word for turning thinking off.
    `shown` says whether the client wants to read the thinking, `summary` how detailed. `set_inside`
    is the effort that the last message about it sets; in its own dialect that message says it.
    `returned` is false if the client wants no thinking in the answer: it says so, or it speaks an
    API in which thinking is there only on request, and did not request it.
    """

    state: Literal["unsaid", "default", "on", "off"] = "unsaid"
    effort: str | None = None
    budget: int | None = None
    shown: bool | None = None
    summary: str | None = None
    off: str | None = None
    set_inside: str | None = None
    returned: bool = True


class Asked(Parameters, frozen=True):
    """One request. A field that is None or empty was not in it. `headers` are those that control
    the model.

    `allowed` are the only tools that `tool_choice` lets the model choose from, and `changed_tools`
    those that the conversation adds, or None for one that it removes. Where only the client's own
    dialect can say such a thing, `own` has the fields that say it, by path; messages stay as they
    are. Other dialects are told the tools that are left.
    """

    messages: tuple[Message, ...]
    model: str | None = None
    system: str = ""
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    allowed: tuple[str, ...] = ()
    changed_tools: dict[str, Tool | None] = {}
    hosted_tools: tuple[HostedTool, ...] = ()
    thinking: ThinkingAsked = ThinkingAsked()
    max_tokens: int | None = None
    format: AnswerFormat | None = None
    stream: bool = False
    stream_usage: bool = False
    own: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    headers: dict[str, str] = {}

    def offered(self) -> tuple[ToolChoice | None, tuple[Tool, ...]]:
        """The choice of tools, and all tools that the model may choose from, for a server that
        cannot be told of others: it knows no tools but these, or takes the name of a single one.
        """
        added = [tool for tool in self.changed_tools.values() if tool is not None]
        tools = [tool for tool in self.tools if tool.name not in self.changed_tools]
        if self.tool_choice == "required" and len(self.allowed) == 1:
            return NamedTool(self.allowed[0]), (*tools, *added)
        named = frozenset(self.allowed)
        tools = [tool for tool in (*tools, *added) if not named or tool.name in named]
        return self.tool_choice, tuple(tools)

    def with_rest(self, *rests: Mapping[str, Any]) -> Asked:
        """The same request with additional fields in `rest`."""
        return replace(self, rest={path: value for rest in rests for path, value in rest.items()})
