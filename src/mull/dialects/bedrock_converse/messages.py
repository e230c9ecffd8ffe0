"""The history as the API's list of messages.

Roles alternate, so consecutive messages of one role become one message, tool results first. The
blocks of an answer are sent back in their original order, reasoning with its signature, unknown
blocks verbatim. What is left out is counted and reported. A longer history extends the output of a
shorter one.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, assert_never

from mull.dialects.bedrock_converse import DIALECT
from mull.dialects.bedrock_converse.media import MediaWriter
from mull.dialects.bedrock_converse.words import REASONING, REDACTED
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

__all__ = ["History", "reasoning_block", "text_block"]

_LONGEST_ID = 64
_LEFT_OUT = {
    "blank": ("history", "{n} blank text{s} not sent: the API accepts none"),
    "media": (
        "history",
        "{n} attachment{s} not sent: this API does not accept the format, or a URL outside S3",
    ),
    "arguments": ("history", "{n} tool call{s} with unreadable arguments sent without them"),
    "system": ("history", "{n} system message{s} within the conversation sent as user messages"),
    "misplaced": ("history", "{n} block{s} not sent: not allowed in a message of that role"),
}
_WARNINGS = frozenset({"media", "arguments", "misplaced"})


class History:
    """Takes neutral messages one by one; contains the system texts and messages of the wire, and
    the names of the called tools.
    """

    def __init__(self, compat: Compat) -> None:
        self.system: list[str] = []
        self.messages: list[dict[str, Any]] = []
        self.called: dict[str, None] = {}
        self._compat = compat
        self._ids = ToolIds(_LONGEST_ID)
        self._media = MediaWriter()
        self._left: Counter[str] = Counter()

    def add(self, message: Message) -> None:
        """Append one message."""
        match message.role:
            case "system" if not self.messages:
                self.system.append(message.text)
            case "assistant":
                self._append("assistant", self._answer(message))
            case "system" | "user" | "tool":
                self._left["system"] += message.role == "system"
                self._append("user", self._spoken(message))
            case _:
                assert_never(message.role)

    def close(self) -> None:
        """The history is complete."""
        self._settle()

    def notes(self) -> tuple[Note, ...]:
        """What was left out."""
        return tuple(
            Note(about, text.format(n=n, s="" if n == 1 else "s"), warning=kind in _WARNINGS)
            for kind, (about, text) in _LEFT_OUT.items()
            if (n := self._left[kind])
        )

    def _append(self, role: str, content: list[dict[str, Any]]) -> None:
        if not content:
            return
        if self.messages and self.messages[-1]["role"] != role:
            self._settle()
        if self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["content"] += content
        else:
            self.messages.append({"role": role, "content": content})

    def _settle(self) -> None:
        """Finish the last message: results come before anything else from the user."""
        if self.messages and self.messages[-1]["role"] == "user":
            self.messages[-1]["content"].sort(key=lambda block: "toolResult" not in block)

    def _answer(self, message: Message) -> list[dict[str, Any]]:
        if self.messages and self.messages[-1]["role"] == "user":
            self._ids.next_turn()
        thought = bool(message.thinking)
        written = [self._answer_block(block, thought=thought) for block in message.blocks]
        return [block for block in written if block is not None]

    def _answer_block(self, block: Block, *, thought: bool) -> dict[str, Any] | None:
        match block:
            case TextBlock():
                return self._text(block, thought=thought)
            case ThinkingBlock():
                return self._thought(block)
            case ToolCallBlock():
                return self._call(block)
            case OpaqueBlock():
                return block.data
            case MediaBlock():
                return self._attached(block)
            case ToolResultBlock():
                return self._leave("misplaced")
            case _:
                assert_never(block)

    def _thought(self, block: ThinkingBlock) -> dict[str, Any] | None:
        demanded = self._compat.requires_reasoning == "all"
        if block.redacted is None and not (block.thought or block.signature or demanded):
            return None
        return reasoning_block(block)

    def _call(self, block: ToolCallBlock) -> dict[str, Any]:
        self.called[block.name] = None
        unreadable = not block.input and bool((block.arguments or "").strip(" \t\r\n{}"))
        self._left["arguments"] += unreadable
        call = {
            "toolUseId": self._ids.of_call(block.id),
            "name": block.name,
            "input": block.input,
        }
        return {"toolUse": {**own_keys(block.wire, DIALECT), **call}}

    def _spoken(self, message: Message) -> list[dict[str, Any]]:
        written = [self._spoken_block(block) for block in message.blocks]
        content = [block for block in written if block is not None]
        filler = self._compat.empty_content
        return content or ([] if not filler else [{"text": filler}])

    def _spoken_block(self, block: Block) -> dict[str, Any] | None:
        match block:
            case TextBlock():
                return self._text(block, thought=False)
            case ToolResultBlock():
                return self._result(block)
            case MediaBlock():
                return self._attached(block)
            case OpaqueBlock():
                return block.data
            case ThinkingBlock() | ToolCallBlock():
                return self._leave("misplaced")
            case _:
                assert_never(block)

    def _text(self, block: TextBlock, *, thought: bool) -> dict[str, Any] | None:
        # Blank texts are rejected, but between thinking blocks nothing may change: there only the
        # empty one is dropped.
        if not block.text or not (thought or block.text.strip()):
            return self._leave("blank") if block.text else None
        return text_block(block)

    def _result(self, block: ToolResultBlock) -> dict[str, Any]:
        content: list[dict[str, Any]] = [{"text": block.output}] if block.output.strip() else []
        content += [one for media in block.media if (one := self._attached(media)) is not None]
        result: dict[str, Any] = {
            "toolUseId": self._ids.of_result(block.call_id),
            "content": content,
        }
        if block.is_error:
            result["status"] = "error"
        return {"toolResult": result}

    def _attached(self, block: MediaBlock) -> dict[str, Any] | None:
        return self._media.write(block) or self._leave("media")

    def _leave(self, kind: str) -> dict[str, Any] | None:
        self._left[kind] += 1
        return None


def text_block(block: TextBlock) -> dict[str, Any]:
    """A text; one with citations is sent back unchanged."""
    kept = own_keys(block.wire, DIALECT)
    if "citations" not in kept:
        return {**kept, "text": block.text}
    content = kept.get("content") or [{"text": block.text}]
    return {"citationsContent": {**kept, "content": content}}


def reasoning_block(block: ThinkingBlock) -> dict[str, Any]:
    """Thinking: redacted, or its text with its signature."""
    if block.redacted is not None:
        return {REASONING: {REDACTED: block.redacted}}
    signed = {} if block.signature is None else {"signature": block.signature}
    kept = own_keys(block.wire, DIALECT)
    return {REASONING: {"reasoningText": {**kept, "text": block.thought, **signed}}}
