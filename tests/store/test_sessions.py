"""Sessions begun, found, written, renamed, forked, deleted; what is refused changes nothing."""

from __future__ import annotations

import os
import sqlite3
import stat
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.history.log import Entry, Undone
from mull.neutral.blocks import MediaBlock, TextBlock, ToolResultBlock
from mull.neutral.errors import ConfigError, SessionError
from mull.neutral.messages import Message, assistant, user
from mull.store.sessions.names import checked_name, new_id, next_id, title_of
from mull.store.sessions.sqlite import open_sessions, sessions_path, this_folder
from session_samples import Clock, new_store, turn

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")


@pytest.fixture
def clock():
    return Clock()


def said(call, *words, **named):
    with pytest.raises(SessionError) as caught:
        call(*words, **named)
    return str(caught.value)


def test_a_session_is_all_that_it_was_given(store, clock):
    made = store.create(
        folder="/work",
        name="  the   lock ",
        model="moonshotai/kimi-k2-thinking",
        base_url="https://host.example/v1",
        system="be brief",
        settings={"reasoning.effort": "high", "context.limit": 9, "model.presets": False},
    )
    assert store.info(made.id) == made
    assert made.name == "the lock"
    assert (made.created, made.updated, made.records, made.turns) == (clock.now, clock.now, 0, 0)
    assert made.settings == {
        "reasoning.effort": "high",
        "context.limit": 9,
        "model.presets": False,
    }


def test_a_password_in_an_address_is_not_kept(store, tmp_path):
    made = store.create(folder="/", base_url="https://me:canary-1@host.example/v1?a=@b")
    assert made.base_url == "https://host.example/v1?a=@b"
    changed = store.update(made.id, base_url="http://canary-2@host.example")
    assert changed.base_url == "http://host.example"
    store.close()
    assert b"canary" not in (tmp_path / "sessions.db").read_bytes()


def test_what_was_appended_is_loaded_and_counted(store, clock):
    made = store.create(folder="/work")
    first, second = turn("Why is\n the sky blue?", "light", "it scatters"), turn("And red?", "", "")
    store.append(made.id, 0, *first)
    clock.now += 60
    store.append(made.id, 2, *second, Undone(2, 4))
    info, records = store.load(made.id)
    assert records == [*first, *second, Undone(2, 4)]
    assert (info.records, info.turns, info.title) == (5, 2, "Why is the sky blue?")
    assert info.updated == info.created + 60


def test_results_in_the_users_name_begin_no_turn_and_give_no_title(store):
    made = store.create(folder="/")
    store.append(made.id, 0, Entry(Message(role="user", blocks=(ToolResultBlock("c", "seen"),))))
    store.append(made.id, 1, Entry(Message(role="user", blocks=(MediaBlock("image/png", "AA"),))))
    store.append(made.id, 2, Entry(user("what is this?")))
    info = store.info(made.id)
    assert (info.turns, info.title) == (2, "what is this?")


@pytest.mark.parametrize("position", [0, 1, 3, -1])
def test_records_go_to_the_end_or_nowhere(store, position):
    made = store.create(folder="/")
    store.append(made.id, 0, *turn("q", "t", "a"))
    text = said(store.append, made.id, position, Entry(user("late")))
    assert text == (
        f"session {made.id} has 2 records, not {position}: another process wrote it. Nothing was"
        f" stored; open it again, or continue with a copy (`mull sessions fork {made.id}`)"
    )
    assert store.load(made.id)[1] == turn("q", "t", "a")
    assert store.search(["late"]) == []


def test_half_a_character_is_refused_and_nothing_of_its_batch_is_stored(store):
    made = store.create(folder="/")
    text = said(store.append, made.id, 0, Entry(user("fine")), Entry(user("\ud800")))
    assert "half a character" in text
    assert store.load(made.id)[1] == []


@pytest.mark.parametrize("given", [{"system": "a\udcff"}, {"folder": "/\udcff"}])
def test_half_a_character_is_refused_wherever_it_stands(store, given):
    with pytest.raises(SessionError, match="half a character"):
        store.create(**{"folder": "/", **given})
    with pytest.raises(SessionError, match="half a character"):
        store.find("\udcff", "/")
    assert store.list() == []


