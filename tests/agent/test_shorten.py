"""A turn makes its own room: it compresses and condenses before a request, and never in circles."""

from __future__ import annotations

from msgspec.structs import replace

from compressing import TARGETS, filler, flat, turn
from conversations import listed
from mull.agent.run import Turn
from mull.agent.shorten import Shortener
from mull.history.log import Condensed, Log, Summary
from mull.neutral.blocks import TextBlock, ThinkingBlock
from mull.neutral.events import Compressed, Finished, Progressed, Warned
from mull.neutral.messages import assistant, user
from mull.policy.prepare import prepare
from mull.policy.tokens import CHARACTERS, SafeCounter
from mull.testing.server import Reply, ScriptedServer
from side_calls import chat, last_text, run, side_at, situation_of
from turning import going

KIMI = TARGETS["openai-chat"]
NO = Reply.json({"error": {"message": "no credit"}}, 402)
SMALL = {"context__limit": 8000}


def full(turns=12):
    """About 7,000 tokens: too much for a window of 8,000."""
    said = flat(turn(KIMI, str(n), size=1000) for n in range(turns))
    return Log([*said, user("and now?")])


class Running:
    """Turns of one session against a server that knows a request for a summary when it sees one."""

    def __init__(self, log, *, summary=None, **values):
        self.log, self.summary = log, summary
        self.summaries, self.answers, self.events = [], [], []
        self.server = ScriptedServer(self._reply)
        self.values = values

    def _reply(self, asked):
        if "nothing else." in last_text(asked.json)[-40:]:
            self.summaries.append(asked.json)
            return self.summary or NO
        self.answers.append(asked.json)
        return chat("yes", thought="hm", usage=None)

    def turns(self, *said):
        with self.server as server:
            side = side_at(server.url, KIMI)
            situation = situation_of(side, **self.values)
            shortener = Shortener(side.engine, self.log)

            async def work():
                for number, text in enumerate(said):
                    if number:
                        self.log.append(user(text))
                    turn = Turn(self.log, lambda: situation, situation, shorten=lambda: shortener)
                    self.events += [event async for event in going(turn)]

            run(side, work())
        return self

    def said(self, *kinds):
        return [event for event in self.events if isinstance(event, kinds)]


def test_a_full_window_is_compressed_before_the_request_goes_out():
    log = full()
    ran = Running(log, summary=chat("THE GIST"), **SMALL).turns("and now?")
    (done,) = ran.said(Compressed)
    assert done.ok
    assert done.text == "compressed 21 messages"
    assert done.before > 6000
    assert done.after < 4000
    assert ran.said(Progressed)
    assert len(ran.summaries) == 3  # the window is small, so it is read in parts
    assert len(ran.answers) == 1
    sent = ran.answers[0]["messages"]
    assert sent[1]["content"].startswith("question 0")
    assert "THE GIST" in sent[2]["content"]
    assert sent[-1]["content"] == "and now?"
    assert [type(record) for record in log][-2] is Summary
    assert isinstance(ran.events[-2], Finished)


def test_what_cannot_be_compressed_goes_out_as_it_is_and_is_not_tried_each_time():
    log = full()
    before = list(log)
    ran = Running(log, **SMALL).turns("and now?", "again?", "and again?")
    (failed,) = ran.said(Compressed)
    assert not failed.ok
    assert failed.text.startswith("not compressed: no summary from moonshotai/kimi-k2.5: ")
    assert "no credit" in failed.text
    assert len(ran.summaries) == 1
    assert len(ran.answers) == 3
    assert list(log)[: len(before)] == before
    assert not log.summaries()


def test_it_is_tried_again_when_the_conversation_has_grown():
    ran = Running(full(), **SMALL).turns("and now?", filler("more", 1200), "again?")
    assert len(ran.summaries) == 2
    assert len(ran.said(Compressed)) == 2


def test_a_window_with_room_is_left_alone():
    ran = Running(full(), summary=chat("gist")).turns("and now?")
    assert not ran.summaries
    assert not ran.said(Compressed, Progressed)


def test_an_estimate_is_counted_again_before_it_costs_anything():
    log = Log([*flat(turn(KIMI, str(n), size=1000) for n in range(10)), user("and now?")])
    side = side_at("http://127.0.0.1:1", KIMI)
    situation = situation_of(side, **SMALL)
    exact = SafeCounter("tenth", True, lambda: lambda text: len(text) // 10)
    counted = replace(situation, counter=exact)
    rough = prepare(log, situation.snapshot, KIMI, situation.options, counter=CHARACTERS)
    assert Shortener(side.engine, log).needed(rough, situation)
    assert not Shortener(side.engine, log).needed(rough, counted)


def test_long_thoughts_are_condensed_before_the_request_goes_out():
    long = ThinkingBlock("BEGIN" + " hm" * 3000, "reasoning_content")
    log = Log([user("q"), assistant(long, TextBlock("a"), origin=KIMI.origin), user("and now?")])
    ran = Running(log, summary=chat("in short"), condenseOver=1000).turns("and now?", "again?")
    assert next(record for record in log if isinstance(record, Condensed)).text == "in short"
    assert len(ran.summaries) == 1
    assert [body["messages"][2]["reasoning_content"] for body in ran.answers] == ["in short"] * 2


def test_thoughts_that_cannot_be_condensed_go_out_whole_and_are_not_tried_again():
    long = ThinkingBlock("BEGIN" + " hm" * 3000, "reasoning_content")
    log = Log([user("q"), assistant(long, TextBlock("a"), origin=KIMI.origin), user("and now?")])
    ran = Running(log, condenseOver=1000).turns("and now?", "again?")
    assert len(ran.summaries) == 1
    assert len(ran.said(Warned)) == 1
    assert all(b["messages"][2]["reasoning_content"] == long.thought for b in ran.answers)


def test_compression_by_command_needs_no_full_window():
    log = full()
    with ScriptedServer([chat("gist")]) as server:
        side = side_at(server.url, KIMI)
        situation = situation_of(side)
        told = []
        shortener = Shortener(side.engine, log)
        (record,) = run(side, shortener.compress(situation, told.append, "one-shot"))
    assert isinstance(record, Summary)
    assert record.strategy == "one-shot"
    assert told[-1] == Compressed(True, "compressed 23 messages", told[-1].before, told[-1].after)
    assert told[-1].after < told[-1].before


def test_thoughts_that_are_bound_to_what_was_said_are_warned_of_before_compression():
    binds = replace(KIMI, compat=replace(KIMI.compat, binds_thinking=True))
    log = full()
    sealed = [{"type": "reasoning.encrypted", "data": "sig"}]
    signed = ThinkingBlock("so", "reasoning_content", wire=listed(sealed))
    log.append(assistant(signed, TextBlock("yes"), origin=binds.origin))
    with ScriptedServer([chat("gist")]) as server:
        side = side_at(server.url, binds)
        situation = situation_of(side, reasoning__includeInContext=True)
        told = []
        run(side, Shortener(side.engine, log).compress(situation, told.append, "one-shot"))
    first, *rest = told
    assert isinstance(first, Warned)
    assert first.text.endswith("1 thought may be left out after compression")
    assert not [event for event in rest if isinstance(event, Warned)]
