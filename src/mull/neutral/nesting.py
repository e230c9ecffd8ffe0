"""How deeply foreign JSON may be nested.

Code that reads or writes a value recurses level by level, and how deep it can go depends on the
caller's stack. So depth is limited where JSON comes in: what is nested deeper stays in place, as
text.
"""

from __future__ import annotations

import re

import msgspec

from mull.neutral.patterns import pattern

__all__ = ["DEEPEST", "DEEPEST_STORED", "TOO_SHORT", "is_deep", "shallow"]

DEEPEST = 200
"""Maximum levels of what an endpoint or a model sends."""
TOO_SHORT = 2 * DEEPEST
"""Fewer bytes than this cannot contain JSON that is nested too deeply."""
DEEPEST_STORED = 300
"""Maximum levels of what was stored: the same, plus the record around it."""

# Always matches where a string starts, even an unterminated one: so the work is linear.
_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)'
_MARK = pattern(_STRING + rb"|[\[{\]}]", re.DOTALL)
_TEXT = pattern(_STRING, re.DOTALL)
_BRACKETS = b"[]{}"
_OTHERS = bytes(byte for byte in range(256) if byte not in _BRACKETS)
_USUAL = 16
"""Times that pairs of brackets are taken out, by which usual JSON has none left."""
_LONG = 16_384
"""From so many bytes on, leaping from bracket to bracket is faster than looking at every byte."""
_encode = msgspec.json.Encoder().encode


def is_deep(data: bytes, most: int = DEEPEST) -> bool:
    """Whether JSON is nested too deeply."""
    if not _may_be_deep(data, most):
        return False
    depth = 0
    for mark in _MARK.finditer(data):
        if (sign := mark[0]) in (b"{", b"["):
            depth += 1
            if depth > most:
                return True
        elif sign in (b"}", b"]"):
            depth = max(depth - 1, 0)
    return False


def shallow(data: bytes, most: int = DEEPEST) -> bytes:
    """The JSON with what is nested too deeply as text; the same object if nothing is."""
    if not _may_be_deep(data, most):
        return data
    out: list[bytes] = []
    depth = kept = begun = 0
    for mark in _MARK.finditer(data):
        if (sign := mark[0]) in (b"{", b"["):
            depth += 1
            if depth == most + 1:
                begun = mark.start()
                out.append(data[kept:begun])
        elif sign in (b"}", b"]"):
            if depth == most + 1:
                kept = mark.end()
                out.append(_as_text(data[begun:kept]))
            depth = max(depth - 1, 0)
    if not out:
        return data
    out.append(_as_text(data[begun:]) if depth > most else data[kept:])
    return b"".join(out)


def _may_be_deep(data: bytes, most: int) -> bool:
    """Nearly all JSON is too short for it, has too few brackets, or is seen at once not to be. What
    is short, deep and unterminated is not JSON, and fails by itself.
    """
    if len(data) <= 2 * most or not _opens_more(data, most):
        return False
    left = _TEXT.sub(b"", data).translate(None, _OTHERS)
    for _ in range(min(_USUAL, most // 2)):  # each time takes out one or two levels
        before, left = left, left.replace(b"{}", b"").replace(b"[]", b"")
        if not left or len(left) == len(before):
            break
    return bool(left)


def _opens_more(data: bytes, most: int) -> bool:
    """Whether there are more opening brackets than that."""
    if len(data) < _LONG:
        return data.count(b"{") + data.count(b"[") > most
    for sign in (b"{", b"["):
        at = data.find(sign)
        while at >= 0:
            if not most:
                return True
            most -= 1
            at = data.find(sign, at + 1)
    return False


def _as_text(part: bytes) -> bytes:
    return _encode(part.decode("utf-8", "replace"))
