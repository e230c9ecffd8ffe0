"""What a strict server finds wrong with a request, and how sure it is of that."""

from __future__ import annotations

from collections.abc import Iterator

from mull.neutral.blocks import Value

__all__ = ["Verdict", "doubted", "refused", "suspected"]


class Verdict(Value, frozen=True):
    """One thing that is wrong with a request.

    `certain` says that the provider itself is known to refuse it. What is not certain is refused
    all the same where reasoning was plainly lost or altered, and else only noted (`refuses`).
    `code` is the provider's own name for the error, where it has one.
    """

    reason: str
    certain: bool = True
    refuses: bool = True
    code: str | None = None


def refused(reason: str | None) -> Iterator[Verdict]:
    """What the provider is known to refuse."""
    if reason is not None:
        yield Verdict(reason)


def suspected(reason: str | None) -> Iterator[Verdict]:
    """What a client should not do, whether or not the provider looks that closely."""
    if reason is not None:
        yield Verdict(reason, certain=False)


def doubted(reason: str | None) -> Iterator[Verdict]:
    """What may be refused in life, and is answered here."""
    if reason is not None:
        yield Verdict(reason, certain=False, refuses=False)
