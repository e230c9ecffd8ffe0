"""What a client wrote in its messages that has no neutral field: keys that only its own provider
understands, or that nobody knows yet. They are kept as they came, and written again in the same
dialect only.

Those of a user's block are in the block. Those of a message, and those of the blocks of an answer,
are in the message, under the kind of the block and its number among its kind: the blocks of an
answer are replaced by the stored ones, which have them not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import is_
from typing import Any

from msgspec.structs import replace

from mull.dialects.body import merge
from mull.neutral.blocks import (
    Block,
    MediaBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Wire,
    joined,
    own_keys,
    wire_of,
)
from mull.neutral.messages import Message
from mull.neutral.request import Note, Request, RequestOptions, Tool
from mull.neutral.target import Compat

__all__ = [
    "Extras",
    "bare_tool",
    "described_by",
    "extra_names",
    "is_verbatim",
    "joined_extras",
    "leftover",
    "lost_note",
    "merge_own",
    "pruned",
    "unread",
    "without_extras",
    "written_with",
]

_SELF = ""
_TYPED = frozenset(
    {"response_format", "text.format", "output_config.format", "thinking", "tool_choice"}
)
_OUTER = frozenset({"text", "output_config"})
"""Objects that say by a `type` what they are, and those around them."""
_NEEDED = frozenset({"format", "namespace"})
"""What describes a tool in its own dialect."""
_PLAIN, _TEXTS = {"type", "text"}, ("text", "input_text", "output_text")
_BLOCKS: Mapping[str, type[Block]] = {
    **dict.fromkeys(("text", "message", "part"), TextBlock),
    **dict.fromkeys(("call", "tool_use", "function_call"), ToolCallBlock),
}
"""The blocks that the dialects count under each kind; the others are thoughts."""


def unread(given: Mapping[str, Any], known: Sequence[str]) -> dict[str, Any]:
    """The keys of an object that are not among the known ones."""
    names = given.keys() - known
    return {key: value for key, value in given.items() if key in names} if names else {}


def leftover(given: Mapping[str, Any], written: Mapping[str, Any]) -> dict[str, Any]:
    """What is in an object but not in how mull writes it. A list in which anything would be missing
    is left as a whole."""
    rest: dict[str, Any] = {}
    for key, value in given.items():
        if key not in written:
            rest[key] = value
        elif isinstance(value, Mapping) and isinstance(written[key], Mapping):
            if more := leftover(value, written[key]):
                rest[key] = more
        elif not _is_said(value, written[key]):
            rest[key] = value
    return rest


def _is_said(given: Any, written: Any) -> bool:
    """Whether nothing of a value is missing in what is written for it. Texts may be written as
    one."""
    if not isinstance(given, list):
        return bool(given == written)
    if isinstance(written, list) and len(written) == len(given):
        return all(map(_is_whole, given, written))
    return all(isinstance(one, str) or _is_plain(one) for one in given)


def _is_whole(given: Any, written: Any) -> bool:
    if isinstance(given, Mapping) and isinstance(written, Mapping):
        return not leftover(given, written)
    return _is_said(given, written)


def _is_plain(part: Any) -> bool:
    return isinstance(part, Mapping) and part.keys() == _PLAIN and part["type"] in _TEXTS


def merge_own(body: dict[str, Any], own: Mapping[str, Any]) -> list[Note]:
    """Merge what a client wrote in its body into the one that is sent. What it wrote in an object
    that says by its `type` what it is goes with that object: if mull does not send it, such as a
    schema that is in the instructions instead, the rest of it would be rejected. Changes `body`.
    """
    fitting, lost = _fitting(body, own, "")
    merge(body, fitting)
    text = f"not sent, because what they are in is not: {', '.join(lost)}"
    return [Note("parameters", text, warning=True)] if lost else []


def _fitting(
    body: Mapping[str, Any], own: Mapping[str, Any], before: str
) -> tuple[dict[str, Any], list[str]]:
    kept: dict[str, Any] = {}
    lost: list[str] = []
    for key, value in own.items():
        path = f"{before}{key}"
        if not isinstance(value, Mapping):
            kept[key] = value
        elif path in _TYPED and key not in body and "type" not in value:
            lost += [f"{path}.{name}" for name in value]
        elif path in _OUTER:
            inner, gone = _fitting(body.get(key, {}), value, f"{path}.")
            lost += gone
            kept |= {key: inner} if inner or not gone else {}
        else:
            kept[key] = value
    return kept, lost


def written_with(written: dict[str, Any], wire: Wire | None, dialect: str) -> dict[str, Any]:
    """A block as it is written, with what else its client wrote in it."""
    extra = own_keys(wire, dialect)
    return merge({**written}, extra) if extra else written


class Extras:
    """What a client wrote in a message and in the blocks of an answer beside what is read."""

    def __init__(self, dialect: str, message: Message | None = None) -> None:
        self._dialect = dialect
        self.held = dict(own_keys(message.wire, dialect)) if message is not None else {}
        self._seen: dict[str, int] = {}

    def add(self, rest: dict[str, Any], kind: str = _SELF) -> None:
        """Keep what is left of the message, or of the next block of a kind."""
        at = self._next(kind)
        if rest:
            self.held[at] = rest

    def wire(self) -> Wire | None:
        """All of it, for the message."""
        return wire_of(self._dialect, self.held)

    @property
    def keys(self) -> dict[str, Any]:
        """The keys of the message itself."""
        found: dict[str, Any] = self.held.get(_SELF, {})
        return found

    def write(self, written: dict[str, Any], kind: str) -> dict[str, Any]:
        """The next block of a kind, with what else its client wrote in it."""
        if not self.held:
            return written
        rest = self.held.pop(self._next(kind), None)
        return merge({**written}, rest) if rest else written

    def skip(self, kind: str) -> None:
        """The next block of a kind is not written."""
        self._next(kind)

    def parts_of(self, kind: str) -> str:
        """The kind of the parts of the block of a kind that was added or written last."""
        return f"{kind} {self._seen.get(kind, 0)} part"

    def lost(self) -> list[str]:
        """The keys in blocks that were not written."""
        return [key for at, rest in self.held.items() if at != _SELF for key in rest]

    def _next(self, kind: str) -> str:
        if kind == _SELF:
            return kind
        number = self._seen[kind] = self._seen.get(kind, 0) + 1
        return f"{kind} {number}"


def described_by(tool: Tool, given: Mapping[str, Any], written: Any, dialect: str) -> Tool:
    """A tool with what its client wrote in it beside what is read; `written` is how it is written
    without that."""
    rest = wire_of(dialect, leftover(given, written))
    return replace(tool, wire=joined(tool.wire, rest)) if rest else tool


def is_verbatim(message: Message, dialect: str, compat: Compat) -> bool:
    """Whether an instruction within the conversation is sent in the role in which its client wrote
    it: to the provider whose API has that role, or if it has keys that are for that provider. An
    API with built-in tools is its provider's own."""
    wire = message.wire
    if message.role != "system" or wire is None or wire.dialect != dialect:
        return False
    return bool(wire.data or compat.hosted_tools)


