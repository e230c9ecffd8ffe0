"""Side calls have settings of their own, whatever the session asks for."""

from __future__ import annotations

import pytest

from compressing import TARGETS, snapshot_for
from conversations import target as made_up
from mull.agent.setup import load_setup
from mull.agent.side import THINKING_ROOM, Side, make_title, output_limit, side_call, side_text
from mull.history.log import Log
from mull.neutral.errors import RefusedError, UnknownModel
from mull.neutral.events import Healed, TextDelta
from mull.neutral.messages import user
from mull.neutral.usage import Usage
from mull.policy.compress.decide import Rejected
from mull.testing.server import CUT, Reply, ScriptedServer
from side_calls import answering, chat, engine_at, last_text, run, side_at

CHAT = TARGETS["openai-chat"]


def asked(script, target, **more):
    """The answer to a side call, and the requests it took."""
    with ScriptedServer(script) as server:
        side = side_at(server.url, target)
        call = side_call(side, [user("sum up")], system="you sum", max_tokens=500, **more)
        answer = run(side, call)
        return answer, [request.json for request in server.requests]


STEERED = {
    "anthropic": ({"max_tokens": 500}, ("thinking",)),
    "openai-responses": (
        {"max_output_tokens": 500 + THINKING_ROOM, "reasoning": {"effort": "minimal"}},
        (),
    ),
    "openai-chat": ({"max_tokens": 500, "thinking": {"type": "disabled"}}, ("reasoning_effort",)),
}


def test_a_side_call_says_off_where_it_is_known_how_and_guesses_nothing_elsewhere():
    for writer, sent in (("usual", None), ("none", None), ("openai-effort", "none")):
        unlisted = made_up(writer, reasoning=False, known=False)
        _, (body,) = asked(answering("gist"), unlisted)
        assert body.get("reasoning_effort") == sent
        assert body["max_tokens"] == 500 + THINKING_ROOM  # it may think all the same


@pytest.mark.parametrize("dialect", TARGETS)
def test_g03_a_side_call_thinks_as_little_as_the_model_can(dialect, monkeypatch):
    monkeypatch.setenv("REASONING_EFFORT", "high")
    monkeypatch.setenv("MULL_REASONING_MAXTOKENS", "20000")
    assert load_setup().settings.snapshot()["reasoning.maxTokens"] == 20_000
    answer, (body,) = asked(answering("gist"), TARGETS[dialect])
    assert answer.text == "gist"
    assert answer.origin == TARGETS[dialect].origin
    assert "tools" not in body
    assert last_text(body) == "sum up"
    if dialect == "gemini":
        config = body["generationConfig"]
        assert config["thinkingConfig"]["thinkingLevel"] == "LOW"
        assert config["maxOutputTokens"] == 500 + THINKING_ROOM
        return
    wanted, absent = STEERED[dialect]
    for key, value in wanted.items():
        got = body[key]
        assert {k: got[k] for k in value} == value if isinstance(value, dict) else got == value
    assert not set(absent) & set(body)


def test_g03_the_sessions_own_settings_stay_as_they_are():
    with ScriptedServer(answering("gist")) as server:
        engine = engine_at(server.url)
        engine.setup.settings.set("reasoning.effort", "high")
        before = engine.setup.settings.snapshot().fingerprint
        side = Side.to(engine, "moonshotai/kimi-k2.5")
        run(side, side_call(side, [user("q")], max_tokens=9))
        assert engine.setup.settings.snapshot().fingerprint == before
        assert server.requests[0].json["thinking"] == {"type": "disabled"}


def test_the_limit_has_room_for_thoughts_that_cannot_be_off_and_fits_the_model():
    budget = [{"type": "budget_tokens", "min": 8000, "max": 16_000}]
    always = made_up("anthropic-budget", dialect="anthropic", options=budget, output=64_000)
    never = made_up(reasoning=False)
    small = made_up(reasoning=False, context=4000, output=700)
    unknown = made_up(reasoning=False, known=False)
    for target, wanted, limit in (
        (always, 100, 8100),
        (never, 100, 100),
        (small, 9000, 700),
        (made_up(reasoning=False, context=4000, output=None), 9000, 2000),
        (unknown, 100, 100 + THINKING_ROOM),
    ):
        assert output_limit(side_at("http://127.0.0.1:1", target), wanted) == limit


