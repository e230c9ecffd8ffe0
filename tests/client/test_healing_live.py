"""Every known refusal over a real socket: one repair, told and remembered, or one clear error.

The refusals are in `refusals.ROWS`, each with the change that must be seen on the wire.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from healing import LOOK, steered
from healing import conversation as usual
from mull.agent.engine import Engine
from mull.agent.library import Conversation
from mull.agent.run import Situation, Turn
from mull.agent.setup import load_setup
from mull.client.exchange import ExchangeOptions
from mull.client.retry import RetryRules
from mull.history.log import Log
from mull.neutral.errors import RefusedError
from mull.neutral.events import Failed, Finished, Healed
from mull.neutral.request import RequestOptions
from mull.neutral.target import Target
from mull.policy.failure import plain
from mull.policy.heal.causes import CAUSES
from mull.policy.tokens import CHARACTERS
from mull.settings.registry import parse_all
from mull.testing.server import Reply, ScriptedServer
from refusals import ADAPT, EFFORT, GUESSED, PLAN, REST, ROWS, Row
from turning import going


def as_params(rows: list[Row]) -> list[Any]:
    return [pytest.param(one, id=f"{n}-{one.text[:40]}") for n, one in enumerate(rows)]


def error_body(row: Row) -> Any:
    """The refusal as an endpoint of the dialect writes it."""
    if row.text.startswith("{"):
        return json.loads(row.text)
    match row.target.dialect:
        case "anthropic":
            error = {"type": row.code or "invalid_request_error", "message": row.text}
            return {"type": "error", "error": error}
        case "gemini":
            error = {"code": row.status, "message": row.text, "status": "INVALID_ARGUMENT"}
            return {"error": error}
        case _:
            error = {"message": row.text, "type": "invalid_request_error", "code": row.code}
            return {"error": error}


def error_in_stream(row: Row) -> Reply:
    if row.target.dialect == "openai-responses":
        error = {"code": row.code or "invalid_request_error", "message": row.text}
        failed = {"type": "response.failed", "response": {"status": "failed", "error": error}}
        return Reply.events(failed)
    return Reply.events(error_body(row))


CHAT_ANSWER = Reply.events(
    {"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}}]},
    {"choices": [{"index": 0, "delta": {"content": "yes"}, "finish_reason": "stop"}]},
    "[DONE]",
)
ITEM = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "yes"}],
}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ENC-new"}
ANSWERS = {
    "/chat/completions": CHAT_ANSWER,
    "/messages": Reply.events(
        {"type": "message_start", "message": {"id": "m", "model": "x", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "yes"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ),
    "/responses": Reply.events(
        {"type": "response.created", "response": {"id": "r", "status": "in_progress"}},
        {"type": "response.output_item.done", "output_index": 0, "item": THOUGHT},
        {"type": "response.output_item.done", "output_index": 1, "item": ITEM},
        {
            "type": "response.completed",
            "response": {"id": "r", "status": "completed", "output": [THOUGHT, ITEM]},
        },
    ),
    ":streamGenerateContent": Reply.events(
        {"candidates": [{"content": {"parts": [{"text": "yes"}]}, "finishReason": "STOP"}]}
    ),
}


def answer(path: str) -> Reply:
    return next(reply for end, reply in ANSWERS.items() if end in path)


class Endpoint:
    """Refuses the first body that comes, and that body whenever it comes again."""

    def __init__(self, refusal: Reply, *, always: bool = False) -> None:
        self.refusal = refusal
        self.always = always
        self.refused: tuple[str, bytes] | None = None

    def __call__(self, recorded: Any) -> Reply:
        sent = (recorded.path, recorded.body)
        self.refused = self.refused or sent
        return self.refusal if self.always or sent == self.refused else answer(recorded.path)


def engine_for(where: Target) -> Engine:
    """A new engine, as a new process has it, that knows this one target by whatever name."""
    setup = load_setup()
    setup.resolve = lambda *_, **__: where  # type: ignore[method-assign]
    return Engine(setup)


QUICK = ExchangeOptions(retry=RetryRules(attempts=1))


def turn_of(row: Row, url: str) -> tuple[Turn, Engine]:
    """The turn as `Conversation` makes it, with options that it does not have."""
    engine = engine_for(row.target)
    where = engine.target("acme/thinker")
    wishes = {"includeInContext": True, **row.settings}
    settings = parse_all({f"reasoning.{name}": value for name, value in wishes.items()})
    situation = Situation(
        target=where,
        snapshot=engine.setup.snapshot_for(where, settings),
        options=RequestOptions(**{"tools": (LOOK,), **row.parts}),
        counter=CHARACTERS,
        send=engine.sender(engine.way_to(where, base_url=url), QUICK),
    )
    turn = Turn(
        log=Log(usual(row.target) if row.history is None else row.history),
        situation=lambda: msgspec.structs.replace(situation, target=engine.learnt(where)),
        now=situation,
    )
    return turn, engine


def run_to_end(turn: Turn, engine: Engine) -> list[Any]:
    async def run() -> list[Any]:
        try:
            return [event async for event in going(turn)]
        finally:
            await engine.close()

    return asyncio.run(run())


def check_healed(row: Row, refusal: Reply) -> None:
    with ScriptedServer(Endpoint(refusal)) as server:
        turn, engine = turn_of(row, server.url)
        events = run_to_end(turn, engine)
        first, second = server.requests
        assert (first.path, first.body) != (second.path, second.body)
        assert not row.seen(first.json), "the refused body shows the change already"
        assert row.seen(second.json), second.json
        assert [type(event) for event in events if isinstance(event, Healed | Failed)] == [Healed]
        assert isinstance(events[-2], Finished)
        assert turn.progress.state == "done"
        assert (turn.messages[-1].text, turn.messages[-1].status) == ("yes", "complete")
        (note,) = [note for note in turn.notes if note.about == "healed"]
        (healed,) = [event for event in events if isinstance(event, Healed)]
        assert note.warning
        assert healed.change in note.text
        assert healed.reason in note.text
        later_events = run_to_end(*turn_of(row, server.url))
        assert isinstance(later_events[-2], Finished)
        if row.lasts:
            (third,) = server.requests[2:]
            assert row.seen(third.json), third.json
            assert not [event for event in later_events if isinstance(event, Healed)]
        else:  # nothing general was learnt: the same is mended the same way again
            assert [one.body for one in server.requests[2:]] == [first.body, second.body]


@pytest.mark.parametrize("row", as_params(ROWS))
def test_a_refused_request_is_mended_told_of_and_remembered(row):
    check_healed(row, Reply.json(error_body(row), row.status))


@pytest.mark.parametrize("row", as_params(GUESSED))
def test_a_guess_that_is_refused_is_taken_back_and_not_made_again(row):
    check_healed(row, Reply.json(error_body(row), row.status))


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (401, "no"),
        (429, "slow down"),
        (404, "no such model"),
        (400, "messages.0.content: must be a string, and here it is something else entirely"),
        (400, "This model's maximum context length is 2048 tokens."),
    ],
)
def test_a_guess_is_not_blamed_for_what_is_about_something_else(status, text):
    row = replace(GUESSED[0], text=text, status=status)
    with ScriptedServer(Endpoint(Reply.json(error_body(row), status), always=True)) as server:
        with pytest.raises(RefusedError):
            run_to_end(*turn_of(row, server.url))
        assert len(server.requests) == 1


STREAMED = {}
for one in ROWS:
    if one.status == 400 and one.parts.get("stream", True) and not one.text.startswith("{"):
        cause = next(
            c for c in CAUSES if any(t.pattern.search(plain(one.refusal)) for t in c.texts)
        )
        STREAMED.setdefault((cause.why, one.target.dialect), one)


@pytest.mark.parametrize("row", as_params(list(STREAMED.values())))
def test_the_same_inside_a_stream(row):
    check_healed(row, error_in_stream(row))


@pytest.mark.parametrize("row", ROWS, ids=[one.text[:40] for one in ROWS])
def test_a_second_refusal_is_one_clear_error(row):
    refusal = Reply.json(error_body(row), row.status)
    with ScriptedServer(Endpoint(refusal, always=True)) as server:
        with pytest.raises(RefusedError) as caught:
            run_to_end(*turn_of(row, server.url))
        assert len(server.requests) == 2
        first, second = server.requests
        assert (first.path, first.body) != (second.path, second.body)
    told = str(caught.value)
    did = "could not answer" if row.status >= 500 else "rejected"
    assert told.startswith(f"Acme {did} the request for thinker ({row.status}): ")
    assert len(told.splitlines()) == 2, told
    assert caught.value.status == row.status
    # what did not help was not learnt: a new conversation begins as this one did
    with ScriptedServer(Endpoint(Reply.json(error_body(row), row.status))) as server:
        run_to_end(*turn_of(row, server.url))
        assert server.requests[0].body == first.body


def test_a_second_refusal_inside_the_stream_is_one_failure():
    row = PLAN[0]
    with ScriptedServer(Endpoint(error_in_stream(row), always=True)) as server:
        turn, engine = turn_of(row, server.url)
        events = run_to_end(turn, engine)
        assert len(server.requests) == 2
    assert [type(event) for event in events if isinstance(event, Healed | Failed)] == [
        Healed,
        Failed,
    ]
    assert turn.messages[-1].status == "error"
    assert "is not supported for this model" in events[-2].text


def test_every_known_text_has_its_row():
    said = [plain(one.refusal) for one in ROWS]
    missing = [
        text.pattern.pattern
        for cause in CAUSES
        for text in cause.texts
        if not any(text.pattern.search(words) for words in said)
    ]
    assert missing == []


def look(at: str) -> str:
    """Looks."""
    return f"saw {at}"


def test_the_same_conversation_is_not_refused_twice():
    row = PLAN[0]
    with ScriptedServer(Endpoint(Reply.json(error_body(row), 400))) as server:
        with Conversation(
            "acme/thinker", engine=engine_for(row.target), base_url=server.url
        ) as talk:
            assert talk.ask("one").text == "yes"
            assert talk.ask("two").text == "yes"
        assert [steered(one.json).get("thinking") for one in server.requests] == [
            {"type": "enabled", "budget_tokens": 10_000},
            ADAPT,
            ADAPT,
        ]


def test_the_next_round_of_a_tool_chain_is_not_refused_again():
    calling = Reply.events(
        {
            "choices": [
                {
                    "index": 0,
                    "delta": {
                        "tool_calls": [
                            {
                                "index": 0,
                                "id": "c1",
                                "function": {"name": "look", "arguments": '{"at":"x"}'},
                            }
                        ]
                    },
                    "finish_reason": "tool_calls",
                }
            ]
        },
        "[DONE]",
    )
    refused = Reply.json({"error": {"message": "Unsupported parameter: 'reasoning_effort'"}}, 400)

    def script(recorded):
        if "reasoning_effort" in recorded.json:
            return refused
        return CHAT_ANSWER if recorded.json["messages"][-1]["role"] == "tool" else calling

    with ScriptedServer(script) as server:
        with Conversation(
            "acme/thinker",
            engine=engine_for(EFFORT),
            base_url=server.url,
            tools=[look],
            settings={"reasoning.effort": "high"},
        ) as talk:
            result = talk.ask("look at x")
        assert (result.text, result.status) == ("yes", "complete")
        assert len(server.requests) == 3
        assert len([note for note in result.notes if note.about == "healed"]) == 1


def test_an_answer_is_stamped_with_the_dialect_it_really_came_in():
    """What came by the Responses API can only go back there: its stamp must say so."""
    row = REST[0]
    with ScriptedServer(Endpoint(Reply.json(error_body(row), 400))) as server:
        settings = {"reasoning.effort": "high", "reasoning.includeInContext": True}
        with Conversation(
            "acme/thinker",
            engine=engine_for(EFFORT),
            base_url=server.url,
            tools=[look],
            settings=settings,
        ) as talk:
            talk.ask("one")
            assert talk.messages[-1].origin.dialect == "openai-responses"
            talk.ask("two")
        kinds = [item.get("type", "message") for item in server.requests[2].json["input"]]
        assert kinds == ["message", "reasoning", "message", "message"]
