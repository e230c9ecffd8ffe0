"""The usage of a request: as reported by its provider, otherwise estimated.

If the client disconnects or the upstream breaks off, the request costs its input and the output
streamed until then. A request that the upstream refused costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mull.gateway.ledger import Tally
from mull.gateway.limits import Demand
from mull.neutral.events import Event, TextDelta, ThinkingDelta, ToolCallDelta
from mull.neutral.usage import Usage
from mull.policy.cost import cost_of

if TYPE_CHECKING:
    from mull.gateway.observing import Outcome
    from mull.policy.prepare import Prepared

__all__ = ["Answers", "Meter", "expected", "is_priced", "nanodollars", "tally_of"]

_BYTES_PER_TOKEN = 4
_FIRST_ANSWER, _WEIGHT = 1_000, 8
"""The output tokens that are expected of a model before it has answered a client, and how slowly
that follows its answers."""
_MOST = 10**14


class Meter:
    """Counts the characters of thinking and of the rest of a response as it streams."""

    __slots__ = ("_text", "_thinking")

    def __init__(self) -> None:
        self._text = 0
        self._thinking = 0

    def add(self, events: Iterable[Event]) -> None:
        """Count the text of these events."""
        for event in events:
            match event:
                case ThinkingDelta():
                    self._thinking += len(event.text)
                case TextDelta():
                    self._text += len(event.text)
                case ToolCallDelta():
                    self._text += len(event.arguments) + len(event.name or "")

    @property
    def reasoning(self) -> int:
        """The estimated number of reasoning tokens."""
        return -(-self._thinking // _BYTES_PER_TOKEN)

    @property
    def output(self) -> int:
        """The estimated number of output tokens, including reasoning."""
        return self.reasoning - (-self._text // _BYTES_PER_TOKEN)


def input_of(prepared: Prepared) -> int:
    """The estimated number of input tokens of a request."""
    if prepared.exact:
        return prepared.estimate
    return prepared.estimate // 2  # an estimate by characters is deliberately too high


class Answers:
    """How many tokens the recent answers of each model to each client had. Clients ask for limits
    of tens of thousands in every request, and use a fraction of them."""

    def __init__(self) -> None:
        self._tokens: dict[tuple[str, str], float] = {}

    def add(self, client: str, model: str, tokens: int) -> None:
        """Count an answer."""
        before = self._tokens.get((client, model), _FIRST_ANSWER)
        self._tokens[client, model] = before + (tokens - before) / _WEIGHT

    def likely(self, client: str, model: str) -> int:
        """The tokens that the next answer is likely to have."""
        return round(self._tokens.get((client, model), _FIRST_ANSWER))


def expected(prepared: Prepared, output: int) -> Demand:
    """The estimated usage of a request whose answer is likely to have so many tokens."""
    asked = prepared.request.max_tokens
    output = min(asked, output) if asked else output
    usage = Usage(input=input_of(prepared), output=output, reasoning=0)
    cost = nanodollars(usage, prepared) or 0
    return Demand((usage.input or 0) + output, cost)


def tally_of(outcome: Outcome, prepared: Prepared, meter: Meter) -> Tally:
    """The usage of a request that has ended."""
    if outcome.ending == "refused":
        return Tally(requests=1, errors=1)
    usage, estimated = _completed(outcome, prepared, meter)
    cost = nanodollars(usage, prepared)
    return Tally(
        requests=1,
        errors=int(outcome.ending == "broken"),
        estimated=int(estimated),
        unpriced=int(cost is None),
        input=_bounded(usage.input),
        cached=_bounded(usage.cache_read),
        output=_bounded(usage.output),
        reasoning=_bounded(usage.reasoning),
        nanodollars=_bounded(cost),
    )


def _bounded(count: int | None) -> int:
    """The count within bounds that are safe to sum, whatever an upstream reports."""
    return min(max(count or 0, 0), _MOST)


def _completed(outcome: Outcome, prepared: Prepared, meter: Meter) -> tuple[Usage, bool]:
    """The usage with unknown counts estimated, and whether any was. An interrupted response may
    have reported only part of its usage."""
    reported = outcome.usage or Usage()
    interrupted = outcome.ending != "complete"
    estimated = interrupted or reported.input is None or reported.output is None
    output = meter.output if reported.output is None else reported.output
    if interrupted:
        output = max(output, meter.output)
    reasoning = reported.reasoning
    if reasoning is None or interrupted:
        reasoning = max(reasoning or 0, min(meter.reasoning, output))
    complete = replace(
        reported,
        input=input_of(prepared) if reported.input is None else reported.input,
        output=output,
        reasoning=reasoning,
    )
    return complete, estimated


def is_priced(prepared: Prepared) -> bool:
    """Whether the catalog has a price for the model."""
    return nanodollars(Usage(1, 1, reasoning=1), prepared) is not None


def nanodollars(usage: Usage, prepared: Prepared) -> int | None:
    """The cost by the catalog's prices, or None if the catalog has none."""
    cost = cost_of(usage, prepared.target.facts.cost)
    return None if cost is None else round(min(cost * 1e9, _MOST))
