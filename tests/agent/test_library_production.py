"""The library in a service: questions that fail, are left or come at once; odd input; errors."""

from __future__ import annotations

import asyncio
import gc
import pickle
import re
from dataclasses import replace

import pytest

import mull
from mull.agent.engine import Engine
from mull.agent.library import Conversation
from mull.agent.setup import load_setup
from mull.client.exchange import ExchangeOptions
from mull.client.retry import RetryRules
from mull.neutral.errors import LocalError, MullError, RefusedError, SessionBusy, UnknownModel
from mull.neutral.events import TextDelta
from mull.neutral.messages import Message
from mull.store.sessions.memory import MemorySessions
from mull.testing.server import CUT, STALL, Reply, ScriptedServer

ONCE = ExchangeOptions(retry=RetryRules(attempts=1))


def chunk(delta, finish=None):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def answer(text="ok"):
    return Reply.events(chunk({"content": text}), chunk({}, "stop"), "[DONE]")


BUSY = Reply.json(
    {"error": {"message": "overloaded"}}, 503, {"x-request-id": "r-1", "retry-after": "7"}
)
SLOW = Reply.events(chunk({"content": "so far"}), STALL)


@pytest.fixture
def talk_at():
    made = []

    def talk_at(*replies, **more):
        server = ScriptedServer(list(replies)).__enter__()
        made.append(server)
        where = {"base_url": server.url, "key": "k", "engine": Engine(load_setup()), "limits": ONCE}
        talk = Conversation("zai/glm-4.7", **{**where, **more})
        talk.server = server
        return talk

    yield talk_at
    for server in made:
        server.__exit__(None, None, None)


def asked(talk):
    """The user's messages of the last request."""
    return [m["content"] for m in talk.server.requests[-1].json["messages"] if m["role"] == "user"]


def test_a_failed_question_is_taken_back_and_asked_again_once(talk_at):
    talk = talk_at(BUSY, BUSY, answer())
    for _ in range(2):
        with pytest.raises(RefusedError):
            talk.ask("Why?")
    assert talk.messages == ()
    assert talk.ask("Why?").text == "ok"
    assert asked(talk) == ["Why?"]


def test_a_stream_that_nobody_reads_asks_nothing(talk_at):
    talk = talk_at(answer())
    talk.stream("never read")
    talk.ask("read")
    assert asked(talk) == ["read"]


def test_leaving_a_loop_stops_the_endpoint_and_keeps_what_came(talk_at):
    talk = talk_at(SLOW)

    async def leave():
        async for event in talk.stream_async("Why?"):
            if isinstance(event, TextDelta):
                break
        await asyncio.to_thread(talk.server.requests[0].wait_left)

    asyncio.run(leave())
    gc.collect()
    _, came = talk.messages
    assert (came.text, came.status) == ("so far", "interrupted")


@pytest.mark.parametrize("how", ["with", "break", "close"])
def test_leaving_a_blocking_stream_stops_the_endpoint(talk_at, how):
    talk = talk_at(SLOW)
    stream = talk.stream("Why?")
    while not isinstance(next(stream), TextDelta):
        pass
    if how == "with":
        with stream:
            pass
    elif how == "close":
        stream.close()
    else:
        del stream
    assert talk.server.requests[0].wait_left()
    assert talk.messages[-1].status == "interrupted"


def test_an_async_stream_is_an_iterator_and_a_block(talk_at):
    talk = talk_at(answer("hello"))

    async def read():
        async with talk.stream_async("Why?") as stream:
            events = [await anext(stream)]
            events += [event async for event in stream]
        return events, stream.result

    events, result = asyncio.run(read())
    assert result.text == "hello"
    assert len(events) > 2