def test_a_folder_whose_name_is_no_text_has_sessions_too(store, tmp_path, monkeypatch):
    folder = os.fsencode(tmp_path) + b"/not\xfftext"
    os.mkdir(folder)
    monkeypatch.chdir(os.fsdecode(folder))
    assert this_folder() == f"{os.path.realpath(tmp_path)}/not\\xfftext"
    made = store.create(folder=this_folder())
    assert store.list(this_folder()) == [made]


def test_the_last_session_is_the_one_last_written_in_the_folder(store, clock):
    assert store.last("/work") is None
    made = []
    for folder in ("/work", "/work", "/else"):
        clock.now += 1
        made.append(store.create(folder=folder))
        store.append(made[-1].id, 0, Entry(user("hello")))
    clock.now += 1
    store.create(folder="/work")  # nothing was said in it: nothing to go on with
    assert store.last("/work").id == made[1].id
    store.append(made[0].id, 1, Entry(assistant(TextBlock("hi"))))
    assert store.last("/work").id == made[0].id


def test_a_clock_that_is_set_back_does_not_change_which_session_is_the_last(store, clock):
    first, second = (store.create(folder="/work").id for _ in range(2))
    store.append(first, 0, Entry(user("hello")))
    clock.now -= 86_400
    store.append(second, 0, Entry(user("hello")))
    assert store.last("/work").id == second
    store.append(first, 1, Entry(assistant(TextBlock("hi"))))
    assert store.last("/work").id == first


def test_the_list_has_the_last_written_first(store, clock):
    made = []
    for folder in ("/a", "/b", "/a"):
        clock.now += 1
        made.append(store.create(folder=folder).id)
    assert [info.id for info in store.list()] == made[::-1]
    assert [info.id for info in store.list("/a")] == [made[2], made[0]]
    assert [info.id for info in store.list(limit=1)] == [made[2]]


def test_update_changes_what_is_given_and_leaves_the_rest(store):
    made = store.create(folder="/", name="one", model="a/b", system="s", settings={"k": 1})
    changed = store.update(made.id, model="c/d", settings={"reasoning.effort": "low"})
    assert (changed.name, changed.model, changed.system) == ("one", "c/d", "s")
    assert changed.settings == {"reasoning.effort": "low"}
    unset = store.update(made.id, name=None, model=None)
    assert (unset.name, unset.model) == (None, None)
    assert store.update(made.id) == unset


def test_a_name_is_for_one_session_of_a_folder(store):
    one, two = store.create(folder="/a", name="Lock"), store.create(folder="/a")
    text = said(store.update, two.id, name="lock", model="x/y")
    assert text == f'session {one.id} in this folder is already called "lock"'
    assert store.info(two.id) == two
    assert said(store.create, folder="/a", name="LOCK")
    assert said(store.fork, one.id, name="lock")
    assert len(store.list()) == 2
    assert store.create(folder="/b", name="lock").name == "lock"
    assert store.update(one.id, name="LOCK").name == "LOCK"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "use 1 to 64 visible characters"),
        (" \n\t", "use 1 to 64 visible characters"),
        ("x" * 65, "use 1 to 64 visible characters"),
        ("a\x1b[2Jb", "use 1 to 64 visible characters"),
        ("a\u202eb", "use 1 to 64 visible characters"),
        ("--all", "it would be taken for an option"),
        ("260731-k4x9q", "it would be taken for an id"),
    ],
)
def test_odd_names_are_refused(store, name, why):
    made = store.create(folder="/", name="good")
    assert said(store.update, made.id, name=name).endswith(f": {why}")
    assert said(store.create, folder="/", name=name).endswith(f": {why}")
    assert [info.name for info in store.list()] == ["good"]


@pytest.mark.parametrize("name", ["a", "Über den Äther", "日本", "what? now!", "26", "x" * 64])
def test_names_may_be_nearly_anything(name):
    assert checked_name(name) == name


