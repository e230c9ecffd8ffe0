"""ChatMull in LangChain and langgraph, on the strict servers of five providers."""

from __future__ import annotations

import asyncio
import json

import pytest

from adapter_talk import ANSWER, MODELS, TURN, check_returned, price, strict

pytest.importorskip("langchain_core")
pytest.importorskip("langgraph")

from langchain.agents import create_agent
from langchain_core.load import dumps
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    ToolMessage,
    merge_message_runs,
    messages_from_dict,
    messages_to_dict,
)
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from mull.adapters.langchain import ChatMull
from mull.neutral.errors import LocalError, RefusedError
from mull.testing import Say, StrictServer, Think

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


class Bill(BaseModel):
    """What is to be paid."""

    items: list[str]
    cost: int


BILL = Bill(items=["milk"], cost=1)
BILLED = [Think("One thing."), Say(BILL.model_dump_json())]


@pytest.mark.parametrize("provider", MODELS)
def test_structured_output_in_every_form(provider):
    with strict(provider, [BILLED] * 5) as server:
        chat = model(server)
        assert chat.with_structured_output(Bill).invoke("What?") == BILL
        assert list(chat.with_structured_output(Bill, method="json_schema").stream("?")) == [BILL]
        schema = Bill.model_json_schema()
        assert chat.with_structured_output(schema).invoke("What?") == BILL.model_dump()
        said = chat.with_structured_output(Bill, include_raw=True).invoke("What?")
        assert (said["parsed"], said["parsing_error"]) == (BILL, None)
        assert said["raw"].additional_kwargs["reasoning_content"] == "One thing."
        chat.invoke([HumanMessage("What?"), said["raw"], HumanMessage("Sure?")])


@pytest.mark.parametrize("provider", MODELS)
def test_an_agent_with_tools_and_a_response_format(provider):
    billed = [Think("So."), Say(BILL.model_dump_json())]
    with strict(provider, (TURN[0], TURN[1], billed)) as server:
        bound = model(server).bind_tools([price]).bind(response_format=Bill.model_json_schema())
        history = [HumanMessage("What do they cost?")]
        while (answer := bound.invoke(history)).tool_calls:
            history += [answer, *run_tools(answer)]
    assert Bill.model_validate_json(answer.text) == BILL


@pytest.mark.parametrize("provider", MODELS)
def test_edits_are_respected_and_nothing_else_is_lost(provider):
    with StrictServer(provider, [*TURN, TURN[2], TURN[2]]) as server:
        bound = model(server).bind_tools([price])
        history = [HumanMessage("What do they cost?")]
        for _ in range(2):
            answer = bound.invoke(history)
            history += [answer, *run_tools(answer)]
        spoken = history[3]
        said = spoken.model_copy(update={"content": "One moment."})
        bound.invoke([*history[:3], said, *history[4:]])
        body = json.dumps(server.requests[-1].json)
        assert "One moment." in body
        assert "Let me see." not in body
        fewer = spoken.model_copy(update={"tool_calls": spoken.tool_calls[:1]})
        bound.invoke([*history[:3], fewer, history[4]])
        assert "tea" not in json.dumps(server.requests[-1].json)
    assert not server.refusals


def test_joined_answers_are_all_sent():
    with StrictServer("kimi", [TURN[2]] * 3) as server:
        chat = model(server)
        joined = [HumanMessage("?"), chat.invoke("a"), chat.invoke("b"), HumanMessage("So?")]
        chat.invoke(merge_message_runs(joined))
    assert [one["role"] for one in server.requests[-1].json["messages"]].count("assistant") == 2


def test_messages_of_other_chat_models_are_taken():
    reasoned = {"reasoning_content": "I looked."}
    call = {"name": "price", "args": {"item": "milk"}, "id": "call_1"}
    image = {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"}
    with StrictServer("anthropic", [[Say("A bottle.")]]) as server:
        model(server).bind_tools([price]).invoke(
            [
                ("system", "Be brief."),
                HumanMessage([{"type": "text", "text": "What is it?"}, image]),
                AIMessage("", tool_calls=[call], additional_kwargs=reasoned),
                ToolMessage("gone", tool_call_id="call_1", status="error"),
            ]
        )
    body = server.requests[0].json
    assert body["system"][0]["text"] == "Be brief."
    assert body["messages"][0]["content"][1]["source"]["data"] == "iVBORw0KGgo="
    assert body["messages"][-1]["content"][0]["is_error"] is True


def test_what_cannot_be_sent_is_an_error():
    with StrictServer("kimi", []) as server:
        with pytest.raises(LocalError, match="cannot send the content block 'file' of a human"):
            model(server).invoke([HumanMessage([{"type": "file", "file_id": "f_1"}])])
        with pytest.raises(TypeError, match="unexpected keyword argument 'temprature'"):
            model(server).bind(temprature=1).invoke("What?")


def test_a_refusal_is_raised_and_no_key_is_shown():
    with StrictServer("kimi", []) as server:
        chat = model(server, temperature=0.5)
        with pytest.raises(RefusedError) as refused:
            chat.invoke("What?")
    shown = [repr(chat), str(chat), dumps(chat), str(chat._identifying_params)]
    assert "secret-key" not in " ".join([*shown, str(refused.value)])
    assert chat._identifying_params == {"model": MODELS["kimi"], "temperature": 0.5}
