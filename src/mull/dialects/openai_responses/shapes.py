"""How the parts of an output item are kept in blocks, and how they are rebuilt from them.

A reasoning item becomes one thinking block: of kind `summary` from its summary, or `raw` from its
content; an item that has both becomes two neighbouring blocks with the same id, and the encrypted
content stays with the summary. `thought` joins the parts by a blank line; `details` holds the
exact parts wherever they cannot be told from the thought, and last, as `{"item": …}`, keys of the
item that this file does not know.

A message becomes one text block for each part. `extra` holds the item's own keys, and as `part`
the keys of the part beside its text; an empty `part` stands for a message without parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mull.neutral.blocks import TextBlock, ThinkingBlock, ThinkingKind

__all__ = [
    "PART_TYPE",
    "SEPARATOR",
    "call_extra",
    "message_extra",
    "pack_part",
    "pack_parts",
    "part_text",
    "parts_of",
    "reasoning_rest",
    "unpack_part",
    "unpack_parts",
    "unpack_rest",
]

SEPARATOR = "\n\n"
PART_TYPE: Mapping[ThinkingKind, str] = {"summary": "summary_text", "raw": "reasoning_text"}

_REASONING_KEYS = frozenset({"type", "id", "summary", "content", "encrypted_content", "status"})
_MESSAGE_KEYS = frozenset({"type", "role", "content", "status"})
_CALL_KEYS = frozenset({"type", "call_id", "name", "arguments", "status"})
_TEXT_PART = {"type": "output_text"}


def _others(item: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key not in known and value is not None}


def parts_of(value: Any, part_type: str) -> list[dict[str, Any]]:
    """The parts of an item's list; a bare text in the place of a part is taken for one."""
    if isinstance(value, str):
        value = [value] if value else []
    if not isinstance(value, list):
        return []
    found: list[dict[str, Any]] = []
    for part in value:
        if isinstance(part, dict):
            found.append(part)
        elif isinstance(part, str):
            found.append({"type": part_type, "text": part})
    return found


def part_text(part: Mapping[str, Any]) -> str:
    """What a person reads of a part."""
    text = part.get(_text_key(part))
    return text if isinstance(text, str) else ""


def _text_key(part: Mapping[str, Any]) -> str:
    return "refusal" if part.get("type") == "refusal" else "text"


def pack_parts(
    kind: ThinkingKind, parts: list[dict[str, Any]], came: list[str], *, usable: bool
) -> list[dict[str, Any]] | None:
    """The details of a thinking block: nothing where the thought that came says it all.

    A single empty part of an item that can never be sent back is no detail: it would make a
    block of nothing look like a carrier.
    """
    plain = parts == [{"type": PART_TYPE[kind], "text": text} for text in came]
    if plain and (not came or (len(came) == 1 and (came[0] or not usable))):
        return None
    return parts


def unpack_parts(block: ThinkingBlock) -> list[dict[str, Any]]:
    """The parts as they came on the wire."""
    parts = [part for part in block.details or () if part.keys() != {"item"}]
    if parts or not block.thought:
        return parts
    return [{"type": PART_TYPE[block.kind], "text": block.thought}]


def unpack_rest(block: ThinkingBlock) -> dict[str, Any]:
    """The unknown keys of the item."""
    for part in block.details or ():
        if part.keys() == {"item"} and isinstance(part["item"], dict):
            return part["item"]
    return {}


def reasoning_rest(item: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a reasoning item that no field of a block holds."""
    return _others(item, _REASONING_KEYS)


def message_extra(item: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a message item that its text block keeps; a status only if it is unusual."""
    extra = _others(item, _MESSAGE_KEYS)
    if item.get("status") == "incomplete":
        extra["status"] = "incomplete"
    return extra


def call_extra(item: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a function call that its block keeps beside name, id and arguments."""
    return _others(item, _CALL_KEYS)


def pack_part(part: Mapping[str, Any], *, keep_text: bool = False) -> dict[str, Any] | None:
    """A message part without its text; None for the ordinary one."""
    text_key = _text_key(part)
    kept = {
        key: value
        for key, value in part.items()
        if value is not None
        and (key != text_key or keep_text or not isinstance(value, str))
        and not (key in ("annotations", "logprobs") and not value)
    }
    return None if kept == _TEXT_PART else kept


def unpack_part(block: TextBlock, *, logprobs: bool = False) -> dict[str, Any] | None:
    """The part of a text block; None where the message had no part at all.

    Log probabilities are not for requests: they tell the model nothing.
    """
    kept = (block.extra or {}).get("part")
    if not isinstance(kept, dict):
        return {"type": "output_text", "text": block.text, "annotations": []}
    if not kept:
        return None
    part = {key: value for key, value in kept.items() if logprobs or key != "logprobs"}
    if part.get("type") == "output_text":
        part.setdefault("annotations", [])
    if part.get("type") in ("output_text", "refusal") or block.text:
        part.setdefault(_text_key(part), block.text)
    return part
