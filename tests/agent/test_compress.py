"""Compression over a wire: what is asked, what is accepted, and that failures change nothing."""

from __future__ import annotations

import asyncio
import json

import pytest

from compressing import (
    CATALOG,
    TARGETS,
    body_of,
    filler,
    flat,
    prepared_for,
    round_of,
    turn,
)
from mull.agent.compress import compress, undo_compression
from mull.catalog.resolve import resolve
from mull.dialects.registry import encode_request
from mull.history.log import Log, Summary, Undone
from mull.neutral.blocks import TextBlock, ThinkingBlock
from mull.neutral.events import Progressed, Warned
from mull.neutral.messages import assistant, user
from mull.neutral.usage import Usage
from mull.policy.compress.material import summary_request
from mull.policy.compress.plan import NotCompressed
from mull.testing.rules import refusal
from mull.testing.server import CUT, STALL, Gate, Reply, ScriptedServer
from side_calls import answering, chat, last_text, run, side_at, situation_of

KIMI = TARGETS["openai-chat"]


def talk(target=KIMI, turns=8, **more):
    return Log(flat(turn(target, str(n), **more) for n in range(turns)))


class Compressing:
    """One compression against a scripted server, and everything there is to see of it."""

    def __init__(self, log, script, target=KIMI, strategy=None, now=None, **values):
        self.told = []
        with ScriptedServer(script) as server:
            side = side_at(server.url, target, context_limit=values.get("context__limit"))
            work = compress(
                log,
                situation_of(side, **values),
                side,
                strategy=strategy,
                say=self.told.append,
                now=now,
            )
            self.records = list(log)
            self.outcome = run(side, work)
            self.unchanged = list(log) == self.records
            self.bodies = [request.json for request in server.requests]

    @property
    def progress(self):
        assert all(isinstance(e, Progressed) and e.about == "compression" for e in self.told)
        return [event.text for event in self.told]


@pytest.mark.parametrize("dialect", TARGETS)
def test_a_summary_takes_the_place_of_the_middle_in_every_dialect(dialect):
    target = TARGETS[dialect]
    log = talk(target, rounds=1)
    before = prepared_for(log, target)
    done = Compressing(log, answering("THE GIST"), target, now=12.5)
    summary = done.outcome
    assert isinstance(summary, Summary)
    assert (summary.start, summary.role, summary.strategy) == (1, "assistant", "middle-out")
    assert (summary.by, summary.at) == (target.origin, 12.5)
    assert summary.text.endswith("summarised here.]\n\nTHE GIST")
    assert done.unchanged
    log.add(summary)
    log.append(user("and now?"))
    after = prepared_for(log, target)
    assert after.tokens < before.tokens
    assert refusal(dialect, body_of(after)) is None
    assert "THE GIST" in json.dumps(body_of(after))
    (asked,) = done.bodies
    assert "tools" not in asked
    assert last_text(asked).endswith("Answer with the summary and nothing else.")


def test_the_summariser_reads_thoughts_calls_and_results_of_what_is_covered_only():
    log = talk(rounds=1)
    done = Compressing(log, answering("gist"))
    asked = last_text(done.bodies[0])
    assert "## Assistant, thinking\nbecause 0r0 . ." in asked
    assert '## Assistant calls look\n{"at":"0r0x0"}' in asked
    assert "## Result of look\nsaw call_0r0x0 . ." in asked
    assert "## User\nquestion 1 . ." in asked
    assert "question 0" not in asked  # the task stays where it is
    assert "question 7" not in asked
    assert asked.index("because 0r0") < asked.index("Write the summary")


def test_g03_compression_never_inherits_the_sessions_effort():
    done = Compressing(talk(), answering("gist"), effort="high", maxTokens=30_000)
    (asked,) = done.bodies
    assert asked["thinking"] == {"type": "disabled"}
    assert asked["max_tokens"] == 8192
    assert "reasoning_effort" not in asked


def test_progress_says_how_much_and_grows_with_the_summary():
    done = Compressing(talk(size=2400), answering("x" * 1500), KIMI)
    first, *rest = done.progress
    assert first.startswith("sending 11 messages, about ")
    assert first.endswith(" tokens, to moonshotai/kimi-k2.5")
    assert rest == [f"{n:,} characters of summary" for n in (600, 1200)]


def test_g02_an_empty_summary_is_asked_for_once_more_with_more_room():
    script = [chat(thought="We need to", finish="length"), chat("gist")]
    done = Compressing(talk(), script)
    assert isinstance(done.outcome, Summary)
    assert done.outcome.usage == Usage(180, 20, None, 200)
    limits = [body["max_tokens"] for body in done.bodies]
    assert limits == [8192, 4 * 8192]
    assert all(body["thinking"] == {"type": "disabled"} for body in done.bodies)
    assert "asking again with a higher limit" in done.progress[-1]


