"""What an encoder is given: the whole of one request, in neutral form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from mull.neutral.blocks import Value, Wire
from mull.neutral.messages import Dialect, Message
from mull.neutral.parameters import Parameters
from mull.neutral.thinking import ThinkingPlan

__all__ = [
    "AnswerFormat",
    "HostedTool",
    "NamedTool",
    "Note",
    "Request",
    "RequestOptions",
    "Tool",
    "ToolChoice",
    "WireRequest",
]


class NamedTool(Value, frozen=True):
    """The one tool that the model must call."""

    name: str


ToolChoice: TypeAlias = Literal["auto", "none", "required"] | NamedTool


class Tool(Value, frozen=True):
    """A function the model may call; `parameters` is a JSON schema.

    With `free_text` it takes a text and no object: where a dialect has no such tools, that text is
    the only member of an object, as its schema says. `wire` is what only the dialect knows that
    it was described in.
    """

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    free_text: bool = False
    wire: Wire | None = None


class HostedTool(Value, frozen=True):
    """A tool that the provider runs, or that only its dialect can describe, as it is written
    there. `betas` are the previews that it may be a part of, where the dialect has such."""

    dialect: Dialect
    data: dict[str, Any]
    betas: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What it is called: its type, or the one key that it has."""
        kind = self.data.get("type")
        return kind if isinstance(kind, str) else ", ".join(self.data)


class Note(Value, frozen=True):
    """What became of something the user asked for, and why. Warnings are worth interrupting for.

    For a setting: what was `requested`, what is `effective`, and the body fragment it is
    `sent_as`. `about` is the setting's key, or the part of the request it speaks of. `kind` is the
    same in all notes that say the same of different requests: the newest of them stands.
    """

    about: str
    text: str
    warning: bool = False
    requested: str | None = None
    effective: str | None = None
    sent_as: str | None = None
    kind: str | None = None

    def replaces(self, earlier: Note) -> bool:
        """Whether nothing is lost if this stands where the earlier one stood."""
        if self.kind is None:
            return self == earlier
        return (self.about, self.kind) == (earlier.about, earlier.kind)


class AnswerFormat(Value, frozen=True):
    """The form that the answer must have: any JSON, or that of a schema."""

    schema: dict[str, Any] | None = None
    name: str | None = None
    strict: bool | None = None


class RequestOptions(Parameters, frozen=True):
    """Everything about a request that is not history, settings or target.

    With `least_thinking` it asks for as little thinking as the model takes, whatever the settings
    say; what they say of the history holds. A `format` is asked for in the way that the model
    takes; in words alone where `plain_format` says that the endpoint refused another, and never by
    a call where `text_format` says that whoever asks reads the text. `wire` are fields of the body
    that only one dialect knows, `cache_marks` what its marks of a cache say in `system`, `tools`
    and `messages`.
    """

    system: str = ""
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    max_tokens: int | None = None
    stream: bool = True
    least_thinking: bool = False
    format: AnswerFormat | None = None
    plain_format: bool = False
    text_format: bool = False
    hosted_tools: tuple[HostedTool, ...] = ()
    wire: Wire | None = None
    cache_marks: dict[str, dict[str, Any]] = {}


class Request(Parameters, frozen=True):
    """One request, ready for an encoder: nothing is left to decide but its shape.

    `keep_thinking` asks the endpoint not to strip old thoughts by itself; `reasoning_field` is
    the user's own choice of the field that reasoning goes back in. `format` is the form that the
    endpoint itself holds the answer to.
    """

    messages: Sequence[Message]
    thinking: ThinkingPlan
    system: str = ""
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    max_tokens: int | None = None
    stream: bool = True
    keep_thinking: bool = False
    reasoning_field: str | None = None
    format: AnswerFormat | None = None
    hosted_tools: tuple[HostedTool, ...] = ()
    wire: Wire | None = None
    cache_marks: dict[str, dict[str, Any]] = {}


class WireRequest(Value, frozen=True):
    """What an encoder makes of it: bytes that go out as they are, before any key is added.

    `path` is relative to the target's endpoint. `notes` tell what the dialect could not express.
    """

    path: str
    body: bytes
    headers: dict[str, str] = {}
    method: str = "POST"
    notes: tuple[Note, ...] = ()
