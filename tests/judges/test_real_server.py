"""The library and the command against a real llama.cpp server: the one that mull brings along.

What the small model says is worth nothing. What is judged is what travels: thought before answer,
the thought back after a tool call, and what is left when either side goes away in the middle.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from msgspec.structs import replace

import mull
from mull.agent.engine import Engine
from mull.agent.functions import tools_from
from mull.agent.library import Conversation
from mull.agent.run import Situation, Turn
from mull.agent.tools.table import builtin_tools
from mull.agent.tools.workspace import Workspace
from mull.client.exchange import ExchangeOptions
from mull.history.log import Log
from mull.local import weights
from mull.local.manage import embedded
from mull.local.place import FileLock, ServerFolder
from mull.neutral.events import Failed, Finished, TextDelta, ThinkingDelta, ToolRan, ToolStarted
from mull.neutral.messages import user
from mull.neutral.request import RequestOptions
from mull.policy.tokens import CHARACTERS
from mull.store.sessions.sqlite import open_sessions
from turning import going

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not weights.is_installed(), reason="`mull local install` was not run"),
]

MODEL = "local/smollm2"
COMMAND = [sys.executable, "-m", "mull"]
LONG = "Write a very long story about a river, with many villages and people."
PATIENCE = 50


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(autouse=True)
def server(home, monkeypatch):
    """One server for all tests, in a data directory of its own; gone when they are."""
    monkeypatch.setenv("MULL_DATA_DIR", str(home))
    return embedded(home / "local")


@pytest.fixture(scope="module", autouse=True)
def _ended(home):
    yield
    one = embedded(home / "local")
    one.stop()
    one.close()
    with FileLock(ServerFolder(home / "local").alive_lock):
        pass


@pytest.fixture
def engine():
    return Engine()


def wait_until(true, what):
    until = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < until, what
        time.sleep(0.05)


def test_a_streamed_answer_thinks_before_it_speaks():
    going = mull.stream("What is the capital of France?", MODEL, temperature=0)
    events = list(going)
    kinds = [type(event) for event in events if isinstance(event, ThinkingDelta | TextDelta)]
    assert kinds.count(ThinkingDelta) > 5  # piece by piece
    assert kinds.count(TextDelta) >= 1
    assert kinds == sorted(kinds, key=[ThinkingDelta, TextDelta].index)
    assert {e.source_field for e in events if isinstance(e, ThinkingDelta)} == {"reasoning_content"}
    assert isinstance(events[-2], Finished)
    result = going.result
    assert result.status == "complete"
    assert result.thinking == "".join(e.text for e in events if isinstance(e, ThinkingDelta))
    assert result.text == "".join(e.text for e in events if isinstance(e, TextDelta))
    assert result.usage.output > 5


def test_the_asynchronous_names_say_the_same():
    def asked():
        return mull.ask("Name a colour.", MODEL, temperature=0)

    async def awaited():
        return await mull.ask_async("Name a colour.", MODEL, temperature=0, engine=Engine())

    first, second = asked(), asyncio.run(awaited())
    assert (first.text, first.thinking) == (second.text, second.thinking)


def weather(city: str) -> str:
    """The weather in a city now."""
    return f"18 degrees and sunny in {city}"


QUESTIONS = (
    "What is the weather in Paris?",
    "Call weather with the city Paris.",
    "Use the tool. The city is Paris.",
)


def called_once(engine, questions, tools, offered):
    """The first turn in which the model thought and called: only its first request must call, the
    others are free, so that it comes to an end. What was sent, too."""
    sent = []
    target = engine.target(MODEL)
    sender = engine.sender(
        engine.way_to(target),
        ExchangeOptions(sending=lambda prepared, wire: sent.append(json.loads(wire.body))),
    )
    situation = Situation(
        target=target,
        snapshot=engine.setup.snapshot_for(
            target, {"reasoning.includeInContext": True, "reasoning.effort": "low"}
        ),
        options=RequestOptions(tools=offered, temperature=0),
        counter=CHARACTERS,
        send=sender,
        tools=tools,
    )

    def first_must_call():
        choice = None if turn.messages else "required"
        return replace(situation, options=replace(situation.options, tool_choice=choice))

    for question in questions:
        sent.clear()
        turn = Turn(Log([user(question)]), first_must_call, situation)
        turn.now = first_must_call()
        events = asyncio.run(run_and_close(turn, engine))
        if turn.messages[0].thinking and turn.messages[0].tool_calls:
            break
    return turn, events, sent


def check_round_trip(turn, sent):
    """The thought and the call went back with the call's result; that result."""
    (call,) = turn.messages[0].tool_calls
    assert turn.messages[0].thinking[0].thought.strip()
    assert 'turn ::= "<tool_call>"' in sent[0]["grammar"]  # a call, and nothing else
    step, result = sent[1]["messages"][1:3]
    assert step["reasoning_content"] == turn.messages[0].thinking[0].thought
    assert step["tool_calls"][0]["id"] == result["tool_call_id"] == call.id
    assert turn.messages[-1].role == "assistant"
    return result["content"]