def joined_extras(pieces: Sequence[Message]) -> Wire | None:
    """What a client wrote in the pieces of one answer."""
    dialect = next((piece.wire.dialect for piece in pieces if piece.wire is not None), None)
    if dialect is None:
        return None
    held: dict[str, Any] = {}
    before: list[type[Block]] = []
    for piece in pieces:
        for at, rest in own_keys(piece.wire, dialect).items():
            kind, _, number = at.rpartition(" ")
            others = before.count(_BLOCKS.get(kind, ThinkingBlock))
            held[f"{kind} {int(number) + others}" if kind and number.isdigit() else at] = rest
        before += map(type, piece.blocks)
    return wire_of(dialect, held)


def lost_note(keys: Sequence[str]) -> Note:
    """That keys in an answer were left out with their blocks."""
    names = ", ".join(dict.fromkeys(keys))
    return Note("history", f"not sent with an earlier answer, which has changed: {names}", True)


def extra_names(
    options: RequestOptions | Request, messages: Iterable[Message], dialect: str
) -> dict[str, None]:
    """The names of all keys, and of the beta features, that the client of a dialect wrote in a
    request beside what is read."""
    betas = (beta.strip() for value in options.headers.values() for beta in value.split(","))
    written = (name for held in _extras(options, messages, dialect) for name in _names(held))
    return dict.fromkeys((*written, *filter(None, betas)))


def _names(held: Mapping[str, Any]) -> Iterator[str]:
    for name, value in held.items():
        yield name
        if isinstance(value, Mapping):
            yield from _names(value)


def _extras(
    options: RequestOptions | Request, messages: Iterable[Message], dialect: str
) -> Iterator[Mapping[str, Any]]:
    yield own_keys(options.wire, dialect)
    for tool in options.tools:
        yield {k: v for k, v in own_keys(tool.wire, dialect).items() if k not in _NEEDED}
    for message in messages:
        yield from own_keys(message.wire, dialect).values()
        if message.role != "assistant":
            for block in message.blocks:
                if isinstance(block, TextBlock | MediaBlock | ToolResultBlock):
                    yield own_keys(block.wire, dialect)


def without_extras(message: Message, names: frozenset[str] | None = None) -> Message:
    """The message without what its client added, or without such keys; the same object if it has
    none."""
    blocks = message.blocks
    if message.role != "assistant":
        blocks = tuple(_bare(block, names) for block in blocks)
    wire = _without(message.wire, names)
    if wire is message.wire and all(map(is_, blocks, message.blocks)):
        return message
    return replace(message, blocks=blocks, wire=wire)


def bare_tool(tool: Tool, names: frozenset[str] | None = None) -> Tool:
    """The tool without what its client added, or without such keys; the same object if there is
    nothing. What a tool cannot do without stays."""
    if tool.wire is None:
        return tool
    gone = tool.wire.data.keys() - _NEEDED if names is None else names - _NEEDED
    wire = _without(tool.wire, frozenset(gone))
    return tool if wire is tool.wire else replace(tool, wire=wire)


def _bare(block: Block, names: frozenset[str] | None) -> Block:
    if not isinstance(block, TextBlock | MediaBlock | ToolResultBlock):
        return block
    wire = _without(block.wire, names)
    return block if wire is block.wire else replace(block, wire=wire)


def _without(wire: Wire | None, names: frozenset[str] | None) -> Wire | None:
    if wire is None or wire.dialect is None:
        return wire
    if names is None:
        return None
    kept = pruned(wire.data, names)
    return wire if kept == wire.data else wire_of(wire.dialect, kept)


def pruned(data: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """An object without keys of these names, at any depth; objects that held nothing else go with
    them."""
    kept: dict[str, Any] = {}
    for key, value in data.items():
        if key in names:
            continue
        inner = pruned(value, names) if isinstance(value, Mapping) else value
        if inner or inner == value:
            kept[key] = inner
    return kept
