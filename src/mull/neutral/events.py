"""What a decoder says while an answer arrives.

Every event that belongs to a block carries `key`: the wire's own name for it (a block index, an
item id, a part number). None means the wire gave none, and the event continues whatever block of
its kind is open. Front ends draw these events; `assemble` folds them into blocks.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from mull.neutral.blocks import ThinkingKind, Value, Wire
from mull.neutral.messages import Status
from mull.neutral.usage import Usage

__all__ = [
    "BlockEnded",
    "Compressed",
    "Event",
    "Failed",
    "Finished",
    "Healed",
    "Hurried",
    "Key",
    "Nudged",
    "OpaqueReceived",
    "Progressed",
    "Reclassified",
    "Retrying",
    "Started",
    "StateChanged",
    "Steered",
    "TextDelta",
    "ThinkingCarrier",
    "ThinkingDelta",
    "ToolCallDelta",
    "ToolOutput",
    "ToolRan",
    "ToolStarted",
    "UsageReported",
    "Warned",
]

Key: TypeAlias = int | str | None


class Started(Value, frozen=True, tag_field="type", tag="started"):
    """The answer began; `id` and `model` are the provider's own words. `request_id` is its name for
    the request, where its answer's headers say it."""

    id: str | None = None
    model: str | None = None
    request_id: str | None = None


class TextDelta(Value, frozen=True, tag_field="type", tag="text"):
    """A piece of the visible answer."""

    text: str
    key: Key = None
    signature: str | None = None
    wire: Wire | None = None


class ThinkingDelta(Value, frozen=True, tag_field="type", tag="thinking"):
    """A piece of reasoning; an empty `text` still opens the block (empty is not absent)."""

    text: str
    key: Key = None
    source_field: str | None = None
    kind: ThinkingKind = "raw"


class ThinkingCarrier(Value, frozen=True, tag_field="type", tag="thinking_carrier"):
    """A carrier of a thinking block, sent once it is whole. Fields left None change nothing."""

    key: Key = None
    source_field: str | None = None
    signature: str | None = None
    encrypted: str | None = None
    redacted: str | None = None
    id: str | None = None
    kind: ThinkingKind | None = None
    wire: Wire | None = None


class ToolCallDelta(Value, frozen=True, tag_field="type", tag="tool_call"):
    """A piece of a tool call: any of id, name and a fragment of the arguments' text.

    `structured` says that the wire means an object and only streams it as text: how that text
    was spaced is of no account.
    """

    key: Key = None
    id: str | None = None
    name: str | None = None
    arguments: str = ""
    signature: str | None = None
    wire: Wire | None = None
    structured: bool = False


class OpaqueReceived(Value, frozen=True, tag_field="type", tag="opaque"):
    """A whole block of a kind mull does not know."""

    data: dict[str, Any]
    key: Key = None


class BlockEnded(Value, frozen=True, tag_field="type", tag="block_ended"):
    """The wire closed this block; what follows without a key opens a new one."""

    key: Key = None


class Reclassified(Value, frozen=True, tag_field="type", tag="reclassified"):
    """The text block `key` turned out to be reasoning (a closing tag without its opener)."""

    key: Key = None
    source_field: str | None = None


class UsageReported(Value, frozen=True, tag_field="type", tag="usage"):
    """The provider's counts so far; the last one wins."""

    usage: Usage


class Warned(Value, frozen=True, tag_field="type", tag="warning"):
    """Something odd was put right; nothing was lost."""

    code: str
    text: str


class ToolRan(Value, frozen=True, tag_field="type", tag="tool_result"):
    """A tool has run, and this is what goes back to the model."""

    call_id: str
    name: str
    output: str
    is_error: bool = False


class ToolStarted(Value, frozen=True, tag_field="type", tag="tool_started"):
    """A tool begins to run; `title` is one line for a person, `detail` a diff or a command."""

    call_id: str
    name: str
    input: dict[str, Any]
    title: str = ""
    detail: str = ""


class ToolOutput(Value, frozen=True, tag_field="type", tag="tool_output"):
    """What a running tool printed just now; the result holds it again, shortened if need be."""

    call_id: str
    text: str


class StateChanged(Value, frozen=True, tag_field="type", tag="state"):
    """The turn is in another state; `round` counts its requests and `rounds` is their limit."""

    state: str
    round: int = 0
    rounds: int = 0


class Nudged(Value, frozen=True, tag_field="type", tag="nudged"):
    """The model thought and said nothing, so it is asked once more for an answer."""

    attempt: int
    most: int


class Steered(Value, frozen=True, tag_field="type", tag="steered"):
    """What the user said while the model worked goes along with the results of its tools."""

    text: str


class Hurried(Value, frozen=True, tag_field="type", tag="hurried"):
    """A thought was to end before the model ended it; `text` says what was done.

    `how` is `asked` (the server is asked to end it: another event says what came of that),
    `server` (the server's own call ended it), `off`, `less` or `words` (it was stopped,
    and the answer is asked for with thinking off, with less of it, or with nothing but words), or
    `left` (it goes on). `about` is the setting that asked for it, or `thinking` for a person.
    """

    about: str
    how: Literal["asked", "server", "off", "less", "words", "left"]
    text: str


class Progressed(Value, frozen=True, tag_field="type", tag="progress"):
    """How far a side job is: `about` is `compression` or `condensing`."""

    about: str
    text: str


class Compressed(Value, frozen=True, tag_field="type", tag="compressed"):
    """A summary now stands for earlier messages; `ok` False: nothing was changed, and why."""

    ok: bool
    text: str
    before: int | None = None
    after: int | None = None


class Retrying(Value, frozen=True, tag_field="type", tag="retrying"):
    """The request goes out again, unchanged, after a wait; nothing had been received.

    `attempt` is the number of the try to come, of `attempts` in all; 0 is unknown.
    """

    attempt: int
    seconds: float
    reason: str
    attempts: int = 0


class Healed(Value, frozen=True, tag_field="type", tag="healed"):
    """The endpoint refused the request for its reasoning; a repaired one goes out."""

    reason: str
    change: str


class Finished(Value, frozen=True, tag_field="type", tag="finished"):
    """The answer ended as the provider meant it to. `status` None leaves it to `assemble`."""

    stop_reason: str | None = None
    status: Status | None = None


class Failed(Value, frozen=True, tag_field="type", tag="failed"):
    """The answer broke off; everything before it stands."""

    text: str
    code: str | None = None
    status: Status = "error"
    body: Any = None


Event: TypeAlias = (
    Started
    | TextDelta
    | ThinkingDelta
    | ThinkingCarrier
    | ToolCallDelta
    | OpaqueReceived
    | BlockEnded
    | Reclassified
    | UsageReported
    | Warned
    | ToolStarted
    | ToolOutput
    | ToolRan
    | StateChanged
    | Nudged
    | Steered
    | Hurried
    | Progressed
    | Compressed
    | Retrying
    | Healed
    | Finished
    | Failed
)
"""Whatever a stream can yield; later versions may add more."""