def test_the_users_own_window_counts_for_the_sessions_model():
    side = side_at("http://127.0.0.1:1", made_up(reasoning=False), context_limit=600)
    assert side.window == 600
    assert output_limit(side, 9000) == 300


def test_events_are_passed_on_and_a_healed_answer_begins_anew():
    refused = {"error": {"message": "Unsupported parameter: 'thinking'", "code": "x"}}
    heard = []
    answer, bodies = asked([Reply.json(refused, 400), chat("gist")], CHAT, say=heard.append)
    assert answer.text == "gist"
    assert len(bodies) == 2
    assert [type(event) for event in heard if type(event) in (Healed, TextDelta)] == [
        Healed,
        TextDelta,
    ]


def test_a_refusal_is_raised_by_a_call_and_told_by_a_text():
    broke = Reply.json({"error": {"message": "out of money"}}, 402)
    with pytest.raises(RefusedError, match="out of money"):
        asked([broke], CHAT)
    with ScriptedServer([broke]) as server:
        side = side_at(server.url, CHAT)
        given = run(
            side, side_text(side, user("q"), system="", max_tokens=9, again=lambda why: None)
        )
    assert isinstance(given, Rejected)
    assert "out of money" in given.reason
    assert len(server.requests) == 1


def test_what_a_stream_said_of_its_failure_is_the_reason():
    with ScriptedServer([Reply.events({"choices": [{"delta": {"content": "ha"}}]}, CUT)]) as server:
        side = side_at(server.url, CHAT)
        given = run(side, side_text(side, user("q"), system="", max_tokens=9))
    assert isinstance(given, Rejected)
    assert "what arrived before is kept" in given.reason


def test_g02_an_empty_answer_is_asked_for_once_more_with_more_room():
    why = []
    with ScriptedServer([chat(thought="hm", finish="length"), chat("gist")]) as server:
        side = side_at(server.url, CHAT)
        given = run(side, side_text(side, user("q"), system="", max_tokens=100, again=why.append))
    assert (given.text, given.by) == ("gist", CHAT.origin)
    assert given.usage == Usage(180, 20, None, 200)
    assert why == ["it reached its length limit without any text, only thoughts"]
    assert [request.json["max_tokens"] for request in server.requests] == [100, 400]


def test_another_model_is_found_by_its_name():
    engine = engine_at("http://127.0.0.1:1")
    assert Side.to(engine, "openai/gpt-5").target.model == "gpt-5"
    with pytest.raises(UnknownModel):
        Side.to(engine, "nobody/knows-this")


class TestTitles:
    def title(self, *script, target=CHAT, said="How do I sort a list?"):
        with ScriptedServer(list(script)) as server:
            side = side_at(server.url, target)
            return run(side, make_title(side, Log([user(said)]))), server.requests

    def test_g05_a_title_is_a_line_of_visible_text(self):
        title, (request,) = self.title(chat('"Sorting a list."\n', thought="We need a title"))
        assert title == "Sorting a list"
        assert request.json["thinking"] == {"type": "disabled"}
        assert "How do I sort" in request.json["messages"][-1]["content"]

    @pytest.mark.parametrize(
        "reply",
        [
            chat(thought="We need to generate a short title", finish="length"),
            chat("We need to generate a short title for the user's request. " * 3),
            chat("Sorting\nor something else"),
            chat("Half a", finish="length"),
            chat(""),
            Reply.json({"error": {"message": "no"}}, 400),
            Reply.hang_up(),
        ],
    )
    def test_g05_no_title_rather_than_thoughts_and_only_one_try(self, reply):
        title, requests = self.title(reply)
        assert title is None
        assert len(requests) == 1

    def test_g05_a_model_that_cannot_stop_gets_room_to_think(self):
        with ScriptedServer(answering("Sorting")) as server:
            side = side_at(server.url, TARGETS["openai-responses"])
            assert run(side, make_title(side, Log([user("How do I sort?")]))) == "Sorting"
        assert server.requests[0].json["max_output_tokens"] >= 1024

    def test_nothing_said_gives_no_request(self):
        title, requests = self.title(said="  ")
        assert title is None
        assert not requests


def test_a_side_has_nothing_of_the_sessions_settings():
    side = side_at("http://127.0.0.1:1", CHAT)
    snapshot = side.snapshot()
    assert (
        snapshot["reasoning.includeInContext"] is snapshot_for(CHAT)["reasoning.includeInContext"]
    )
    assert side.snapshot({"reasoning.handoff": "text"})["reasoning.handoff"] == "text"
