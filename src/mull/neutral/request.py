"""One complete request in neutral form: the input of an encoder."""

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
    "ToolDefinition",
    "WireRequest",
]


class NamedTool(Value, frozen=True):
    """The one tool that the model must call."""

    name: str


ToolChoice: TypeAlias = Literal["auto", "none", "required"] | NamedTool


class ToolDefinition(Value, frozen=True):
    """A function the model may call; `parameters` is a JSON schema.

    With `free_text` its input is a text rather than an object; in dialects without such tools, the
    text is the only member of an object, as the schema says. `wire` holds keys that only the
    dialect of its description has. With `strict` the endpoint is to enforce the schema, which must
    be one that it can enforce.
    """

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    free_text: bool = False
    wire: Wire | None = None
    strict: bool = False


Tool: TypeAlias = ToolDefinition
"""Its name where tools are never run. `mull.Tool` also has the function that runs it."""


class HostedTool(Value, frozen=True):
    """A tool that the provider runs, or that only one dialect can describe, in the form of that
    dialect. `betas` are the beta features that it may need, if the dialect has any."""

    dialect: Dialect
    data: dict[str, Any]
    betas: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its type, or its only key."""
        kind = self.data.get("type")
        return kind if isinstance(kind, str) else ", ".join(self.data)


class Note(Value, frozen=True):
    """How something that the user requested was applied, and why. Warnings deserve attention.

    For a setting, `requested` is the requested value, `effective` the one in effect, and `sent_as`
    the fragment of the body that expresses it. `about` is the setting's key, or the part of the
    request that the note concerns. `kind` is shared by notes that say the same about different
    requests; the newest of them replaces the others.
    """

    about: str
    text: str
    warning: bool = False
    requested: str | None = None
    effective: str | None = None
    sent_as: str | None = None
    kind: str | None = None

    def replaces(self, earlier: Note) -> bool:
        """Whether this note can replace the earlier one without loss."""
        if self.kind is None:
            return self == earlier
        return (self.about, self.kind) == (earlier.about, earlier.kind)


class AnswerFormat(Value, frozen=True):
    """The form that the answer must have: any JSON, or JSON that matches a schema. `wire` holds
    the schema as only the dialect of its client writes it."""

    schema: dict[str, Any] | None = None
    name: str | None = None
    strict: bool | None = None
    wire: Wire | None = None


class RequestOptions(Parameters, frozen=True):
    """Everything about a request that is not history, settings or target."""

    system: str = ""
    """The system prompt; empty for none."""
    tools: tuple[ToolDefinition, ...] = ()
    """The functions offered to the model."""
    tool_choice: ToolChoice | None = None
    """Whether the model may, must or must not call a tool, or which one; None leaves it to the
    model.
    """
    max_tokens: int | None = None
    """The most tokens the answer may have, thinking included; None sends a limit only to endpoints
    that require one.
    """
    stream: bool = True
    """Whether the answer is requested as a stream."""
    least_thinking: bool = False
    """Whether to request as little thinking as the model allows, whatever the settings say;
    settings about the history still apply.
    """
    format: AnswerFormat | None = None
    """The form that the answer must have, requested in the way that the model supports."""
    plain_format: bool = False
    """Whether to request the format in the prompt alone: the endpoint rejected other ways."""
    text_format: bool = False
    """Whether the caller reads the answer's text, so that the format is never requested by a tool
    call.
    """
    hosted_tools: tuple[HostedTool, ...] = ()
    """Tools that the provider runs; they are sent only to a target of their dialect that offers
    such tools.
    """
    wire: Wire | None = None
    """Fields of the body that only one dialect has; sent to targets of that dialect."""
    headers: dict[str, str] = {}
    """Request headers that only one dialect has, such as `anthropic-beta`."""
    extra_body: dict[str, Any] = {}
    """Fields that are merged into the body last, over everything else."""


class Request(Parameters, frozen=True):
    """One request, ready for an encoder: nothing is left to decide but its wire format."""

    messages: Sequence[Message]
    """The conversation as it is sent: stripped, repaired, and with the forms of thinking that the
    endpoint accepts.
    """
    thinking: ThinkingPlan
    """What the request asks of the model's thinking."""
    system: str = ""
    """The system prompt; empty for none."""
    tools: tuple[ToolDefinition, ...] = ()
    """The functions offered to the model, under names that the endpoint accepts."""
    tool_choice: ToolChoice | None = None
    """Whether the model may, must or must not call a tool, or which one; None is not sent."""
    max_tokens: int | None = None
    """The limit of the answer's tokens that is sent, thinking included; None is not sent."""
    stream: bool = True
    """Whether the answer is requested as a stream."""
    keep_thinking: bool = False
    """Whether to ask the endpoint not to strip old thinking by itself."""
    reasoning_field: str | None = None
    """The field in which the user wants reasoning sent back; None leaves it to the compat row."""
    format: AnswerFormat | None = None
    """The answer format that the endpoint itself enforces; None if it is requested otherwise."""
    hosted_tools: tuple[HostedTool, ...] = ()
    """Tools that the provider runs, in the target's dialect."""
    wire: Wire | None = None
    """Fields of the body that only the target's dialect has."""
    headers: dict[str, str] = {}
    """Request headers beside those of the dialect and the API key."""
    extra_body: dict[str, Any] = {}
    """Fields that are merged into the body last, over everything else."""


class WireRequest(Value, frozen=True):
    """The output of an encoder: the bytes to send, before any key is added.

    `path` is relative to the target's endpoint. `notes` say what the dialect could not express.
    """

    path: str
    body: bytes
    headers: dict[str, str] = {}
    method: str = "POST"
    notes: tuple[Note, ...] = ()
