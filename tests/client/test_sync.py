"""The blocking front: order, errors, leaving early, Ctrl-C, and use inside a running loop."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading

import pytest

from mull.client.sync import BlockingLoop
from mull.testing.server import STALL, Reply, ScriptedServer


@pytest.fixture
def blocking():
    with BlockingLoop() as loop:
        yield loop


async def count(put, ended, stop=3, *, forever=False, error=None):
    try:
        for number in range(stop):
            put(number)
        if error:
            raise error
        if forever:
            await asyncio.get_running_loop().create_future()
    finally:
        ended.append(threading.current_thread().name)


def test_items_come_in_order(blocking):
    ended = []
    assert list(blocking.stream(lambda put: count(put, ended, 1000))) == list(range(1000))
    assert ended == ["mull-client"]


def test_a_result(blocking):
    async def answer():
        await asyncio.sleep(0)
        return 42

    assert blocking.run(answer) == 42


def test_errors_come_through(blocking):
    stream = blocking.stream(lambda put: count(put, [], error=ValueError("no")))
    assert [next(stream), next(stream), next(stream)] == [0, 1, 2]
    with pytest.raises(ValueError, match=r"^no$"):
        next(stream)

    async def fail():
        raise KeyError("x")

    with pytest.raises(KeyError):
        blocking.run(fail)


def test_nothing_starts_before_it_is_asked_for(blocking):
    made = []
    stream = blocking.stream(lambda put: made.append(1) or count(put, []))
    assert made == []
    assert next(stream) == 0
    assert made == [1]
    stream.close()


def test_leaving_early_ends_the_work_before_going_on(blocking):
    ended = []
    for number in blocking.stream(lambda put: count(put, ended, forever=True)):
        if number == 2:
            break
    gc.collect()
    assert ended == ["mull-client"]


def test_an_exception_in_the_loop_body_ends_it_too(blocking):
    ended = []
    stream = blocking.stream(lambda put: count(put, ended, forever=True))

    def consume():
        for _ in stream:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        consume()
    stream.close()
    assert ended == ["mull-client"]


def test_it_works_inside_a_running_loop(blocking):
    async def notebook():
        return list(blocking.stream(lambda put: count(put, [])))

    assert asyncio.run(notebook()) == [0, 1, 2]


def test_code_on_its_own_loop_may_block_too(blocking):
    async def outer():
        return [*blocking.stream(lambda put: count(put, [])), blocking.run(inner)]

    async def inner():
        return blocking.run(innermost)

    async def innermost():
        return threading.current_thread().name

    assert blocking.run(outer) == [0, 1, 2, "mull-client"]
    assert blocking.run(outer) == [0, 1, 2, "mull-client"]


def test_blocking_calls_are_not_nested_without_end(blocking):
    async def inside():
        return blocking.run(inside)

    with pytest.raises(RuntimeError, match=r"nested more than 10 deep"):
        blocking.run(inside)


def test_leaving_interrupts_what_its_loop_waits_for(blocking):
    begun, ended = threading.Event(), []

    async def forever(put):
        put("outer")
        blocking.run(inside)

    async def inside():
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(threading.current_thread().name)

    stream = blocking.stream(forever)
    assert next(stream) == "outer"
    assert begun.wait(50)
    stream.close()
    assert ended == ["mull-client"]


def test_closing_ends_what_is_under_way():
    ended = []
    blocking = BlockingLoop()
    stream = blocking.stream(lambda put: count(put, ended, forever=True))
    assert next(stream) == 0
    blocking.close()
    blocking.close()
    assert ended == ["mull-client"]
    assert [next(stream), next(stream)] == [1, 2]
    with pytest.raises(RuntimeError, match=r"^this client was closed$"):
        next(stream)
    with pytest.raises(RuntimeError, match=r"^this client was closed$"):
        list(blocking.stream(lambda put: count(put, [])))


def test_a_forgotten_one_ends_its_thread():
    before = set(threading.enumerate())
    BlockingLoop()
    gc.collect()
    assert set(threading.enumerate()) <= before


SCRIPT = """
import sys
from mull.client.http import HttpClient
from mull.client.transport import HttpRequest
from mull.client.sync import BlockingLoop

transport, blocking = HttpClient(), BlockingLoop()

async def read(put):
    async with transport.send(HttpRequest("POST", sys.argv[1])) as answer:
        async for chunk in answer:
            put(chunk)

for chunk in blocking.stream(read):
    print(chunk.decode(), flush=True)
    if "leave" in sys.argv:
        break
"""


@pytest.mark.parametrize("how", ["stay", "leave"])
def test_a_script_that_closes_nothing_ends_cleanly(how):
    with ScriptedServer([Reply(steps=(b"one", b"two") if how == "stay" else (b"one", STALL))]) as s:
        command = [sys.executable, "-W", "always::ResourceWarning", "-c", SCRIPT, s.url, how]
        done = subprocess.run(command, capture_output=True, timeout=20, check=False, env=os.environ)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"one")


def test_ctrl_c_closes_the_socket_and_comes_through():
    """In a process of its own: a signal to this one may end the test run."""
    with ScriptedServer([Reply(steps=(b"one", STALL))]) as server:
        command = [sys.executable, "-c", SCRIPT, server.url, "stay"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"one\n"
            child.send_signal(signal.SIGINT)
            _, told = child.communicate(timeout=20)
        assert server.requests[0].wait_left()
    assert told.rstrip().endswith(b"KeyboardInterrupt")
    assert child.returncode == -signal.SIGINT