def test_two_questions_at_once_are_refused_and_a_fork_answers_both(talk_at):
    talk = talk_at(answer("one"), answer("two"), answer("three"))

    async def at_once():
        return await asyncio.gather(
            talk.ask_async("a"), talk.ask_async("b"), return_exceptions=True
        )

    first, second = asyncio.run(at_once())
    assert first.text == "one"
    assert isinstance(second, LocalError)
    assert "fork()" in str(second)
    fork = talk.fork()
    fork.set("reasoning.effort", "none")
    fork.ask("c")
    assert [m.text for m in fork.messages if m.role == "user"] == ["a", "c"]
    assert [m.text for m in talk.messages if m.role == "user"] == ["a"]
    assert talk.snapshot()["reasoning.effort"] is None


def test_undo_and_clear_take_back_what_was_said(talk_at):
    talk = talk_at(answer("one"), answer("two"), answer("three"))
    talk.ask("a")
    talk.ask("b")
    assert talk.undo().text == "b"
    assert [m.text for m in talk.messages] == ["a", "one"]
    talk.clear()
    assert talk.messages == ()
    talk.ask("c")
    assert asked(talk) == ["c"]
    with pytest.raises(LocalError, match="no turns yet"):
        talk_at().undo()


def test_what_an_encoder_could_not_send_is_in_the_notes(talk_at):
    talk = talk_at(answer())
    archive = mull.MediaBlock("application/zip", url="https://example.org/a.zip")
    result = talk.ask(mull.Message(role="user", blocks=(mull.TextBlock("Look."), archive)))
    assert [note.text for note in result.notes if note.about == "media"] == [
        "1 attachment not sent: this API accepts URLs only of images and videos, and other "
        "files only as data"
    ]


class Markup(str):
    """What HTML libraries give back in the place of text."""


def test_text_of_another_class_is_text(talk_at):
    def title() -> str:
        """The title."""
        return Markup("Home")

    call = {"index": 0, "id": "c", "function": {"name": "title", "arguments": "{}"}}
    calls = Reply.events(chunk({"tool_calls": [call]}), chunk({}, "tool_calls"), "[DONE]")
    talk = talk_at(calls, answer(), answer(), tools=[title], system=Markup("Be kind."))
    talk.ask(Markup("What is it called?"))
    talk.ask("Again?")
    assert [
        m["content"] for m in talk.server.requests[-1].json["messages"] if m["role"] == "tool"
    ] == ["Home"]


@pytest.mark.parametrize("said", [None, b"x", {"role": "user"}, 3])
def test_what_is_no_question_is_refused_at_the_door(talk_at, said):
    talk = talk_at(answer())
    for ask in (talk.ask, talk.stream, talk.stream_async):
        with pytest.raises(LocalError, match="a question must be text, a message"):
            ask(said)
    assert talk.messages == ()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"system": 3}, "the system prompt must be text, not int"),
        ({"messages": [{"role": "user"}]}, "Message values, not dict"),
        ({"messages": "hi"}, "Message values, not str"),
    ],
)
def test_what_a_conversation_cannot_begin_with_is_refused_at_the_door(given, said):
    with pytest.raises(LocalError, match=said):
        Conversation("zai/glm-4.7", key="k", **given)


def test_an_answer_is_no_question(talk_at):
    talk = talk_at(answer())
    with pytest.raises(LocalError, match="cannot ask an assistant message"):
        talk.ask(mull.assistant("yes"))
    assert talk.messages == ()


