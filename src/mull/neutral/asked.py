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
from mull.neutral.request import AnswerFormat, HostedTool, Tool, ToolChoice

__all__ = ["Asked", "ThinkingAsked"]


class ThinkingAsked(Value, frozen=True):
    """What a request says about thinking; `unsaid` leaves it to the server.

    `effort` is the client's own word for the effort, `off` its word for turning thinking off.
    `shown` says whether the client wants to read the thinking, `summary` how detailed.
    """

    state: Literal["unsaid", "default", "on", "off"] = "unsaid"
    effort: str | None = None
    budget: int | None = None
    shown: bool | None = None
    summary: str | None = None
    off: str | None = None


class Asked(Parameters, frozen=True):
    """One request. A field that is None or empty was not in it."""

    messages: tuple[Message, ...]
    model: str | None = None
    system: str = ""
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    hosted_tools: tuple[HostedTool, ...] = ()
    thinking: ThinkingAsked = ThinkingAsked()
    max_tokens: int | None = None
    format: AnswerFormat | None = None
    stream: bool = False
    stream_usage: bool = False
    rest: dict[str, Any] = {}

    def with_rest(self, *rests: Mapping[str, Any]) -> Asked:
        """The same request with additional fields in `rest`."""
        return replace(self, rest={path: value for rest in rests for path, value in rest.items()})
