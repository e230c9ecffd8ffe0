"""How a tool call looks in a request, whatever the model wrote.

A provider rejects the whole conversation for one call with an invalid name, or with arguments that
are not a JSON object. So such a call is sent under a derived name, and with the invalid arguments
as text: the model sees what it did. The original stays stored. The same call always looks the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from msgspec.structs import replace

from mull.dialects.traits import TRAITS
from mull.neutral.assemble import read_object
from mull.neutral.blocks import Block, ToolCallBlock
from mull.neutral.messages import Dialect
from mull.neutral.patterns import pattern

__all__ = ["MALFORMED", "has_object", "names_on_wire", "sendable_calls", "wire_name"]

MALFORMED = "malformed_arguments"
"""The argument that contains what a model wrote instead of an object."""
_REFUSED = pattern(r"[^a-zA-Z0-9_-]+")
_LONGEST_CACHED = 200
_MADE_OF = 50
"""Characters of a name that go into the derived one, so that it is short enough everywhere."""


def has_object(call: ToolCallBlock) -> bool:
    """Whether the arguments are an object; missing arguments are an empty one."""
    text = call.arguments
    return text is None or not text.strip() or bool(call.input) or read_object(text) is not None


def wire_name(name: str, dialect: Dialect) -> str:
    """The name, or a derived one if the dialect's endpoints do not accept it."""
    make = _wire_name if len(name) <= _LONGEST_CACHED else _wire_name.__wrapped__
    return make(name, dialect)


@lru_cache(maxsize=4096)
def _wire_name(name: str, dialect: Dialect) -> str:
    if re.fullmatch(TRAITS[dialect].tool_names, name):
        return name
    from hashlib import blake2b

    told_apart = blake2b(name.encode("utf-8", "replace"), digest_size=4).hexdigest()
    plain = _REFUSED.sub("_", name).strip("_-")[:_MADE_OF]
    if not plain[:1].isalpha():
        plain = f"tool_{plain}".rstrip("_")
    return f"{plain}_{told_apart}"


def names_on_wire(names: Iterable[str], dialect: Dialect) -> dict[str, str]:
    """The tool names that differ on the wire, with those names; all are distinct."""
    names = tuple(names)
    taken, renamed = set(names), dict[str, str]()
    for name in names:
        if name in renamed:  # clients may repeat a tool
            continue
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
    """An answer's blocks with calls that the dialect accepts; how many were renamed, and how many
    have their arguments as text.
    """
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