@pytest.mark.parametrize(
    "error",
    [
        RefusedError("no", status=429, text="slow", headers={"x-request-id": "r"}, retry_after=3.0),
        SessionBusy("busy", 7),
        UnknownModel("none", ("a", "b")),
        MullError("any"),
    ],
)  # fmt: skip
def test_errors_travel_between_processes(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (again.args, vars(again)) == (error.args, vars(error))


def test_a_refusal_carries_what_the_endpoint_said_beside_it(talk_at):
    with pytest.raises(RefusedError) as caught:
        talk_at(BUSY).ask("Why?")
    assert (caught.value.request_id, caught.value.retry_after) == ("r-1", 7.0)
    assert caught.value.headers["content-type"].startswith("application/json")


def test_a_result_says_what_is_left_of_the_limits(talk_at):
    head = {"x-ratelimit-limit-tokens": "1000", "x-ratelimit-remaining-tokens": "10"}
    whole = answer()
    result = talk_at(replace(whole, headers={**whole.headers, **head})).ask("a?")
    assert result.rate_limit == mull.RateLimit(tokens=mull.RateWindow(1000, 10))
    assert result.error is None


def test_a_failure_inside_an_answer_is_the_error_of_its_result(talk_at):
    failed = {"error": {"message": "Overloaded", "type": "overloaded_error"}}
    cut = Reply.events(chunk({"content": "half"}), CUT)
    talk = talk_at(Reply.events(chunk({"content": "half"}), failed), cut, answer("whole"))
    result = talk.ask("a?")
    assert (result.text, result.status) == ("half", "error")
    assert type(result.error) is mull.OverloadedError
    assert (str(result.error), result.error.retryable) == ("Overloaded", True)
    assert type(talk.ask("b?").error) is mull.NetworkError
    assert talk.ask("c?").error is None


def test_a_closed_session_answers_nothing():
    with ScriptedServer([answer()]) as server:
        session = mull.open_session(
            "s",
            model="zai/glm-4.7",
            store=MemorySessions(),
            folder="/w",
            base_url=server.url,
            key="k",
        )
        session.close()
        with pytest.raises(LocalError, match="closed"):
            session.ask("Why?")
        assert not server.requests


def test_an_engine_is_isolated_or_given_a_set_up():
    with pytest.raises(LocalError, match="creates its own setup"):
        mull.Engine(mull.load_setup(), isolated=True)


def test_an_isolated_engine_takes_nothing_from_outside_and_leaves_nothing(
    talk_at, monkeypatch, tmp_path
):
    home = tmp_path / "home"
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(home))
    (home / "mull").mkdir(parents=True)
    (home / "mull" / "config.toml").write_text("this is not TOML")
    steering = {"THINKING": "off", "REASONING_EFFORT": "max", "DEBUG": "1", "ZAI_API_KEY": "theirs"}
    for name, value in steering.items():
        monkeypatch.setenv(name, value)
    before = sorted(home.rglob("*"))
    refused = Reply.json({"error": {"message": "Unknown parameter: 'thinking'."}}, 400)
    engine = mull.Engine(isolated=True)
    talk = talk_at(
        refused, answer(), engine=engine, key="ours", settings={"reasoning.effort": "high"}
    )
    assert talk.ask("Why?").text == "ok"
    assert {r.headers["authorization"] for r in talk.server.requests} == {"Bearer ours"}
    assert "max" not in str(talk.server.requests[0].json)
    assert sorted(home.rglob("*")) == before
    with pytest.raises(LocalError, match="no API key"):
        Conversation("zai/glm-4.7", engine=engine).ask("Why?")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"max_tokens": -1}, "max_tokens must be a whole number of at least 1, not -1"),
        ({"max_tokens": True}, "max_tokens must be a whole number"),
        ({"temperature": "hot"}, "temperature must be a number of at least 0, not 'hot'"),
        ({"temperature": float("nan")}, "temperature must be a number"),
        ({"base_url": 7}, "base_url must be text, not int"),
        ({"headers": ["x"]}, "headers must map text to text, not list"),
        ({"headers": {"x": 1}}, "headers must map text to text"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_the_door(given, said):
    with pytest.raises(LocalError, match=re.escape(said)):
        Conversation("moonshotai/kimi-k2-thinking", key="k", **given)


@pytest.mark.parametrize("question", ["", "  \n", Message(role="user")])
def test_an_empty_question_is_not_asked(question):
    talk = Conversation("moonshotai/kimi-k2-thinking", key="k", base_url="http://127.0.0.1:1")
    with pytest.raises(LocalError, match=r"^cannot ask an empty"):
        talk.ask(question)
    assert not talk.messages
