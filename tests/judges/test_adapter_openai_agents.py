"""MullModel in the OpenAI Agents SDK, on the strict servers of five providers."""

from __future__ import annotations

import asyncio

import pytest

from adapter_talk import ANSWER, MODELS, TURN, check_returned, price, strict

pytest.importorskip("agents")

from agents import Agent, ModelSettings, RunConfig, Runner, SQLiteSession, UserError, function_tool
from mull.adapters.openai_agents import MullModel, MullProvider
from mull.testing import Call, Say, StrictServer, Think

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


PASSED_ON = [Think("Somebody else knows."), Call("transfer_to_second", {})]


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("provider", MODELS)
def test_a_handoff_keeps_the_reasoning(provider, nested):
    with strict(provider, (TURN[0], PASSED_ON, TURN[1], TURN[2])) as server:
        tools = [function_tool(price)]
        second = Agent("second", model=model(server), tools=tools)
        first = Agent("first", model=model(server), tools=tools, handoffs=[second])
        config = RunConfig(tracing_disabled=True, nest_handoff_history=nested)
        result = asyncio.run(Runner.run(first, "What do they cost?", run_config=config))
    assert (result.final_output, result.last_agent.name) == (ANSWER, "second")
    # a nested history is a transcript: only what the second agent thought can come back
    assert [len(one) for one in server.returned] == ([0, 1, 0, 1] if nested else [0, 1, 2, 3])


@pytest.mark.parametrize("provider", MODELS)
def test_typed_output_comes_after_the_tools(provider):
    listed = [Think("So."), Say('{"response": [1, 2, 3]}')]
    with strict(provider, (TURN[0], TURN[1], listed)) as server:
        agent = Agent("a", model=model(server), tools=[function_tool(price)], output_type=list[int])
        result = asyncio.run(Runner.run(agent, "What do they cost?", run_config=QUIET))
    assert result.final_output == [1, 2, 3]
    assert result.context_wrapper.usage.requests == 3
    assert result.context_wrapper.usage.output_tokens_details.reasoning_tokens > 0


def test_models_by_name_with_settings():
    with strict("openai", TURN) as server:
        settings = ModelSettings(max_tokens=9000, reasoning={"effort": "low"})
        config = RunConfig(
            tracing_disabled=True,
            model_provider=MullProvider(base_url=server.url, key="k"),
            model_settings=settings,
        )
        agent = Agent("a", model=MODELS["openai"], tools=[function_tool(price)])
        result = asyncio.run(Runner.run(agent, "What do they cost?", run_config=config))
    assert result.final_output == ANSWER
    body = server.requests[0].json
    assert (body["max_output_tokens"], body["reasoning"]["effort"]) == (9000, "low")


def test_state_at_a_provider_cannot_be_used():
    with StrictServer("kimi", []) as server:
        agent = Agent("a", model=model(server))
        with pytest.raises(UserError, match="previous_response_id cannot be used"):
            asyncio.run(Runner.run(agent, "?", run_config=QUIET, previous_response_id="resp_1"))
    with pytest.raises(UserError, match="names no model"):
        MullProvider().get_model(None)
