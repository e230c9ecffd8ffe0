"""Bits that rot in the store: what can be read is read, and `repair` makes the rest usable."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing

import pytest

from mull.agent.opening import Opening, find_session
from mull.neutral.errors import ConfigError, LocalError
from mull.store.sessions.repair import DAMAGED
from mull.store.sessions.sqlite import SqliteSessions
from mull.store.sessions.writing import go_on_writing
from session_samples import faults, turn


@pytest.fixture
def talks(store):
    made = []
    for number in range(3):
        info = store.create(folder="/w", name=f"talk {number}", settings={"n": number})
        for at in range(3):
            store.append(info.id, 2 * at, *turn(f"q{at}", f"heron {number}", f"a{at}"))
        made.append(store.info(info.id).id)
    return made


@pytest.fixture
def spoil(store, store_path):
    """Changes the file behind the store's back."""

    def spoil(statement, *values):
        store.close()
        with closing(sqlite3.connect(store_path)) as connection:
            connection.execute(statement, values)
            connection.commit()

    return spoil


NO_TEXT = b"\xff\xfe\x80"


@pytest.mark.parametrize("field", ["name", "title", "folder", "model", "base_url", "system"])
def test_text_that_is_none_hides_no_session(store, talks, spoil, field):
    spoil(f"UPDATE sessions SET {field} = CAST(? AS TEXT) WHERE id = ?", NO_TEXT, talks[1])
    assert {info.id for info in store.list()} == set(talks)
    assert "\ufffd" in getattr(store.info(talks[1]), field)
    assert len(store.load(talks[1])[1]) == 6
    assert store.search(["heron"])


@pytest.mark.parametrize("value", ["text", NO_TEXT, float("inf"), -1e300, 1e300, 9**18])
@pytest.mark.parametrize("field", ["created", "updated", "turns", "settings", "parent_at"])
def test_values_of_another_kind_hide_no_session(store, talks, spoil, field, value):
    spoil(f"UPDATE sessions SET {field} = ? WHERE id = ?", value, talks[1])
    (info,) = [info for info in store.list() if info.id == talks[1]]
    assert 0 <= info.updated <= 253_402_300_799
    assert len(store.load(talks[1])[1]) == 6


@pytest.mark.parametrize("field", ["origin", "events", "at"])
@pytest.mark.parametrize("value", [b"{", NO_TEXT, "text", 3, b"[[]]"])
def test_a_journal_that_rotted_keeps_no_session_from_opening(store, talks, spoil, field, value):
    row = {"origin": b"null", "events": b"[]", "at": 1.0, field: value}
    spoil(
        "INSERT INTO journal (session, at, origin, events) VALUES (?, ?, ?, ?)",
        *(talks[0], row["at"], row["origin"], row["events"]),
    )
    kept = go_on_writing(store, talks[0])
    assert len(kept.records) >= 6
    kept.release()


@pytest.mark.parametrize(
    ("data", "role"),
    [
        (b'{"type":"message","message":{"role":"assistant","blo', "assistant"),
        (b'{"type":"message","message":{"role":"user","blo', "user"),
        (b'{"type":"message","message":{"role":"tool","blo', "user"),
        (NO_TEXT, None),
        (b"[" * 5000, None),
        (7, None),
    ],
)
def test_a_record_that_cannot_be_read_is_named_and_mended(
    store, store_path, talks, spoil, data, role
):
    before = store.load(talks[1])[1]
    spoil("UPDATE records SET data = ? WHERE session = ? AND position = 3", data, talks[1])
    with pytest.raises(ConfigError) as caught:
        store.load(talks[1])
    assert str(caught.value).startswith(f"record 3 of session {talks[1]} cannot be read (")
    assert "`mull sessions repair`" in str(caught.value)
    said = store.repair()
    assert said.startswith("Repaired 1 of 3 sessions: 1 messages could not be read")
    info, after = store.load(talks[1])
    assert (*after[:3], *after[4:]) == (*before[:3], *before[4:])
    if role is not None:
        assert (after[3].message.role, after[3].message.text) == (role, DAMAGED)
    assert info.turns == 3
    kept = said.rpartition("is kept as ")[2]
    assert kept.startswith(f"{store_path}.before-repair-")
    copy = SqliteSessions(store_path.with_name(kept.rpartition("/")[2]))
    assert copy.load(talks[0])[1] == store.load(talks[0])[1]
    copy.close()
    assert store.repair() == "Checked 3 sessions, and all of them can be read."
    assert faults(store_path) == []


def test_rows_are_mended(store, talks, spoil):
    spoil("UPDATE sessions SET created = 'x', title = CAST(? AS TEXT)", NO_TEXT)
    assert store.repair().startswith("Repaired 3 of 3 sessions: 0 messages could not be read")
    assert store.repair().startswith("Checked 3 sessions")


def test_a_sound_store_is_left_alone(store, store_path, talks):
    store.close()
    before = store_path.read_bytes()
    assert store.repair() == "Checked 3 sessions, and all of them can be read."
    store.close()
    assert store_path.read_bytes() == before


def test_a_session_that_is_open_is_not_mended_under_its_writer(store, talks, spoil):
    spoil("UPDATE records SET data = ? WHERE session = ? AND position = 3", b"{", talks[1])
    with store.hold(talks[1]), pytest.raises(LocalError, match="is open in this process"):
        store.repair()


@pytest.mark.parametrize("seed", range(25))
def test_random_damage_ends_in_a_sentence_or_in_nothing(store, store_path, talks, seed):
    """Whatever bytes change, each command works or says in one line what is wrong."""
    store.close()
    dice = random.Random(seed)
    data = bytearray(store_path.read_bytes())
    for _ in range(dice.choice([1, 5, 40, 400])):
        at = dice.randrange(len(data))
        data[at : at + 8] = dice.randbytes(8)
    store_path.write_bytes(data[: len(data) if seed % 5 else dice.randrange(len(data))])
    opening = Opening("/w", last=True)

    def steps():
        yield lambda: store.list()
        yield lambda: store.search(["heron"])
        yield lambda: [store.load(info.id) for info in store.list()]
        yield lambda: go_on_writing(store, find_session(store, opening).id).release()
        yield lambda: store.repair()
        yield lambda: store.create(folder="/w")

    for _ in range(2):
        for step in steps():
            said = ""
            try:
                step()
            except LocalError as error:
                said = str(error)
            assert len(said.splitlines()) < 2
    store.repair()
    for info in store.list():
        store.load(info.id)
    assert faults(store_path) == []
