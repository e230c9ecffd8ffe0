"""How the parts of an output item are stored in blocks, and how they are rebuilt from them.

A reasoning item becomes one thinking block: of kind `summary` from its summary, or `raw` from its
content; an item that has both becomes two adjacent blocks with the same id, and the encrypted
content stays with the summary. `thought` joins the parts with blank lines. The block's wire data
contains the exact parts as `parts` if they cannot be recovered from the thought, and as `item` the
keys of the item that this module does not know.

A message becomes one text block for each part. Its wire data contains the item's own keys, and as
`part` the keys of the part besides its text; an empty `part` represents a message without parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mull.dialects.openai_responses import DIALECT
from mull.neutral.assemble import read_object
from mull.neutral.blocks import OpaqueBlock, ThinkingBlock, ThinkingKind, as_keys, own_keys

__all__ = [
    "FREE_CALL",
    "INPUT_ITEMS",
    "KINDS",
    "PART_TYPE",
    "RESULTS",
    "SEPARATOR",
    "call_keys",
    "free_text",
    "is_free_call",
    "is_same_item",
    "is_sound",
    "kept_parts",
    "kept_rest",
    "message_keys",
    "pack_part",
    "pack_parts",
    "part_text",
    "parts_of",
    "reasoning_rest",
    "stands_alone",
    "unpack_part",
    "unpack_parts",
]

SEPARATOR = "\n\n"
PART_TYPE: Mapping[ThinkingKind, str] = {"summary": "summary_text", "raw": "reasoning_text"}

_REASONING_KEYS = frozenset({"type", "id", "summary", "content", "encrypted_content", "status"})
_MESSAGE_KEYS = frozenset({"type", "role", "content", "status"})
_CALL_KEYS = frozenset({"type", "call_id", "name", "arguments", "status"})
_FREE_CALL_KEYS = (_CALL_KEYS - {"type", "arguments"}) | {"input"}
FREE_CALL = "custom_tool_call"
KINDS = {FREE_CALL: "function_call"}
"""Calls of both types are counted together."""
INPUT_ITEMS = frozenset({"additional_tools", "configuration_update", "mcp_approval_response"})
"""Types of items that are neither messages nor results, and that no model writes."""
RESULTS = ("function_call_output", f"{FREE_CALL}_output")
"""Types of results: of calls with an object as input, and of calls with a text."""
NAMESPACE = "namespace"
"""The type of a group of tools, and the key that names the group in each tool and call."""
"""The type of a call whose input is a text rather than an object."""
_WITH_TEXT = frozenset({*PART_TYPE.values(), "output_text", "refusal"})
_TEXT_PARTS = ({"type": "output_text"}, {"type": "input_text"})  # the second is a server's mistake


def _others(item: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key not in known and value is not None}


def parts_of(value: Any, part_type: str) -> list[dict[str, Any]]:
    """The parts in an item's list; a plain string counts as a part."""
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
    """The readable text of a part."""
    text = part.get(_text_key(part))
    return text if isinstance(text, str) else ""


def is_sound(part: Mapping[str, Any]) -> bool:
    """Whether a part can be what it says it is: those of known types have a text."""
    kind = part.get("type")
    if not isinstance(kind, str):
        return False
    return kind not in _WITH_TEXT or isinstance(part.get(_text_key(part)), str)


def _text_key(part: Mapping[str, Any]) -> str:
    return "refusal" if part.get("type") == "refusal" else "text"


def pack_parts(
    kind: ThinkingKind, parts: list[dict[str, Any]], came: list[str], *, usable: bool
) -> list[dict[str, Any]]:
    """The parts that a thinking block keeps: none if they can be recovered from the thought.

    A single empty part of an item that can never be sent back is not kept: it would make an empty
    block look like a carrier.
    """
    plain = parts == [{"type": PART_TYPE[kind], "text": text} for text in came]
    if plain and (not came or (len(came) == 1 and (came[0] or not usable))):
        return []
    return parts


def unpack_parts(block: ThinkingBlock) -> list[dict[str, Any]]:
    """The parts as received."""
    parts = kept_parts(own_keys(block.wire, DIALECT))
    if parts or not block.thought:
        return parts
    return [{"type": PART_TYPE[block.kind], "text": block.thought}]


def kept_parts(kept: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The exact parts of a thought, if they were kept."""
    parts = kept.get("parts")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def kept_rest(kept: Mapping[str, Any]) -> dict[str, Any]:
    """The unknown keys of the item."""
    return as_keys(kept.get("item"))


def is_same_item(before: ThinkingBlock, block: ThinkingBlock) -> bool:
    """Whether two consecutive thinking blocks are one item: its summary and its raw text. An item
    has at most one encrypted content."""
    if before.encrypted and block.encrypted:
        return False
    return (before.kind, block.kind) == ("summary", "raw") and before.id == block.id


def reasoning_rest(item: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a reasoning item that no field of a block holds."""
    return _others(item, _REASONING_KEYS)


def message_keys(item: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a message item that its text block keeps; a status only if it is unusual."""
    kept = _others(item, _MESSAGE_KEYS)
    if item.get("status") == "incomplete":
        kept["status"] = "incomplete"
    return kept


def call_keys(item: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a call that its block keeps besides name, id and arguments; a call with a text as
    input keeps its type."""
    return _others(item, _FREE_CALL_KEYS if item.get("type") == FREE_CALL else _CALL_KEYS)


def stands_alone(block: OpaqueBlock) -> bool:
    """Whether an item is complete in itself: what is compacted or encrypted was never made by the
    reasoning before it, as a hosted tool's item was.
    """
    return block.stands_for_earlier or isinstance(block.data.get("encrypted_content"), str)


def is_free_call(kept: Mapping[str, Any]) -> bool:
    """Whether a call was received with a text as its input."""
    return kept.get("type") == FREE_CALL


def called_as(name: str | None, offered: dict[str, Any]) -> dict[str, Any]:
    """The name of a call as its tool was declared, possibly in a namespace."""
    space = as_keys(offered.get(NAMESPACE)).get("name")
    return {"name": name} if space is None else {"name": name, NAMESPACE: space}


def free_text(arguments: str) -> str:
    """The text in the arguments of a call; the arguments themselves if the model did not write the
    object that wraps the text."""
    match read_object(arguments):
        case {"input": str(text), **rest} if not rest:
            return text
    return arguments


def pack_part(part: Mapping[str, Any], *, keep_text: bool = False) -> dict[str, Any] | None:
    """A message part without its text; None for an ordinary part."""
    text_key = _text_key(part)
    kept = {
        key: value
        for key, value in part.items()
        if value is not None
        and (key != text_key or keep_text or not isinstance(value, str))
        and not (key in ("annotations", "logprobs") and not value)
    }
    return None if kept in _TEXT_PARTS else kept


def unpack_part(
    text: str, kept: Mapping[str, Any], *, logprobs: bool = False
) -> dict[str, Any] | None:
    """The part of a text block, from its text and wire data; None if the message had no parts.

    Log probabilities are left out: requests do not need them.
    """
    held = kept.get("part")
    if not isinstance(held, dict):
        return {"type": "output_text", "text": text, "annotations": []}
    if not held:
        return None
    part = {key: value for key, value in held.items() if logprobs or key != "logprobs"}
    if part.get("type") == "output_text":
        part.setdefault("annotations", [])
    if part.get("type") in ("output_text", "refusal") or text:
        part.setdefault(_text_key(part), text)
    return part