def test_a_session_is_found_by_id_name_and_the_beginning_of_its_id(store, clock):
    one = store.create(folder="/a", name="lock")
    clock.now += 86_400
    two = store.create(folder="/b", name="lock")
    three = store.create(folder="/b", name="other")
    assert store.find(one.id.upper()) == one
    assert store.find("LOCK", "/a") == one
    assert store.find("lock", "/b") == two
    assert store.find(" other ", "/a") == three
    assert store.find(one.id[:5]) == one
    assert store.find(three.id[7:]) == three
    assert said(store.find, "lock", "/c") == (
        f'"lock" could be {two.id} (lock) or {one.id} (lock): give the whole id'
    )
    assert "give the whole id" in said(store.find, "26")


def test_what_is_not_there_is_said_with_what_is_near(store):
    assert said(store.find, "x", "/a") == (
        'there is no session "x": none is stored yet for this folder'
    )
    made = store.create(folder="/a", name="refactor")
    store.append(store.create(folder="/a").id, 0, *turn("fix the lock", "", ""))
    assert said(store.find, "refacter") == 'there is no session "refacter": did you mean refactor?'
    listed = said(store.find, "zzz", "/a")
    assert listed.startswith('there is no session "zzz": the last ones here are ')
    assert f"{made.id} (refactor)" in listed
    assert "(fix the lock)" in listed
    for odd in ("", " ", "%", "_", "'", "x" * 500, "\x1b[2J"):
        text = said(store.find, odd, "/a")
        assert "\x1b" not in text
        assert len(text) < 400


def test_every_method_refuses_an_unknown_id_and_changes_nothing(store, tmp_path):
    store.create(folder="/")
    for call in (
        lambda: store.info("nope"),
        lambda: store.load("nope"),
        lambda: store.append("nope", 0, Entry(user("x"))),
        lambda: store.update("nope", name="x"),
        lambda: store.fork("nope"),
        lambda: store.delete("nope"),
        lambda: store.journal("nope", []),
        lambda: store.recover("nope"),
        lambda: store.hold("nope"),
    ):
        assert said(call) == 'there is no session "nope"; `mull sessions list --all` lists all'
    assert len(store.list()) == 1
    assert store.news("nope", 0) == ([], [])
    assert store.holder("nope") is None
    assert [*(tmp_path / "session-locks").glob("*")] == []


def test_a_fork_holds_the_beginning_and_goes_its_own_way(store, clock):
    one = store.create(folder="/a", name="one", model="m/n", system="s", settings={"k": [1]})
    records = [*turn("first", "t1", "a1"), *turn("second", "t2", "a2")]
    store.append(one.id, 0, *records)
    clock.now += 5
    fork = store.fork(one.id, at=2, name="two")
    assert fork.id != one.id
    assert (fork.parent, fork.parent_at, fork.name) == (one.id, 2, "two")
    assert (fork.folder, fork.model, fork.system, fork.settings) == ("/a", "m/n", "s", {"k": [1]})
    assert (fork.records, fork.turns, fork.title, fork.created) == (2, 1, "first", clock.now)
    store.append(fork.id, 2, *turn("another", "t3", "a3"))
    assert store.load(fork.id)[1] == [*records[:2], *turn("another", "t3", "a3")]
    assert store.load(one.id)[1] == records
    assert [hit.session.id for hit in store.search(["t2"])] == [one.id]
    assert [hit.session.id for hit in store.search(["t1"])] == [fork.id, one.id]


def test_a_fork_may_be_whole_or_empty_and_not_more(store):
    one = store.create(folder="/")
    store.append(one.id, 0, *turn("q", "t", "a"))
    assert store.load(store.fork(one.id).id)[1] == turn("q", "t", "a")
    empty = store.fork(one.id, at=0)
    assert (empty.records, empty.turns, empty.title) == (0, 0, "")
    for end in (3, -1):
        assert said(store.fork, one.id, at=end).endswith(
            f"has 2 records: a copy cannot end at {end}"
        )
    assert len(store.list()) == 3


