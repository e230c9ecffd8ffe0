"""The events of a decoder while an answer arrives.

Every event that belongs to a block carries `key`: the wire's own name for it (a block index, an
item id, a part number). None means that the wire has none, and the event continues the open block
of its kind. Front ends draw these events; `assemble` folds them into blocks.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from mull.neutral.blocks import ThinkingKind, Value, Wire
from mull.neutral.messages import Status
from mull.neutral.rate_limit import RateLimit
from mull.neutral.usage import Usage

__all__ = [
    "BlockEnded",
    "Compressed",
    "Corrected",
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
    """The answer started; `id` and `model` are the provider's own. `request_id` is its id of the
    request and `rate_limit` what is left of the account's limits, if the response headers contain
    them.
    """

    id: str | None = None
    model: str | None = None
    request_id: str | None = None
    rate_limit: RateLimit | None = None


class TextDelta(Value, frozen=True, tag_field="type", tag="text"):
    """A chunk of the visible answer."""

    text: str
    key: Key = None
    signature: str | None = None
    wire: Wire | None = None


class ThinkingDelta(Value, frozen=True, tag_field="type", tag="thinking"):
    """A chunk of reasoning; an empty `text` still opens the block (empty is not absent)."""

    text: str
    key: Key = None
    source_field: str | None = None
    kind: ThinkingKind = "raw"


class ThinkingCarrier(Value, frozen=True, tag_field="type", tag="thinking_carrier"):
    """A carrier of a thinking block, sent once it is complete. Fields that are None say nothing."""

    key: Key = None
    """The wire's name for the block; None if it belongs to the open thinking block."""
    source_field: str | None = None
    """The field or item type that the block came in, if no chunk of text has said it."""
    signature: str | None = None
    """The provider's signature of the block."""
    encrypted: str | None = None
    """The block's thinking in encrypted form."""
    redacted: str | None = None
    """The data of a block whose thinking the provider withholds."""
    id: str | None = None
    """The provider's id of the reasoning item."""
    kind: ThinkingKind | None = None
    """Whether the block is the model's own text or a summary."""
    wire: Wire | None = None
    """More data of the dialect, merged key by key with what the block already has."""


class ToolCallDelta(Value, frozen=True, tag_field="type", tag="tool_call"):
    """A chunk of a tool call: any of id, name and a fragment of the arguments' text.

    `structured` means that the wire has an object and only streams it as text: its spacing does not
    matter.
    """

    key: Key = None
    id: str | None = None
    name: str | None = None
    arguments: str = ""
    signature: str | None = None
    wire: Wire | None = None
    structured: bool = False


class OpaqueReceived(Value, frozen=True, tag_field="type", tag="opaque"):
    """A complete block of a kind mull does not know; one that is `broken` is not sent back."""

    data: dict[str, Any]
    key: Key = None
    broken: bool = False


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
    """Something odd was corrected; nothing was lost."""

    code: str
    text: str


class ToolRan(Value, frozen=True, tag_field="type", tag="tool_result"):
    """A tool has run, and this is its result for the model; `diff` is what it changed, for the
    user.
    """

    call_id: str
    name: str
    output: str
    is_error: bool = False
    diff: str = ""


class ToolStarted(Value, frozen=True, tag_field="type", tag="tool_started"):
    """A tool starts to run; `title` is one line for the user, `detail` a diff or a command."""

    call_id: str
    name: str
    input: dict[str, Any]
    title: str = ""
    detail: str = ""


class ToolOutput(Value, frozen=True, tag_field="type", tag="tool_output"):
    """New output of a running tool; the result contains it again, shortened if necessary."""

    call_id: str
    text: str


class StateChanged(Value, frozen=True, tag_field="type", tag="state"):
    """The turn changed its state; `round` counts its requests and `rounds` is their limit."""

    state: str
    round: int = 0
    rounds: int = 0


class Nudged(Value, frozen=True, tag_field="type", tag="nudged"):
    """The model did not answer, or made a call that cannot be used, so it is asked again."""

    attempt: int
    most: int


class Corrected(Value, frozen=True, tag_field="type", tag="corrected"):
    """The answer does not match its schema, so it is asked for again; `text` says why."""

    text: str


class Steered(Value, frozen=True, tag_field="type", tag="steered"):
    """A message that the user sent while the model worked is sent with its tool results."""

    text: str


class Hurried(Value, frozen=True, tag_field="type", tag="hurried"):
    """Thinking was to end early; `text` says what was done.

    `how` is `asked` (the server was asked to end it: another event reports the outcome), `server`
    (the server's own call ended it), `off`, `less` or `words` (it was stopped, and the answer is
    requested with thinking off, with less of it, or with only an instruction), or `left` (it
    continues). `about` is the setting that requested it, or `thinking` for the user.
    """

    about: str
    how: Literal["asked", "server", "off", "less", "words", "left"]
    text: str


class Progressed(Value, frozen=True, tag_field="type", tag="progress"):
    """The progress of a side task: `about` is `compression` or `condensing`."""

    about: str
    text: str


class Compressed(Value, frozen=True, tag_field="type", tag="compressed"):
    """A summary now replaces earlier messages; `ok` False: nothing was changed, and why."""

    ok: bool
    text: str
    before: int | None = None
    after: int | None = None


class Retrying(Value, frozen=True, tag_field="type", tag="retrying"):
    """The request is sent again, unchanged, after a wait; nothing had been received.

    `attempt` is the number of the next attempt, of `attempts` in total; 0 is unknown.
    """

    attempt: int
    seconds: float
    reason: str
    attempts: int = 0

    @property
    def words(self) -> str:
        """What happened, and when the next attempt is made."""
        when = f" in {self.seconds:.0f} s" if self.seconds >= 1 else ""
        return f"{self.reason}: retrying{when}"


class Healed(Value, frozen=True, tag_field="type", tag="healed"):
    """The endpoint rejected the request because of its reasoning; a fixed one is sent."""

    reason: str
    change: str


class Finished(Value, frozen=True, tag_field="type", tag="finished"):
    """The answer ended normally. `status` None leaves it to `assemble`. `wire` is what else the
    provider said about the answer as a whole.
    """

    stop_reason: str | None = None
    status: Status | None = None
    wire: Wire | None = None


class Failed(Value, frozen=True, tag_field="type", tag="failed"):
    """The answer broke off; everything before it stays."""

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
    | Corrected
    | Steered
    | Hurried
    | Progressed
    | Compressed
    | Retrying
    | Healed
    | Finished
    | Failed
)
"""Any event of a stream; later versions may add more."""
