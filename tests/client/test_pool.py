"""How many connections there are: shared, bounded, of one event loop, and gone in the end.

What counts sockets runs in a process of its own, so that no other sockets are counted.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading

import pytest

from loops import run_moved
from mull.client import pool
from mull.client.http import HttpClient
from mull.client.transport import HttpRequest
from mull.testing.server import Gate, Reply, ScriptedServer

SCRIPT = """
import asyncio, gc, os, resource, socket, stat, sys, threading
from mull.client.http import HttpClient
from mull.client.transport import HttpRequest

URL = sys.argv[1]

async def read(transport):
    async with transport.send(HttpRequest("POST", URL, {}, b"{}")) as answer:
        return await answer.read(1000)

async def read_many(transport, count, at_once):
    turns = asyncio.Semaphore(at_once)
    async def one():
        async with turns:
            return await read(transport)
    return await asyncio.gather(*(one() for _ in range(count)))

def is_peer(fd, port):
    try:
        if not stat.S_ISSOCK(os.fstat(fd).st_mode):
            return False
        with socket.fromfd(fd, socket.AF_INET, socket.SOCK_STREAM) as one:
            return one.getpeername()[1:] == (port,)
    except OSError:
        return False  # closed, or not connected

def sockets():
    "How many open sockets lead to the server."
    port = int(URL.rpartition(":")[2])
    return sum(is_peer(int(fd), port) for fd in os.listdir("/proc/self/fd"))
"""


def script(text, server, *options):
    """What the script prints; no complaints, about what was left open among other things."""
    command = [sys.executable, *options, "-c", SCRIPT + text, server.url]
    done = subprocess.run(command, capture_output=True, timeout=50, check=False, env=os.environ)
    assert (done.returncode, done.stderr.decode()) == (0, "")
    return done.stdout.decode().split()


@pytest.fixture
def server():
    with ScriptedServer(lambda _: Reply.json("x")) as server:
        yield server


async def read(transport, server):
    async with transport.send(HttpRequest("POST", server.url, {}, b"{}")) as answer:
        return await answer.read(1000)


@pytest.mark.parametrize(("count", "at_once"), [(200, 20), (60, 50), (20, 1)])
def test_as_many_connections_as_requests_at_a_time(server, count, at_once):
    text = f"""
async def main():
    transport = HttpClient()
    await read_many(transport, {count}, {at_once})
    print(sockets() <= {at_once})
    await transport.close()
    print(sockets())

asyncio.run(main())
"""
    assert script(text, server, "-W", "always::ResourceWarning") == ["True", "0"]
    assert len(server.requests) == count
    assert server.connections <= at_once


def test_many_requests_live_with_few_descriptors(server):
    text = """
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

