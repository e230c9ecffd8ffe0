"""What a tool call looks like in a request, whatever the model wrote.

A provider refuses the whole conversation for one call whose name is not of its letters, or whose
arguments are no JSON object. So such a call goes under a name that is made of its own, and with
what was written in the place of its arguments as text: the model sees what it did. What came stays
stored. The same call always looks the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

from msgspec.structs import replace

from mull.dialects.traits import TRAITS
from mull.neutral.assemble import read_object
from mull.neutral.blocks import Block, ToolCallBlock
from mull.neutral.messages import Dialect

__all__ = ["MALFORMED", "has_object", "names_on_wire", "sendable_calls", "wire_name"]

MALFORMED = "malformed_arguments"
"""The argument that holds what a model wrote in the place of an object."""
_REFUSED = re.compile(r"[^a-zA-Z0-9_-]+")
_MADE_OF = 50
"""Letters of a name that go into the one made of it, so that it is short enough everywhere."""


def has_object(call: ToolCallBlock) -> bool:
    """Whether the arguments are an object; none at all are an empty one."""
    text = call.arguments
    return text is None or not text.strip() or bool(call.input) or read_object(text) is not None


def wire_name(name: str, dialect: Dialect) -> str:
    """The name, or one made of it where the dialect's endpoints take no such name."""
    if re.fullmatch(TRAITS[dialect].tool_names, name):
        return name
    told_apart = blake2b(name.encode("utf-8", "replace"), digest_size=4).hexdigest()
    plain = _REFUSED.sub("_", name).strip("_-")[:_MADE_OF]
    if not plain[:1].isalpha():
        plain = f"tool_{plain}".rstrip("_")
    return f"{plain}_{told_apart}"


def names_on_wire(names: Iterable[str], dialect: Dialect) -> dict[str, str]:
    """The names of tools that go by others there, and those; no two go by the same."""
    names = tuple(names)
    taken, renamed = set(names), dict[str, str]()
    for name in names:
        wire, tries = wire_name(name, dialect), 0
        if wire == name:
            continue
        while wire in taken:
            tries += 1
            wire = wire_name(f"{name} {tries}", dialect)
        taken.add(wire)
        renamed[name] = wire
    return renamed


def sendable_calls(
    blocks: Sequence[Block], dialect: Dialect, renamed: Mapping[str, str]
) -> tuple[Sequence[Block], int, int]:
    """An answer's blocks with calls that the dialect takes; how many have another name, and how
    many their arguments as text."""
    out: list[Block] = []
    names = wrapped = 0
    for block in blocks:
        if not isinstance(block, ToolCallBlock):
            out.append(block)
            continue
        name = renamed.get(block.name) or wire_name(block.name, dialect)
        call = _with_object(block)
        names += name != block.name
        wrapped += MALFORMED in call.input and call is not block
        out.append(call if name == block.name else replace(call, name=name))
    return out, names, wrapped


def _with_object(call: ToolCallBlock) -> ToolCallBlock:
    text = call.arguments
    if text is None or read_object(text) is not None:
        return call
    if call.input or not text.strip():
        return replace(call, arguments=None)
    return replace(call, arguments=None, input={MALFORMED: text})
