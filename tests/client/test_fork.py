"""After a fork: the child asks on its own, and what the parent has is left as it was.

Real forks, in processes without threads of the tests' own; the server is outside of them.
"""

from __future__ import annotations

import os
import ssl
import subprocess
import sys

import pytest
import trustme

from mull.testing import Gate, Reply, ScriptedServer


def piece(**delta):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


END = ({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, "[DONE]")
BLOCKING = """
import multiprocessing, os, sys, warnings
warnings.filterwarnings("ignore", category=DeprecationWarning)
if sys.argv[2] == "uvloop":
    import uvloop
    uvloop.install()
import mull
from mull.neutral.events import TextDelta

def ask(question):
    return mull.ask(question, "openai-compatible/m", base_url=sys.argv[1]).text

def fork(child):
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    child()
    sys.exit(0)

print(ask("parent"))
"""


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Says `yes`; a request that holds `slow` gets its end when one that holds `end` comes.

    It speaks TLS: a child that ended a connection in the proper way would end it for both.
    """
    gate = Gate()

    def answer(recorded):
        if b"slow" in recorded.body:
            return Reply.events(piece(content="be"), gate, piece(content="gun"), *END)
        if b"end" in recorded.body:
            gate.open()
        return Reply.events(piece(reasoning_content="hm"), piece(content="yes"), *END)

    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    with ScriptedServer(answer, tls=tls) as server:
        yield server


@pytest.fixture
def script(server):
    """Runs a script; what it prints, line by line. It complains of nothing."""

    def run(text, loop="asyncio"):
        command = [sys.executable, "-W", "always::ResourceWarning", "-c", text]
        done = subprocess.run(
            [*command, server.url, loop],
            capture_output=True,
            timeout=40,
            check=False,
            env=os.environ,
        )
        assert (done.stderr.decode(), done.returncode) == ("", 0)
        return done.stdout.decode().splitlines()

    return run


LOOPS = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])


def connections(server, word):
    """The connections that requests with a word in them came on, in order."""
    return [one.connection for one in server.requests if word in one.body]


@LOOPS
@pytest.mark.parametrize("leave", ["sys.exit(0)", "os._exit(0)"])
def test_a_child_asks_and_the_parent_goes_on(server, script, leave, loop):
    text = f"""{BLOCKING}
def child():
    print(ask("child"), ask("child"), flush=True)
    {leave}

print(fork(child), ask("parent"))
print(fork(child), ask("parent"))
"""
    told = script(text, loop)
    assert told == ["yes", "yes yes", "0 yes", "yes yes", "0 yes"]
    assert connections(server, b"parent") == [0, 0, 0]
    assert connections(server, b"child") == [1, 1, 2, 2]


@LOOPS
def test_a_stream_of_the_parent_goes_on_and_is_none_of_the_childs(script, loop):
    text = f"""{BLOCKING}
stream = mull.stream("slow", "openai-compatible/m", base_url=sys.argv[1])
events = iter(stream)
while not isinstance(next(events), TextDelta):
    pass

def child():
    try:
        next(events)
    except RuntimeError as error:
        print(error, ask("child"))

print(fork(child), ask("end"))
print(len(list(events)) > 0, stream.result.text)
"""
    told = script(text, loop)
    was = "this was started in another process, before a fork"
    assert told == ["yes", f"{was} yes", "0 yes", "True begun"]


def test_a_grandchild_asks(server, script):
    told = script(f"""{BLOCKING}
def grandchild():
    print("grandchild", ask("child"))

print(fork(lambda: print(fork(grandchild), flush=True)), ask("parent"))
print(fork(lambda: (ask("child"), print(fork(grandchild), flush=True))), ask("parent"))
""")
    assert told == ["yes", "grandchild yes", "0", "0 yes", "grandchild yes", "0", "0 yes"]
    assert connections(server, b"parent") == [0, 0, 0]


def test_a_pool_of_processes(server, script):
    told = script(f"""{BLOCKING}
with multiprocessing.get_context("fork").Pool(3) as pool:
    print(pool.map(ask, ["child"] * 9, chunksize=1).count("yes"), ask("parent"))
    pool.close()
    pool.join()
""")
    assert told == ["yes", "9 yes"]
    assert connections(server, b"parent") == [0, 0]
    assert 0 not in connections(server, b"child")


def test_one_that_was_closed_stays_closed(script):
    told = script(f"""{BLOCKING}
from mull.client.sync import BlockingLoop

blocking = BlockingLoop()
blocking.close()

def child():
    try:
        list(blocking.stream(None))
    except RuntimeError as error:
        print(error)

print(fork(child))
""")
    assert told == ["yes", "this client was closed", "0"]


ASYNC = """
import asyncio, os, sys, warnings
warnings.filterwarnings("ignore", category=DeprecationWarning)
from mull.client.http import HttpClient
from mull.client.transport import HttpRequest
if sys.argv[2] == "uvloop":
    import uvloop
    run = uvloop.run
else:
    run = asyncio.run
transport = HttpClient()

async def send(word):
    async with transport.send(HttpRequest("POST", sys.argv[1], {}, word)) as answer:
        return len(await answer.read(10000)) > 0

async def main():
    await send(b"parent")
    pid = os.fork()
    if not pid:
        child()
        os._exit(0)
    code = os.waitstatus_to_exitcode((await asyncio.to_thread(os.waitpid, pid, 0))[1])
    print(code, await send(b"parent"), flush=True)
"""


@LOOPS
@pytest.mark.parametrize(
    "child",
    [
        "print(run(send(b'child')), flush=True)",
        "run(transport.close()); print(True, flush=True)",
        "run(send(b'child')); run(transport.close()); print(True, flush=True)",
        "transport._pool = None; import gc; gc.collect(); print(True, flush=True)",
    ],
)
def test_a_child_of_a_running_loop_leaves_its_connections_alone(server, script, child, loop):
    text = f"""{ASYNC}
def child():
    {child}

run(main())
"""
    told = script(text, loop)
    assert told == ["True", "0 True"]
    assert connections(server, b"parent") == [0, 0]
    assert 0 not in connections(server, b"child")


@LOOPS
def test_a_child_that_leaves_an_answer_leaves_it_to_the_parent(server, script, loop):
    text = f"""{ASYNC}
async def main():
    async with transport.send(HttpRequest("POST", sys.argv[1], {{}}, b"slow")) as answer:
        await anext(answer)
        pid = os.fork()
        if not pid:
            raise KeyboardInterrupt
        await asyncio.to_thread(os.waitpid, pid, 0)
        await send(b"end")
        print((await answer.read(10000)).count(b"gun"))

async def guarded():
    try:
        await main()
    except KeyboardInterrupt:
        os._exit(0)

run(guarded())
"""
    assert script(text, loop) == ["1"]


def test_a_child_that_runs_the_parents_loop_has_connections_of_its_own(server, script):
    told = script(f"""{ASYNC}
loop = asyncio.new_event_loop()
loop.run_until_complete(send(b"parent"))
pid = os.fork()
if not pid:
    print(loop.run_until_complete(send(b"child")), flush=True)
    os._exit(0)
os.waitpid(pid, 0)
print(loop.run_until_complete(send(b"parent")))
loop.run_until_complete(transport.close())
loop.close()
""")
    assert told == ["True", "True"]
    assert connections(server, b"parent") == [0, 0]
    assert connections(server, b"child") == [1]
