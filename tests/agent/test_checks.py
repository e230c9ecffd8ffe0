"""The doctor's questions, asked of scripted endpoints that think, do not, refuse and forget."""

from __future__ import annotations

import asyncio

import pytest

from mull.agent.checks import check_live
from mull.agent.engine import Engine
from mull.testing.server import CUT, Reply, ScriptedServer

THINKS, TAKES, REMEMBERS = (
    "thinks",
    "accepts its thinking back after a tool call",
    "uses its earlier thinking",
)


def chunk(finish=None, **delta):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def saying(text, thought=None, field="reasoning_content", usage=None):
    parts = [chunk(**{field: thought})] if thought is not None else []
    counted = [{"choices": [], "usage": usage}] if usage else []
    return Reply.events(*parts, chunk(content=text), chunk("stop"), *counted, "[DONE]")


def calling(thought="I must call"):
    call = {"index": 0, "id": "c1", "function": {"name": "secret_number", "arguments": "{}"}}
    parts = [chunk(reasoning_content=thought)] if thought else []
    return Reply.events(*parts, chunk(tool_calls=[call]), chunk("tool_calls"), "[DONE]")


class Model:
    """An endpoint that does everything right; a test changes what it answers to one question."""

    def __init__(self, **other):
        self.replies = {
            "larger": saying("9.9", "9.90 > 9.11"),
            "call": calling(),
            "result": saying("It is 7391.", "the tool says so"),
            "two": saying("1234", "1234 and 5678"),
            "second": saying("5678", "the other one"),
            **other,
        }
        self.asked = []

    def __call__(self, recorded):
        last = recorded.json["messages"][-1]
        key = next(
            name
            for name, words in (
                ("result", None),
                ("larger", "Which is larger"),
                ("call", "Call secret_number"),
                ("two", "Think of two"),
                ("second", "the second number"),
            )
            if (last["role"] == "tool" if words is None else words in str(last["content"]))
        )
        self.asked.append((key, recorded.json))
        return self.replies[key]


def checked(model):
    async def run(url):
        engine = Engine()
        try:
            found = [check async for check in check_live(engine, "openai-compatible/m", url)]
        finally:
            await engine.close()
        return {check.name: (check.good, check.said) for check in found}

    with ScriptedServer(model) as server:
        return asyncio.run(run(server.url))


def test_all_is_well():
    model = Model()
    assert checked(model) == {
        THINKS: (True, "yes, in reasoning_content, readable"),
        TAKES: (True, "accepted, and the number is right"),
        REMEMBERS: (True, "yes: 5678 is in its earlier thinking"),
    }
    bodies = dict(model.asked)
    assert [key for key, _ in model.asked] == ["larger", "call", "result", "two", "second"]
    assert bodies["result"]["messages"][1]["reasoning_content"] == "I must call"
    assert bodies["second"]["messages"][1]["reasoning_content"] == "1234 and 5678"
    assert [tool["function"]["name"] for tool in bodies["call"]["tools"]] == ["secret_number"]
    assert "tools" not in bodies["larger"]
    assert "7391" not in str(bodies["call"])


@pytest.mark.parametrize(
    ("reply", "good", "said"),
    [
        (saying("9.9"), False, "no reasoning received"),
        (saying("9.9", "hm", field="reasoning"), True, "yes, in reasoning, readable"),
        (
            saying("9.9", "hm", usage={"completion_tokens_details": {"reasoning_tokens": 1234}}),
            True,
            "yes, in reasoning_content, readable, 1,234 tokens",
        ),
        (
            saying("9.9", usage={"completion_tokens_details": {"reasoning_tokens": 64}}),
            True,
            "yes, 64 tokens, but the text is not sent",
        ),
        (saying("9.9", ""), True, "yes, in reasoning_content, without readable text"),
    ],
    ids=["silent", "other field", "counted", "hidden", "empty"],
)
def test_whether_it_thinks(reply, good, said):
    assert checked(Model(larger=reply))[THINKS] == (good, said)


def refusing(text, status=400):
    return Reply.json({"error": {"message": text}}, status)


@pytest.mark.parametrize(
    ("other", "good", "said"),
    [
        ({"call": saying("7391", "I know it")}, None, "unknown: the model called no tool"),
        ({"call": calling(None)}, None, "unknown: the model did not think before the call"),
        ({"result": saying("It is 12.", "hm")}, True, "accepted, but the number is wrong"),
        (
            {"result": Reply.events(chunk(content="It"), CUT)},
            False,
            "the second request ended as interrupted",
        ),
    ],
    ids=["no call", "no thought", "wrong", "cut"],
)
def test_whether_its_thinking_is_taken_back(other, good, said):
    assert checked(Model(**other))[TAKES] == (good, said)


def test_a_refusal_of_the_second_request_is_told_in_its_own_words():
    good, said = checked(Model(result=refusing("no thoughts here, please", 422)))[TAKES]
    assert good is False
    assert "no thoughts here, please" in said


def test_thinking_that_had_to_be_left_out_was_not_taken_back():
    class Strict(Model):
        def __call__(self, recorded):
            reply = super().__call__(recorded)
            if any("reasoning_content" in m for m in recorded.json["messages"]):
                return refusing("property 'reasoning_content' is unsupported")
            return reply

    good, said = checked(Strict())[TAKES]
    assert good is False
    assert said.startswith("refused: ")


@pytest.mark.parametrize(
    ("other", "good", "said"),
    [
        ({"second": saying("9999")}, None, "not shown: it answered '9999'"),
        ({"second": saying("1234")}, None, "not shown: it answered '1234'"),
        ({"second": saying("I do not know.")}, None, "not shown: it answered 'I do not know.'"),
        ({"second": saying("The second number is 5678.")}, True, "yes: 5678"),
        ({"two": saying("1234")}, None, "unknown: no readable thinking received"),
        ({"two": saying("1234", "  ")}, None, "unknown: no readable thinking received"),
    ],
    ids=["another", "the first again", "none", "in words", "no thought", "blank thought"],
)
def test_whether_it_remembers(other, good, said):
    got, words = checked(Model(**other))[REMEMBERS]
    assert got is good
    assert words.startswith(said)


def test_one_failure_does_not_keep_the_others_from_running():
    model = Model(larger=refusing("bad key", 401), call=refusing("no tools", 422))
    found = checked(model)
    assert [good for good, _ in found.values()] == [False, False, True]
    assert "bad key" in found[THINKS][1]
    assert "no tools" in found[TAKES][1]
