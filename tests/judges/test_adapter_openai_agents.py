"""MullModel in the OpenAI Agents SDK, on the strict servers of five providers."""

from __future__ import annotations

import asyncio

import pytest

from adapter_talk import ANSWER, MODELS, TURN, check_returned, price, strict

pytest.importorskip("agents")

from agents import Agent, RunConfig, Runner, SQLiteSession, function_tool
from mull.adapters.openai_agents import MullModel

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

QUESTIONS = "What do they cost?", "And today?"
QUIET = RunConfig(tracing_disabled=True)


def model(server):
    return MullModel(MODELS[server.name], base_url=server.url, key="secret-key")


async def run(agent, question, session):
    return await Runner.run(agent, question, session=session, run_config=QUIET)


async def stream(agent, question, session):
    streamed = Runner.run_streamed(agent, question, session=session, run_config=QUIET)
    async for _ in streamed.stream_events():
        pass
    return streamed


@pytest.mark.parametrize("ask", [run, stream])
@pytest.mark.parametrize("provider", MODELS)
def test_two_turns_with_tools_and_a_stored_session(provider, ask, tmp_path):
    with strict(provider, TURN, TURN) as server:
        for question in QUESTIONS:
            session = SQLiteSession("1", tmp_path / "session.db")
            agent = Agent("buyer", model=model(server), tools=[function_tool(price)])
            result = asyncio.run(ask(agent, question, session))
            assert result.final_output == ANSWER
            session.close()
    check_returned(server)
