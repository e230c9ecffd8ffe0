"""Which target a request goes to: by reasoning, by its beginning, by weight; and who rests."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from effort import tried
from mull.gateway.choosing import beginning_of, in_order, origin_of, spread
from mull.gateway.cooldown import FIRST_COOLDOWN, LONGEST_COOLDOWN, LONGEST_REQUESTED, Cooldowns
from mull.neutral.blocks import TextBlock
from mull.neutral.messages import Message, Origin, assistant, user


class Place(NamedTuple):
    place: str
    weight: float = 1

    @property
    def origin(self) -> Origin:
        return Origin("p", "openai-chat", self.place)


names = st.text("abcdef", min_size=1, max_size=3)
groups = st.lists(
    st.builds(Place, names, st.floats(0.01, 100)), min_size=1, max_size=6, unique_by=lambda p: p[0]
)


@tried(1)
@given(groups, st.lists(groups, max_size=3), st.text(), names, st.booleans())
def test_every_target_is_there_once_and_the_origin_is_the_first(targets, others, said, own, turn):
    order = in_order(targets, others, said, Origin("p", "openai-chat", own), in_turn=turn)
    places = [one.place for one in order]
    assert len(set(places)) == len(places)
    first = {one.place for one in targets}
    every = first | {one.place for group in others for one in group}
    assert set(places) == every
    if own in (every if turn else first):
        assert places[0] == own
    if not turn:
        assert set(places[: len(targets)]) == first


@tried(1)
@given(groups, st.text(), st.integers(0, 5))
def test_the_others_keep_their_order_when_one_goes(targets, said, at):
    order = spread(targets, said)
    gone = targets[at % len(targets)]
    assert spread([one for one in targets if one is not gone], said) == [
        one for one in order if one is not gone
    ]


def test_conversations_spread_by_weight():
    targets = [Place("a", 3), Place("b", 1)]
    first = Counter(spread(targets, f"{n}")[0].place for n in range(4_000))
    assert 2_850 < first["a"] < 3_150


def test_a_conversation_keeps_its_beginning():
    talk = [user("Hello\r\n"), assistant(TextBlock("Hi.")), user("And?")]
    begun = beginning_of("team", talk[:1])
    assert (
        beginning_of("team", [Message(role="system", blocks=(TextBlock("9:41"),)), *talk]) == begun
    )
    assert beginning_of("team", [user(" Hello")]) == begun
    assert beginning_of("other", talk) != begun
    assert beginning_of("team", [user("Bye")]) != begun
    assert beginning_of("team", []) != begun


def test_the_origin_is_that_of_the_latest_answer_that_has_one():
    one, two = Place("a").origin, Place("b").origin
    talk = [assistant(origin=one), user("q"), assistant(origin=two), assistant()]
    assert origin_of(talk) == two
    assert origin_of([user("q"), assistant()]) is None


class Resting(RuleBasedStateMachine):
    """Cool-downs against what is meant: at most one request at a time tries a target again."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.cooldowns = Cooldowns(lambda: self.now)
        self.until: float | None = None
        self.failures = 0
        self.trying = False

    @rule(seconds=st.floats(0, 100))
    def time_passes(self, seconds):
        self.now += seconds

    @rule()
    def a_request_goes(self):
        if self.cooldowns.wait("t") == 0:
            self.cooldowns.begin("t")
            self.trying = self.until is not None

    @rule(asked=st.none() | st.floats(-5, 10_000))
    def it_fails(self, asked):
        self.cooldowns.fail("t", asked)
        self.failures += 1
        grown = min(FIRST_COOLDOWN * 2.0 ** (self.failures - 1), LONGEST_COOLDOWN)
        rest = grown if asked is None else min(max(asked, 0.0), LONGEST_REQUESTED)
        self.until = max(self.until or 0.0, self.now + rest)
        self.trying = False

    @rule()
    def it_answers(self):
        self.cooldowns.succeed("t")
        self.until, self.failures, self.trying = None, 0, False

    @rule()
    def the_client_leaves(self):
        self.cooldowns.leave("t")
        self.trying = False

    @invariant()
    def it_may_be_tried_when_it_should(self):
        free = self.until is None or (self.now >= self.until and not self.trying)
        assert (self.cooldowns.wait("t") == 0) == free
        assert self.cooldowns.wait("other") == 0


TestResting = Resting.TestCase


def test_what_is_remembered_of_failures_is_bounded():
    cooldowns = Cooldowns(lambda: 0.0)
    for number in range(5_000):
        cooldowns.fail(number)
    assert cooldowns.wait(0) == 0
    assert cooldowns.wait(4_999) == pytest.approx(FIRST_COOLDOWN)
