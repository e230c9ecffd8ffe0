"""An answer that is still coming is on disk, and is recovered when its process is gone."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from conversations import json_objects, snapshot, target
from effort import tried
from mull.dialects.registry import encode_request
from mull.history.log import Condensed, Entry, Log
from mull.neutral.assemble import assemble
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock, Wire
from mull.neutral.errors import ConfigError, SessionError
from mull.neutral.events import (
    BlockEnded,
    Failed,
    Finished,
    Healed,
    OpaqueReceived,
    Progressed,
    Reclassified,
    Retrying,
    Started,
    StateChanged,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
    ToolOutput,
    ToolRan,
    UsageReported,
    Warned,
)
from mull.neutral.joining import join_deltas
from mull.neutral.messages import Message, Origin, assistant, user
from mull.neutral.usage import Usage
from mull.policy.prepare import prepare
from mull.policy.view.repair import INTERRUPTED
from mull.store.sessions.journal import decode_events, encode_events
from mull.store.sessions.recorder import EVERY, Recorder
from mull.store.sessions.writing import Writing
from session_samples import Clock, journaled, new_store, turn

KIMI = Origin("moonshotai", "openai-chat", "kimi-k2-thinking", "https://api.moonshot.ai/v1")

keys = st.sampled_from([None, 0, "item"])
letters = st.text('ab{}"', max_size=3)
marks = st.sampled_from([None, None, "s", "t"])
rare = st.sampled_from([None] * 5 + ["s"])
wires = st.sampled_from([None] * 5 + [Wire("openai-chat", {"k": 1})])
kinds = (
    st.builds(TextDelta, letters, keys, marks, wires),
    st.builds(ThinkingDelta, letters, keys, marks, st.sampled_from(["raw", "summary"])),
    st.builds(ThinkingCarrier, keys, marks, marks, marks, marks, marks),
    st.builds(ToolCallDelta, keys, marks, rare, letters, rare, wires, st.booleans()),
    st.builds(OpaqueReceived, json_objects, keys),
    st.builds(BlockEnded, keys),
    st.builds(Reclassified, keys, marks),
    st.builds(UsageReported, st.builds(Usage, st.integers(0, 9))),
    st.builds(Finished, st.sampled_from([None, "stop", "length"])),
)
runs = st.one_of(*(st.lists(kind, min_size=1, max_size=5) for kind in kinds))
answers = st.lists(runs, max_size=4).map(lambda parts: [event for part in parts for event in part])


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path, clock):
    store = new_store(tmp_path, clock=clock)
    yield store
    store.close()


@pytest.fixture
def session(store):
    made = store.create(folder="/")
    store.append(made.id, 0, Entry(user("question")))
    return made.id


@example([TextDelta("a", 0), Reclassified(), TextDelta("b", 0)])
@tried(2)
@given(answers | st.lists(kinds[3], min_size=2))
def test_joined_deltas_make_the_same_message(some):
    joined = join_deltas(some)
    assert assemble(joined, KIMI) == assemble(some, KIMI)
    assert decode_events(encode_events(some)) == tuple(joined)
    assert join_deltas(joined) == joined


@settings(max_examples=40)
@given(answers, st.lists(st.integers(0, 12), max_size=3))
def test_it_does_not_matter_where_the_journal_is_cut_into_batches(store, some, cuts):
    whole = assemble(some, KIMI)
    made = store.create(folder="/")
    ends = sorted({0, *cuts, len(some)})
    for start, end in pairwise(ends):
        store.journal(made.id, some[start:end], KIMI)
    assert [record.message for record in store.recover(made.id)] == [whole] * bool(whole.blocks)


def test_one_block_of_many_deltas_is_one_object_a_batch(store, session):
    batches = 20
    for _ in range(batches):
        store.journal(session, [ThinkingDelta("x", 0, "reasoning_content")] * 10_000)
    written = journaled(store, session)
    assert [len(batch.events) for batch in written] == [1] * batches
    size = sum(len(msgspec.json.encode(batch.events)) for batch in written)
    assert size < 200_000 + batches * 100
    (entry,) = store.recover(session)
    assert entry.message.thinking[0].thought == "x" * 200_000


def test_s01_what_a_killed_process_had_received_is_interrupted_shown_and_sent_as_such(
    store, session
):
    store.journal(session, [Started("id"), ThinkingDelta("I sus", 0, "reasoning_content")], KIMI)
    store.journal(session, [ThinkingDelta("pect", 0, "reasoning_content")], KIMI)
    (recovered,) = store.recover(session)
    assert recovered.message == assistant(
        ThinkingBlock("I suspect", "reasoning_content"), origin=KIMI, status="interrupted"
    )
    assert store.load(session)[1] == [Entry(user("question")), recovered]
    assert journaled(store, session) == []
    assert store.recover(session) == []
    assert [hit.kind for hit in store.search(["suspect"])] == ["thinking"]
    log = Log(records=[*store.load(session)[1], Entry(user("go on"))])
    assert log.messages[1].thinking[0].thought == "I suspect"
    there = target("none")
    body = encode_request(prepare(log, snapshot(includeInContext=True), there).request, there).body
    assert b"question" in body
    assert b"go on" in body
    assert b"suspect" not in body  # a thought of another endpoint
    assert INTERRUPTED.encode() in body


def test_an_answer_whose_end_had_come_is_whole(store, session):
    usage = Usage(5, 7)
    store.journal(session, [TextDelta("done"), UsageReported(usage), Finished("stop")], KIMI)
    (recovered,) = store.recover(session)
    assert recovered.message == assistant(
        TextBlock("done"), origin=KIMI, stop_reason="stop", usage=usage
    )


def test_a_broken_answer_stays_broken(store, session):
    store.journal(session, [TextDelta("do"), Failed("overloaded")])
    assert store.recover(session)[0].message.status == "error"


def test_what_a_refused_request_had_brought_does_not_count(store, session):
    other = msgspec.structs.replace(KIMI, dialect="anthropic")
    store.journal(
        session, [ThinkingDelta("old", 0), Healed("r", "c"), ThinkingDelta("new", 0)], other
    )
    (recovered,) = store.recover(session)
    assert [block.thought for block in recovered.message.thinking] == ["new"]
    assert recovered.message.origin == other


CLAUDE = Origin("anthropic", "anthropic", "claude-sonnet-4-5", "https://api.anthropic.com")


def test_an_answer_after_a_switch_is_of_the_model_that_was_asked(store, session):
    store.journal(session, [UsageReported(Usage(7))], KIMI)  # stopped before it said anything
    store.append(session, 1, Entry(user("then you")))
    store.journal(session, [ThinkingDelta("so", 0), ThinkingCarrier(0, signature="s")], CLAUDE)
    store.journal(session, [TextDelta("half", 1)], CLAUDE)
    (recovered,) = store.recover(session)
    assert recovered.message == assistant(
        ThinkingBlock("so", signature="s"),
        TextBlock("half"),
        origin=CLAUDE,
        status="interrupted",
    )


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from([KIMI, CLAUDE]), answers), max_size=5))
def test_what_models_sent_stands_apart_however_often_they_are_switched(store, parts):
    made = store.create(folder="/")
    apart = []
    for origin, some in parts:
        store.journal(made.id, some, origin)
        if apart and apart[-1][0] == origin:
            apart[-1][1].extend(some)
        else:
            apart.append((origin, [*some]))
    whole = [assemble(some, origin) for origin, some in apart]
    recovered = [record.message for record in store.recover(made.id)]
    assert recovered == [message for message in whole if message.blocks]


def test_results_of_tools_that_had_run_are_recovered(store, session):
    calls = assistant(ToolCallBlock("a", "look"), ToolCallBlock("b", "look"), origin=KIMI)
    store.append(session, 1, Entry(calls))
    store.journal(session, [ToolRan("b", "look", "seen", True)])
    (recovered,) = store.recover(session)
    assert recovered.message == Message(role="tool", blocks=(ToolResultBlock("b", "seen", True),))


def test_a_journal_without_an_answer_leaves_nothing(store, session):
    store.journal(session, [UsageReported(Usage(1))])
    assert store.recover(session) == []
    assert journaled(store, session) == []
    assert store.info(session).records == 1


def test_a_batch_that_cannot_be_read_takes_nothing_with_it(store, session):
    store.journal(session, [ThinkingDelta("a", 0)])
    with store._database.writing() as connection:
        connection.execute(
            "INSERT INTO journal (session, at, events) VALUES (?, 0, x'00')", (session,)
        )
    store.journal(session, [ThinkingDelta("b", 0)])
    assert store.recover(session)[0].message.thinking[0].thought == "ab"


def test_a_session_that_is_being_written_is_not_recovered_by_others(store, session):
    with store.hold(session) as hold:
        store.journal(session, [ThinkingDelta("still thinking", 0)])
        assert store.recover(session) == []
        assert len(journaled(store, session)) == 1
        assert len(store.recover(session, hold)) == 1


def test_the_answer_ends_the_journal_and_other_records_do_not(store, session):
    store.journal(session, [ThinkingDelta("x", 0)])
    store.append(session, 1, Condensed(0, 0, "shorter"))
    store.append(session, 2, Entry(user("wait, also this")))
    assert len(journaled(store, session)) == 1
    store.append(session, 3, Entry(assistant(TextBlock("answer"))))
    assert journaled(store, session) == []
    assert store.recover(session) == []


def test_readers_follow_the_journal_by_its_numbers(store, session):
    other = store.create(folder="/").id
    store.journal(session, [ThinkingDelta("a")], KIMI)
    store.journal(other, [ThinkingDelta("z")])
    store.journal(session, [ThinkingDelta("b")])
    one, two = journaled(store, session)
    assert (one.events, one.origin, two.events) == (
        (ThinkingDelta("a"),),
        KIMI,
        (ThinkingDelta("b"),),
    )
    assert journaled(store, session, after=one.number) == [two]
    store.append(session, 1, Entry(assistant(TextBlock("a"))))
    store.journal(session, [ThinkingDelta("c")])
    assert [batch.events for batch in journaled(store, session, after=two.number)] == [
        (ThinkingDelta("c"),)
    ]


def test_the_journal_begins_where_the_records_end(store, session):
    store.append(session, 1, Entry(assistant(TextBlock("one"))))
    store.journal(session, [ThinkingDelta("two")])
    records, batches = store.news(session, 1)
    assert records == [Entry(assistant(TextBlock("one")))]
    assert [batch.events for batch in batches] == [(ThinkingDelta("two"),)]
    assert store.news(session, 2, batches[-1].number) == ([], [])


class Held:
    """A hold that keeps nobody out, so that what is written can be recovered."""

    is_held = True


class TestRecorder:
    @pytest.fixture
    def recorder(self, store, session, clock):
        info, records = store.load(session)
        return Recorder(Writing(store, info, Held(), records=records), clock)

    def thought(self, store, session):
        return "".join(event.text for batch in journaled(store, session) for event in batch.events)

    def test_events_are_written_once_a_second(self, store, session, recorder, clock):
        for letter in "abcd":
            assert not recorder.due()
            recorder.event(ThinkingDelta(letter))
            clock.now += EVERY / 4
        assert self.thought(store, session) == ""
        assert recorder.due()
        recorder.event(ThinkingDelta("e"))
        assert self.thought(store, session) == "abcde"
        assert not recorder.due()
        clock.now += 10 * EVERY  # a silence does not make the next one urgent
        recorder.event(ThinkingDelta("f"))
        assert len(journaled(store, session)) == 1
        clock.now += EVERY
        recorder.event(ThinkingDelta("g"))
        assert self.thought(store, session) == "abcdefg"
        assert len(journaled(store, session)) == 2

    def test_the_last_events_before_a_silence_are_written_when_somebody_asks(
        self, store, session, recorder, clock
    ):
        recorder.event(ThinkingDelta("a"))
        recorder.event(ThinkingDelta("b"))
        clock.now += EVERY
        assert recorder.due()
        recorder.flush()
        assert self.thought(store, session) == "ab"
        recorder.flush()
        assert len(journaled(store, session)) == 1

    def test_what_is_not_about_the_answer_is_not_written(self, store, session, recorder):
        for event in (
            Started("x"),
            Warned("c", "t"),
            Retrying(1, 1.0, "r"),
            StateChanged("sending"),
            ToolOutput("c", "line"),
            Progressed("compression", "half"),
        ):
            recorder.event(event)
        assert not recorder.due()
        assert journaled(store, session) == []

    def test_records_take_their_places_and_end_the_answer(self, store, session, recorder, clock):
        recorder.begin(KIMI)
        recorder.event(ThinkingDelta("a"))
        recorder.event(ThinkingDelta("b"))
        question, answer = turn("q", "ab", "c")
        recorder.append(answer)
        recorder.append(question)
        assert recorder.position == 3
        assert store.load(session)[1][1:] == [answer, question]
        clock.now += EVERY
        assert not recorder.due()
        assert journaled(store, session) == []

    def test_a_record_of_another_kind_keeps_what_waits(self, store, session, recorder, clock):
        recorder.event(ThinkingDelta("a"))
        recorder.event(ThinkingDelta("b"))
        recorder.append(Condensed(0, 0, "shorter"))
        clock.now += EVERY
        assert recorder.due()

    def test_the_origin_is_in_the_journal(self, store, session, recorder):
        recorder.begin(KIMI)
        recorder.event(ThinkingDelta("a"))
        recorder.flush()
        assert store.recover(session)[0].message.origin == KIMI

    def test_what_one_model_left_unwritten_is_not_written_as_anothers(
        self, store, session, recorder
    ):
        recorder.begin(KIMI)
        recorder.event(UsageReported(Usage(1)))
        recorder.event(UsageReported(Usage(2)))
        recorder.begin(CLAUDE)
        recorder.event(TextDelta("a"))
        recorder.flush()
        (recovered,) = store.recover(session)
        assert (recovered.message.origin, recovered.message.usage) == (CLAUDE, None)

    def test_what_could_not_be_written_is_tried_again(
        self, store, session, recorder, clock, monkeypatch
    ):
        def refuse(*_):
            raise ConfigError("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(store, "journal", refuse)
            recorder.event(ThinkingDelta("a"))
            clock.now += EVERY
            with pytest.raises(ConfigError):
                recorder.event(ThinkingDelta("b"))
        recorder.event(ThinkingDelta("c"))
        assert self.thought(store, session) == "abc"

    def test_somebody_elses_record_is_not_written_over(self, store, session, recorder):
        store.append(session, 1, Entry(user("mine")))
        with pytest.raises(SessionError, match="another process wrote it"):
            recorder.append(Entry(assistant(TextBlock("yours"))))
        assert recorder.position == 1
        assert store.info(session).records == 2
