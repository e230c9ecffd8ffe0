"""MullModel in pydantic-ai, on the strict servers of five providers."""

from __future__ import annotations

import asyncio

import pytest

from adapter_talk import ANSWER, MODELS, TURN, check_returned, price, strict

pytest.importorskip("pydantic_ai")

from pydantic_ai import Agent, ModelMessagesTypeAdapter
from pydantic_ai.messages import ThinkingPart

from mull.adapters.pydantic_ai import MullModel

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

QUESTIONS = "What do they cost?", "And today?"


def agent_on(server, **more):
    model = MullModel(MODELS[server.name], base_url=server.url, key="secret-key")
    return Agent(model, tools=[price], **more)


def run(agent, question, history):
    return asyncio.run(agent.run(question, message_history=history))


def events(agent, question, history):
    async def read():
        async with agent.run_stream_events(question, message_history=history) as events:
            return [event async for event in events][-1].result

    return asyncio.run(read())


@pytest.mark.parametrize("ask", [run, events])
@pytest.mark.parametrize("provider", MODELS)
def test_two_turns_with_tools_and_a_stored_history(provider, ask):
    history = []
    with strict(provider, TURN, TURN) as server:
        for question in QUESTIONS:
            result = ask(agent_on(server), question, history)
            stored = ModelMessagesTypeAdapter.dump_json(result.all_messages())
            history = ModelMessagesTypeAdapter.validate_json(stored)
    check_returned(server)
    thoughts = [part for one in history for part in one.parts if isinstance(part, ThinkingPart)]
    assert [part.content for part in thoughts][-1] == "That is all."


@pytest.mark.parametrize("provider", MODELS)
def test_a_streamed_run(provider):
    async def read(server):
        async with agent_on(server).run_stream("What does milk cost?") as streamed:
            return [text async for text in streamed.stream_text(debounce_by=None)]

    # pydantic-ai takes the first text for the answer, so there may be none before it
    with strict(provider, (TURN[0], TURN[2])) as server:
        texts = asyncio.run(read(server))
    assert len(texts) > 1
    assert texts[-1] == ANSWER
