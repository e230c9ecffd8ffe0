"""Messages as Gemini's `contents`.

There are two roles; consecutive messages of one role are one content, so that parallel calls are in
one and their results in the next. Parts are sent back as they came, in order, with the signature in
its place; thinking too, if policy left it in. The list only grows at its end: how a message is
encoded does not depend on what follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, assert_never

from mull.dialects.extras import Extras, lost_note, written_with
from mull.dialects.gemini import DIALECT
from mull.dialects.gemini.shapes import RESULT_KEYS, call_part, text_part, thought_part
from mull.neutral.blocks import (
    Block,
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    as_keys,
    own_keys,
)
from mull.neutral.messages import Message
from mull.neutral.request import Note
from mull.neutral.thinking import UNSIGNED_CALL

__all__ = ["ContentWriter", "write_media"]

Part = dict[str, Any]


class ContentWriter:
    """Writes the messages of one request.

    `needs_signatures` is for models that reject a step of the current turn whose first call is
    unsigned. Such a step gets the placeholder in every turn, because a call must not change its
    bytes when its turn has passed.
    """

    def __init__(self, *, needs_signatures: bool) -> None:
        self.contents: list[dict[str, Any]] = []
        self._needs_signatures = needs_signatures
        self._calls: dict[str, ToolCallBlock] = {}
        self._unsigned = 0
        self._left_out: dict[str, int] = {}
        self._keys: Mapping[str, Any] = {}
        self._lost: list[str] = []

    def write(self, messages: Iterable[Message]) -> None:
        """Append the messages; messages of users and tools have the user role, and so has a system
        message between them.
        """
        for message in messages:
            extras = Extras(DIALECT, message)
            if message.role == "assistant":
                self._append("model", self._write_answer(message, extras), extras.keys)
                self._lost += extras.lost()
            else:
                parts = [part for block in message.blocks for part in self._parts(block)]
                self._append("user", parts, extras.keys)

    def notes(self) -> list[Note]:
        """What could not be sent unchanged, and what was added."""
        notes = [
            Note("history", f"{count} {what}", warning=True)
            for what, count in self._left_out.items()
        ]
        if self._lost:
            notes.append(lost_note(self._lost))
        if self._unsigned:
            calls = "call" if self._unsigned == 1 else "calls"
            text = f"{self._unsigned} unsigned tool {calls} sent with {UNSIGNED_CALL} as signature"
            notes.append(Note("history", text))
        if self.contents and self.contents[-1]["role"] == "model":
            text = "The request ends with a message of the model; newer models reject that"
            notes.append(Note("history", text, warning=True))
        return notes

    def _append(self, role: str, parts: list[Part], keys: Mapping[str, Any]) -> None:
        """Append to the last content if that has the same role and keys."""
        if not parts and not keys:
            return
        if self.contents and self.contents[-1]["role"] == role and self._keys == keys:
            self.contents[-1]["parts"] += parts
        else:
            self._keys = keys
            self.contents.append({"role": role, "parts": parts, **keys})

    def _write_answer(self, message: Message, extras: Extras) -> list[Part]:
        first = next(iter(message.tool_calls), None)  # the one that must be signed
        missing = first if first and not first.signature and self._needs_signatures else None
        parts: list[Part] = []
        for block in message.blocks:
            new = self._parts(block)
            if block is missing:
                new[0]["thoughtSignature"] = UNSIGNED_CALL
                self._unsigned += 1
            if (kind := _kind(block)) is None:
                parts += new
            elif new:
                parts += [extras.write(part, kind) for part in new]
            else:
                extras.skip(kind)
        return parts

    def _parts(self, block: Block) -> list[Part]:
        match block:
            case TextBlock():
                return _text_parts(block)
            case ThinkingBlock():
                return self._thought_parts(block)
            case ToolCallBlock():
                return [self._call_part(block)]
            case ToolResultBlock():
                return self._result_parts(block)
            case MediaBlock():
                return self._media_parts(block)
            case OpaqueBlock():
                return [block.data] if block.data else []
            case _:
                assert_never(block)

    def _thought_parts(self, block: ThinkingBlock) -> list[Part]:
        kept = own_keys(block.wire, DIALECT)
        if not block.thought.strip() and not block.signature and not kept:
            return []
        return [thought_part(block.thought, kept, block.signature)]

    def _call_part(self, block: ToolCallBlock) -> Part:
        self._calls[block.id] = block
        return call_part(block.name, block.input, own_keys(block.wire, DIALECT), block.signature)

    def _result_parts(self, block: ToolResultBlock) -> list[Part]:
        call = self._calls.get(block.call_id)
        key = "error" if block.is_error else "result"
        result: Part = {
            "name": call.name if call else block.call_id,
            "response": {key: block.output},
        }
        if call and "id" in (kept := own_keys(call.wire, DIALECT)):
            result["id"] = kept["id"]
        media = [part for one in block.media for part in self._media_parts(one)]
        kept = dict(own_keys(block.wire, DIALECT))
        own = as_keys(kept.pop(RESULT_KEYS, None))
        if media and (own or self._needs_signatures):  # models that sign take media in a result
            result["parts"], media = media, []
        return [{"functionResponse": {**result, **own}, **kept}, *media]

    def _media_parts(self, block: MediaBlock) -> list[Part]:
        part = write_media(block)
        if part is None:
            self._leave_out("media left out: it has neither data nor a URL")
            return []
        return [written_with(part, block.wire, DIALECT)]

    def _leave_out(self, what: str) -> None:
        self._left_out[what] = self._left_out.get(what, 0) + 1


def write_media(block: MediaBlock) -> Part | None:
    """The part of an attachment; None if it has neither data nor an address."""
    if block.data is not None:
        return {"inlineData": {"mimeType": block.media_type, "data": block.data}}
    if block.url is None:
        return None
    head, comma, data = block.url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        kind = head[len("data:") : -len(";base64")].partition(";")[0] or block.media_type
        return {"inlineData": {"mimeType": kind, "data": data}}
    return {"fileData": {"mimeType": block.media_type, "fileUri": block.url}}


def _kind(block: Block) -> str | None:
    match block:
        case TextBlock():
            return "text"
        case ThinkingBlock():
            return "thought"
        case ToolCallBlock():
            return "call"
    return None


def _text_parts(block: TextBlock) -> list[Part]:
    kept = own_keys(block.wire, DIALECT)
    if not block.text and not block.signature and not kept:
        return []
    return [text_part(block.text, kept, block.signature)]
