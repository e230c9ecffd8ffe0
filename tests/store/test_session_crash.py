"""Processes are killed at random moments, hundreds of times: what was acknowledged is there."""

from __future__ import annotations

import random
import time
from itertools import count

import pytest

from mull.history.log import Entry
from mull.neutral.blocks import TextBlock, ThinkingBlock
from mull.neutral.events import TextDelta, ThinkingDelta
from mull.neutral.messages import Origin, assistant, user
from mull.store.sessions.recorder import Recorder
from mull.store.sessions.writing import begin_writing, go_on_writing
from session_samples import (
    Process,
    faults,
    journaled,
    new_store,
    stored_bytes,
    turn,
    write_version_1,
)

pytestmark = pytest.mark.usefixtures("real_disk")

ORIGIN = Origin("acme", "openai-chat", "thinker")
PIECES = 6


def question(position):
    return Entry(user(f"question {position}"))


def piece(position, number):
    return f"thought {position}.{number} " * 40


def answer(position):
    thought = "".join(piece(position, number) for number in range(PIECES))
    blocks = ThinkingBlock(thought, "reasoning_content"), TextBlock(f"answer {position}")
    return Entry(assistant(*blocks, origin=ORIGIN))


def write_for_ever(directory, session):
    """Resume a session and go on with it; say each thing that is safe, after it is."""

    def work(say):
        store = new_store(directory)
        seconds = count()  # each look at the clock finds a second gone: every event is written
        recorder = Recorder(go_on_writing(store, session), lambda: next(seconds))
        say(f"begin {recorder.position}")
        while True:
            asked = recorder.position
            recorder.append(question(asked))
            say(f"question {asked}")
            recorder.begin(ORIGIN)
            for number in range(PIECES):
                recorder.event(ThinkingDelta(piece(asked, number), 0, "reasoning_content"))
                say(f"piece {asked} {number}")
            recorder.event(TextDelta(f"answer {asked}", 1))
            recorder.append(answer(asked))
            say(f"answer {asked}")

    return work


def check(store, session, lines):
    """Everything that was acknowledged is there, in its place; nothing else is."""
    words = [line.split() for line in lines]
    assert not [line for line in lines if line.startswith("!")], lines
    store.recover(session)
    records = store.load(session)[1]
    pieces = {}
    for kind, place, *number in words:
        position = int(place)
        if kind == "question":
            assert records[position] == question(position)
        elif kind == "answer":
            assert records[position + 1] == answer(position)
        elif kind == "piece":
            pieces[position] = int(number[0]) + 1
    for position, number in pieces.items():
        (thought,) = records[position + 1].message.thinking
        safe = "".join(piece(position, each) for each in range(number))
        assert thought.thought.startswith(safe)
    statuses = {record.message.status for record in records if record.message.role == "assistant"}
    assert statuses <= {"complete", "interrupted"}
    return records


def crash(directory, chance, rounds):
    """Kill `rounds` processes; how many records there are, and how many of them were recovered."""
    store = new_store(directory)
    session = store.create(folder="/").id
    for _ in range(rounds):
        store.close()
        process = Process(write_for_ever(directory, session))
        lines = [process.line() for _ in range(chance.randrange(1, 25))]
        time.sleep(chance.uniform(0, 0.003))
        process.kill()
        lines += process.rest()
        assert faults(directory / "sessions.db") == []
        assert store.holder(session) is None
        records = check(store, session, lines)
        assert journaled(store, session) == []
        assert (
            store.info(session).records
            == len(records)
            == len(stored_bytes(directory / "sessions.db", session))
        )
    store.close()
    return records


def test_a_commit_waits_for_the_disk(tmp_path):
    store = new_store(tmp_path)
    store.list()
    connection = store._database._connection
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    store.close()


@pytest.mark.parametrize("seed", [1])
def test_whatever_was_acknowledged_survives_kill_9(tmp_path, seed):
    records = crash(tmp_path, random.Random(seed), rounds=20)
    recovered = [r for r in records if r.message.status == "interrupted"]
    assert recovered, "no process was killed while an answer came"
    assert len(records) > 40


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 20))
def test_whatever_was_acknowledged_survives_400_times_kill_9(tmp_path, seed):
    crash(tmp_path, random.Random(seed), rounds=40)


def test_a_session_begins_whole_or_not_at_all(tmp_path):
    chance = random.Random(9)

    def work(say):
        store = new_store(tmp_path)
        say("begin")
        while True:
            kept = begin_writing(store, folder="/", model="m")
            Recorder(kept).append(question(0))
            say(kept.info.id)
            kept.release()

    store, begun = new_store(tmp_path), set()
    for _ in range(12):
        store.close()
        process = Process(work)
        process.line()
        begun |= {process.line() for _ in range(chance.randrange(1, 9))}
        time.sleep(chance.uniform(0, 0.003))
        process.kill()
        begun |= set(process.rest())
        assert faults(tmp_path / "sessions.db") == []
    found = {info.id: store.load(info.id)[1] for info in store.list()}
    assert begun <= set(found)
    assert all(records == [question(0)] for records in found.values())
    store.close()


def test_a_store_whose_first_process_was_killed_can_be_opened(tmp_path):
    chance = random.Random(7)
    for number in range(12):
        directory = tmp_path / str(number)

        def work(say, directory=directory):
            say("begin")
            for _ in range(50):
                new_store(directory).create(folder="/")
                say("created")

        process = Process(work)
        assert process.line() == "begin"
        time.sleep(chance.uniform(0, 0.02))
        process.kill()
        created = process.rest()
        store = new_store(directory)
        assert len(store.list()) - len(created) in (0, 1)
        store.close()
        assert faults(directory / "sessions.db") == []


def test_a_migration_that_was_killed_is_done_by_the_next(tmp_path):
    chance = random.Random(8)
    records = [record for n in range(60) for record in turn(f"q{n}", "heron " * 50, "a")]
    for number in range(12):
        directory = tmp_path / str(number)
        directory.mkdir()
        data = write_version_1(directory / "sessions.db", "old", records)

        def work(say, directory=directory):
            say("begin")
            new_store(directory).list()

        process = Process(work)
        assert process.line() == "begin"
        time.sleep(chance.uniform(0, 0.02))
        process.kill()
        process.rest()
        store = new_store(directory)
        assert store.load("old")[1] == records
        assert len(store.search(["heron"], limit=100)) == 60
        store.close()
        assert stored_bytes(directory / "sessions.db", "old") == data
        assert faults(directory / "sessions.db") == []