def test_a_tool_round_trip_sends_the_thought_back(engine):
    tools = tools_from([weather])
    offered = tuple(tool.definition for tool in tools.values())
    turn, events, sent = called_once(engine, QUESTIONS, tools, offered)
    ran = next(event for event in events if isinstance(event, ToolRan))
    assert (ran.name, ran.is_error) == ("weather", False)
    assert check_round_trip(turn, sent) == weather(**turn.messages[0].tool_calls[0].input)
    assert not [event for event in events if isinstance(event, Failed)]


def test_mulls_own_tool_reads_a_real_file_for_a_real_model(engine, tmp_path):
    """So small a model invents names of files: the schema that it sees leaves it one."""
    (tmp_path / "notes.txt").write_text("The bird of the day is the heron.\n")
    tools = builtin_tools(Workspace(tmp_path))
    one_file = {"type": "object", "properties": {"path": {"enum": ["notes.txt"]}}}
    offered = replace(tools["read"].definition, parameters={**one_file, "required": ["path"]})
    questions = ("What is in notes.txt?", "Read notes.txt.", "Call read with notes.txt.")
    turn, events, sent = called_once(engine, questions, tools, (offered,))
    assert [(event.name, event.input) for event in events if isinstance(event, ToolStarted)] == [
        ("read", {"path": "notes.txt"})
    ]
    assert check_round_trip(turn, sent) == "     1\tThe bird of the day is the heron."


async def run_and_close(turn, engine):
    try:
        return [event async for event in going(turn)]
    finally:
        await engine.close()


def test_leaving_in_the_middle_frees_the_server_and_keeps_what_came(server):
    talk = Conversation(MODEL, settings={"reasoning.effort": "high"}, temperature=0)
    going = talk.stream(LONG)
    pieces = []
    for event in going:
        if isinstance(event, ThinkingDelta):
            pieces.append(event.text)
        if len(pieces) == 8:
            break
    assert server.status().busy
    iter(going).close()
    wait_until(lambda: not server.status().busy, "the socket was not closed: it writes on")
    last = talk.messages[-1]
    assert (last.status, last.text) == ("interrupted", "")
    assert last.thinking[0].thought.startswith("".join(pieces))
    assert going.result.status == "interrupted"
    again = talk.ask("What is the capital of France?")
    assert (again.status, bool(again.text.strip())) == ("complete", True)


def test_a_cancelled_task_frees_the_server_too(server):
    async def cancelled():
        talk = Conversation(MODEL, engine=Engine(), temperature=0)
        begun = asyncio.Event()

        async def read():
            async for event in talk.stream_async(LONG):
                if isinstance(event, ThinkingDelta):
                    begun.set()

        task = asyncio.create_task(read())
        await begun.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await talk.aclose()
        return talk.messages[-1]

    message = asyncio.run(cancelled())
    assert (message.role, message.status) == ("assistant", "interrupted")
    assert message.thinking
    wait_until(lambda: not server.status().busy, "the socket was not closed: it writes on")


