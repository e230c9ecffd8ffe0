"""Document 001's matrix: strip first, then include (BR-005), for every history shape."""

import pytest

from conversations import plain_turn, snapshot, target, thoughts, tool_turn
from mull.history.log import Log
from mull.neutral.messages import user
from mull.policy.prepare import prepare

HISTORIES = {
    "none": plain_turn("1", thinks=False) + plain_turn("2", thinks=False),
    "one": plain_turn("1", thinks=False) + plain_turn("2") + plain_turn("3", thinks=False),
    "many": plain_turn("1") + plain_turn("2") + plain_turn("3"),
    "one with tools": plain_turn("1", thinks=False) + tool_turn("2", rounds=2),
    "many with tools": tool_turn("1") + plain_turn("2") + tool_turn("3", rounds=2),
}
STORED = {
    "none": [],
    "one": ["T2"],
    "many": ["T1", "T2", "T3"],
    "one with tools": ["T2.0", "T2.1", "T2"],
    "many with tools": ["T1.0", "T1", "T2", "T3.0", "T3.1", "T3"],
}
LAST = {**STORED, "many": ["T3"], "many with tools": ["T3.0", "T3.1", "T3"]}


@pytest.mark.parametrize("shape", HISTORIES)
@pytest.mark.parametrize("include", [None, False, True])
@pytest.mark.parametrize("strip", ["all", "allButLast", "none"])
def test_br_005_strip_then_include(shape, include, strip):
    """All nine, on all shapes.

    REQ-THINK-004.1, REQ-THINK-004.2, REQ-THINK-004.3, REQ-THINK-004.4, REQ-THINK-004.5
    """
    values = {"stripFromContext": strip}
    if include is not None:
        values["includeInContext"] = include
    log = Log([*HISTORIES[shape], user("and now?")])
    sent = thoughts(prepare(log, snapshot(**values), target()).request.messages)
    expected = {"all": [], "allButLast": LAST[shape], "none": STORED[shape]}[strip]
    assert sent == (expected if include else [])


@pytest.mark.parametrize("shape", HISTORIES)
@pytest.mark.parametrize("strip", ["all", "allButLast", "none"])
def test_req_think_005_3_the_count_follows_the_settings(shape, strip):
    log = Log([*HISTORIES[shape], user("and now?")])
    counted = {}
    for include in (False, True):
        prepared = prepare(
            log, snapshot(includeInContext=include, stripFromContext=strip), target()
        )
        counted[include] = prepared.tokens
        assert prepared.tokens <= prepared.raw_tokens
    kept = {"all": [], "allButLast": LAST[shape], "none": STORED[shape]}[strip]
    assert counted[True] - counted[False] == sum(-(-len(text) // 2) for text in kept)
