"""Long thoughts get a short form once; what fails is said once and left alone."""

from __future__ import annotations

import json

from compressing import OPTIONS, TARGETS, body_of, prepared_for, snapshot_for, turn
from mull.agent.condense import Condenser
from mull.history.log import Condensed, Log
from mull.neutral.blocks import TextBlock, ThinkingBlock
from mull.neutral.events import Progressed, Warned
from mull.neutral.messages import assistant, user
from mull.neutral.usage import Usage
from mull.policy.prepare import LongThought, uncondensed
from mull.policy.tokens import CHARACTERS
from mull.testing.server import Reply, ScriptedServer
from side_calls import answering, chat, last_text, run, side_at, situation_of

KIMI = TARGETS["openai-chat"]
OVER = {"condenseOver": 1000}


def long(name, size=6000):
    text = f"BEGIN {name} " + "hm " * (size // 3) + f"so {name} is 42"
    return ThinkingBlock(text, "reasoning_content")


def thinking_log(*blocks):
    said = []
    for number, block in enumerate(blocks):
        answer = assistant(block, TextBlock(f"a{number}"), origin=KIMI.origin)
        said += [user(f"q{number}"), answer]
    return Log([*said, user("and now?")])


def todo(log):
    return uncondensed(log, snapshot_for(KIMI, **OVER), KIMI, OPTIONS, counter=CHARACTERS)


def condense(log, script, condenser=None, places=None, told=None, **values):
    with ScriptedServer(script) as server:
        side = side_at(server.url, KIMI)
        work = (condenser or Condenser()).condense(
            log,
            todo(log) if places is None else places,
            situation_of(side, **OVER, **values),
            side,
            say=(told if told is not None else []).append,
            now=5.0,
        )
        return run(side, work), [request.json for request in server.requests]


def test_a_long_thought_is_sent_as_its_short_form_and_kept_whole():
    block = long("x")
    log = thinking_log(block, ThinkingBlock("brief", "reasoning_content"))
    before = prepared_for(log, KIMI, **OVER)
    told = []
    (record,), (asked,) = condense(log, [chat("x is 42")], told=told)
    assert record == Condensed(1, 0, "x is 42", KIMI.origin, Usage(90, 10, None, 100), 5.0)
    assert told == [Progressed("condensing", "thought 1 of 1")]
    assert asked["thinking"] == {"type": "disabled"}
    assert asked["max_tokens"] == 500
    assert block.thought in last_text(asked)
    assert last_text(asked).endswith("with the notes and nothing else.")
    log.add(record)
    after = prepared_for(log, KIMI, **OVER)
    assert after.tokens < before.tokens
    sent = [message.get("reasoning_content") for message in body_of(after)["messages"]]
    assert "x is 42" in sent
    assert log.messages[1].blocks[0] is block
    assert todo(log) == []
    whole = json.dumps(body_of(prepared_for(log, KIMI)))
    assert "BEGIN x" in whole


def test_a_signed_thought_is_never_touched():
    claude = TARGETS["anthropic"]
    log = Log(turn(claude, "0", rounds=1, size=9000))
    told, condenser = [], Condenser()
    records, bodies = condense(log, [], condenser, [LongThought(1, 0)], told)
    assert records == []
    assert bodies == []
    assert condenser.left([LongThought(1, 0)]) == []


def test_what_fails_changes_nothing_is_said_once_and_not_tried_again():
    log = thinking_log(long("x"), long("y"), long("z"))
    condenser, told = Condenser(), []
    no = Reply.json({"error": {"message": "no credit"}}, 402)
    records, bodies = condense(log, [no, no, chat("z is 42")], condenser, told=told)
    assert [(record.entry, record.text) for record in records] == [(5, "z is 42")]
    assert len(bodies) == 3
    (warned,) = [event for event in told if isinstance(event, Warned)]
    assert warned.code == "condensing"
    assert warned.text.startswith("a long thinking block is sent in full: ")
    assert "no credit" in warned.text
    log.add(records[0])
    assert [place.entry for place in todo(log)] == [1, 3]
    assert condenser.left(todo(log)) == []
    assert condense(log, [], condenser, told=told) == ([], [])
    assert len([event for event in told if isinstance(event, Warned)]) == 1


def test_g02_an_empty_short_form_is_asked_for_once_more():
    log = thinking_log(long("x"))
    (record,), bodies = condense(log, [chat(thought="hm", finish="length"), chat("x is 42")])
    assert record.text == "x is 42"
    assert [body["max_tokens"] for body in bodies] == [500, 2000]


def test_a_short_form_that_is_no_shorter_is_not_used():
    log = thinking_log(long("x", 2400))
    told = []
    assert condense(log, answering("longer " * 800), told=told)[0] == []
    assert "not shorter" in told[-1].text


def test_a_model_that_nobody_knows_is_given_up_at_once():
    log = thinking_log(long("x"), long("y"))
    condenser, told = Condenser(), []
    records, bodies = condense(log, [], condenser, told=told, compression__model="nobody/knows")
    assert (records, bodies) == ([], [])
    assert [type(event) for event in told] == [Warned]
    assert condenser.left(todo(log)) == []


def test_a_model_that_declines_thoughts_is_not_asked():
    log, told = thinking_log(long("x")), []
    fable = "anthropic/claude-fable-5"
    records, bodies = condense(log, [], told=told, compression__model=fable)
    assert (records, bodies) == ([], [])
    assert "sent in full: claude-fable-5 declines" in told[-1].text.replace("anthropic/", "")


def test_a_thought_longer_than_the_window_is_shortened_in_its_middle():
    log = thinking_log(long("x", 90_000))
    with ScriptedServer(answering("x is 42")) as server:
        side = side_at(server.url, KIMI, context_limit=12_000)
        situation = situation_of(side, **OVER, context__limit=12_000)
        (record,) = run(side, Condenser().condense(log, [LongThought(1, 0)], situation, side))
    asked = last_text(server.requests[0].json)
    assert record.text == "x is 42"
    assert "characters left out" in asked
    assert "so x is 42" in asked
    assert CHARACTERS.count(asked) < 12_000