FAILURES = {
    "empty": ([chat(""), chat("")], "it was empty", 2),
    "thoughts": ([chat(thought="hm"), chat(thought="hm")], "it was empty, only thoughts", 2),
    "cut": ([chat("half", finish="length")] * 2, "it was truncated at its length limit", 2),
    "calls": ([chat("so", calls=True, finish="tool_calls")], "it called a tool", 1),
    "echo": ([chat(summary_request("x", None, 9).text)], "repeated its instructions", 1),
    "refused": ([Reply.json({"error": {"message": "no credit"}}, 402)], "no credit", 1),
    "broken": (
        [Reply.events({"choices": [{"delta": {"content": "a"}}]}, CUT)],
        "what arrived before is kept",
        1,
    ),
    "unreachable": ([Reply.hang_up()], "closed before it answered", 1),
}


@pytest.mark.parametrize("name", FAILURES)
def test_g02_a_summary_that_is_none_changes_nothing_and_says_why(name):
    script, reason, requests = FAILURES[name]
    done = Compressing(talk(), script)
    assert isinstance(done.outcome, NotCompressed)
    assert done.outcome.reason.startswith("no summary from moonshotai/kimi-k2.5: ")
    assert reason in done.outcome.reason
    assert done.unchanged
    assert len(done.bodies) == requests


def test_a_summary_that_saves_nothing_is_not_used():
    done = Compressing(talk(), answering("long winded " * 900))
    assert isinstance(done.outcome, NotCompressed)
    assert "not fewer than" in done.outcome.reason
    assert done.unchanged


def test_nothing_to_compress_sends_nothing():
    done = Compressing(Log([user("hello")]), [])
    assert isinstance(done.outcome, NotCompressed)
    assert not done.bodies
    assert not done.told


def test_truncate_sends_nothing_either():
    log = talk()
    done = Compressing(log, [], strategy="truncate", now=3.0)
    assert not done.bodies
    assert "messages were left out here" in done.outcome.text
    assert (done.outcome.strategy, done.outcome.by, done.outcome.at) == ("truncate", None, 3.0)


def test_the_strategy_of_the_settings_holds_unless_one_is_given():
    done = Compressing(talk(), answering("gist"), compression__strategy="one-shot")
    assert (done.outcome.strategy, done.outcome.end) == ("one-shot", 16)
    done = Compressing(talk(), [], compression__strategy="one-shot", strategy="truncate")
    assert done.outcome.strategy == "truncate"


def test_another_model_summarises_if_one_is_set():
    done = Compressing(talk(), answering("gist"), compression__model="openai/gpt-5-mini")
    assert done.outcome.by.model == "gpt-5-mini"
    assert done.bodies[0]["model"] == "gpt-5-mini"
    assert done.bodies[0]["reasoning"]["effort"] == "minimal"


def test_a_summariser_that_nobody_knows_changes_nothing():
    done = Compressing(talk(), [], compression__model="nobody/knows-this")
    assert done.outcome.reason.startswith("no summary: ")
    assert "knows-this" in done.outcome.reason
    assert done.unchanged


def test_a_second_compression_works_the_first_summary_in():
    log = talk()
    log.add(Compressing(log, answering("FIRST GIST")).outcome)
    for message in flat(turn(KIMI, f"later{n}") for n in range(8)):
        log.append(message)
    done = Compressing(log, answering("SECOND GIST"))
    asked = last_text(done.bodies[0])
    assert "## Summary of earlier messages\n[" in asked
    assert "FIRST GIST" in asked
    assert "question 1" not in asked
    log.add(done.outcome)
    assert [summary.text.split("\n")[-1] for _, summary in log.summaries()] == ["SECOND GIST"]
    assert "FIRST GIST" not in json.dumps(body_of(prepared_for(log, KIMI)))


@pytest.mark.parametrize("dialect", TARGETS)
def test_undo_brings_the_request_back_byte_for_byte(dialect):
    target = TARGETS[dialect]
    log = Log([*flat(turn(target, str(n), rounds=2) for n in range(4)), user("and now?")])

    def sent():
        prepared = prepared_for(log, target, includeInContext=True)
        return encode_request(prepared.request, target).body

    first = sent()
    log.add(Compressing(log, answering("GIST"), target).outcome)
    second = sent()
    assert second != first
    log.add(Compressing(log, answering("ALL"), target, strategy="one-shot").outcome)
    for expected in (second, first):
        undone = undo_compression(log, now=7.0)
        assert isinstance(undone, Undone)
        assert undone.at == 7.0
        log.add(undone)
        assert sent() == expected
    assert undo_compression(log) is None


def test_material_too_long_for_one_request_is_read_in_parts():
    log = talk(turns=30, size=1600)
    gists = iter(["GIST ONE", "GIST TWO", "GIST THREE", "GIST FOUR", "GIST FIVE", "GIST SIX"])
    done = Compressing(log, lambda asked: chat(next(gists)), context__limit=20_000)
    parts = len(done.bodies)
    assert 2 <= parts <= 6
    assert done.progress[1] == f"part 1 of {parts}"
    asked = [last_text(body) for body in done.bodies]
    assert "Summary of what came before" not in asked[0]
    assert "# Summary of what came before\n\nGIST ONE\n\n# Conversation" in asked[1]
    assert all(len(text) < 2 * 20_000 for text in asked)
    assert done.outcome.text.endswith(
        ["GIST ONE", "GIST TWO", "GIST THREE", "GIST FOUR"][parts - 1]
    )
    assert done.outcome.usage == Usage(90 * parts, 10 * parts, None, 100 * parts)


