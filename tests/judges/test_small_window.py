"""Sessions that outgrow the window of a real llama.cpp server, and go on.

The server is the one that mull brings along, started here with a window of 2,048 tokens and the
weights' own template. What the small model says is worth nothing; what is judged is that the server
takes every request, and that what mull counts is what the server counts.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mull.agent.engine import Engine
from mull.agent.library import Conversation
from mull.local import weights
from mull.neutral.events import Compressed, Finished

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("inspected_servers"),
    pytest.mark.timeout(900),
    pytest.mark.skipif(not weights.is_installed(), reason="`mull local install` was not run"),
]

WINDOW, TURNS, KEY = 2048, 8, "a-key-for-this-test"
SERVE = f"""
import sys, xllamacpp as llama
p = llama.CommonParams()
p.model.path, p.model_alias = sys.argv[1], {{"smol"}}
p.hostnames, p.port, p.api_keys = ["127.0.0.1"], 0, [{KEY!r}]
p.n_ctx, p.n_parallel, p.n_predict, p.n_gpu_layers, p.cache_ram_mib = {WINDOW}, 1, 32, 0, 0
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
p.ui, p.verbosity = False, 1
p.sampling.temp = 0.0
server = llama.Server(p)
print("LISTENS", server.listening_address, flush=True)
sys.stdin.read()
"""
QUICK = {"compression.strategy": "truncate"}
"""The small model ends no summary before its limit, and one thread takes minutes for that."""
STORY = "The river went on past the mill, and the miller counted 17 boats before noon. "
SUBJECTS = {
    "English": STORY * 6,
    "numbers": " ".join(str(n * 7919) for n in range(60)),
    "German": "Der Müller zählte die Boote, während der Fluß über die Ufer trat. " * 6,
    "Chinese": "磨坊主在中午之前数了十七条船，河水继续流过老城。" * 6,
}


@pytest.fixture(scope="module")
def address():
    server = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(weights.find_weights())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    line = next(one for one in server.stdout if "LISTENS" in one)
    yield f"{line.split()[-1]}/v1"
    server.kill()
    server.communicate()


@pytest.fixture(autouse=True)
def _at_home(address, monkeypatch):
    monkeypatch.setenv("LLAMA_CPP_API_KEY", KEY)
    config = Path(os.environ["MULL_CONFIG_DIR"]) / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f'[providers."llama.cpp"]\nbase_url = "{address}"\n')


def talk(model, questions, **more):
    events = []

    async def work():
        async with Engine() as engine:
            one = Conversation(model, engine=engine, settings=QUICK, **more)
            one.subscribe(events.append)
            for question in questions:
                answer = await one.ask_async(question)
                assert answer.status in ("complete", "truncated"), answer.status
            return one

    conversation = asyncio.run(work())
    return conversation, [e for e in events if isinstance(e, Compressed | Finished)]


def questions(count):
    texts = list(SUBJECTS.values())
    return [f"{n}. {texts[n % len(texts)]}\nGo on." for n in range(count)]


def test_the_server_tells_its_window_to_who_has_the_key(address):
    engine = Engine()
    target = asyncio.run(engine.inspected(engine.target("llama.cpp/smol")))
    assert target.facts.limit.context == WINDOW
    assert target.facts.tool_call is not None


def test_a_session_that_knows_its_window_is_never_refused(address):
    conversation, events = talk("llama.cpp/smol", questions(TURNS))
    assert any(event.ok for event in events if isinstance(event, Compressed))
    reported = [m.usage.input for m in conversation.messages if m.usage and m.usage.input]
    assert len(reported) == TURNS
    assert max(reported) < WINDOW


def test_a_session_that_does_not_is_refused_once_and_goes_on(address):
    more = {"base_url": address, "key": KEY}
    conversation, events = talk("openai-compatible/smol", questions(TURNS), **more)
    assert any(event.ok for event in events if isinstance(event, Compressed))
    assert conversation.target.facts.limit.context == WINDOW
    assert len([m for m in conversation.messages if m.role == "assistant"]) == TURNS


@pytest.mark.parametrize("subject", SUBJECTS)
def test_what_is_counted_is_what_the_server_counts(address, subject):
    """With the server's own tokens, only its template is left to differ."""

    async def work():
        async with Engine() as engine:
            one = Conversation("llama.cpp/smol", engine=engine, max_tokens=1)
            await one.inspect_server()
            situation = one._situation()
            one.log.append(_said(SUBJECTS[subject]))
            counted = situation.prepared(one.log)
            one.log = type(one.log)()
            answer = await one.ask_async(SUBJECTS[subject])
            return counted, answer.usage.input

    counted, reported = asyncio.run(work())
    assert counted.counter == "llama.cpp itself"
    print(f"{subject}: counted {counted.estimate}, reported {reported}")
    assert abs(counted.estimate - reported) < 40


def _said(text):
    from mull.neutral.messages import user

    return user(text)
