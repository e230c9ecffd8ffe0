"""The meter: what is counted, what was reported, and the guess that follows from both."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import snapshot, target, thought, tool_turn
from mull.history.log import Entry, Log, Summary
from mull.neutral.blocks import MediaBlock, OpaqueBlock, TextBlock
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import RequestOptions, Tool
from mull.neutral.usage import Usage
from mull.policy.meter import fullness, meter_of
from mull.policy.prepare import prepare
from mull.policy.reported import Reported, corrected
from mull.policy.tokens import CHARACTERS

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


def talk(asked, usage, *more, where=None, **settings):
    """A log with one answered question, and what follows; the answer as a turn stores it."""
    where = where or target()
    log = Log([user(asked)])
    sent = prepare(log, snapshot(**settings), where, counter=Words())
    answer = assistant(TextBlock("ok"), usage=usage, origin=where.origin)
    log.add(Entry(answer, counted=sent.characters))
    for message in more:
        log.append(message)
    return log


def estimated(log, where=None, counter=None, **settings):
    return meter_of(
        prepare(log, snapshot(**settings), where or target(), counter=counter or Words())
    )


def test_f03_thoughts_that_are_not_sent_back_are_not_in_the_next_estimate():
    """20,000 tokens of input and 50,000 of reasoning are not 70,000 of context."""
    where = target()
    log = Log([user(words(19_000))])
    sent = prepare(log, snapshot(), where, counter=Words())
    usage = Usage(input=20_000, output=50_400, reasoning=50_000)
    answer = assistant(
        thought(words(50_000)), TextBlock(words(400)), usage=usage, origin=where.origin
    )
    log.add(Entry(answer, counted=sent.characters))
    log.append(user(words(96)))
    meter = estimated(log, where)
    assert meter.counted.total == 19_004 + 404 + 100
    assert 20_000 + 504 <= meter.effective <= 20_000 + 2 * 504
    assert meter.reported == 20_000
    assert (meter.thinking_left_out, meter.raw) == (50_000, meter.counted.total + 50_000)
    assert str(meter) == f"{meter.effective}/200000"
    assert estimated(log, where, includeInContext=True).effective > 70_000


def test_before_anything_was_reported_the_count_is_the_estimate():
    meter = meter_of(prepared([user(words(6))]))
    assert (meter.counted.total, meter.effective, meter.reported) == (10, 10, None)
    assert (meter.counter, meter.exact) == ("words", False)


@pytest.mark.parametrize("usage", [None, Usage(output=5), Usage(input=0)])
def test_an_answer_without_counts_teaches_nothing(usage):
    meter = estimated(talk(words(50), usage))
    assert (meter.reported, meter.effective) == (None, meter.counted.total)


def test_what_the_provider_said_is_where_the_next_estimate_begins():
    """A server that reads 9,500 tokens for a short question reads them with the next one too."""
    log = talk("q", Usage(input=9500), user("and?"))
    for counter in (Words(), CHARACTERS):
        meter = estimated(log, counter=counter)
        assert 9500 < meter.effective < 9520
        assert meter.reported == 9500
    assert estimated(log).fullness == "ok"
    assert estimated(log, context__limit=10_000).fullness == "full"


def test_the_tokenizer_of_the_last_request_does_not_matter():
    log = talk(words(5000), Usage(input=6100), user(words(100)))
    by_words, by_characters = estimated(log), estimated(log, counter=CHARACTERS)
    assert by_words.effective == by_characters.effective
    assert 6100 + 100 <= by_words.effective <= 6100 + 250


def test_a_request_that_shrank_is_estimated_lower():
    log = talk(words(40_000), Usage(input=42_000), user("next"))
    before = estimated(log).effective
    log.add(Summary(0, 2, "short", "user"))
    log.append(user("more"))
    assert before > 42_000
    assert estimated(log).effective == estimated(log).counted.total  # its report is summarised away


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**5), st.integers(1, 10**5))
def test_an_estimate_is_never_far_under_what_is_sent(counted, reported, tokens, characters):
    guess = corrected(tokens, characters, Reported(counted, reported))
    assert guess >= tokens // 2
    assert corrected(tokens, characters + 1000, Reported(counted, reported)) >= guess


def test_thoughts_that_an_endpoint_discards_do_not_fill_the_window():
    """Older Claude models and GPT before 5.6 are sent all thoughts and read those of this turn."""
    log, where, real = Log(), target(), 50

    def asked():
        log.append(user("next"))
        sent = snapshot(reasoning__includeInContext=True)
        return prepare(log, sent, where, counter=Words())

    for _ in range(12):
        counted = asked().characters
        blocks = thought(words(5000)), TextBlock("done")
        said = assistant(*blocks, origin=where.origin, usage=Usage(input=real))
        log.add(Entry(said, counted=counted))
        real += 10
    last = asked()
    assert last.tokens > 60_000
    assert last.estimate < 10_000


def test_a_report_is_worth_nothing_for_another_model():
    log = talk(words(5000), Usage(input=9000))
    assert estimated(log).reported == 9000
    assert estimated(log, where=target(model="other")).reported is None


def test_an_endpoint_that_runs_tools_of_its_own_reports_more_than_the_request():
    where = target()
    log = Log([user("q")])
    hosted = OpaqueBlock({"type": "web_search_call"})
    answer = assistant(hosted, TextBlock("a"), usage=Usage(input=60_000), origin=where.origin)
    log.add(Entry(answer, counted=10))
    assert estimated(log, where).reported is None


def test_a_report_survives_storage():
    entry = Entry(assistant(TextBlock("a"), usage=Usage(input=9)), counted=7)
    assert msgspec.json.decode(msgspec.json.encode(entry), type=Entry) == entry


def test_changing_a_setting_changes_the_meter_at_once():
    log = Log([*tool_turn("1"), user("next")])
    shown = [
        meter_of(prepare(log, snapshot(**settings), target(), counter=Words())).counted.total
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


@pytest.mark.parametrize("reported", [3, 50, 977, 40_000])
def test_the_parts_add_up_to_what_is_shown(reported):
    """One value for the bar, its parts, the status line and the threshold."""
    where = target(context=200_000)
    usage = Usage(input=reported, output=1)
    answer = assistant(TextBlock(words(9)), origin=where.origin, usage=usage)
    made = prepared([user(words(50)), answer, user(words(20))], where=where)
    meter = meter_of(made)
    assert sum(tokens for _, tokens in meter.rows) == meter.effective == made.estimate
    assert meter.parts.total == meter.effective
    assert str(meter) == made.meter
    surplus = max(made.estimate - made.tokens, 0)
    assert (meter.parts.surplus, bool(surplus)) == (surplus, reported > 100)
    if surplus:
        assert meter.rows[-1] == ("provider counts more", surplus)
        assert meter.rows[:-1] == (("your messages", 78), ("answers", 13))


def test_the_parts_add_up_when_bound_thoughts_are_left_out_of_what_a_provider_counts_low():
    """The thinking that no longer matches was counted in full, and the provider counts half."""
    effort = [{"type": "effort", "values": ("low", "high")}]
    binds = {"binds_thinking": True}
    where = target("anthropic-adaptive", dialect="anthropic", options=effort, compat=binds)
    log = Log([user(words(3000))])
    usage = Usage(input=1600, output=1)
    answer = assistant(
        thought(words(9000), signature="s"), TextBlock("a"), origin=where.origin, usage=usage
    )
    log.add(Entry(answer, counted=4000, prefix="another conversation"))
    log.append(user("and?"))
    meter = estimated(log, where, includeInContext=True)
    assert meter.counted.thinking == 0 < meter.thinking_left_out
    assert meter.parts.total == meter.effective > 0
    assert min(tokens for _, tokens in meter.rows) > 0


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
    assert sum(tokens for _, tokens in meter.rows) == meter.counted.total == meter.raw
    assert (meter.thinking_left_out, meter.other_left_out) == (0, 0)


def test_what_is_left_out_is_told_apart():
    cut = assistant(thought(words(5)), TextBlock(words(9)), status="interrupted")
    went_on = [user("q"), cut, assistant(TextBlock("a")), user("again")]
    meter = meter_of(prepared(went_on, includeInContext=True))
    assert (meter.thinking_left_out, meter.other_left_out) == (5, 13)
