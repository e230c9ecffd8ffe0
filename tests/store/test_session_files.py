"""The file itself: other versions, damage, full and read-only disks. Nothing is ever lost."""

from __future__ import annotations

import errno
import os
import resource
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mull.history.log import Entry
from mull.neutral.errors import ConfigError, SessionError
from mull.neutral.messages import user
from mull.store.sessions import database as session_database
from mull.store.sessions.schema import VERSION
from session_samples import Process, faults, new_store, stored_bytes, turn, write_version_1


@pytest.fixture
def told():
    return []


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sessions.db"


@pytest.fixture
def opened(tmp_path, told):
    """A store over the file, closed and opened again each time it is asked for."""
    stores = []

    def opened():
        for store in stores:
            store.close()
        stores.append(new_store(tmp_path, tell=told.append))
        return stores[-1]

    yield opened
    for store in stores:
        store.close()


def filled(store, sessions=3, turns=1):
    made = []
    for number in range(sessions):
        info = store.create(folder="/", name=f"talk {number}", settings={"n": number})
        for at in range(turns):
            store.append(info.id, 2 * at, *turn(f"q{at}", f"heron {number} " * 200, "a"))
        made.append(store.info(info.id))
    return made


def raw(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def aside(path):
    found = path.parent.glob("sessions.db.damaged-*")
    return sorted(file for file in found if not file.name.endswith(("-wal", "-shm")))


def said(call):
    with pytest.raises(ConfigError) as caught:
        call()
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def test_a_migrated_store_is_like_a_new_one(tmp_path, path, opened):
    records = [*turn("first", "t1", "a1"), *turn("second", "t2", "a2")]
    data = write_version_1(path, "old", records)
    store = opened()
    assert store.load("old")[1] == records
    store.append("old", 4, *turn("third", "t3", "a3"))
    assert store.info("old").turns == 3
    assert stored_bytes(path, "old")[:4] == data
    new = new_store(tmp_path / "new")
    new.create(folder="/")
    new.close()
    shapes = []
    for file in (path, tmp_path / "new" / "sessions.db"):
        connection = sqlite3.connect(file)
        tables = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_schema ORDER BY 1")
        ]
        shapes.append(
            {name: connection.execute(f"PRAGMA table_info({name})").fetchall() for name in tables}
        )
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
        connection.close()
    assert {k: v for k, v in shapes[0].items() if "index" not in k} == {
        k: v for k, v in shapes[1].items() if "index" not in k
    }


def test_a_migration_that_fails_leaves_the_old_version(path, opened):
    data = write_version_1(path, "old", turn("first", "t1", "a1"))
    raw(path, "INSERT INTO records (session, position, data) VALUES ('old', 2, '{}')")
    text = said(lambda: opened().list())
    assert text.startswith("record 2 of session old cannot be read (")
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    connection.close()
    assert stored_bytes(path, "old")[:2] == data


def test_a_newer_version_is_refused_and_untouched(path, opened, told):
    filled(opened())
    opened().close()
    raw(path, f"PRAGMA user_version = {VERSION + 1}")
    before = path.read_bytes()
    store = opened()
    for call in (store.list, lambda: store.create(folder="/"), lambda: store.search(["x"])):
        assert said(call) == (
            f"{path} was written by a newer mull: upgrade this one. The file is as it was"
        )
    store.close()
    assert path.read_bytes() == before
    assert (told, aside(path)) == ([], [])


def test_a_store_that_a_newer_mull_changed_meanwhile_is_not_written(path, opened):
    store = opened()
    (info,) = filled(store, 1)
    raw(path, f"PRAGMA user_version = {VERSION + 1}")
    assert "upgrade this one" in said(lambda: store.append(info.id, 2, Entry(user("x"))))
    assert len(stored_bytes(path, info.id)) == 2


