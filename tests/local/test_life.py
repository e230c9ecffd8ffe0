"""When the server's process must end; with a clock of the test's own."""

from __future__ import annotations

import os

import pytest

from mull.local.life import Watch
from mull.local.place import Running, ServerFolder
from mull.store.locks import FileLock


class World:
    def __init__(self, directory) -> None:
        self.place = ServerFolder(directory)
        self.place.make()
        self.now = 1000.0
        self.done, self.busy, self.asked = 0, False, 0
        self.alive = FileLock(self.place.alive_lock)
        self.alive.acquire()
        self.user = FileLock(self.place.users_lock)
        self.use()
        os.utime(self.place.users_lock, (0, 0))
        self.watch = Watch(self.place, self._work, 60.0, lambda: self.now)

    def use(self) -> None:
        self.user.acquire(shared=True)

    def keep(self, kept: bool) -> None:
        self.place.write(Running(1, "http://x/v1", "k", "m", 0.0, 60.0, kept))

    def _work(self) -> tuple[int, bool]:
        self.asked += 1
        return self.done, self.busy


@pytest.fixture
def world(tmp_path):
    one = World(tmp_path / "local")
    one.keep(False)
    return one


def test_it_lives_while_it_is_used(world):
    world.now += 59.9
    assert not world.watch.must_end()
    assert world.asked == 0  # the server is not bothered before its time


def test_it_ends_when_forsaken(world):
    world.user.release()
    assert world.watch.must_end()


def test_one_that_is_kept_needs_nobody(world):
    world.keep(True)
    world.user.release()
    assert not world.watch.must_end()
    world.now += 60
    assert world.watch.must_end()


def test_one_whose_state_is_gone_ends(world):
    world.keep(True)
    world.place.forget()
    world.user.release()
    assert world.watch.must_end()


def test_it_ends_when_idle_though_used(world):
    world.now += 60
    assert world.watch.must_end()


def test_work_begins_the_time_anew(world):
    world.now += 60
    world.done = 5
    assert not world.watch.must_end()
    world.now += 59.9
    assert not world.watch.must_end()
    world.now += 0.1
    assert world.watch.must_end()


def test_it_does_not_end_at_work(world):
    for _ in range(5):
        world.now += 1000
        world.busy = True
        assert not world.watch.must_end()
    world.busy = False
    world.now += 59.9
    assert not world.watch.must_end()


def test_being_asked_for_begins_the_time_anew(world):
    os.utime(world.place.users_lock, (1050, 1050))
    world.now = 1109.0
    assert not world.watch.must_end()
    world.now = 1110.0
    assert world.watch.must_end()


def test_it_does_not_end_under_somebody_who_is_coming(world):
    coming = FileLock(world.place.start_lock)
    coming.acquire()
    world.user.release()
    assert not world.watch.must_end()
    world.use()
    coming.release()
    assert not world.watch.must_end()


def test_nobody_can_come_once_it_ends(world):
    world.now += 60
    assert world.watch.must_end()
    assert not FileLock(world.place.start_lock).acquire(wait=False)


def test_it_lets_others_come_while_it_lives(world):
    assert not world.watch.must_end()
    coming = FileLock(world.place.start_lock)
    assert coming.acquire(wait=False)
    coming.release()


def test_a_lock_is_shared_or_alone(tmp_path):
    path = tmp_path / "a.lock"
    one, two, three = FileLock(path), FileLock(path), FileLock(path)
    assert one.acquire(shared=True)
    assert two.acquire(shared=True, wait=False)
    assert not three.acquire(wait=False)
    assert not three.is_held
    one.release()
    two.release()
    assert three.acquire(wait=False)
    assert not one.acquire(shared=True, wait=False)
    three.release()
    assert not three.is_held


def test_a_lock_is_not_inherited(tmp_path):
    lock = FileLock(tmp_path / "a.lock")
    lock.acquire()
    assert os.get_inheritable(lock._handle) is False
    lock.release()
