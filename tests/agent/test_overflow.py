"""A conversation that no longer fits its window goes on: compressed, or without its oldest."""

from __future__ import annotations

import asyncio

import pytest

from answers import written
from mull.agent.engine import Engine
from mull.agent.library import Conversation
from mull.neutral.blocks import TextBlock
from mull.neutral.errors import LocalError, RefusedError
from mull.neutral.events import Compressed, Failed, Finished, TextDelta
from mull.neutral.messages import assistant, user
from mull.testing.server import Reply, ScriptedServer
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
                assert "send a shorter message" in str(raised.value)
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


MODELS = {
    "openai-chat": "moonshotai/kimi-k2.5",
    "openai-responses": "openai/gpt-5",
    "anthropic": "anthropic/claude-sonnet-4-5",
    "gemini": "google/gemini-3-pro-preview",
}
IN_STREAM = Reply.events(
    {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}},
    {
        "type": "response.failed",
        "response": {
            "id": "resp_1",
            "status": "failed",
            "error": {
                "code": "context_length_exceeded",
                "message": "Your input exceeds the context window of this model.",
            },
        },
    },
)
REFUSALS = {
    "openai-chat": Reply.json(
        {"error": {"message": "Your request exceeded model token limit: 4096 (requested: 9000)"}},
        400,
    ),
    "openai-responses": IN_STREAM,
    "anthropic": Reply.json(
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "prompt is too long: 9000 tokens > 4096 maximum",
            },
        },
        400,
    ),
    "gemini": Reply.json(
        {
            "error": {
                "code": 400,
                "message": "The input token count (9000) exceeds the maximum number of tokens"
                " allowed (4096).",
                "status": "INVALID_ARGUMENT",
            }
        },
        400,
    ),
}


@pytest.mark.parametrize("dialect", MODELS)
def test_every_dialect_goes_on_after_a_refusal_for_length(dialect):
    body = written(dialect, [TextDelta("yes"), Finished("stop")])
    answer = Reply(200, {"content-type": "text/event-stream"}, (body,))
    history = [
        message
        for n in range(30)
        for message in (user(f"{n}: {WORDS * 8}"), assistant(TextBlock(f"answer {n} {WORDS}")))
    ]

    async def work():
        async with Engine() as engine:
            one = Conversation(
                MODELS[dialect],
                base_url=server.url,
                key="key-for-tests",
                engine=engine,
                messages=history,
                settings={"compression.strategy": "truncate", **own.get("settings", {})},
                max_tokens=own.get("max_tokens"),
            )
            one.subscribe(events.append)
            return (await one.ask_async("and now?")).text, one

    events = []
    # one that names no number is believed only where the request is not far below the window
    near = {"settings": {"context.limit": 7000}, "max_tokens": 500}
    own = near if dialect == "openai-responses" else {}
    with ScriptedServer([REFUSALS[dialect], answer]) as server:
        text, conversation = asyncio.run(work())
        first, second = (request.body for request in server.requests)
    assert text == "yes"
    assert len(second) < len(first) * 0.6
    (done,) = (event for event in events if isinstance(event, Compressed))
    assert done.ok
    assert not any(isinstance(event, Failed) for event in events)
    assert [m.status for m in conversation.messages][-1] == "complete"
    if dialect != "openai-responses":
        limit = conversation.target.facts.limit
        assert (limit.input or limit.context) == 4096


def test_a_report_that_cannot_be_true_ends_no_session():
    """An answered request shows that it fitted, whatever was said to be in it."""
    with SmallServer(2048) as server:
        server.count = lambda body: 10**9 if server.lies else 20
        server.lies, server.window = False, 10**10
        talk(server, ["hello"])
        server.lies = True
        _, answers, _ = talk(server, ["hello", "and?", "and now?", "still there?"])
    assert answers == ["yes"] * 4


@pytest.mark.parametrize("said", ["prompt is too long: 9 tokens > 8 maximum", "9 tokens > 90000"])
def test_numbers_that_cannot_be_true_are_not_learnt(said):
    refusal = Reply.json({"error": {"message": f"prompt is too long: {said} maximum"}}, 400)
    with SmallServer(2048, tells=False) as server:
        server._answer = lambda body: refusal
        with pytest.raises(RefusedError):
            talk(server, ["hello"])
        target = Engine().target("llama.cpp/small", base_url=server.url)
    assert target.facts.limit.context is None


NGINX = Reply(
    413,
    {"content-type": "text/html"},
    (b"<html><head><title>413 Request Entity Too Large</title></head><body>nginx</body></html>",),
)


def said(message, status, **more):
    error = {"type": "invalid_request_error", "message": message, **more}
    return Reply.json({"type": "error", "error": error}, status)


FAR_UNDER = {
    "a proxy's page": (NGINX, "413 Request Entity Too Large"),
    "a body": (said("Payload too large", 413), "Payload too large"),
    "bytes": (
        said("Request exceeds the maximum size", 413, type="request_too_large"),
        "Request exceeds the maximum size",
    ),
    "words": (
        said("Your input exceeds the context window of this model.", 400),
        "exceeds the context window of this model",
    ),
    "vague words": (said("The context limit was reached.", 400), "The context limit was reached."),
    "a code": (said("Too much.", 400, code="context_length_exceeded"), "Too much."),
    "a window": (
        said("This model's maximum context length is 100000 tokens. Reduce it.", 400),
        "maximum context length is 100000",
    ),
    "a minute's share": (
        said("Request too large for gpt-x on TPM: Limit 30000, Requested 40112.", 429),
        "Limit 30000, Requested 40112",
    ),
}
PLACES = {
    **MODELS,
    "bedrock-converse": "amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "openai-chat, unknown": "openai-compatible/house",
}


@pytest.mark.parametrize("why", FAR_UNDER)
@pytest.mark.parametrize("place", PLACES)
def test_a_refusal_of_little_is_handed_on_as_it_came(place, why):
    """Two lines cannot be too long: the limit is another one, such as a proxy's."""
    dialect = place.partition(",")[0]
    body = written(dialect, [TextDelta("yes"), Finished("stop")])
    refusal, words = FAR_UNDER[why]

    async def work():
        async with Engine(isolated=True) as engine:
            one = Conversation(PLACES[place], base_url=server.url, key="k", engine=engine)
            one.subscribe(events.append)
            await one.ask_async("hello")
            with pytest.raises(RefusedError) as raised:
                await one.ask_async("and now?")
            assert (await one.ask_async("still there?")).text == "yes"
            return raised.value

    events = []
    answer = Reply(200, {"content-type": "text/event-stream"}, (body,))
    with ScriptedServer([answer, refusal, answer]) as server:
        error = asyncio.run(work())
        assert len(server.requests) == 3
    assert error.status == refusal.status
    assert words in error.text
    assert words in str(error)
    assert "was not sent" not in str(error)
    assert "compress" not in str(error)
    assert not any(isinstance(event, Compressed) for event in events)


def test_what_was_refused_and_cannot_be_shortened_is_told_in_the_endpoints_words():
    """It counted more than is there: a hidden prompt, perhaps. The same is not sent again."""
    words = "prompt is too long: 9000 tokens > 4096 maximum"
    with ScriptedServer(lambda _: said(words, 400)) as server:
        with pytest.raises(RefusedError, match="9000 tokens > 4096"):
            talk(server, ["hello"], model="anthropic/claude-sonnet-4-5", key="k")
        assert len(server.requests) == 1
