"""Repairs of Gemini's thought signatures, in its own dialect and in OpenAI's shape.

The endpoint wants a signature on the first call of every step of the current turn. A call that it
cannot verify, or never wrote, is marked with its own word for that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from mull.neutral.blocks import Block, TextBlock, ThinkingBlock, ToolCallBlock
from mull.neutral.messages import Message
from mull.neutral.thinking import UNSIGNED_CALL
from mull.policy.heal.case import Case, Change
from mull.policy.heal.history import rebuilt, turn_start
from mull.policy.heal.lessons import Lesson, fingerprints

__all__ = ["sign_calls", "strip_signatures"]

_PLACE, _KEY = "extra_content", "thought_signature"


def strip_signatures(case: Case, found: re.Match[str]) -> Change | None:
    """All signatures; the calls of the current turn say that they are not the model's own."""
    refused: list[str] = []

    def clean(block: Block) -> Block:
        if isinstance(block, TextBlock | ThinkingBlock | ToolCallBlock) and block.signature:
            refused.extend(fingerprints(block))
            block = msgspec.structs.replace(block, signature=None)
        return _without_signature(block) if isinstance(block, ToolCallBlock) else block

    messages = case.request.messages
    cleaned = [rebuilt(message, clean) for message in messages]
    if case.target.dialect != "gemini":
        start = turn_start(messages)
        cleaned[start:] = map(_marked_step, cleaned[start:])
    if tuple(cleaned) == messages:
        return None
    text = "thought signatures of earlier steps left out: the endpoint cannot verify them"
    return case.sends(text, tuple(cleaned), Lesson(refused=tuple(refused)))


def sign_calls(case: Case, found: re.Match[str]) -> Change | None:
    """Unsigned calls of the current turn, marked as not the model's own."""
    messages = case.request.messages
    start = turn_start(messages)
    if all(calls[0].signature for m in messages[start:] if (calls := m.tool_calls)):
        return None
    lesson, mark = Lesson(), _marked_step
    if case.target.dialect == "gemini":
        # Every model that demands signatures is steered by levels; for those the encoder marks
        # a step in which no call is signed.
        lesson, mark = Lesson(compat={"thinkingWriter": "gemini-level"}), _unsigned_step
    marked = (*messages[:start], *map(mark, messages[start:]))
    return case.sends("tool calls of this turn marked as not the model's own", marked, lesson)


def _unsigned_step(message: Message) -> Message:
    calls = message.tool_calls
    if not calls or calls[0].signature:
        return message

    def clean(block: Block) -> Block:
        if isinstance(block, ToolCallBlock) and block.signature:
            return msgspec.structs.replace(block, signature=None)
        return block

    return rebuilt(message, clean)


def _marked_step(message: Message) -> Message:
    """A step of an OpenAI-shaped history, its first call marked unless it is signed."""
    calls = message.tool_calls
    if not calls or any(_KEY in held for _, held in _namespaces(calls[0])):
        return message

    def mark(block: Block) -> Block:
        if block is not calls[0]:
            return block
        held = dict(_namespaces(calls[0]))
        held["google"] = {**held.get("google", {}), _KEY: UNSIGNED_CALL}
        extra = {**(calls[0].extra or {}), _PLACE: held}
        return msgspec.structs.replace(calls[0], extra=extra)

    return rebuilt(message, mark)


def _namespaces(call: ToolCallBlock) -> Iterator[tuple[str, dict[str, Any]]]:
    """What vendors hung onto an OpenAI-shaped call: `extra_content.google`, `.vertex`."""
    content = (call.extra or {}).get(_PLACE)
    for name, held in content.items() if isinstance(content, dict) else ():
        if isinstance(held, dict):
            yield name, held


def _without_signature(call: ToolCallBlock) -> ToolCallBlock:
    signed = {name for name, held in _namespaces(call) if _KEY in held}
    if not signed or call.extra is None:
        return call
    content = {name: held for name, held in call.extra[_PLACE].items() if name not in signed}
    extra = {name: value for name, value in call.extra.items() if name != _PLACE}
    extra |= {_PLACE: content} if content else {}
    return msgspec.structs.replace(call, extra=extra or None)