async def main():
    for _ in range(20):
        transport = HttpClient()
        tasks = [asyncio.create_task(read(transport)) for _ in range(20)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        await transport.close()
        await asyncio.gather(*tasks)
    print(len(await read_many(HttpClient(), 600, 20)))

asyncio.run(main())
"""
    assert script(text, server) == ["600"]
    assert len(server.requests) == 1000


@pytest.mark.parametrize("run", ["from asyncio import run", "from uvloop import run"])
@pytest.mark.parametrize(
    "ask",
    [
        'mull.ask_async("q", "openai-compatible/m", base_url=URL)',
        'alone("openai-compatible/m", base_url=URL)',
    ],
)
def test_many_questions_at_a_time_share_connections(run, ask):
    text = f"""
import mull
{run}
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

async def alone(*given, **more):
    async with mull.Conversation(*given, **more) as talk:
        return await talk.ask_async("q")

async def main():
    turns = asyncio.Semaphore(20)
    async def one():
        async with turns:
            return (await {ask}).text
    print((await asyncio.gather(*(one() for _ in range(200)))).count("yes"))

run(main())
print(sockets())
"""
    said = {"choices": [{"index": 0, "delta": {"content": "yes"}, "finish_reason": "stop"}]}
    with ScriptedServer(lambda _: Reply.events(said, "[DONE]")) as server:
        assert script(text, server, "-W", "always::ResourceWarning") == ["200", "0"]
        assert len(server.requests) == 200
        assert server.connections <= 20


def test_no_more_wait_than_the_most():
    gate = Gate()
    many = pool.KEPT_MOST + 10
    with ScriptedServer(lambda _: Reply(before=(gate,))) as server:

        async def main():
            transport = HttpClient()
            tasks = [asyncio.create_task(read(transport, server)) for _ in range(many)]
            assert await asyncio.to_thread(server.wait_requests, many)
            gate.open()
            await asyncio.gather(*tasks)
            again = [asyncio.create_task(read(transport, server)) for _ in range(many)]
            await asyncio.gather(*again)
            await transport.close()

        asyncio.run(main())
        assert many < server.connections <= many + 10


def test_a_connection_that_waited_too_long_is_closed_without_another_request(server):
    async def main(loop):
        transport = HttpClient()
        await read(transport, server)
        (shelf,) = transport._pool._shelves.values()
        (waiting,) = shelf.idle
        sock = waiting._transport.get_extra_info("socket")
        await loop.advance(pool.KEPT_SECONDS - 1)
        assert sock.fileno() >= 0
        await loop.advance(2)
        assert sock.fileno() < 0
        await transport.close()

    run_moved(main)


def test_a_closed_transport_lets_go_on_what_is_under_way_and_keeps_nothing():
    gate = Gate()
    text = """
async def main():
    transport = HttpClient()
    tasks = [asyncio.create_task(read(transport)) for _ in range(5)]
    while sockets() < 5:
        await asyncio.sleep(0.01)
    await transport.close()
    print("closed", flush=True)
    print((await asyncio.gather(*tasks))[0])
    print(await read(transport))
    await asyncio.sleep(0)
    print(sockets())
    await transport.close()

asyncio.run(main())
"""
    with ScriptedServer(lambda _: Reply(before=(gate,), steps=(b"x",))) as server:
        command = [sys.executable, "-W", "always::ResourceWarning", "-c", SCRIPT + text, server.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"closed\n"
            assert server.wait_requests(5)
            gate.open()
            told, _ = process.communicate(timeout=50)
        assert told.decode().split() == ["b'x'", "b'x'", "0"]


ONE_AFTER_ANOTHER = """
transport = HttpClient()
for _ in range(30):
    assert run(read(transport)) == b'"x"'
    print(sockets())
"""


@pytest.mark.parametrize("run", ["from asyncio import run", "from uvloop import run"])
def test_event_loops_one_after_the_other_leave_nothing_open(server, run):
    told = script(f"{run}\n{ONE_AFTER_ANOTHER}", server, "-W", "always::ResourceWarning")
    assert told == ["0"] * 30
    assert [one.connection for one in server.requests] == list(range(30))


def test_an_event_loop_that_was_closed_by_hand_leaves_little_open(server):
    text = """
transport = HttpClient()
for _ in range(30):
    loop = asyncio.new_event_loop()
    loop.run_until_complete(read(transport))
    loop.close()
gc.disable()  # nothing is left to the collector
print(sockets() <= 1)
"""
    assert script(text, server) == ["True"]


def test_a_loop_that_runs_again_has_its_connections_still(server):
    text = """
transport = HttpClient()
loop = asyncio.new_event_loop()
for _ in range(3):
    loop.run_until_complete(read(transport))
loop.run_until_complete(transport.close())
loop.close()
print(sockets())
"""
    assert script(text, server, "-W", "always::ResourceWarning") == ["0"]
    assert [one.connection for one in server.requests] == [0, 0, 0]


def test_event_loops_of_several_threads_share_a_transport(server):
    text = """
transport = HttpClient()

def work():
    for _ in range(5):
        asyncio.run(read_many(transport, 4, 2))

threads = [threading.Thread(target=work) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(sockets(), len(transport._pool._shelves))
"""
    assert script(text, server, "-W", "always::ResourceWarning") == ["0", "0"]
    assert len(server.requests) == 160


def test_a_forgotten_transport_closes_its_connections(server):
    text = """
async def main():
    await read(HttpClient())
    await asyncio.sleep(0.01)
    print(sockets())

asyncio.run(main())
"""
    assert script(text, server, "-W", "always::ResourceWarning") == ["0"]


def test_closing_reaches_the_connections_of_another_loop(server):
    ready, leave, told = threading.Event(), threading.Event(), []
    transport = HttpClient()

    async def there():
        await read(transport, server)
        (shelf,) = transport._pool._shelves.values()
        told.append(shelf.idle[0]._transport.get_extra_info("socket"))
        ready.set()
        assert await asyncio.to_thread(leave.wait, 10)
        await asyncio.sleep(0.01)
        told.append(told[0].fileno())

    thread = threading.Thread(target=asyncio.run, args=(there(),))
    thread.start()
    assert ready.wait(10)
    asyncio.run(transport.close())
    leave.set()
    thread.join()
    assert told[1] == -1


@pytest.mark.parametrize("run", ["from asyncio import run", "from uvloop import run"])
def test_a_request_that_is_cancelled_at_any_moment_leaves_nothing_open(server, run):
    text = f"""
{run}
async def main():
    transport = HttpClient()
    for steps in range(60):
        task = asyncio.create_task(read(transport))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    await transport.close()
    await asyncio.sleep(0.01)
    print(sockets())

run(main())
"""
    assert script(text, server, "-W", "always::ResourceWarning") == ["0"]


def test_closing_twice_is_closing():
    async def main():
        transport = HttpClient()
        await transport.close()
        await transport.close()

    asyncio.run(main())
