"""Which target is tried after another, when it is too late for that, and which error is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import tried
from gateway.test_choosing import Place, groups
from mull.gateway.cooldown import FIRST_COOLDOWN, Cooldowns
from mull.gateway.trials import (
    Trials,
    as_error,
    failure_reason,
    may_help_elsewhere,
    until_generated,
)
from mull.neutral.errors import (
    ConfigError,
    MisfitError,
    MullError,
    NetworkError,
    RefusedError,
)
from mull.neutral.events import (
    BlockEnded,
    Event,
    Failed,
    Finished,
    Healed,
    OpaqueReceived,
    Retrying,
    Started,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
    UsageReported,
    Warned,
)
from mull.neutral.usage import Usage


def refused(status: int, text: str = "no", **more: Any) -> RefusedError:
    return RefusedError(text, status=status, text=text, **more)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Asked:
    """Targets a, b and c, and what is known of them."""

    def __init__(self, *resting: str, names: str = "abc") -> None:
        self.clock = Clock()
        self.cooldowns = Cooldowns(self.clock)
        for name in resting:
            self.cooldowns.fail(name)
        self.trials = Trials(cast(Any, [Place(name) for name in names]), self.cooldowns)

    @property
    def place(self) -> str:
        return str(self.trials.route.place)

    def fail(self, error: MullError) -> str | None:
        route = self.trials.fail(error)
        return None if route is None else str(route.place)

    def rests(self, name: str) -> float:
        return self.cooldowns.wait(name)


# Which target is next.


def test_targets_are_tried_in_their_order():
    asked = Asked()
    assert asked.place == "a"
    assert not asked.trials.is_last
    assert asked.fail(NetworkError("down")) == "b"
    assert asked.place == "b"
    assert asked.fail(refused(503)) == "c"
    assert asked.trials.is_last
    assert asked.fail(refused(503)) is None
    assert asked.place == "c"


def test_a_target_that_rests_is_passed_over():
    asked = Asked("a", "c")
    assert asked.place == "b"
    assert asked.trials.is_last
    assert asked.fail(NetworkError("down")) is None


def test_if_all_rest_the_one_that_is_due_first_is_tried_and_no_other():
    asked = Asked()
    for name, seconds in (("a", 9.0), ("b", 5.0), ("c", 7.0)):
        asked.cooldowns.fail(name, seconds)
    trials = Trials(cast(Any, [Place(name) for name in "abc"]), asked.cooldowns)
    assert trials.route.place == "b"
    assert trials.is_last
    assert trials.fail(NetworkError("down")) is None


def test_a_target_for_which_the_request_cannot_be_encoded_is_skipped_and_does_not_rest():
    asked = Asked()
    route = asked.trials.skip()
    assert route is asked.trials.route
    assert asked.place == "b"
    assert asked.rests("a") == 0
    asked.trials.skip()
    assert asked.trials.skip() is None
    assert asked.place == "c"


# How long a target rests.


def test_a_target_that_fails_rests_as_long_as_it_asks():
    asked = Asked()
    asked.fail(refused(429, retry_after=7.0))
    asked.fail(refused(503))
    asked.fail(NetworkError("down"))
    assert [asked.rests(name) for name in "abc"] == [7.0, FIRST_COOLDOWN, FIRST_COOLDOWN]


def test_a_target_that_finds_the_request_wrong_works():
    asked = Asked("a", names="a")
    asked.clock.now = 60
    asked.trials.begin()
    assert asked.fail(refused(400, "roles must alternate")) is None
    asked.cooldowns.fail("a")
    assert asked.rests("a") == FIRST_COOLDOWN  # as after a first failure


def probing(asked: Asked) -> bool:
    """Whether others wait until this request has tried the target."""
    return asked.rests("a") > 0


def test_while_one_request_tries_a_target_again_no_other_does():
    for end in ("succeed", "leave"):
        asked = Asked("a", names="a")
        asked.clock.now = 60
        assert not probing(asked)
        asked.trials.begin()
        assert probing(asked)
        getattr(asked.trials, end)()
        assert not probing(asked)


def test_a_request_that_ended_says_nothing_more_of_its_target():
    """Another one may be trying it by then."""
    for end in ("succeed", "leave"):
        for later in ("succeed", "leave"):
            asked = Asked("a", names="a")
            asked.clock.now = 60
            asked.trials.begin()
            getattr(asked.trials, end)()
            asked.cooldowns.fail("a")
            asked.clock.now = 200
            asked.cooldowns.begin("a")
            getattr(asked.trials, later)()
            assert probing(asked)


@pytest.mark.parametrize("end", ["succeed", "leave"])
def test_a_request_that_failed_says_nothing_of_the_next_target_before_it_asks_that(end):
    asked = Asked("b")
    asked.clock.now = 60
    asked.trials = Trials(cast(Any, [Place("a"), Place("b")]), asked.cooldowns)
    asked.trials.begin()
    assert asked.fail(NetworkError("down")) == "b"
    asked.cooldowns.begin("b")  # another request tries it again
    getattr(asked.trials, end)()
    assert asked.rests("b") > 0


def test_a_request_that_was_not_sent_says_nothing_of_its_target():
    asked = Asked("a", names="a")
    asked.clock.now = 60
    asked.cooldowns.begin("a")
    asked.trials.leave()
    assert probing(asked)
    asked.trials.succeed()
    assert probing(asked)


# What another target may help with.

HELPS = {
    "no route": NetworkError("no route"),
    "no key": ConfigError("no key"),
    "a web page": refused(200, "a web page"),
    "a redirect": refused(302),
    "rate": refused(429),
    "overload": refused(503),
    "server": refused(500),
    "busy": refused(409),
    "credit": refused(402),
    "quota": refused(429, "insufficient_quota", code="insufficient_quota"),
    "key": refused(401, "bad key"),
    "permission": refused(403, "permission denied"),
    "model": refused(400, "no such model"),
    "address": refused(404, "not found"),
    "by its code": refused(400, "sorry", code="overloaded_error"),
    "whatever it says": refused(503, "failed to parse tool call arguments"),
}
DOES_NOT = {
    "another kind": MisfitError("does not match its schema"),
    "wrong": refused(400, "roles must alternate"),
    "unprocessable": refused(422),
    "too long": refused(413, "too large"),
    "flagged": refused(403, "content policy: flagged"),
    "flagged as a key": refused(401, "flagged by our safety system"),
}


@pytest.mark.parametrize("error", HELPS.values(), ids=HELPS)
def test_another_target_may_help(error):
    assert may_help_elsewhere(error)


@pytest.mark.parametrize("error", DOES_NOT.values(), ids=DOES_NOT)
def test_no_other_target_helps(error):
    assert not may_help_elsewhere(error)


# Which error is told.

ERRORS = {
    "down": NetworkError("no route"),
    "busy": RefusedError("busy", status=503, text="overloaded"),
    "rate": RefusedError("slow", status=429, text="slow down", retry_after=7.0),
    "later": RefusedError("slow", status=429, text="slow down", retry_after=9.0),
    "key": RefusedError("key", status=401, text="bad key"),
    "wrong": RefusedError("wrong", status=400, text="roles must alternate"),
}
USEFUL = ["rate", "later", "busy", "wrong", "key", "down"]


@pytest.mark.parametrize("better", range(len(USEFUL) - 1))
def test_the_most_useful_error_is_told_whichever_came_first(better):
    pair = [ERRORS[USEFUL[better]], ERRORS[USEFUL[better + 1]]]
    for errors in (pair, pair[::-1]):
        asked = Asked()
        for error in errors:
            asked.fail(error)
        assert asked.trials.error is pair[0]


def test_of_equals_the_first_is_told():
    asked = Asked()
    first, second = refused(503), refused(503)
    asked.fail(first)
    asked.fail(second)
    assert asked.trials.error is first


@tried(1)
@given(st.data(), groups)
def test_each_target_is_asked_once_until_one_answers_or_the_request_is_wrong(data, targets):
    cooldowns = Cooldowns(lambda: 0.0)
    resting = data.draw(st.sets(st.sampled_from([one.place for one in targets])))
    for place in resting:
        cooldowns.fail(place)
    trials = Trials(cast(Any, targets), cooldowns)
    asked, said = [], []
    route: Any = trials.route
    while route is not None:
        asked.append(route.place)
        trials.begin()
        said.append(data.draw(st.sampled_from([*ERRORS, "answers"])))
        if said[-1] == "answers":
            trials.succeed()
            break
        route = trials.fail(ERRORS[said[-1]])
    ready = [one.place for one in targets if one.place not in resting]
    assert asked == (ready or [targets[0].place])[: len(asked)]
    ended = said[-1] in ("answers", "wrong")
    assert ended or len(asked) == max(1, len(ready))
    assert not {"answers", "wrong"} & set(said[:-1])
    if said[-1] != "answers":
        assert trials.error is ERRORS[min(said, key=USEFUL.index)]
    for place, how in zip(asked, said, strict=True):
        assert (cooldowns.wait(place) == 0) == (how in ("answers", "wrong"))


# Until when another target can answer.


def told(*batches: Sequence[Event]) -> list[Sequence[Event]]:
    async def run() -> list[Sequence[Event]]:
        async def arriving() -> AsyncGenerator[Sequence[Event], None]:
            for batch in batches:
                yield batch

        return [[*batch] async for batch in until_generated(arriving())]

    return asyncio.run(run())


BEFORE: list[Event] = [
    Started("a", "m"),
    UsageReported(Usage(1, 0)),
    Warned("stream", "odd"),
    BlockEnded("k"),
    Retrying(1, 0.0, "busy"),
    Healed("rejected", "mended"),
    TextDelta(""),
    ThinkingDelta(""),
]
GENERATED: list[Event] = [
    TextDelta("a"),
    ThinkingDelta("a"),
    ThinkingCarrier("k", signature="s"),
    ToolCallDelta("k", "id", "read"),
    OpaqueReceived({"type": "x"}),
    Finished("stop"),
]
FAILED = Failed("overloaded", "overloaded_error")


@pytest.mark.parametrize("event", BEFORE, ids=lambda one: type(one).__name__)
def test_what_says_nothing_waits_for_what_does(event):
    generated = TextDelta("Hello.")
    assert told([event], [], [event], [generated], [event]) == [
        [event, event, generated],
        [event],
    ]
    assert told([event]) == [[event]]
    with pytest.raises(RefusedError, match="overloaded"):
        told([event], [FAILED])
    with pytest.raises(RefusedError, match="overloaded"):
        told([event, FAILED])


@pytest.mark.parametrize("event", GENERATED, ids=lambda one: type(one).__name__)
def test_after_the_first_token_all_is_told_as_it_comes(event):
    started = Started("a", "m")
    assert told([started], [event], [FAILED]) == [[started, event], [FAILED]]
    assert told([started, event, FAILED]) == [[started, event, FAILED]]
    assert told([event, started]) == [[event, started]]
    assert told([event], [event], [event]) == [[event]] * 3


def test_a_stream_that_fails_at_once_is_an_error():
    with pytest.raises(RefusedError, match="overloaded"):
        told([FAILED])
    assert told() == []
    assert told([], []) == []


def test_a_stream_that_is_left_is_closed():
    closed = []

    async def arriving() -> AsyncGenerator[Sequence[Event], None]:
        try:
            yield [TextDelta("a")]
            yield [TextDelta("b")]
        finally:
            closed.append(True)

    async def run() -> None:
        batches = until_generated(arriving())
        assert await anext(batches) == [TextDelta("a")]
        await batches.aclose()

    asyncio.run(run())
    assert closed == [True]


@pytest.mark.parametrize(
    ("failed", "status"),
    [
        (Failed("slow down", "rate_limit_error"), 429),
        (Failed("overloaded", "overloaded_error"), 503),
        (Failed("oops", "api_error"), 502),
        (Failed("oops"), 502),
        (Failed("no such key", "401"), 401),
        (Failed("bad", "400"), 400),
        (Failed("not found", "404"), 404),
        (Failed("numbered", "10013"), 502),
        (Failed("numbered", "20"), 502),
        (Failed("no error", "200"), 502),
        (Failed("moved", "399"), 502),
        (Failed("cut", "429", status="interrupted"), 502),
        (Failed("damaged", "unreadable"), 502),
    ],
)
def test_a_failure_in_a_stream_has_the_status_that_it_stands_for(failed, status):
    error = as_error(failed)
    assert (error.status, error.text, error.code) == (status, failed.text, failed.code)
    assert str(error) == failed.text


def test_the_client_is_told_why_another_target_was_tried():
    route = cast(Any, SimpleNamespace(target=SimpleNamespace(name="p/m")))
    assert failure_reason(route, refused(429)) == "p/m rejected the request (429)"
    assert failure_reason(route, NetworkError("down")) == "p/m could not be reached"
