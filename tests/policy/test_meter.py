"""The meter: what is counted, what was reported, and the guess that follows from both."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import snapshot, target, thought, tool_turn
from mull.history.log import Log
from mull.neutral.blocks import MediaBlock, TextBlock
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import RequestOptions, Tool
from mull.neutral.usage import Usage
from mull.policy.meter import Reported, fullness, meter_of, reported_by
from mull.policy.prepare import prepare

BUDGET = [{"type": "budget_tokens", "min": 1024, "max": 64_000}]


class Words:
    """A counter to reason with: a token a word."""

    name, exact = "words", False

    def count(self, text):
        return len(text.split())


def words(count):
    return "w " * count


def prepared(log, *options, where=None, **settings):
    return prepare(Log(log), snapshot(**settings), where or target(), *options, counter=Words())


def test_f03_thoughts_that_are_not_sent_back_are_not_in_the_next_estimate():
    """20,000 tokens of input and 50,000 of reasoning are not 70,000 of context."""
    log = Log([user(words(19_000))])
    settings, where = snapshot(), target()
    first = prepare(log, settings, where, counter=Words())
    usage = Usage(input=20_000, output=50_400, reasoning=50_000)
    last = reported_by(first, usage)
    log.append(assistant(thought(words(50_000)), TextBlock(words(400)), usage=usage))
    log.append(user(words(96)))
    meter = meter_of(prepare(log, settings, where, counter=Words()), last)
    assert meter.effective == 19_004 + 404 + 100
    assert meter.estimate == round(20_000 + 504 * 20_000 / 19_004)
    assert (meter.thinking_left_out, meter.raw) == (50_000, meter.effective + 50_000)
    assert str(meter) == f"{meter.estimate}/200000"
    kept = meter_of(prepare(log, snapshot(includeInContext=True), where, counter=Words()), last)
    assert kept.estimate > 70_000


def test_before_anything_was_reported_the_count_is_the_estimate():
    meter = meter_of(prepared([user(words(6))]))
    assert (meter.effective, meter.estimate, meter.reported) == (10, 10, None)
    assert (meter.counter, meter.exact) == ("words", False)


def test_an_answer_without_counts_teaches_nothing():
    request = prepared([user("q")])
    assert reported_by(request, None) is None
    assert reported_by(request, Usage(output=5)) is None
    assert reported_by(request, Usage(input=0)) is None


def test_the_estimate_of_the_very_request_is_what_the_provider_said():
    request = prepared([user(words(5000))])
    meter = meter_of(request, reported_by(request, Usage(input=6100)))
    assert (meter.estimate, meter.reported) == (6100, 6100)


def last_of(where, estimated, reported):
    return Reported(where.origin, "words", estimated, reported)


@pytest.mark.parametrize(
    ("estimated", "reported", "now", "guess"),
    [
        (10_000, 12_000, 20_000, 24_000),  # as far off as before
        (20_000, 24_000, 10_000, 12_000),  # on the way back too, after compression
        (10, 50, 10_010, 10_050),  # a small request tells what is added, not how far off
        (10, 3500, 10_010, 13_500),
        (10_000, 60_000, 10_000, 24_000),  # an endpoint that counts what its own tools read
        (10_000, 1000, 10_000, 5000),
    ],
)
def test_how_a_report_corrects_the_estimate(estimated, reported, now, guess):
    request = prepared([user(words(now - 4))])
    assert meter_of(request, last_of(request.target, estimated, reported)).estimate == guess


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(5, 10_000))
def test_a_correction_stays_within_reason(estimated, reported, now):
    request = prepared([user(words(now - 4))])
    guess = meter_of(request, last_of(request.target, estimated, reported)).estimate
    assert now // 2 <= guess <= 2 * now + 4000


def test_a_report_is_worth_nothing_for_another_model_or_another_counter():
    request = prepared([user(words(5000))])
    own = reported_by(request, Usage(input=9000))
    other = msgspec.structs.replace(own, origin=target(model="other").origin)
    counted = msgspec.structs.replace(own, counter="characters")
    meters = [meter_of(request, last) for last in (own, other, counted)]
    assert [meter.estimate for meter in meters] == [9000, 5004, 5004]
    assert [meter.reported for meter in meters] == [9000, None, None]


def test_a_report_survives_storage():
    own = reported_by(prepared([user("q")]), Usage(input=9))
    assert msgspec.json.decode(msgspec.json.encode(own), type=Reported) == own


def test_changing_a_setting_changes_the_meter_at_once():
    log = Log([*tool_turn("1"), user("next")])
    shown = [
        meter_of(prepare(log, snapshot(**settings), target(), counter=Words())).effective
        for settings in ({}, {"includeInContext": True}, {"stripFromContext": "all"})
    ]
    assert shown[0] == shown[2] == shown[1] - 2
    assert len(log.messages) == 5


@pytest.mark.parametrize(
    ("where", "options", "settings", "usable"),
    [
        (target(reasoning=False), {}, {}, 200_000 - 8192),
        (target(), {}, {}, 200_000 - 18_192),
        (target(), {"max_tokens": 50_000}, {}, 150_000),
        (target(output=5000), {}, {}, 195_000),
        (target(context=None), {}, {}, None),
        (target(context=8192), {}, {}, 4096),
        (target(), {}, {"context__limit": 100_000}, 81_808),
        (target("anthropic-budget", options=BUDGET), {}, {"maxTokens": 30_000}, 161_808),
    ],
)
def test_what_is_usable_leaves_room_for_the_answer(where, options, settings, usable):
    request = prepared([user("q")], RequestOptions(**options), where=where, **settings)
    assert meter_of(request).usable == usable


def test_an_input_limit_of_its_own_is_usable_to_the_end():
    where = target()
    limit = msgspec.structs.replace(where.facts.limit, input=150_000)
    where = msgspec.structs.replace(where, facts=msgspec.structs.replace(where.facts, limit=limit))
    assert meter_of(prepared([user("q")], where=where)).usable == 150_000


def test_fullness_is_a_share_of_what_is_usable():
    where = target(reasoning=False, context=18_192)
    levels = [meter_of(prepared([user(words(n))], where=where)) for n in (6000, 7000, 9000)]
    assert [meter.fullness for meter in levels] == ["ok", "warn", "full"]
    assert levels[1].share == pytest.approx(0.7, abs=0.001)
    unknown = meter_of(prepared([user("q")], where=target(context=None)))
    assert (unknown.share, unknown.fullness, str(unknown)) == (None, "unknown", "5/?")
    assert fullness(2.0) == "full"


def test_the_rows_name_what_the_request_is_made_of():
    options = RequestOptions(system=words(6), tools=(Tool("f", words(3)),))
    picture = Message(role="user", blocks=(TextBlock("see this"), MediaBlock("image/png", "AA")))
    log = [picture, *tool_turn("1")[1:]]
    meter = meter_of(prepared(log, options, includeInContext=True))
    assert meter.rows == (
        ("system prompt", 10),
        ("tool definitions", 8),
        ("your messages", 6),
        ("answers", 10),
        ("thinking sent back", 2),
        ("tool calls", 2),
        ("tool results", 6),
        ("media and other", 1500),
    )
    assert sum(tokens for _, tokens in meter.rows) == meter.effective == meter.raw
    assert (meter.thinking_left_out, meter.other_left_out) == (0, 0)


def test_what_is_left_out_is_told_apart():
    cut = assistant(thought(words(5)), TextBlock(words(9)), status="interrupted")
    meter = meter_of(prepared([user("q"), cut, user("again")], includeInContext=True))
    assert (meter.thinking_left_out, meter.other_left_out) == (5, 13)
