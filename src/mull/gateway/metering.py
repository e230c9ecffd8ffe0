"""What a request used: as its provider reported, and estimated where it did not.

A client that leaves, or an upstream that breaks off, costs what was read and said until then. A
request that the upstream refused costs nothing.
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

__all__ = ["Meter", "expected", "is_priced", "nanodollars", "tally_of"]

_BYTES_PER_TOKEN = 4
_ANSWER = 4_096
"""Tokens that an answer is taken to have at most, before it is there: clients ask for room that
they hardly ever use."""

_MOST = 10**14


class Meter:
    """Follows an answer: how much was thought and said."""

    __slots__ = ("said", "thought")

    def __init__(self) -> None:
        self.said = 0
        self.thought = 0

    def add(self, events: Iterable[Event]) -> None:
        """Take events in."""
        for event in events:
            match event:
                case ThinkingDelta():
                    self.thought += len(event.text)
                case TextDelta():
                    self.said += len(event.text)
                case ToolCallDelta():
                    self.said += len(event.arguments) + len(event.name or "")

    @property
    def reasoning(self) -> int:
        """Tokens of reasoning, about."""
        return -(-self.thought // _BYTES_PER_TOKEN)

    @property
    def output(self) -> int:
        """Tokens of the whole answer, about."""
        return self.reasoning - (-self.said // _BYTES_PER_TOKEN)


def input_of(prepared: Prepared) -> int:
    """The tokens of a request, about."""
    if prepared.exact:
        return prepared.estimate
    return prepared.estimate // 2  # counted by characters, which is meant to be too high


def expected(prepared: Prepared) -> Demand:
    """What a request is expected to use at most, before it is sent."""
    asked = prepared.request.max_tokens
    output = min(asked, _ANSWER) if asked else _ANSWER
    usage = Usage(input=input_of(prepared), output=output, reasoning=0)
    cost = nanodollars(usage, prepared) or 0
    return Demand((usage.input or 0) + output, cost)


def tally_of(outcome: Outcome, prepared: Prepared, meter: Meter) -> Tally:
    """What a request used, once it has ended."""
    if outcome.ending == "refused":
        return Tally(requests=1, errors=1)
    usage, estimated = _completed(outcome, prepared, meter)
    cost = nanodollars(usage, prepared)
    return Tally(
        requests=1,
        errors=int(outcome.ending == "broken"),
        estimated=int(estimated),
        unpriced=int(cost is None),
        input=_sound(usage.input),
        cached=_sound(usage.cache_read),
        output=_sound(usage.output),
        reasoning=_sound(usage.reasoning),
        nanodollars=_sound(cost),
    )


def _sound(count: int | None) -> int:
    """A count that can be added up, whatever an upstream says."""
    return min(max(count or 0, 0), _MOST)


def _completed(outcome: Outcome, prepared: Prepared, meter: Meter) -> tuple[Usage, bool]:
    """The usage without unknowns, and whether it is estimated. Before its end an answer may have
    been reported in part."""
    told = outcome.usage or Usage()
    cut = outcome.ending != "complete"
    estimated = cut or told.input is None or told.output is None
    output = meter.output if told.output is None else told.output
    if cut:
        output = max(output, meter.output)
    reasoning = told.reasoning
    if reasoning is None or cut:
        reasoning = max(reasoning or 0, min(meter.reasoning, output))
    whole = replace(
        told,
        input=input_of(prepared) if told.input is None else told.input,
        output=output,
        reasoning=reasoning,
    )
    return whole, estimated


def is_priced(prepared: Prepared) -> bool:
    """Whether the catalog says what the model costs."""
    return nanodollars(Usage(1, 1, reasoning=1), prepared) is not None


def nanodollars(usage: Usage, prepared: Prepared) -> int | None:
    """The cost by the catalog's prices; None where there are none."""
    cost = cost_of(usage, prepared.target.facts.cost)
    return None if cost is None else round(min(cost * 1e9, _MOST))
