"""ChatMull in LangChain and langgraph, on the strict servers of five providers."""

from __future__ import annotations

import asyncio
import json

import pytest

from adapter_talk import ANSWER, MODELS, TURN, check_returned, price, strict

pytest.importorskip("langchain_core")
pytest.importorskip("langgraph")

from langchain.agents import create_agent
from langchain_core.messages import (
    HumanMessage,
    ToolMessage,
    messages_from_dict,
    messages_to_dict,
)
from langgraph.checkpoint.memory import InMemorySaver

from mull.adapters.langchain import ChatMull

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def model(server, **more):
    return ChatMull(MODELS[server.name], base_url=server.url, key="secret-key", **more)


def run_tools(answer):
    return [
        ToolMessage(price(**call["args"]), tool_call_id=call["id"]) for call in answer.tool_calls
    ]


def invoke(bound, history):
    return bound.invoke(history)


def stream(bound, history):
    whole = None
    for chunk in bound.stream(history):
        whole = chunk if whole is None else whole + chunk
    return whole


def ainvoke(bound, history):
    return asyncio.run(bound.ainvoke(history))


def astream(bound, history):
    async def read():
        whole = None
        async for chunk in bound.astream(history):
            whole = chunk if whole is None else whole + chunk
        return whole

    return asyncio.run(read())


@pytest.mark.parametrize("ask", [invoke, stream, ainvoke, astream])
@pytest.mark.parametrize("provider", MODELS)
def test_two_turns_with_tools_and_a_stored_history(provider, ask):
    with strict(provider, TURN, TURN) as server:
        bound = model(server).bind_tools([price])
        history = []
        for question in ("What do they cost?", "And today?"):
            history.append(HumanMessage(question))
            while True:
                answer = ask(bound, history)
                assert answer.additional_kwargs["reasoning_content"]
                assert answer.usage_metadata["input_tokens"] > 0
                history = messages_from_dict(
                    json.loads(json.dumps(messages_to_dict([*history, answer])))
                )
                if not answer.tool_calls:
                    break
                history += run_tools(answer)
            assert answer.text.endswith(ANSWER)
    check_returned(server)


@pytest.mark.parametrize("provider", MODELS)
def test_an_agent_with_a_checkpoint(provider):
    with strict(provider, TURN, TURN) as server:
        saved = InMemorySaver()
        thread = {"configurable": {"thread_id": "1"}}
        for question in ("What do they cost?", "And today?"):
            agent = create_agent(model(server), [price], checkpointer=saved)
            said = agent.invoke({"messages": [("user", question)]}, thread)
            assert said["messages"][-1].text == ANSWER
    check_returned(server)