def test_a_part_that_fails_changes_nothing():
    log = talk(turns=30, size=1600)
    done = Compressing(log, [chat("GIST ONE"), chat(""), chat("")], context__limit=20_000)
    assert isinstance(done.outcome, NotCompressed)
    assert done.unchanged


def test_long_results_and_thoughts_are_shortened_in_their_middle():
    said = talk(turns=6)
    long = ThinkingBlock("BEGIN" + " hm" * 9000 + " THEREFORE 42", "reasoning_content")
    records = list(said.messages)
    records[3] = assistant(long, TextBlock("so"), origin=KIMI.origin)
    asked = last_text(Compressing(Log(records), answering("gist")).bodies[0])
    assert "## Assistant, thinking\nBEGIN hm" in asked
    assert "THEREFORE 42" in asked
    assert "characters left out" in asked
    assert len(asked) < 20_000


def test_an_agents_long_chain_is_compressed_in_the_middle_of_its_turn():
    log = Log([user(filler("do it", 300))])
    for number in range(20):
        for message in round_of(KIMI, str(number)):
            log.append(message)
    done = Compressing(log, answering("done so far"))
    assert done.outcome.role == "user"
    log.add(done.outcome)
    body = body_of(prepared_for(log, KIMI))
    assert refusal("openai-chat", body) is None
    first, second = body["messages"][1:3]
    assert "done so far" in json.dumps(first["content"])
    assert second["tool_calls"]
    assert second["reasoning_content"].startswith("because")


def test_who_stops_waiting_leaves_everything_as_it_was():
    log, gate = talk(), Gate()
    before = list(log)
    beginning = {"choices": [{"index": 0, "delta": {"content": "ha"}}]}
    with ScriptedServer([Reply.events(beginning, gate, STALL)]) as server:
        side = side_at(server.url, KIMI)

        async def leave():
            task = asyncio.ensure_future(compress(log, situation_of(side), side))
            await asyncio.to_thread(gate.wait_reached)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        run(side, leave())
        assert server.requests[0].wait_left()
    assert list(log) == before


FABLE = "anthropic/claude-fable-5"
DECLINE = [
    FABLE,
    "anthropic/claude-opus-5-5",
    "anthropic/claude-sonnet-5",
    "openrouter/anthropic/claude-opus-5",
    "amazon-bedrock/us.anthropic.claude-opus-5",
    "openrouter/~anthropic/claude-opus-latest",
    "helicone/team-opus-5.5",
]
THOUGHT = "because 0r0"


@pytest.mark.parametrize("model", DECLINE)
def test_a_model_that_declines_thoughts_gets_none_to_summarise(model):
    target = resolve(model, catalog=CATALOG)
    log = talk(rounds=1)  # whosever they are
    done = Compressing(log, answering("gist"), target, context__limit=200_000)
    asked = json.dumps(done.bodies[0])
    assert THOUGHT not in asked
    assert "hinking" not in last_text(done.bodies[0]).replace("Nothing", "")
    assert "saw call_0r0x0" in asked
    (warned,) = (event for event in done.told if isinstance(event, Warned))
    assert "thinking is left out of what is summarised" in warned.text
    assert model.rpartition("/")[2] in warned.text


def test_whoever_writes_the_summary_decides():
    for session, writer, is_sent in (
        (KIMI, FABLE, False),
        (resolve(FABLE, catalog=CATALOG), "moonshotai/kimi-k2.5", True),
    ):
        log = talk(session, rounds=1)
        done = Compressing(log, answering("gist"), session, compression__model=writer)
        assert isinstance(done.outcome, Summary)
        assert (THOUGHT in json.dumps(done.bodies[0])) is is_sent


def test_a_model_that_declines_unexpectedly_is_asked_again_without_thoughts():
    declined = {"choices": [{"index": 0, "delta": {"content": "I can not."}}]}
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "content_filter"}]}
    script = [Reply.events(declined, end, "[DONE]"), chat("gist")]
    done = Compressing(talk(rounds=1), script)
    assert isinstance(done.outcome, Summary)
    assert done.outcome.text.endswith("gist")
    first, second = map(json.dumps, done.bodies)
    assert THOUGHT in first
    assert THOUGHT not in second


def test_a_refusal_is_no_summary():
    declined = {"choices": [{"index": 0, "delta": {"content": "I can not."}}]}
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "content_filter"}]}
    done = Compressing(talk(rounds=1), [Reply.events(declined, end, "[DONE]")] * 2)
    assert isinstance(done.outcome, NotCompressed)
    assert "declined" in done.outcome.reason
    assert done.unchanged
