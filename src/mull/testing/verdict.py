"""What a strict server finds wrong with a request, and how certain it is."""

from __future__ import annotations

from collections.abc import Iterator

from mull.neutral.blocks import Value

__all__ = ["Verdict", "doubted", "refused", "suspected"]


class Verdict(Value, frozen=True):
    """One thing that is wrong with a request.

    `certain` means that the provider itself is known to reject it. An uncertain finding is still
    rejected if reasoning was plainly lost or altered, and otherwise only noted (`refuses`). `code`
    is the provider's own name for the error, if it has one.
    """

    reason: str
    certain: bool = True
    refuses: bool = True
    code: str | None = None


def refused(reason: str | None) -> Iterator[Verdict]:
    """What the provider is known to reject."""
    if reason is not None:
        yield Verdict(reason)


def suspected(reason: str | None) -> Iterator[Verdict]:
    """What a client should not do, whether or not the provider checks that closely."""
    if reason is not None:
        yield Verdict(reason, certain=False)


def doubted(reason: str | None) -> Iterator[Verdict]:
    """What the real provider may reject, but is answered here."""
    if reason is not None:
        yield Verdict(reason, certain=False, refuses=False)
