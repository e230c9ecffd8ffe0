"""A conversation that no longer fits its window goes on: compressed, or without its oldest."""

from __future__ import annotations

import asyncio

import pytest

from mull.agent.engine import Engine
from mull.agent.library import Conversation
from mull.neutral.errors import LocalError, RefusedError
from mull.neutral.events import Compressed
from mull.testing.server import Reply
from small_server import SmallServer, chat

pytestmark = pytest.mark.usefixtures("inspected_servers")

WORDS = "The river went on past the mill and the old town. "
NO = Reply.json({"error": {"message": "no credit"}}, 402)


def talk(server, questions, *, model="llama.cpp/small", engine=None, **more):
    """A conversation of these questions; what was answered, and all events."""
    events = []

    async def work():
        async with engine or Engine() as used:
            conversation = Conversation(model, base_url=server.url, engine=used, **more)
            conversation.subscribe(events.append)
            answers = [(await conversation.ask_async(one)).text for one in questions]
        return conversation, answers

    conversation, answers = asyncio.run(work())
    return conversation, answers, [e for e in events if isinstance(e, Compressed)]


def long(count, size=24):
    return [f"{n}: {WORDS * size}" for n in range(count)]


@pytest.mark.parametrize("tells", [True, False], ids=["told", "untold"])
def test_a_session_overflows_its_window_and_goes_on(tells):
    with SmallServer(2048, tells=tells) as server:
        conversation, answers, done = talk(server, long(12))
    assert answers == ["yes"] * 12
    assert any(one.ok for one in done)
    assert len(server.refused) == (0 if tells else 1)
    assert conversation.log.summaries()
    assert len(conversation.messages) == 24  # what was said is all there


def test_a_window_is_learnt_from_a_refusal_for_the_sessions_that_follow():
    with SmallServer(2048, tells=False) as server:
        talk(server, long(8))
        engine = Engine()
        target = engine.target("llama.cpp/small", base_url=server.url)
        assert target.facts.limit.context == 2048
        assert len(server.refused) == 1
        talk(server, long(8))
        assert len(server.refused) == 1


@pytest.mark.parametrize("summary", [NO, chat("", 9)], ids=["refused", "empty"])
def test_where_a_summary_is_not_to_be_had_the_oldest_is_left_out(summary):
    with SmallServer(2048, tells=False, summary=summary) as server:
        conversation, answers, done = talk(server, long(10))
        assert answers == ["yes"] * 10
        assert len(server.refused) == 1
    assert any(not one.ok for one in done)
    left = [one.text for one in done if one.ok]
    assert left
    assert all(text.startswith("left out the oldest messages") for text in left)
    assert conversation.log.summaries()[0][1].strategy == "truncate"


def test_a_result_that_is_larger_than_the_window_does_not_end_the_session():
    def look(at: str) -> str:
        """Looks."""
        return f"BEGIN {'0123456789' * 4000} END"

    calls = [[{"name": "look", "input": {"at": "x"}}]]

    def says(body):
        return calls.pop() if calls else "seen"

    with SmallServer(2048, says=says, summary=NO) as server:
        _, answers, _ = talk(server, ["look at x", "and now?"], tools=[look])
        assert answers == ["seen", "seen"]
        assert server.refused == []
    assert max(server.counts) < 2048


def test_what_cannot_fit_is_not_sent_and_not_kept():
    with SmallServer(2048) as server:

        async def work():
            async with Engine() as engine:
                one = Conversation("llama.cpp/small", base_url=server.url, engine=engine)
                await one.ask_async("hello")
                before = len(server.counts)
                with pytest.raises(LocalError) as raised:
                    await one.ask_async(WORDS * 2000)
                assert len(server.counts) == before
                assert "say less at once" in str(raised.value)
                assert "2,048" in str(raised.value)
                assert (await one.ask_async("still there?")).text == "yes"
                return one

        conversation = asyncio.run(work())
    assert [m.text for m in conversation.log.active if m.role == "user"] == [
        "hello",
        "still there?",
    ]


def test_a_refusal_that_names_nothing_is_met_by_less():
    said = {"error": {"message": "Your input exceeds the context window of this model."}}
    with SmallServer(2048, tells=False) as server:
        answer = server._answer
        server._answer = lambda body: (
            Reply.json(said, 400) if server.count(body) >= 2048 else answer(body)
        )
        _, answers, done = talk(server, long(9))
    assert answers == ["yes"] * 9
    assert any(one.ok for one in done)


def test_one_that_refuses_whatever_comes_is_asked_twice():
    sent = []

    def refuse(body):
        sent.append(body)
        return Reply.json({"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}, 400)

    with SmallServer(2048) as server:
        engine = Engine()
        conversation, _, _ = talk(server, long(2), engine=engine)
        server._answer = refuse
        with pytest.raises((RefusedError, LocalError)):
            asyncio.run(conversation.ask_async("and?"))
    assert len(sent) <= 3  # the question, a summary, the question again