@pytest.mark.parametrize(
    "content",
    [b"not a database, long enough to have a header" * 40, b"SQLite format 3\x00" + b"\xff" * 5000],
)
def test_a_file_that_is_no_database_is_set_aside_and_a_new_one_begun(path, opened, told, content):
    path.write_bytes(content)
    made = opened().create(folder="/")
    (kept,) = aside(path)
    assert kept.read_bytes() == content
    assert [info.id for info in opened().list()] == [made.id]
    (text,) = told
    assert text.startswith(f"{path} is damaged (file is not a database). It is kept as {kept}; ")
    assert text.endswith("a new one is begun")


def test_what_can_be_read_of_a_damaged_file_is_carried_over(path, opened, told):
    made = filled(opened(), sessions=6, turns=8)
    loaded = {info.id: opened().load(info.id)[1] for info in made}
    opened().close()
    data = bytearray(path.read_bytes())
    page = _page_of(path, made[3].id, 9)
    data[page * 4096 : page * 4096 + 4096] = b"\x5a" * 4096
    path.write_bytes(data)
    text = said(lambda: opened().load(made[3].id))
    (kept,) = aside(path)
    assert kept.read_bytes() == bytes(data)
    assert f"It is kept as {kept}; 6 sessions were carried over" in text
    store = opened()
    for info in made:
        found, records = store.load(info.id)
        assert records == loaded[info.id][: len(records)]
        whole = len(records) == 16
        assert (found == info) == whole
    assert sum(info.records < 16 for info in store.list()) >= 1
    assert f"{sum(info.records < 16 for info in store.list())} of them up to the damage" in text
    assert faults(path) == []
    assert told == []


def _page_of(path, session, position):
    """A page that holds part of this record's data and is not its first."""
    connection = sqlite3.connect(path)
    (data,) = connection.execute(
        "SELECT data FROM records WHERE session = ? AND position = ?", (session, position)
    ).fetchone()
    connection.close()
    everything = path.read_bytes()
    return everything.index(data[-200:]) // 4096 if data[-200:] in everything else None


def test_a_file_with_a_damaged_root_is_set_aside_when_it_is_opened(path, opened, told):
    filled(opened())
    opened().close()
    data = bytearray(path.read_bytes())
    data[100:4096] = b"\x00" * 3996
    path.write_bytes(data)
    assert opened().list() == []
    assert [file.read_bytes() for file in aside(path)] == [bytes(data)]
    assert len(told) == 1


def test_a_second_process_does_not_set_the_new_file_aside(path, opened, told):
    path.write_bytes(b"garbage" * 1000)
    store = opened()
    made = store.create(folder="/")
    error = sqlite3.DatabaseError("file is not a database")
    error.sqlite_errorcode = 26
    assert "has been replaced" in store._database._replace_damaged(error)
    assert [info.id for info in store.list()] == [made.id]
    assert len(aside(path)) == 1


def test_without_anybody_to_tell_damage_is_logged(tmp_path, path, caplog):
    path.write_bytes(b"garbage" * 1000)
    store = new_store(tmp_path)
    store.list()
    store.close()
    assert "is damaged" in caplog.text


def test_a_file_that_was_moved_away_is_not_written_to(path, opened):
    store = opened()
    (info,) = filled(store, 1)
    elsewhere = path.with_name("elsewhere.db")
    path.rename(elsewhere)
    for call in (store.list, lambda: store.append(info.id, 2, Entry(user("x")))):
        assert said(call) == (
            f"{path} was moved or deleted while mull was using it: put it back, or start mull"
            " again. Nothing was stored just now"
        )
    elsewhere.rename(path)
    store.append(info.id, 2, Entry(user("x")))
    assert opened().info(info.id).records == 3


