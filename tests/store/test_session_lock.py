"""One writer per session, many per store, and readers who wait for nobody."""

from __future__ import annotations

import fcntl
import os
import threading
import time

import pytest

from mull.history.log import Entry
from mull.neutral.errors import SessionBusy, SessionError
from mull.neutral.events import ThinkingDelta
from mull.neutral.messages import user
from mull.store.locks import FileLock
from session_samples import Process, faults, journaled, new_store, turn


def holding(tmp_path, session):
    """A process that has the session open until it is killed."""

    def work(say):
        store = new_store(tmp_path)
        with store.hold(session):
            store.append(session, 0, Entry(user("mine")))
            store.journal(session, [ThinkingDelta("thinking of locks")])
            say("ready")
            threading.Event().wait()

    process = Process(work)
    assert process.line() == "ready"
    return process


def test_a_second_process_is_told_who_has_the_session_and_what_to_do(store, tmp_path):
    made = store.create(folder="/")
    process = holding(tmp_path, made.id)
    with pytest.raises(SessionBusy) as caught:
        store.hold(made.id)
    assert str(caught.value) == (
        f"session {made.id} is open in process {process.pid}: close it there, or continue with a"
        f" copy (`mull sessions fork {made.id}`)"
    )
    assert caught.value.pid == process.pid
    assert store.holder(made.id) == process.pid
    with pytest.raises(SessionBusy):
        store.delete(made.id)
    # readers and copies need no lock
    assert store.load(made.id)[1] == [Entry(user("mine"))]
    assert [hit.position for hit in store.search(["mine"])] == [0]
    assert [batch.events for batch in journaled(store, made.id)] == [
        (ThinkingDelta("thinking of locks"),)
    ]
    assert store.load(store.fork(made.id).id)[1] == [Entry(user("mine"))]
    assert store.recover(made.id) == []
    process.kill()
    process.rest()
    assert store.holder(made.id) is None
    with store.hold(made.id) as hold:
        assert store.recover(made.id, hold)[0].message.thinking[0].thought == "thinking of locks"


def test_the_same_process_is_no_exception(store):
    made = store.create(folder="/")
    with store.hold(made.id) as hold:
        assert hold.is_held
        with pytest.raises(SessionBusy, match="is open in this process: "):
            store.hold(made.id)
        assert store.holder(made.id) == os.getpid()
    assert not hold.is_held
    store.hold(made.id).release()


def test_a_lock_leaves_no_file_behind(store, tmp_path):
    made = store.create(folder="/")
    with store.hold(made.id):
        assert [path.name for path in (tmp_path / "session-locks").iterdir()] == [f"{made.id}.lock"]
    assert list((tmp_path / "session-locks").iterdir()) == []


def test_a_lock_whose_file_was_removed_meanwhile_is_not_believed(tmp_path, monkeypatch):
    path, flock, taken = tmp_path / "a.lock", fcntl.flock, []

    def flock_late(handle, how):
        if not taken:
            path.unlink()  # as its last holder does, between our opening and our locking
        taken.append(handle)
        flock(handle, how)

    monkeypatch.setattr(fcntl, "flock", flock_late)
    lock = FileLock(path)
    assert lock.acquire(wait=False)
    assert len(taken) == 2
    assert not FileLock(path).acquire(wait=False)
    lock.release(remove=True)
    assert not path.exists()


def test_a_reader_that_asks_for_the_holder_is_not_taken_for_one(store, tmp_path, monkeypatch):
    made = store.create(folder="/")
    store.hold(made.id).release()
    reader = FileLock(tmp_path / "session-locks" / f"{made.id}.lock")
    assert reader.acquire(shared=True)
    monkeypatch.setattr(time, "sleep", lambda seconds: reader.release())
    with store.hold(made.id) as hold:
        assert hold.is_held


def test_processes_that_begin_at_once_all_write_one_store(tmp_path):
    ready, go = os.pipe()

    def work(say):
        os.close(go)
        os.read(ready, 1)  # all begin when the other end is closed: the file is not there yet
        store = new_store(tmp_path)
        made = store.create(folder=f"/{os.getpid()}")
        with store.hold(made.id):
            for number in range(12):
                store.append(made.id, 2 * number, *turn(f"q{number}", "t", f"{os.getpid()}"))
                store.journal(made.id, [ThinkingDelta("x")])
        say(made.id)

    processes = [Process(work) for _ in range(5)]
    os.close(ready)
    os.close(go)
    made = [process.rest() for process in processes]
    assert [len(lines) for lines in made] == [1] * 5, made
    store = new_store(tmp_path)
    for process, (session,) in zip(processes, made, strict=True):
        info, records = store.load(session)
        assert info.folder == f"/{process.pid}"
        assert records == [
            record for n in range(12) for record in turn(f"q{n}", "t", str(process.pid))
        ]
    store.close()
    assert faults(tmp_path / "sessions.db") == []


def test_two_processes_at_one_session_never_write_the_same_place(tmp_path):
    store = new_store(tmp_path)
    made = store.create(folder="/")
    store.close()

    def work(say):
        own = new_store(tmp_path)
        for _ in range(40):
            position = own.info(made.id).records
            try:
                own.append(made.id, position, Entry(user(f"{os.getpid()}")))
                say(f"{position}")
            except SessionError:
                continue  # the other was first

    processes = [Process(work) for _ in range(3)]
    stored = {process.pid: [int(line) for line in process.rest()] for process in processes}
    records = store.load(made.id)[1]
    assert sorted(at for places in stored.values() for at in places) == list(range(len(records)))
    for pid, positions in stored.items():
        assert all(records[at] == Entry(user(f"{pid}")) for at in positions)
    store.close()


def test_threads_share_a_store(store):
    made = [store.create(folder="/").id for _ in range(4)]

    def write(session):
        for number in range(10):
            store.append(session, number, Entry(user(f"{number}")))

    threads = [threading.Thread(target=write, args=(session,)) for session in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [store.info(session).records for session in made] == [10] * 4
