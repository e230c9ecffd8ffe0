"""What a client asks for, in neutral form: the whole of a request that somebody else wrote.

A `Request` is what we send, with everything decided; this is what reached us, with everything
that was said. What has no field here is in `rest`, under its path in the body.
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
    """What is asked of the model's thinking; `unsaid` leaves it to the server.

    `effort` is the client's own word, `off` the word it says it is off with. `shown` says whether
    it wants to read the thoughts, and `summary` in which length.
    """

    state: Literal["unsaid", "default", "on", "off"] = "unsaid"
    effort: str | None = None
    budget: int | None = None
    shown: bool | None = None
    summary: str | None = None
    off: str | None = None


class Asked(Parameters, frozen=True):
    """One request. What is None or empty was not said."""

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
        """The same request with what had no place in it."""
        return replace(self, rest={path: value for rest in rests for path, value in rest.items()})