def test_a_process_goes_on_in_the_file_that_another_put_in_the_place(tmp_path, path, opened):
    mine = new_store(tmp_path, clock=lambda: 1_750_000_000.0)  # ids are times: this is no other's
    (info,) = filled(mine, 1)
    for ending in ("", "-wal", "-shm"):
        os.rename(f"{path}{ending}", f"{path}.damaged-1{ending}")
    made = opened().create(folder="/")
    assert [each.id for each in mine.list()] == [made.id]
    with pytest.raises(SessionError, match="there is no session"):
        mine.append(info.id, 2, Entry(user("x")))
    mine.append(made.id, 0, Entry(user("x")))
    mine.close()
    assert opened().info(made.id).records == 1


def test_a_full_disk_refuses_the_record_and_keeps_what_was_there(path, opened):
    store = opened()
    (info,) = filled(store, 1, turns=20)
    connection = store._database._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    big = turn("q", "x" * 100_000, "a")
    for call in (lambda: store.append(info.id, 40, *big), lambda: store.fork(info.id)):
        assert said(call) == f"cannot use {path}: the disk is full. Nothing was changed"
    connection.execute("PRAGMA max_page_count = 1000000")
    assert store.list() == [info]
    store.append(info.id, 40, *big)
    assert opened().load(info.id)[1][40:] == big
    assert faults(path) == []


def test_a_process_whose_writes_fail_says_so_and_loses_nothing(tmp_path, path, opened):
    (info,) = filled(opened(), 1)
    opened().close()
    size = path.stat().st_size + 200_000

    def write(say):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        store = new_store(tmp_path)
        position = 2
        try:
            while True:
                store.append(info.id, position, *turn("q", "y" * 4000, "a"))
                position += 2
                say(f"stored {position}")
        except ConfigError as error:
            say(str(error))

    *stored, text = Process(write).rest()
    assert text.startswith(f"cannot use {path}: ")
    assert text.endswith(" full. Nothing was changed")
    records = opened().info(info.id).records
    assert records == 2 + 2 * len(stored)
    assert records > 2
    assert faults(path) == []


def test_a_read_only_file_can_be_read_and_is_not_written(path, opened, monkeypatch):
    (info,) = filled(opened(), 1)
    opened().close()

    def connect(path):
        return sqlite3.connect(
            f"file:{path}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
        )

    monkeypatch.setattr(session_database, "_connect", connect)
    store = opened()
    assert store.load(info.id)[0] == info
    assert [hit.position for hit in store.search(["heron"])] == [1]
    for call in (
        lambda: store.append(info.id, 2, Entry(user("x"))),
        lambda: store.create(folder="/"),
        lambda: store.delete(info.id),
    ):
        assert said(call) == (
            f"cannot use {path}: it, or the directory it is in, is read-only. Nothing was changed"
        )
    assert store.list() == [info]


@pytest.mark.parametrize("log", [False, True], ids=["whole", "with a log"])
def test_sessions_on_a_read_only_disk_are_read_all_the_same(
    tmp_path, path, opened, monkeypatch, log
):
    store = opened()
    (info,) = filled(store, 1)
    if log:  # a process that was killed leaves the log behind
        kept = {ending: Path(f"{path}{ending}").read_bytes() for ending in ("", "-wal")}
        store.close()
        for ending, data in kept.items():
            Path(f"{path}{ending}").write_bytes(data)
    store.close()
    before = _bytes_in(tmp_path)
    really = os.open

    def read_only(place, flags, *more, **named):
        if str(place).startswith(str(tmp_path)) and flags & (os.O_RDWR | os.O_WRONLY):
            raise OSError(errno.EROFS, "Read-only file system")
        return really(place, flags, *more, **named)

    monkeypatch.setattr(os, "open", read_only)
    store = opened()
    assert store.load(info.id)[0] == info
    assert [hit.position for hit in store.search(["heron"])] == [1]
    for call in (
        lambda: store.append(info.id, 2, Entry(user("x"))),
        lambda: store.create(folder="/"),
    ):
        assert said(call) == (f"cannot open {path}: Read-only file system; nothing was changed")
    assert store.list() == [info]
    store.close()
    assert _bytes_in(tmp_path) == before


