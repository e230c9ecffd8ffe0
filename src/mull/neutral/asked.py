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
    """What a request says about thinking."""

    state: Literal["unsaid", "default", "on", "off"] = "unsaid"
    """`unsaid` leaves thinking to the server, `default` leaves it to the model; `on` and `off` are
    explicit.
    """
    effort: str | None = None
    """The client's own word for how much to think, such as `high`; None if it gives none."""
    budget: int | None = None
    """The most tokens the model may think, as the client wrote it; Gemini's -1 leaves it to the
    model.
    """
    shown: bool | None = None
    """Whether the client wants to read the thinking; None if it does not say."""
    summary: str | None = None
    """How detailed a summary of the thinking the client wants, in its own word, such as `auto`."""
    off: str | None = None
    """The client's word for turning thinking off, such as `disabled`; None if it has no word of its
    own.
    """
    set_inside: str | None = None
    """The effort that the last message about it sets within the conversation. A server of the
    client's dialect reads it in that message.
    """
    returned: bool = True
    """False if the client wants no thinking in the answer: it says so, or its API returns thinking
    only on request and it did not request it.
    """


class Asked(Parameters, frozen=True):
    """One request as a client wrote it. A field that is None or empty was not in it."""

    messages: tuple[Message, ...]
    """The conversation, without the system prompt."""
    model: str | None = None
    """The model's name as the client wrote it, which may be an alias of the server's."""
    system: str = ""
    """The system prompt; several system texts are joined."""
    tools: tuple[Tool, ...] = ()
    """The functions that the client declares at the top of the request."""
    tool_choice: ToolChoice | None = None
    """Whether the model may, must or must not call a tool, or which one it must call."""
    allowed: tuple[str, ...] = ()
    """The names of the only tools that `tool_choice` lets the model choose from; empty if it may
    choose from all.
    """
    changed_tools: dict[str, Tool | None] = {}
    """Tools that messages add to the conversation, by name; None for one that a message removes."""
    hosted_tools: tuple[HostedTool, ...] = ()
    """Tools that the provider runs, in the form of the client's dialect."""
    thinking: ThinkingAsked = ThinkingAsked()
    """What the request says about thinking; by default nothing."""
    max_tokens: int | None = None
    """The most tokens the answer may have, thinking included, as the client asks for it."""
    format: AnswerFormat | None = None
    """The form that the client requires of the answer, such as JSON that matches a schema."""
    stream: bool = False
    """Whether the client wants the answer as a stream."""
    stream_usage: bool = False
    """Whether the client wants token counts in the stream. Only Chat Completions leaves them out
    unless asked.
    """
    own: dict[str, Any] = {}
    """Fields, by path, about tools that only the client's dialect can express, such as a
    `tool_choice` with a list. Other dialects get only the tools that are left.
    """
    rest: dict[str, Any] = {}
    """Fields of the body that nothing here represents, by path, such as `service_tier`."""
    headers: dict[str, str] = {}
    """The request headers by which the client controls the model, such as `anthropic-beta`."""

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
