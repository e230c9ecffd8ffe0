"""Large and hostile requests: they cost what their length costs, within limits, and hold nobody up.

Costs are counted in bytecode instructions at three sizes, which shows any part of them that grows
faster than the request.
"""

from __future__ import annotations

import asyncio
import json
import threading

import pytest
from bench.budgets import instructions
from bench.hostile import ALL, DIALECTS, MARKS, PATHS, Worker, body

from gateway.test_app import app_for, ask, once
from mull.client import exchange
from mull.dialects import past
from mull.dialects.openai_chat import history as chat_history
from mull.dialects.openai_responses import history as responses_history
from mull.dialects.serving import decode_request
from mull.dialects.tags import TagSplitter
from mull.gateway import app as gateway_app
from mull.gateway import response_store, service
from mull.gateway import responses as gateway_responses
from mull.gateway.http import LARGE
from mull.neutral.asked import Asked
from mull.neutral.blocks import ToolCallBlock, ToolResultBlock
from mull.neutral.messages import Message
from mull.neutral.recent import Recent
from mull.neutral.request import Tool
from mull.policy.view.repair import repair_turn
from mull.testing import Say, StrictServer

FEW = 12


@pytest.fixture(scope="module")
def worker():
    made = Worker()
    for dialect in DIALECTS:  # what is made once, and what is imported
        for target in DIALECTS:
            made.work(dialect, body(dialect, "turns", 1, target), target)
    yield made
    made.close()


SHAPES = [
    (shape, dialect)
    for shape in ALL
    for dialect in DIALECTS
    if dialect == "openai-chat" or not shape.startswith(MARKS)  # marks are read there alone
]


@pytest.mark.parametrize(("shape", "dialect"), SHAPES)
def test_a_request_costs_what_its_length_costs(worker, dialect, shape, monkeypatch):
    monkeypatch.setattr(past, "_READ", Recent(0))  # each size is read anew
    target = DIALECTS[(DIALECTS.index(dialect) + len(shape)) % len(DIALECTS)]

    def cost(n):
        data = body(dialect, shape, n, target)
        return instructions(lambda: worker.work(dialect, data, target))

    cost(2)
    one, two, four = cost(FEW), cost(2 * FEW), cost(4 * FEW)
    beyond = four - 3 * two + 2 * one  # what is constant or linear cancels out
    assert beyond < 0.03 * four, f"{one:,}, {two:,} and {four:,} instructions"


@pytest.mark.parametrize("history", [chat_history, responses_history])
def test_results_are_not_copied_once_for_each_other(history, monkeypatch):
    copied = []

    def made(role, blocks, **more):
        copied.append(len(blocks))
        return Message(role=role, blocks=blocks, **more)

    monkeypatch.setattr(history, "Message", made)
    monkeypatch.setattr("mull.dialects.foreign.Message", made)
    dialect = history.DIALECT
    asked = decode_request(dialect, body(dialect, "results reversed", 100), PATHS[dialect])
    assert len(asked.messages[-1].blocks) == 100
    assert sum(copied) < 110


def test_a_long_piece_of_an_answer_is_not_copied_for_each_mark_in_it():
    """Each addition to a piece copies it."""
    splitter = TagSplitter([("<think>", "</think>")])
    pieces = [*splitter.feed("<think>" * 5_000), *splitter.close()]
    assert sum(len(piece.text) for piece in pieces) == len("<think>") * 4_999
    assert max(len(piece.text) for piece in pieces) < 2_000


def test_allowed_tools_are_not_compared_with_each_other():
    compared = []

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other):
            compared.append(other)
            return str.__eq__(self, other)

    tools = tuple(Tool(f"tool_{at}", "", {}) for at in range(100))
    names = [Name(tool.name) for tool in tools]
    asked = Asked(messages=(), tools=tools, tool_choice="auto", allowed=tuple(names))
    assert asked.offered() == ("auto", tools)
    assert len(compared) <= 100


def test_results_of_calls_with_one_id_find_their_calls():
    """The second call of an id has another one; its result is still under the id that both had."""
    calls = tuple(ToolCallBlock(name, "f") for name in ("a", "a_1", "b_2_2", "c"))
    given = [("a", "1"), ("a", "2"), ("b", "3"), ("x", "4")]
    results = tuple(ToolResultBlock(name, text) for name, text in given)
    answer = Message(role="assistant", status="complete", blocks=calls)
    repaired = repair_turn((answer, Message(role="tool", blocks=results)))
    blocks = repaired.messages[-1].blocks
    assert [(one.call_id, one.output) for one in blocks[:3]] == [
        ("a", "1"),
        ("a_1", "2"),
        ("b_2_2", "3"),
    ]
    assert blocks[3].is_error
    assert (repaired.closed_calls, repaired.orphans) == (1, 1)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("shape", "what"),
    [("turns", "messages"), ("results in order", "parts of messages"), ("tools", "tools")],
)
def test_a_request_of_too_many_parts_is_refused_in_the_dialects_shape(
    dialect, shape, what, monkeypatch
):
    monkeypatch.setattr(service, "MOST", {**service.MOST, what: 30})
    with StrictServer("kimi", [[Say("Milk.")]]) as server:
        app, path = app_for(server.url), PATHS[dialect].format("m")
        refused = once(app, "POST", path, body(dialect, shape, 32))
        assert not server.requests
        assert once(app, "POST", path, body(dialect, shape, 10)).status == 200
    assert refused.status == 413
    told = refused.json["error"]
    assert "message" in told
    assert f"{what}; the limit is 30" in told["message"]


def large(dialect: str) -> bytes:
    """A request above the size from which on it is worked on in a thread."""
    made = json.loads(body(dialect, "turns", 2))
    return json.dumps({**made, "user": "u" * LARGE, "store": True}).encode()


WORK = [
    (gateway_app, "decode_request", "openai-chat"),
    (gateway_app, "decode_request", "anthropic"),
    (gateway_app, "decode_request", "gemini"),
    (gateway_responses, "body_of", "openai-responses"),
    (gateway_responses, "asked_for", "openai-responses"),
    (service, "keys_of", "openai-chat"),
    (service, "Drafts", "openai-chat"),
    (exchange, "encode_request", "openai-chat"),
    (response_store, "packed", "openai-responses"),
]


@pytest.mark.parametrize(("module", "name", "dialect"), WORK)
def test_others_are_answered_while_a_large_request_is_read(module, name, dialect, monkeypatch):
    """The work on the large request waits until the small one has been answered."""
    answered, waited = threading.Event(), []
    work = getattr(module, name)
    if name == "Drafts":  # its drafts are made with the job
        module, name, work = work, "make", work.make

    def slow(*words, **named):
        if threading.current_thread() is not threading.main_thread():
            waited.append(answered.wait(30))
        return work(*words, **named)

    monkeypatch.setattr(module, name, slow)

    async def both():
        app = app_for(server.url)
        path = PATHS[dialect].format("m")
        first = asyncio.create_task(ask(app, "POST", path, large(dialect)))
        for _ in range(20):
            await asyncio.sleep(0)
        second = await ask(app, "POST", path, body(dialect, "turns", 1))
        answered.set()
        return await first, second

    with StrictServer("kimi", [[Say("Milk.")]] * 2) as server:
        first, second = asyncio.run(both())
    assert (first.status, second.status) == (200, 200)
    assert waited == [True]
