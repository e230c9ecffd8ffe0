"""Which thinking reaches which endpoint: demands of the protocol, foreign models, thinking off."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import (
    ELSEWHERE,
    decided,
    plain_turn,
    snapshot,
    target,
    thought,
    thoughts,
    tool_turn,
)
from conversations import messages as any_message
from mull.history.log import Entry, Log
from mull.neutral.blocks import OpaqueBlock, TextBlock, ThinkingBlock, ToolCallBlock, Wire
from mull.neutral.errors import MullError
from mull.neutral.messages import Origin, assistant, user
from mull.policy.prepare import prepare

NEEDS = target(compat={"requires_reasoning": "tool_calls"})
WORDS = [{"type": "effort", "values": ("low", "high")}]
BUDGET = [{"type": "budget_tokens", "min": 1024, "max": 64_000}]
CLAUDE = target(
    "anthropic-budget",
    dialect="anthropic",
    options=BUDGET,
    can_be_off=True,
    thinks_by_default=False,
    compat={"requires_reasoning": "tool_calls"},
)


def open_chain(name="1", rounds=2, origin=None):
    return tool_turn(name, rounds, origin)[:-1]


def signed(messages):
    """The same messages, each thought with a signature."""
    return [
        msgspec.structs.replace(
            message,
            blocks=tuple(
                msgspec.structs.replace(b, signature="sig") if isinstance(b, ThinkingBlock) else b
                for b in message.blocks
            ),
        )
        for message in messages
    ]


def sent(log, where, **settings):
    return prepare(Log(log), snapshot(**settings), where).request.messages


def said(log, where, **settings):
    return [note.text for note in prepare(Log(log), snapshot(**settings), where).notes]


def test_an_open_tool_chain_keeps_what_the_protocol_needs():
    log = plain_turn("0") + open_chain()
    assert thoughts(sent(log, NEEDS)) == ["T1.0", "T1.1"]
    assert (
        "2 thoughts of the open tool chain sent anyway: the endpoint requires them;"
        " when the chain ends they are left out, which ends the prompt cache" in said(log, NEEDS)
    )
    assert "1 stored thought not sent, as set" in said(log, NEEDS)


def test_a_closed_chain_is_up_to_the_user():
    assert thoughts(sent([*tool_turn("1"), user("next")], NEEDS)) == []


def test_ec_006_a_chain_goes_back_whole_to_the_server_that_sent_it():
    assert thoughts(sent(open_chain(), target())) == ["T1.0", "T1.1"]
    told = [text.partition(";")[0] for text in said(open_chain(), target())]
    assert "2 thoughts of the open tool chain sent back to the server that sent them" in told


def test_an_endpoint_that_demands_nothing_gets_nothing_once_the_chain_is_closed():
    assert thoughts(sent([*tool_turn("1"), user("next")], target())) == []


def test_br_006_off_leaves_old_thoughts_out_except_what_the_chain_demands():
    log = plain_turn("0") + open_chain()
    kept = {"includeInContext": True}
    stops = target("thinking-type", options=[{"type": "toggle"}])
    unknown = target("thinking-type", options=[{"type": "toggle"}], known=False)
    for off in ({"enabled": False}, {"effort": "none"}):
        assert thoughts(sent(log, stops, **kept, **off)) == []
        assert "3 stored thoughts not sent: thinking is off" in said(log, stops, **kept, **off)
        for may_think in (NEEDS, target(), unknown):
            assert thoughts(sent(log, may_think, **kept, **off)) == ["T1.0", "T1.1"]


@pytest.mark.parametrize(
    ("settings", "blamed"),
    [
        ({}, "reasoning.includeInContext"),
        ({"stripFromContext": "all"}, "reasoning.stripFromContext"),
        ({"includeInContext": True, "stripFromContext": "all"}, "reasoning.stripFromContext"),
        ({"includeInContext": True, "enabled": False}, "reasoning.enabled"),
    ],
)
def test_the_setting_that_leaves_a_thought_out_is_the_one_that_is_named(settings, blamed):
    prepared = prepare(Log([*plain_turn("0"), user("q")]), snapshot(**settings), target())
    left_out = [note.about for note in prepared.notes if "not sent" in note.text]
    assert left_out == [blamed]


@pytest.mark.parametrize("strip", ["all", "allButLast"])
def test_strip_policies_do_not_break_an_open_chain(strip):
    log = plain_turn("0") + open_chain()
    got = thoughts(sent(log, NEEDS, includeInContext=True, stripFromContext=strip))
    assert got == ["T1.0", "T1.1"]


SIGNED = ThinkingBlock("t", "thinking", signature="EqQB")


def test_a_carrier_goes_only_to_its_origin():
    own = assistant(SIGNED, TextBlock("a"), origin=CLAUDE.origin)
    log = [user("q"), own, user("r")]
    assert sent(log, CLAUDE, includeInContext=True)[1] is own
    for change in (
        Origin("acme", "anthropic", "thinker", "https://elsewhere.example"),
        Origin("acme", "anthropic", "other", "https://acme.example/v1"),
        Origin("acme", "openai-chat", "thinker", "https://acme.example/v1"),
        Origin("vertex", "anthropic", "thinker", "https://acme.example/v1"),
    ):
        foreign = assistant(SIGNED, TextBlock("a"), origin=change)
        assert sent([user("q"), foreign, user("r")], CLAUDE, includeInContext=True)[1].blocks == (
            TextBlock("a"),
        )


def test_switching_back_restores_the_carriers():
    """The log keeps everything; only the view differs."""
    first = assistant(SIGNED, TextBlock("a"), origin=CLAUDE.origin)
    second = assistant(thought("x"), TextBlock("b"), origin=ELSEWHERE)
    log = Log([user("q"), first, user("r"), second, user("s")])
    settings = snapshot(includeInContext=True)
    away = prepare(log, settings, target()).request.messages
    assert thoughts(away) == []
    back = prepare(log, settings, CLAUDE).request.messages
    assert back[1] is first
    assert back[3].blocks == (TextBlock("b"),)


def test_foreign_blocks_lose_what_only_their_origin_understands():
    foreign = assistant(
        TextBlock("a", signature="s", wire=Wire("openai-responses", {"id": "msg_1"})),
        OpaqueBlock({"type": "server_tool_use"}),
        ToolCallBlock("c", "f", {"x": 1}, signature="s", wire=Wire("openai-responses", {"y": 1})),
        origin=ELSEWHERE,
    )
    shown = sent([user("q"), foreign], target())
    assert shown[1].blocks == (TextBlock("a"), ToolCallBlock("c", "f", {"x": 1}))


def test_a_message_without_origin_is_vouched_for():
    own = assistant(SIGNED, TextBlock("a"))
    assert sent([user("q"), own, user("r")], CLAUDE, includeInContext=True)[1] is own


def test_handoff_as_text_is_asked_for_and_never_in_tags():
    log = [*plain_turn("1", origin=ELSEWHERE), user("next")]
    assert thoughts(sent(log, target(), includeInContext=True)) == []
    assert "1 thought of another model left out" in said(log, target(), includeInContext=True)
    shown = sent(log, target(), includeInContext=True, handoff="text")
    assert shown[1].text == "(Earlier reasoning) T1\n\nanswer 1"
    assert "<" not in shown[1].text
    assert "1 thought of another model sent as text" in said(
        log, target(), includeInContext=True, handoff="text"
    )
    assert sent(log, target(), handoff="text")[1].text == "answer 1"


def test_no_thought_is_handed_over_to_a_model_that_declines_them():
    log, where = [*plain_turn("1", origin=ELSEWHERE), user("next")], target(declines_thoughts=True)
    asked = {"includeInContext": True, "handoff": "text"}
    assert sent(log, where, **asked)[1].text == "answer 1"
    assert any(
        "declines requests that contain thinking" in text for text in said(log, where, **asked)
    )


def test_thinking_off_takes_no_thoughts_along_where_the_endpoint_forbids_them():
    log = open_chain(origin=CLAUDE.origin)
    assert thoughts(sent(log, CLAUDE, enabled=False, includeInContext=True)) == []
    assert "2 thoughts left out: the endpoint accepts none while thinking is off" in said(
        log, CLAUDE, enabled=False
    )
    kept = thoughts(sent(open_chain(), NEEDS, enabled=False, includeInContext=True))
    assert kept == ["T1.0", "T1.1"]


def test_a_chain_that_began_without_a_usable_thought_goes_on_without_thinking():
    log = open_chain(origin=ELSEWHERE)
    prepared = prepare(Log(log), snapshot(effort="high"), CLAUDE)
    assert prepared.request.thinking.state == "absent"
    assert prepared.notes[0].text == (
        "Thinking is off for this request: its tool chain began without a thought"
        " that acme/thinker can verify"
    )
    assert prepared.notes[0].warning
    unsigned = prepare(Log(open_chain(origin=CLAUDE.origin)), snapshot(effort="high"), CLAUDE)
    assert unsigned.request.thinking.state == "absent"
    chain = signed(open_chain(origin=CLAUDE.origin))
    own = prepare(Log(chain), snapshot(effort="high"), CLAUDE)
    assert own.request.thinking.state == "on"
    assert thoughts(own.request.messages) == ["T1.0", "T1.1"]


def without_thoughts(message):
    blocks = tuple(b for b in message.blocks if not isinstance(b, ThinkingBlock))
    return msgspec.structs.replace(message, blocks=blocks)


def test_a_later_round_without_a_thought_does_not_end_the_thinking_of_its_chain():
    chain = signed(open_chain(rounds=3, origin=CLAUDE.origin))
    chain[3] = without_thoughts(chain[3])
    prepared = prepare(Log(chain), snapshot(effort="high"), CLAUDE)
    assert prepared.request.thinking.state == "on"
    assert thoughts(prepared.request.messages) == ["T1.0", "T1.2"]
    chain[1], chain[3] = without_thoughts(chain[1]), chain[5]  # now the first has none
    assert prepare(Log(chain), snapshot(effort="high"), CLAUDE).request.thinking.state == "absent"


@pytest.mark.parametrize("stranger", [1, 3, 5])
def test_a_chain_that_another_model_had_a_part_in_goes_on_without_thinking(stranger):
    chain = signed(open_chain(rounds=3, origin=CLAUDE.origin))
    chain[stranger] = msgspec.structs.replace(chain[stranger], origin=ELSEWHERE)
    prepared = prepare(Log(chain), snapshot(effort="high"), CLAUDE)
    assert prepared.request.thinking.state == "absent"
    closed = [*chain, assistant(TextBlock("done"), origin=CLAUDE.origin), user("and?")]
    assert prepare(Log(closed), snapshot(effort="high"), CLAUDE).request.thinking.state == "on"


def nudged(chain, more):
    """A chain in which mull had to ask the model to go on."""
    log = Log(chain)
    log.add(Entry(user("go on"), own=True))
    for message in more:
        log.append(message)
    return log


def test_words_that_mull_wrote_do_not_end_the_turn_whose_thoughts_are_kept():
    chain = open_chain(rounds=2)
    log = nudged(chain, open_chain("2", 1)[1:])
    settings = snapshot(includeInContext=True, stripFromContext="allButLast")
    prepared = prepare(log, settings, target())
    assert thoughts(prepared.request.messages) == ["T1.0", "T1.1", "T2.0"]
    assert [m.text for m in prepared.request.messages if m.role == "user"][-1] == "go on"
    spoken = prepare(Log([*chain, user("go on"), *open_chain("2", 1)[1:]]), settings, target())
    assert thoughts(spoken.request.messages) == ["T2.0"]


def test_to_an_endpoint_a_chain_begins_after_whatever_was_said_in_the_users_name():
    chain = signed(open_chain(origin=CLAUDE.origin))
    more = signed(open_chain("2", 1, CLAUDE.origin))[1:]
    on = prepare(nudged(chain, more), snapshot(effort="high"), CLAUDE)
    assert on.request.thinking.state == "on"
    more[0] = without_thoughts(more[0])
    off = prepare(nudged(chain, more), snapshot(effort="high"), CLAUDE)
    assert off.request.thinking.state == "absent"


def test_a_thought_that_stands_first_is_enough_even_if_it_is_the_users_wish_to_strip():
    log = signed(open_chain(origin=CLAUDE.origin))
    prepared = prepare(Log(log), snapshot(stripFromContext="all"), CLAUDE)
    assert prepared.request.thinking.state == "on"


def test_ec_006_the_thought_stands_before_its_call():
    blocks = sent(open_chain(), NEEDS)[1].blocks
    assert [type(block).__name__ for block in blocks] == ["ThinkingBlock", "ToolCallBlock"]


def test_closed_calls_are_warned_of_until_the_user_has_seen_the_next_answer():
    cut = [user("q"), assistant(ToolCallBlock("c1", "look", {}))]
    log = Log(cut)

    def warned():
        notes = prepare(log, snapshot(), target()).notes
        (note,) = [one for one in notes if one.kind == "closed_calls"]
        assert note.text == "1 tool call without a result closed"
        return note.warning

    seen = [warned()]
    for turn in (plain_turn("1"), plain_turn("2")):
        for message in turn:
            log.append(message)
            seen.append(warned())
    assert seen == [True, True, True, False, False]


@given(
    st.lists(any_message, max_size=5),
    st.sampled_from([NEEDS, CLAUDE, msgspec.structs.replace(NEEDS, refused=("x",))]),
    st.sampled_from(["drop", "text"]),
)
def test_messages_of_words_alone_are_viewed_as_a_closer_look_would_view_them(log, where, handoff):
    def view():
        try:
            return decided(prepare(Log(log), snapshot(handoff=handoff), where))
        except MullError as error:
            return str(error)

    at_once = view()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mull.policy.view.log.is_plain", lambda message: False)
        assert view() == at_once
