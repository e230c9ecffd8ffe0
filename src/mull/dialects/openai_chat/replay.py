"""Which thinking is sent back, and in which field; Google's signatures on calls in OpenAI's
format.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from mull.dialects.openai_chat import DIALECT
from mull.dialects.openai_chat.places import (
    CONTENT_LIST,
    DETAILS,
    LISTS,
    MEMBERS,
    TAGS,
    entries_of,
    has_lost_signature,
    is_opaque,
    members_of,
    place_of,
    replace_text,
    text_of,
)
from mull.dialects.replay import Form, Left, Replay, Seal, Taken, Way, is_void
from mull.neutral.blocks import Block, ThinkingBlock, ToolCallBlock, own_keys, wire_of
from mull.neutral.messages import Message
from mull.neutral.thinking import UNSIGNED_CALL

__all__ = ["REPLAY", "call_seals", "with_seal"]

_COPILOT = "reasoning_text"
_GOOGLE = "google"
_VENDORS = "extra_content"
_SEAL = "thought_signature"


class _Chat(Replay):
    def forms(self, thoughts: Sequence[ThinkingBlock], way: Way) -> Iterator[Form]:
        for block in thoughts:
            place = place_of(block, way.only, way.out, way.first)
            if place is None:
                yield "untaken"
            elif way.signed_only and not way.only and not block.has_carrier:
                yield "unsigned"
            else:
                yield _form(block, place, way)

    def settle(self, taken: list[Taken]) -> list[Taken]:
        """A message has one place for a signature: the last one applies to all of it."""
        sealed = False
        for at in range(len(taken) - 1, -1, -1):
            block, form = taken[at]
            if not isinstance(form, ThinkingBlock) or not form.signature:
                continue
            if form.source_field == _COPILOT and sealed:
                rest = replace(form, signature=None)
                taken[at] = block, "untaken" if is_void(rest) else rest
            sealed = sealed or form.source_field == _COPILOT
        return taken

    def seals(self, block: Block) -> Iterator[Seal]:
        if isinstance(block, ThinkingBlock):
            for entry in entries_of(block):
                if isinstance(signature := entry.get("signature"), str):
                    yield "signature", signature
                if isinstance(data := entry.get("data"), str):
                    yield "encrypted", data
        elif isinstance(block, ToolCallBlock):
            for seal in call_seals(block).values():
                if isinstance(seal, str):
                    yield "signature", seal

    def unsealed(self, block: Block) -> Block | Left:
        if isinstance(block, ToolCallBlock):
            for vendor in call_seals(block):
                block = with_seal(block, vendor, UNSIGNED_CALL)
        return super().unsealed(block)

    def without_keys(self, block: Block, keys: frozenset[str]) -> Block:
        if not isinstance(block, ThinkingBlock):
            return super().without_keys(block, keys)
        entries = entries_of(block)
        if all(keys.isdisjoint(entry) for entry in entries):
            return block
        kept = [{k: v for k, v in entry.items() if k not in keys} for entry in entries]
        return _with_entries(block, kept)

    def marked(self, message: Message) -> Message:
        calls = message.tool_calls
        if not calls or calls[0].signature or call_seals(calls[0]):
            return message
        first = with_seal(calls[0], _GOOGLE, UNSIGNED_CALL)
        blocks = (first if block is calls[0] else block for block in message.blocks)
        return replace(message, blocks=tuple(blocks))


def _form(block: ThinkingBlock, place: str, way: Way) -> Form:
    if block.wire is None and block.redacted is None and not block.has_carrier:
        return block  # nothing but words
    if place == CONTENT_LIST:
        members = members_of(block)
        wire = wire_of(DIALECT, {MEMBERS: members} if members else {})
        return replace(block, encrypted=None, redacted=None, wire=wire)
    signed = block.source_field == _COPILOT and way.only in (None, place)
    signature = block.signature if signed and place != TAGS and place not in LISTS else None
    form = replace(block, signature=signature, encrypted=None, redacted=None)
    entries = entries_of(block)
    form = _with_entries(form, entries)
    if place in LISTS:
        return _in_entries(form, entries) if entries else form
    named = way.out != "same"
    beside = place != TAGS and not way.only
    if not beside or (named and not any(map(is_opaque, entries))):
        return _with_entries(form, [])
    if not named and replace_text(entries, block.thought):
        return _in_entries(replace(form, signature=None), entries) if entries else form
    return _with_entries(form, [entry for entry in entries if not has_lost_signature(entry)])


def _in_entries(form: ThinkingBlock, entries: list[dict[str, Any]]) -> Form:
    """The thinking in its entries alone, without those whose signature is lost."""
    sound = [entry for entry in entries if not has_lost_signature(entry)]
    if len(sound) == len(entries):
        return form
    if not sound:
        return "unsigned"
    return replace(_with_entries(form, sound), thought="".join(map(text_of, sound)))


def _with_entries(block: ThinkingBlock, entries: list[dict[str, Any]]) -> ThinkingBlock:
    return replace(block, wire=wire_of(DIALECT, {DETAILS: entries} if entries else {}))


def call_seals(call: ToolCallBlock) -> dict[str, Any]:
    """Gemini's signatures on an OpenAI-style call, by the vendor that put them there:
    `extra_content.google.thought_signature`.
    """
    held = own_keys(call.wire, DIALECT).get(_VENDORS)
    vendors = held.items() if isinstance(held, dict) else ()
    return {name: v[_SEAL] for name, v in vendors if isinstance(v, dict) and _SEAL in v}


def with_seal(call: ToolCallBlock, vendor: str, seal: str) -> ToolCallBlock:
    """The call with a signature in this vendor's place."""
    kept = own_keys(call.wire, DIALECT)
    vendors = kept.get(_VENDORS)
    vendors = vendors if isinstance(vendors, dict) else {}
    own = vendors.get(vendor)
    own = {**(own if isinstance(own, dict) else {}), _SEAL: seal}
    wire = wire_of(DIALECT, {**kept, _VENDORS: {**vendors, vendor: own}})
    return replace(call, wire=wire)


REPLAY = _Chat(DIALECT)