def test_a_server_killed_in_the_middle_is_told_of_and_comes_back(server):
    talk = Conversation(MODEL, settings={"reasoning.effort": "high"}, temperature=0)
    going = talk.stream(LONG)
    pieces, events, killed = [], [], None
    for event in going:
        events.append(event)
        if isinstance(event, ThinkingDelta):
            pieces.append(event.text)
        if len(pieces) == 5 and killed is None:
            killed = server.status().pid
            os.kill(killed, signal.SIGKILL)
    assert isinstance(events[-2], Failed)
    assert (events[-2].code, events[-2].status) == ("network", "interrupted")
    assert events[-2].text.endswith("what arrived before is kept")
    assert going.result.status == "interrupted"
    assert talk.messages[-1].thinking[0].thought == "".join(pieces)
    again = talk.ask("What is the capital of France?")
    assert (again.status, bool(again.text.strip())) == ("complete", True)
    assert server.status().pid != killed


def run(*words, **more):
    return subprocess.run(
        [*COMMAND, *words],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE,
        check=False,
        **more,
    )


def test_the_doctor_asks_it():
    for _ in range(3):  # the small model is asked as anyone would ask it, and does not always think
        done = run("doctor", MODEL, "--live")
        if "thinks: yes" in done.stdout:
            break
    assert done.returncode in (0, 1)
    assert done.stderr == ""
    checks = dict(
        line[4:].split(": ", 1)
        for line in done.stdout.splitlines()
        if line[:4] in ("  ✓ ", "  ✗ ", "  – ") and ": " in line
    )
    assert checks["thinks"].startswith("yes, in reasoning_content, readable")
    assert checks["accepts its thinking back after a tool call"].startswith(
        ("accepted", "cannot be told", "the second request ended as truncated")
    )
    assert checks["uses its earlier thinking"].startswith(
        ("yes: ", "not shown: ", "cannot be told")
    )
    assert (done.returncode == 1) == ("  ✗ " in done.stdout)


def test_ask_as_a_command(home):
    done = run("ask", "--json", "-m", MODEL, "--temperature", "0", "What is the capital of France?")
    assert (done.returncode, done.stderr) == (0, "")
    shown = json.loads(done.stdout)
    assert list(shown) == [
        "text",
        "thinking",
        "status",
        "usage",
        "notes",
        "message",
        "value",
        "model",
        "session",
        "cost",
        "duration",
        "requestId",
        "error",
    ]
    assert shown["status"] == "complete"
    assert shown["text"].strip()
    assert shown["thinking"].strip()
    kinds = [block["type"] for block in shown["message"]["blocks"]]
    assert kinds == ["thinking", "text"]
    assert open_sessions().last(os.getcwd()).model == MODEL


def test_each_event_is_a_line_as_it_comes():
    done = run("ask", "--stream-json", "-m", MODEL, "--temperature", "0", "Name a colour.")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [line["type"] for line in lines if line["type"] in ("thinking", "text")]
    assert kinds == sorted(kinds, key=["thinking", "text"].index)
    assert set(kinds) == {"thinking", "text"}
    assert lines[-1]["type"] == "result"


def test_a_command_that_ends_leaves_no_server(tmp_path):
    env = {**os.environ, "MULL_DATA_DIR": str(tmp_path)}
    done = run("ask", "-m", f"{MODEL}/none", "Say hello.", env=env)
    assert done.returncode == 0
    assert done.stdout.strip()
    with FileLock(ServerFolder(tmp_path / "local").alive_lock):
        pass  # whoever holds this is a server that is still there
    assert ServerFolder(tmp_path / "local").read() is None