def test_what_is_deleted_is_in_no_file_any_longer(store, tmp_path):
    keep, gone = store.create(folder="/"), store.create(folder="/", name="canaryname")
    for number in range(30):
        store.append(keep.id, number * 2, *turn("kept", "kept too", "yes"))
        store.append(gone.id, number * 2, *turn("canaryq", "canaryt " * 500, "canarya"))
    store.delete(gone.id)
    assert [info.id for info in store.list()] == [keep.id]
    assert store.search(["canaryt"]) == []
    assert len(store.search(["kept"], kind="question")) == 30
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"canary" not in path.read_bytes(), path
    assert list((tmp_path / "session-locks").iterdir()) == []


def test_deleting_gives_the_disk_back(store, tmp_path):
    made = store.create(folder="/")
    store.append(made.id, 0, *turn("q", "word " * 400_000, "a"))
    store.close()
    before = (tmp_path / "sessions.db").stat().st_size
    store.delete(made.id)
    assert (tmp_path / "sessions.db").stat().st_size < before / 10


@posix
def test_only_the_user_can_read_it(tmp_path):
    place = tmp_path / "new" / "data"
    store = new_store(place)
    made = store.create(folder="/")
    with store.hold(made.id):
        modes = {
            path.relative_to(tmp_path).as_posix(): stat.S_IMODE(path.stat().st_mode)
            for path in tmp_path.rglob("*")
        }
    store.close()
    folders = {"new", "new/data", "new/data/session-locks"}
    assert {name for name, mode in modes.items() if mode == 0o700} == folders
    assert {mode for name, mode in modes.items() if name not in folders} == {0o600}
    assert {"new/data/sessions.db", "new/data/sessions.db-wal"} <= set(modes)


def test_the_users_store_is_in_the_data_directory():
    store = open_sessions()
    made = store.create(folder="/")
    connection = sqlite3.connect(sessions_path())
    assert connection.execute("SELECT id FROM sessions").fetchall() == [(made.id,)]
    connection.close()
    store.close()


def test_ids_of_one_moment_differ_and_sort_as_they_came(store):
    ids = [store.create(folder="/").id for _ in range(40)]
    assert len({*ids}) == 40
    assert ids == sorted(ids)
    assert {len(each) for each in ids} == {12}
    assert ids[0].startswith("260731-")


@given(*[st.floats(946_684_800, 3_000_000_000)] * 2)
def test_ids_sort_as_the_times_they_were_made_at(one, other):
    earlier, later = sorted((one, other))
    assert new_id(earlier) <= new_id(later)
    assert next_id(new_id(earlier)) > new_id(earlier)


def test_the_id_after_the_last_of_a_day_is_the_first_of_the_next():
    assert next_id("260731-zzzzz") == "260801-00000"
    assert next_id("261231-0000z") == "261231-00010"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("", ""),
        ("short", "short"),
        ("two\nlines\tand  more", "two lines and more"),
        ("\x1b[31mred\x07", "[31mred"),
        ("word " * 30, "word word word word word word word word word word word…"),
        ("x" * 100, "x" * 59 + "…"),
    ],
)
def test_a_title_is_one_short_line(text, title):
    assert title_of(text) == title


@given(st.text())
def test_any_text_makes_a_title_that_can_be_shown(text):
    title = title_of(text)
    assert len(title) <= 60
    assert title.isprintable()


def test_a_folder_that_is_gone_is_told_of(tmp_path, monkeypatch):
    assert this_folder() == os.path.realpath(os.getcwd())
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(ConfigError, match="no longer exists"):
        this_folder()


def test_a_new_record_costs_the_same_however_long_the_session_is(store):
    short, long = store.create(folder="/").id, store.create(folder="/").id
    many = [record for n in range(2_000) for record in turn(f"q{n}", "thought " * 20, "a")]
    store.append(long, 0, *many)
    store.append(short, 0, *many[:2])

    def steps(session):
        """The steps of SQLite's machine for ten appends."""
        count = 0

        def step():
            nonlocal count
            count += 1

        store._database._connection.set_progress_handler(step, 10)
        for _ in range(10):
            store.append(session, store.info(session).records, *many[:2])
        store._database._connection.set_progress_handler(None, 0)
        return count

    assert steps(long) < 1.5 * steps(short)
