"""Long thoughts in their shorter form: which are sent so, what that counts, and what is missing."""

import msgspec
import pytest

from conversations import (
    ELSEWHERE,
    listed,
    plain_turn,
    snapshot,
    target,
    thought,
    thoughts,
    tool_turn,
)
from mull.history.log import Condensed, Log, Undone
from mull.neutral.blocks import TextBlock, ThinkingBlock
from mull.neutral.messages import assistant, user
from mull.policy.prepare import LongThought, prepare, uncondensed

LONG, SHORT = "long " * 40, "in short"
NEEDS = target(compat={"requires_reasoning": "tool_calls"})


def long_log(block=None, origin=None):
    block = block or thought(LONG)
    return Log(
        [
            user("q"),
            assistant(block, TextBlock("a"), origin=origin),
            *plain_turn("small"),
            user("r"),
        ]
    )


def settings(over=50, **more):
    return snapshot(includeInContext=True, **more | ({"condenseOver": over} if over else {}))


def sent(log, chosen=None, where=None):
    return prepare(log, chosen or settings(), where or target())


def test_a_long_thought_goes_in_its_shorter_form():
    log = long_log()
    before = sent(log)
    assert thoughts(before.request.messages) == [LONG, "Tsmall"]
    log.add(Condensed(1, 0, SHORT))
    after = sent(log)
    assert after.request.messages[1].blocks == (thought(SHORT), TextBlock("a"))
    assert after.parts.thinking == before.parts.thinking - 100 + 4
    assert after.raw_tokens == before.raw_tokens
    assert [n.text for n in after.notes if n.about == "reasoning.condenseOver"] == [
        "1 long thought sent as a stored summary"
    ]
    assert [n for n in before.notes if n.about == "reasoning.condenseOver"] == []


@pytest.mark.parametrize("over", [None, 100, 5000])
def test_what_is_not_over_the_limit_is_sent_whole(over):
    log = long_log()
    log.add(Condensed(1, 0, SHORT))
    assert thoughts(sent(log, settings(over)).request.messages) == [LONG, "Tsmall"]


def test_taken_back_the_original_is_sent_again():
    log = long_log()
    log.add(Condensed(1, 0, SHORT))
    log.add(Undone(5, 6))
    assert thoughts(sent(log).request.messages) == [LONG, "Tsmall"]


@pytest.mark.parametrize(
    "carrier",
    [
        {"signature": "EqQB"},
        {"encrypted": "gAAA"},
        {"redacted": "xyz"},
        {"wire": listed([{"type": "reasoning.text", "text": "t"}])},
    ],
)
def test_a_signed_thought_is_never_touched(carrier):
    log = long_log(ThinkingBlock(LONG, **carrier))
    log.add(Condensed(1, 0, SHORT))
    assert thoughts(sent(log).request.messages) == [LONG, "Tsmall"]
    assert uncondensed(log, settings(), target()) == []


def test_thoughts_that_stay_behind_need_no_shorter_form():
    log = long_log()
    chosen = settings(stripFromContext="allButLast")
    assert thoughts(sent(log, chosen).request.messages) == ["Tsmall"]
    assert uncondensed(log, chosen, target()) == []
    assert uncondensed(log, snapshot(condenseOver=50), target()) == []


def test_another_models_thought_is_handed_over_in_its_shorter_form():
    log = long_log(origin=ELSEWHERE)
    chosen = settings(handoff="text")
    assert uncondensed(log, chosen, target()) == [LongThought(1, 0)]
    log.add(Condensed(1, 0, SHORT))
    assert sent(log, chosen).request.messages[1].text == f"(Earlier reasoning) {SHORT}\n\na"
    assert uncondensed(log, chosen, target()) == []
    assert uncondensed(log, settings(), target()) == []


def test_thoughts_that_an_open_chain_needs_are_condensed_too():
    chain = tool_turn("1", 2)[:-1]
    chain[1] = msgspec.structs.replace(chain[1], blocks=(thought(LONG), *chain[1].blocks[1:]))
    log = Log(chain)
    chosen = snapshot(condenseOver=50)
    assert thoughts(sent(log, chosen, NEEDS).request.messages) == [LONG, "T1.1"]
    assert uncondensed(log, chosen, NEEDS) == [LongThought(1, 0)]
    log.add(Condensed(1, 0, SHORT))
    assert thoughts(sent(log, chosen, NEEDS).request.messages) == [SHORT, "T1.1"]


def test_what_lacks_a_shorter_form_is_named_by_its_place_in_the_log():
    log = long_log()
    log.append(assistant(TextBlock("b"), thought(LONG), thought("small"), thought(LONG)))
    log.append(user("s"))
    assert uncondensed(log, settings(), target()) == [
        LongThought(1, 0),
        LongThought(5, 1),
        LongThought(5, 3),
    ]
    log.add(Condensed(1, 0, SHORT))
    log.add(Condensed(5, 3, SHORT))
    assert uncondensed(log, settings(), target()) == [LongThought(5, 1)]
    assert thoughts(sent(log).request.messages) == [SHORT, "Tsmall", LONG, "small", SHORT]


def test_without_a_limit_nothing_is_looked_for():
    assert uncondensed(long_log(), settings(None), target()) == []
