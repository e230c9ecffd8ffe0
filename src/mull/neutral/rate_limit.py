"""What a provider says about the limits of an account."""

from __future__ import annotations

from mull.neutral.blocks import Value

__all__ = ["RateLimit", "RateWindow"]


class RateWindow(Value, frozen=True):
    """One limit: how much it allows, how much of that is left, and in how many seconds all of it is
    available again (`reset`). What the provider does not say is None.
    """

    limit: int | None = None
    remaining: int | None = None
    reset: float | None = None


_UNKNOWN = RateWindow()


class RateLimit(Value, frozen=True):
    """The limits of an account when a response was sent, as its headers report them.

    Some providers limit input and output tokens separately, some only their sum, `tokens`. If a
    provider reports several windows, such as a minute and a day, this is the one with the least
    remaining.
    """

    requests: RateWindow = _UNKNOWN
    tokens: RateWindow = _UNKNOWN
    input_tokens: RateWindow = _UNKNOWN
    output_tokens: RateWindow = _UNKNOWN
