"""Percent-encoding of parts of a URL (RFC 3986, section 2)."""

from __future__ import annotations

from mull.neutral.patterns import pattern

__all__ = ["quote_part", "unquote_part"]

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_RUN = pattern(r"(?:%[0-9A-Fa-f]{2})+")


def quote_part(text: str, safe: str = "") -> str:
    """The text with everything encoded but letters, digits, `-._~` and `safe`."""
    kept = _PLAIN.union(safe.encode())
    return "".join(chr(byte) if byte in kept else f"%{byte:02X}" for byte in text.encode())


def unquote_part(text: str) -> str:
    """The decoded text."""
    return _RUN.sub(
        lambda run: bytes.fromhex(run[0].replace("%", "")).decode("utf-8", "replace"), text
    )