def _bytes_in(directory):
    return {str(p): p.read_bytes() for p in directory.rglob("*") if p.is_file()}


def test_a_disk_too_full_to_open_the_file_is_read_and_written_when_there_is_room_again(
    path, opened, monkeypatch
):
    (info,) = filled(opened(), 1)
    opened().close()
    connect = session_database._connect

    def full(path):
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = 4874  # no room for the file beside it that all processes share
        raise error

    monkeypatch.setattr(session_database, "_connect", full)
    store = opened()
    assert store.load(info.id)[0] == info
    assert said(lambda: store.append(info.id, 2, Entry(user("x")))).startswith(
        f"cannot use {path}: the disk cannot be read or written, or is full"
    )
    monkeypatch.setattr(session_database, "_connect", connect)
    store.append(info.id, 2, Entry(user("x")))
    assert store.info(info.id).records == 3


@pytest.mark.parametrize("settings", ["{bad", "[]", b"\xff"])
def test_settings_that_cannot_be_read_do_not_hide_the_session(path, opened, settings):
    (info,) = filled(opened(), 1)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE sessions SET settings = ?", (settings,))
        connection.commit()
    (read,) = opened().list()
    assert (read.id, read.title, read.settings) == (info.id, info.title, {})


def test_a_directory_that_cannot_be_written(tmp_path):
    def work(say):
        if os.geteuid() == 0:  # root may write anywhere
            os.setuid(65534)
        with pytest.raises(ConfigError) as caught:
            new_store(tmp_path).create(folder="/")
        say(str(caught.value))

    tmp_path.chmod(0o500)
    try:
        (text,) = Process(work).rest()
    finally:
        tmp_path.chmod(0o700)
    assert text == f"cannot open {tmp_path}/sessions.db: Permission denied; nothing was changed"
    assert list(tmp_path.iterdir()) == []


def test_a_place_where_no_file_can_be(tmp_path):
    (tmp_path / "file").write_text("in the way")
    store = new_store(tmp_path / "file" / "data")
    assert said(store.list) == (
        f"cannot open {tmp_path}/file/data/sessions.db: Not a directory; nothing was changed"
    )
    (tmp_path / "folder" / "sessions.db").mkdir(parents=True)
    store = new_store(tmp_path / "folder")
    assert "Is a directory" in said(store.list)


def test_a_pipe_in_the_place_of_the_store_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "sessions.db")
    assert said(new_store(tmp_path).list) == (
        f"cannot open {tmp_path}/sessions.db: it is not a file; nothing was changed"
    )


def test_a_store_that_somebody_keeps_busy_is_told_of(path, opened, monkeypatch):
    filled(opened(), 1)
    monkeypatch.setattr(session_database, "_BUSY_SECONDS", 0.01)
    store = opened()
    store.list()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert said(lambda: store.create(folder="/")) == (
        f"cannot use {path}: another process is using it; try again. Nothing was changed"
    )
    assert len(store.list()) == 1  # readers do not wait
    other.execute("ROLLBACK")
    other.close()
    assert store.create(folder="/")


def test_a_record_that_cannot_be_read_is_named_and_left(path, opened):
    store = opened()
    (info,) = filled(store, 1)
    raw(path, 'UPDATE records SET data = \'{"type":"message","new":1}\' WHERE position = 1')
    assert said(lambda: store.load(info.id)).startswith(
        f"record 1 of session {info.id} cannot be read (Object contains unknown field `new`"
    )
    assert stored_bytes(path, info.id)[1] == '{"type":"message","new":1}'


def test_opening_loads_sqlite_and_importing_does_not():
    def work(say):
        import sys

        for name in [name for name in sys.modules if name.partition(".")[0] in ("sqlite3", "mull")]:
            del sys.modules[name]
        import mull.store.sessions.sqlite  # noqa: F401

        say("sqlite3" if "sqlite3" in sys.modules else "nothing")

    assert Process(work).rest() == ["nothing"]
