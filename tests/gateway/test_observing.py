"""Observers hear of every request exactly once, however it ends."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mull.gateway.observing import Observed, Outcome
from mull.neutral.errors import RefusedError
from mull.neutral.events import Failed, Finished, TextDelta, UsageReported
from mull.neutral.usage import Usage


class Heard:
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def began(self, job: object) -> None:
        self.calls.append("began")

    def emitted(self, job: object, events: object) -> None:
        self.calls.append(events)

    def ended(self, job: object, outcome: Outcome) -> None:
        self.calls.append(outcome)


def observe(batches, error: BaseException | None = None) -> Outcome:
    heard = Heard()
    job = cast(Any, SimpleNamespace())
    expected = pytest.raises(type(error)) if error is not None else nullcontext()
    with expected, Observed((heard,), job) as observed:
        for batch in batches:
            observed.emitted(batch)
        if error is not None:
            raise error
    assert heard.calls[:-1] == ["began", *batches]
    return heard.calls[-1]


USED = Usage(input=3, output=2)


@pytest.mark.parametrize(
    ("batches", "error", "ending", "status"),
    [
        ([[TextDelta("a")], [UsageReported(USED), Finished("stop")]], None, "complete", 200),
        ([[TextDelta("a")], [Failed("cut", "500")]], None, "broken", 200),
        ([[TextDelta("a")]], None, "broken", 200),
        ([[TextDelta("a")]], GeneratorExit(), "left", 200),
        ([], RefusedError("no", status=429, text="no"), "refused", 429),
        ([[TextDelta("a")]], RefusedError("no", status=500, text="no"), "broken", 500),
        ([[TextDelta("a")], [Finished("stop")]], GeneratorExit(), "complete", 200),
    ],
)
def test_how_a_request_ended(batches, error, ending, status) -> None:
    outcome = observe(batches, error)
    assert (outcome.ending, outcome.status) == (ending, status)
    assert (outcome.first is None) == (not batches)


def test_the_usage_is_the_last_one_reported() -> None:
    other = Usage(input=9, output=9)
    outcome = observe([[UsageReported(other)], [UsageReported(USED), Finished("stop")]])
    assert outcome.usage == USED
