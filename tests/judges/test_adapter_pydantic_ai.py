"""MullModel in pydantic-ai, on the strict servers of five providers."""

from __future__ import annotations

import asyncio

import pytest

from adapter_talk import ANSWER, MODELS, TURN, check_returned, price, strict

pytest.importorskip("pydantic_ai")

from pydantic_ai import Agent, ModelMessagesTypeAdapter, ModelRetry, ToolOutput
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import BinaryContent, ThinkingPart
from pydantic_ai.models.fallback import FallbackModel

from mull.adapters.pydantic_ai import MullModel
from mull.testing import Call, Say, StrictServer, Think

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


@pytest.mark.parametrize("provider", MODELS)
def test_typed_output_comes_after_the_tools(provider):
    listed = [Think("So."), Say('{"response": [1, 2, 3]}')]
    called = [Think("So."), Call("final_result", {"response": [1, 2, 3]})]
    for output, last in ((list[int], listed), (ToolOutput(list[int]), called)):
        with strict(provider, (TURN[0], TURN[1], last)) as server:
            result = run(agent_on(server, output_type=output), QUESTIONS[0], [])
        assert result.output == [1, 2, 3]
        assert result.usage.details["reasoning_tokens"] > 0
        check_returned(server)


@pytest.mark.parametrize("provider", MODELS)
def test_a_tool_that_asks_for_another_try(provider):
    def price(item: str) -> str:
        """The price of an item."""
        raise ModelRetry("there is no milk")

    with strict(provider, (TURN[0], TURN[2])) as server:
        model = MullModel(MODELS[provider], base_url=server.url, key="k")
        assert run(Agent(model, tools=[price]), QUESTIONS[0], []).output == ANSWER
    assert "there is no milk" in str(server.requests[-1].json)


def test_settings_images_and_instructions():
    with StrictServer("anthropic", [TURN[2]]) as server:
        image = BinaryContent(b"\x89PNG\r\n\x1a\n", media_type="image/png")
        agent = agent_on(server, system_prompt="Be kind.", instructions="Be brief.")
        settings = {"max_tokens": 9000, "thinking": "low", "stop_sequences": ["end"]}
        result = asyncio.run(agent.run(["What is it?", image], model_settings=settings))
    body = server.requests[0].json
    assert (body["max_tokens"], body["stop_sequences"]) == (9000, ["end"])
    assert body["thinking"]["type"] == "enabled"
    assert "Be kind." in str(body)
    assert "Be brief." in str(body)
    assert "iVBORw0KGgo=" in str(body)
    (thought,) = [one for one in result.response.parts if isinstance(one, ThinkingPart)]
    assert (thought.signature, thought.provider_name) == (server.issued[0], "anthropic")


def test_a_refusal_is_an_error_that_fallbacks_see():
    def on(server):
        return MullModel(MODELS[server.name], base_url=server.url, key="secret-key")

    with StrictServer("kimi", []) as refusing, StrictServer("openai", [TURN[2]]) as server:
        with pytest.raises(ModelHTTPError) as refused:
            run(Agent(on(refusing)), "What?", [])
        assert refused.value.status_code == 404
        assert "secret-key" not in str(refused.value)
        assert run(Agent(FallbackModel(on(refusing), on(server))), "What?", []).output == ANSWER


def test_the_thoughts_of_one_provider_are_not_shown_to_the_next_but_kept():
    with strict("kimi", TURN, (TURN[2],)) as kimi, StrictServer("gemini", [TURN[2]]) as gemini:
        history = run(agent_on(kimi), QUESTIONS[0], []).all_messages()
        history = run(agent_on(gemini), QUESTIONS[1], history).all_messages()
        assert "I must look." not in str(gemini.requests[0].json)
        run(agent_on(kimi), "And again?", history)
    assert "I must look." in str(kimi.requests[-1].json)
