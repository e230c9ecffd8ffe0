"""The history as the API's list of messages.

Roles alternate, so consecutive messages of one role become one message, tool results first. The
blocks of an answer are sent back in their original order, thinking with its signature, unknown
blocks verbatim. What is left out is counted and reported. A longer history extends the output of a
shorter one, block by block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, assert_never

from msgspec.structs import replace

from mull.dialects.anthropic import DIALECT
from mull.dialects.anthropic.fold import UNREADABLE_INPUT
from mull.dialects.anthropic.media import write_media
from mull.dialects.extras import Extras, is_verbatim, lost_note, written_with
from mull.dialects.ids import ToolIds
from mull.neutral.blocks import (
    Block,
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    own_keys,
)
from mull.neutral.messages import Message
from mull.neutral.request import Note
from mull.neutral.target import Compat

__all__ = ["History", "write_result"]

_LEFT_OUT = {
    "blank": ("history", "{n} blank text{s} not sent: the API accepts none"),
    "media": (
        "history",
        "{n} attachment{s} not sent: this API accepts PNG, JPEG, GIF, WebP, PDF and plain text, and"
        " only from users and tools",
    ),
    "system": ("history", "{n} system message{s} within the conversation sent as user messages"),
    "misplaced": ("history", "{n} block{s} not sent: not allowed in a message of that role"),
}
_WARNINGS = frozenset({"media", "misplaced"})
_THOUGHTS = ("thinking", "redacted_thinking")
_COMPACTS, _SIGNS_COMPACTIONS = "compact-2026-01-12", "compact-2026-09-04"
"""The beta features that accept compaction blocks back: unsigned and signed ones."""


class History:
    """Takes neutral messages one by one; contains the system texts and messages of the wire."""

    def __init__(self, compat: Compat, *, thinks: bool) -> None:
        self.system: list[dict[str, Any]] = []
        self.messages: list[dict[str, Any]] = []
        self.betas: list[str] = []
        self._compat, self._thinks = compat, thinks
        self._ids = ToolIds()
        self._left: Counter[str] = Counter()
        self._keys: Mapping[str, Any] = {}
        self._lost: list[str] = []

    def add(self, message: Message) -> None:
        """Append one message."""
        extras = Extras(DIALECT, message)
        match message.role:
            case "system" if not self.messages and _is_prompt(message) and not extras.keys:
                self.system += self._instructions(message)
            case "assistant":
                self._append("assistant", self._answer(message, extras), extras.keys)
                self._lost += extras.lost()
            case "system" if is_verbatim(message, DIALECT, self._compat):
                self._append("system", self._instructions(message), extras.keys)
            case "system":
                texts = tuple(one for one in message.blocks if isinstance(one, TextBlock))
                self._left["system"] += bool(texts)
                self._left["misplaced"] += len(message.blocks) - len(texts)
                spoken = self._spoken(replace(message, blocks=texts)) if texts else []
                self._append("user", spoken, extras.keys)
            case "user" | "tool":
                self._append("user", self._spoken(message), extras.keys)
            case _:
                assert_never(message.role)

    def close(self) -> None:
        """The history is complete."""
        self._settle()

    def notes(self) -> tuple[Note, ...]:
        """What was left out."""
        lost = (lost_note(self._lost),) if self._lost else ()
        return (
            *lost,
            *(
                Note(about, text.format(n=n, s="" if n == 1 else "s"), warning=kind in _WARNINGS)
                for kind, (about, text) in _LEFT_OUT.items()
                if (n := self._left[kind])
            ),
        )

    def _append(self, role: str, content: list[dict[str, Any]], keys: Mapping[str, Any]) -> None:
        """Append to the last message if that has the same role and keys."""
        if not content and not keys:
            return
        last = self.messages[-1] if self.messages else {}
        if last.get("role") == role and self._keys == keys:
            last["content"] += content
            return
        self._settle()
        self._keys = keys
        self.messages.append({"role": role, "content": content, **keys})

    def _settle(self) -> None:
        """Finish the last message: results come before anything else from the user."""
        if self.messages and self.messages[-1]["role"] == "user":
            self.messages[-1]["content"].sort(key=_is_no_result)

    def _answer(self, message: Message, extras: Extras) -> list[dict[str, Any]]:
        if self.messages and self.messages[-1]["role"] == "user":
            self._ids.next_turn()
        thought = bool(message.thinking)
        content = []
        for block in message.blocks:
            written = self._answer_block(block, thought=thought)
            if written is None:
                extras.skip("text" if isinstance(block, TextBlock) else "thinking")
            else:
                content.append(extras.write(written, str(written.get("type"))))
        return self._filler(message, content) + content if content else []

    def _answer_block(self, block: Block, *, thought: bool) -> dict[str, Any] | None:
        match block:
            case TextBlock():
                return self._text(block, thought=thought)
            case ThinkingBlock():
                return self._thought(block)
            case ToolCallBlock():
                return self._call(block)
            case OpaqueBlock():
                if block.stands_for_earlier:
                    signed = "signature" in block.data
                    self.betas.append(_SIGNS_COMPACTIONS if signed else _COMPACTS)
                return _verbatim(block)
            case MediaBlock():
                return self._leave("media")
            case ToolResultBlock():
                return self._leave("misplaced")
            case _:
                assert_never(block)

    def _thought(self, block: ThinkingBlock) -> dict[str, Any] | None:
        if block.redacted is not None:
            return {"type": "redacted_thinking", "data": block.redacted}
        demanded = self._compat.requires_reasoning == "all"
        if not (block.thought or block.signature or demanded):
            return None
        thought = {"type": "thinking", "thinking": block.thought}
        if block.signature is None:  # from an endpoint that never signs
            return thought
        return {**own_keys(block.wire, DIALECT), **thought, "signature": block.signature}

    def _filler(self, message: Message, content: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The placeholder for an endpoint that requires missing thinking (EC-007)."""
        filler, required = self._compat.missing_reasoning, self._compat.requires_reasoning
        needed = required == "all" or (required == "tool_calls" and message.tool_calls)
        if filler is None or not self._thinks or not needed:
            return []
        if any(block.get("type") in _THOUGHTS for block in content):
            return []
        return [{"type": "thinking", "thinking": filler, "signature": ""}]

    def _call(self, block: ToolCallBlock) -> dict[str, Any]:
        wire_id = self._ids.of_call(block.id)
        call = {"type": "tool_use", "id": wire_id, "name": block.name, "input": block.input}
        return {**own_keys(block.wire, DIALECT), **call}

    def _instructions(self, message: Message) -> list[dict[str, Any]]:
        content = []
        for block in message.blocks:
            if isinstance(block, TextBlock):
                text = {"type": "text", "text": block.text}
                content.append(written_with(text, block.wire, DIALECT))
            elif isinstance(block, OpaqueBlock):
                content.append(_verbatim(block))
            else:
                self._leave("misplaced")
        return content

    def _spoken(self, message: Message) -> list[dict[str, Any]]:
        content = [
            written
            for block in message.blocks
            if (written := self._spoken_block(block)) is not None
        ]
        filler = self._compat.empty_content
        return content or ([] if not filler else [{"type": "text", "text": filler}])

    def _spoken_block(self, block: Block) -> dict[str, Any] | None:
        match block:
            case TextBlock():
                return self._text(block, thought=False)
            case ToolResultBlock():
                return self._result(block)
            case MediaBlock():
                return self._media(block)
            case OpaqueBlock():
                return _verbatim(block)
            case ThinkingBlock() | ToolCallBlock():
                return self._leave("misplaced")
            case _:
                assert_never(block)

    def _text(self, block: TextBlock, *, thought: bool) -> dict[str, Any] | None:
        # Blank texts are rejected, but between thinking blocks nothing may change
        # (BerriAI/litellm#23047): there only the empty one is dropped.
        if not block.text or not (thought or block.text.strip()):
            return self._leave("blank") if block.text else None
        return {**own_keys(block.wire, DIALECT), "type": "text", "text": block.text}

    def _result(self, block: ToolResultBlock) -> dict[str, Any]:
        self._left["media"] += sum(write_media(media) is None for media in block.media)
        result = {**write_result(block), "tool_use_id": self._ids.of_result(block.call_id)}
        return written_with(result, block.wire, DIALECT)

    def _media(self, block: MediaBlock) -> dict[str, Any] | None:
        written = write_media(block)
        return written_with(written, block.wire, DIALECT) if written else self._leave("media")

    def _leave(self, kind: str) -> dict[str, Any] | None:
        self._left[kind] += 1
        return None


def write_result(block: ToolResultBlock) -> dict[str, Any]:
    """A tool result with what every client writes in it."""
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": block.call_id}
    shown = [
        written_with(one, media.wire, DIALECT)
        for media in block.media
        if (one := write_media(media)) is not None
    ]
    if shown:
        spoken = [{"type": "text", "text": block.output}] if block.output.strip() else []
        result["content"] = spoken + shown
    elif block.output:
        result["content"] = block.output
    if block.is_error:
        result["is_error"] = True
    return result


def _is_prompt(message: Message) -> bool:
    """Whether it can be in the system prompt: a client's message, which has a wire of its own, only
    if it is text."""
    return message.wire is None or all(isinstance(block, TextBlock) for block in message.blocks)


def _verbatim(block: OpaqueBlock) -> dict[str, Any]:
    return {name: value for name, value in block.data.items() if name != UNREADABLE_INPUT}


def _is_no_result(block: dict[str, Any]) -> bool:
    return block.get("type") != "tool_result"
