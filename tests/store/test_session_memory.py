"""Sessions in memory do what those in a file do, and leave nothing."""

from __future__ import annotations

import pytest

from mull.neutral.errors import SessionError
from mull.store.sessions.memory import MemorySessions
from session_samples import turn


def test_a_session_in_memory_is_appended_to_searched_and_forked():
    store = MemorySessions()
    made = store.create(folder="/", model="a/b")
    with store.hold(made.id) as hold:
        store.append(made.id, 0, *turn("a heron", "thinking of it", "there"))
        assert store.holder(made.id) is None
        assert store.recover(made.id, hold) == []
    assert not hold.is_held
    assert [hit.kind for hit in store.search(["heron"])] == ["question"]
    assert store.load(store.fork(made.id).id)[1] == store.load(made.id)[1]
    store.delete(made.id)
    with pytest.raises(SessionError):
        store.hold(made.id)


def test_two_stores_in_memory_know_nothing_of_each_other():
    one, other = MemorySessions(), MemorySessions()
    one.create(folder="/")
    assert other.list() == []


def test_a_session_in_memory_leaves_no_file_behind_when_it_is_deleted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = MemorySessions()
    store.delete(store.create(folder="/").id)
    assert list(tmp_path.iterdir()) == []
