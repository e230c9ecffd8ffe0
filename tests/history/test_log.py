"""Records that speak of records before them: summaries, shorter thoughts, things taken back."""

from __future__ import annotations

import msgspec
import pytest

from mull.history.log import Condensed, Entry, Log, Record, Summary, Undone
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.messages import Message, assistant, user


def talk(turns: int) -> list[Message]:
    said: list[Message] = []
    for turn in range(turns):
        said += [user(f"q{turn}"), assistant(TextBlock(f"a{turn}"))]
    return said


def texts(log: Log) -> list[str]:
    return [f"{message.role[0]}:{message.text}" for message in log.active]


def test_a_summary_stands_for_what_it_covers_and_nothing_is_lost():
    log = Log(talk(4))
    log.add(Summary(1, 6, "so far"))
    assert texts(log) == ["u:q0", "a:so far", "u:q3", "a:a3"]
    assert log.positions == [0, 8, 6, 7]
    assert log.messages == tuple(talk(4))


def test_a_later_summary_covers_an_earlier_one():
    log = Log(talk(4))
    log.add(Summary(1, 4, "one"))
    for message in talk(2):
        log.append(message)
    log.add(Summary(1, 11, "two"))
    assert texts(log) == ["u:q0", "a:two", "u:q1", "a:a1"]
    assert [summary.text for _, summary in log.summaries()] == ["two"]


def test_undoing_a_summary_brings_the_originals_back_and_undoing_that_the_summary():
    log = Log(talk(3))
    log.add(Summary(1, 4, "short"))
    log.add(Undone(6, 7))
    assert log.active == talk(3)
    log.add(Undone(7, 8))
    assert texts(log) == ["u:q0", "a:short", "u:q2", "a:a2"]


def test_an_undone_turn_is_stored_and_neither_sent_nor_shown():
    log = Log(talk(2))
    log.add(Undone(2, 4))
    log.append(user("other"))
    assert texts(log) == ["u:q0", "a:a0", "u:other"]
    assert [m.text for m in log.messages] == ["q0", "a0", "other"]
    assert len(log) == 6


def test_a_turn_begins_where_the_user_speaks_and_not_where_mull_does():
    log = Log(talk(1))
    log.add(Entry(user("go on"), own=True))
    log.append(Message(role="user", blocks=(ToolResultBlock("c", "r"),)))
    log.append(user("and?"))
    assert [entry.starts_turn for _, entry in log.entries()] == [True, False, False, False, True]
    assert [log.starts_turn(at) for at in range(5)] == [True, False, False, False, True]
    assert texts(log)[2] == "u:go on"  # to an endpoint it is the user who speaks
    log.add(Summary(1, 4, "so far", "user"))
    assert texts(log) == ["u:q0\n\nso far", "u:and?"]
    assert [log.starts_turn(at) for at in range(2)] == [True, True]


def test_what_an_entry_may_say_beside_its_message_is_left_out_where_it_says_nothing():
    plain = msgspec.json.encode(Entry(user("q"), 1.0))
    assert msgspec.json.decode(plain).keys() == {"type", "message", "at"}
    assert msgspec.json.decode(plain, type=Record) == Entry(user("q"), 1.0)
    full = Entry(user("q"), 1.0, prefix="00ff", own=True)
    assert msgspec.json.decode(msgspec.json.encode(full), type=Record) == full


def test_a_summary_in_the_users_role_joins_the_message_before_it():
    call = assistant(ToolCallBlock("c1", "look"))
    result = Message(role="tool", blocks=(ToolResultBlock("c1", "seen"),))
    log = Log([user("task"), call, result, call, result])
    log.add(Summary(1, 3, "looked once", role="user"))
    assert log.active[0] == Message(
        role="user", blocks=(TextBlock("task"), TextBlock("\n\nlooked once"))
    )
    assert log.active[1:] == [call, result]


def test_a_summary_of_everything_is_a_message_of_its_own():
    log = Log(talk(1))
    log.add(Summary(0, 2, "all", role="user"))
    assert texts(log) == ["u:all"]


def test_a_shorter_thought_is_known_by_the_block_it_stands_for():
    block = ThinkingBlock("long " * 9, source_field="reasoning")
    log = Log([user("q"), assistant(block, TextBlock("a"))])
    log.add(Condensed(1, 0, "short"))
    assert log.condensed == {id(block): ThinkingBlock("short", source_field="reasoning")}
    assert log.active[1].blocks[0] is block


def test_the_version_changes_only_when_more_than_the_end_changes():
    log = Log(talk(2))
    log.append(user("more"))
    assert log.version == 0
    log.add(Undone(4, 5))
    assert log.version == 1


@pytest.mark.parametrize(
    "record",
    [
        Entry(user("q"), 1.5, 2.5, 0.5),
        Summary(0, 2, "s", "user", "truncate", at=1.0),
        Condensed(1, 0, "c"),
        Undone(0, 1),
    ],
    ids=lambda record: type(record).__name__,
)
def test_records_round_trip_as_json(record):
    assert msgspec.json.decode(msgspec.json.encode(record), type=Record) == record
