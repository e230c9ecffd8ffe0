"""A turn that any endpoint accepts: pairs complete, nothing unfinished, nothing empty."""

from collections import Counter
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from conversations import messages as any_message
from conversations import thought, tool_turn
from mull.neutral.blocks import OpaqueBlock, TextBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.messages import FAILED, Message, assistant, user
from mull.policy.view import repair
from mull.policy.view.repair import BROKEN_OFF, INTERRUPTED, NO_RESULT, repair_turn


def call(name):
    return ToolCallBlock(name, "f")


def results(*names, role="tool"):
    return Message(role=role, blocks=tuple(ToolResultBlock(name, f"r{name}") for name in names))


def test_a_faultless_turn_passes_as_it_is():
    turn = tool_turn("1", rounds=3)
    repaired = repair_turn(turn)
    assert all(a is b for a, b in zip(repaired.messages, turn, strict=True))
    assert repaired == type(repaired)(tuple(turn))


def test_d16_results_of_parallel_calls_go_out_in_the_order_of_the_calls():
    turn = [user("q"), assistant(call("a"), call("b")), results("a"), results("b")]
    assert repair_turn(turn).messages == tuple(turn)
    turn = [user("q"), assistant(call("a"), call("b")), results("b"), results("a")]
    assert repair_turn(turn).messages == (*turn[:2], results("a", "b"))


def test_an_earlier_round_with_the_same_id_does_not_answer_an_interrupted_call():
    first = [user("q"), assistant(call("a")), results("a")]
    cut = assistant(TextBlock("x"), call("a"), status="interrupted")
    repaired = repair_turn([*first, cut])
    marked = assistant(TextBlock("x"), TextBlock(f"\n\n{INTERRUPTED}"), status="interrupted")
    assert repaired.messages == (*first, marked)
    assert (repaired.interrupted, repaired.unmade_calls, repaired.closed_calls) == (1, 1, 0)


def test_a_call_without_a_result_is_closed_in_call_order():
    turn = [user("q"), assistant(call("a"), call("b"), call("c")), results("c", "a")]
    repaired = repair_turn(turn)
    assert repaired.closed_calls == 1
    assert repaired.messages[2] == Message(
        role="tool",
        blocks=(
            ToolResultBlock("a", "ra"),
            ToolResultBlock("b", NO_RESULT, is_error=True),
            ToolResultBlock("c", "rc"),
        ),
    )


def test_results_of_a_providers_own_calls_stay():
    own = OpaqueBlock({"type": "custom_tool_call", "call_id": "x"})
    output = OpaqueBlock({"type": "custom_tool_call_output", "call_id": "x"})
    turn = [user("q"), assistant(own), Message(role="tool", blocks=(output,))]
    assert repair_turn(turn).messages == tuple(turn)
    given = Message(role="tool", blocks=(output, *results("b", "a").blocks))
    mended = repair_turn([user("q"), assistant(call("a"), own, call("b")), given])
    assert mended.messages[-1].blocks == (*results("a", "b").blocks, output)


def test_a_call_at_the_very_end_is_closed_too():
    repaired = repair_turn([user("q"), assistant(call("a"))])
    assert repaired.messages[-1].blocks == (ToolResultBlock("a", NO_RESULT, is_error=True),)


def test_results_without_their_call_are_left_out():
    turn = [results("z"), user("q"), results("y"), assistant(call("a")), results("a", "x", "a")]
    repaired = repair_turn(turn)
    assert repaired.orphans == 4
    assert repaired.messages == (
        user("q"),
        assistant(call("a")),
        Message(role="tool", blocks=(ToolResultBlock("a", "ra"),)),
    )


def test_equal_ids_in_one_message_pair_up_in_order():
    turn = [user("q"), assistant(call("a"), call("a")), results("a", "a")]
    assert repair_turn(turn).messages == tuple(turn)


def test_results_in_a_users_name_pair_up_too():
    turn = [user("q"), assistant(call("a")), results("a", role="user")]
    assert repair_turn(turn).messages == tuple(turn)


def test_s01_an_interrupted_answer_goes_as_far_as_it_came_and_says_so():
    cut = assistant(thought("t"), TextBlock("par"), status="interrupted")
    repaired = repair_turn([user("q"), cut])
    (_, sent) = repaired.messages
    assert sent.blocks == (*cut.blocks, TextBlock(f"\n\n{INTERRUPTED}"))
    failed = assistant(TextBlock("par"), status="error")
    assert repair_turn([user("q"), failed]).messages[1].text == f"par\n\n{BROKEN_OFF}"
    network = assistant(thought("t"), status="interrupted", stop_reason=FAILED)
    assert repair_turn([user("q"), network]).messages[1].text == BROKEN_OFF


def test_an_interrupted_call_never_ran_and_half_a_pair_of_the_providers_own_is_left_out():
    own = OpaqueBlock({"type": "server_tool_use", "id": "x"})
    cut = assistant(TextBlock("let me"), own, call("a"), status="interrupted")
    repaired = repair_turn([user("q"), cut])
    assert repaired.messages[1].text == f"let me\n\n{INTERRUPTED}"
    assert repaired.messages[1].tool_calls == ()
    assert len(repaired.messages) == 2


def test_an_answer_of_which_nothing_came_is_not_sent():
    for cut in (assistant(status="error"), assistant(TextBlock(" "), status="interrupted")):
        repaired = repair_turn([user("q"), cut])
        assert (repaired.messages, repaired.empty) == ((user("q"),), 1)


def test_an_unfinished_answer_that_the_turn_went_on_without_is_not_sent():
    cut = assistant(thought("t"), status="interrupted")
    turn = [user("q"), cut, user("answer now"), assistant(TextBlock("a"))]
    assert repair_turn(turn).messages == (turn[0], *turn[2:])
    assert repair_turn([cut], goes_on=True).messages == ()


def test_an_interrupted_answer_whose_calls_ran_stays():
    cut = assistant(TextBlock("x"), call("a"), call("b"), status="interrupted")
    repaired = repair_turn([user("q"), cut, results("a")])
    assert repaired.messages[1] is cut
    assert repaired.closed_calls == 1


def test_d09_d25_answers_of_thinking_alone_or_nothing_are_not_sent():
    turn = [user("q"), assistant(thought("t"), status="no_answer"), assistant(), user("r")]
    repaired = repair_turn(turn)
    assert (repaired.messages, repaired.empty) == ((user("q"), user("r")), 2)


@given(st.lists(any_message, max_size=6))
def test_after_repair_every_call_has_its_result_and_every_result_its_call(turn):
    out = repair_turn(turn).messages
    waiting = Counter()
    for message in out:
        returned = Counter(b.call_id for b in message.blocks if isinstance(b, ToolResultBlock))
        if returned:
            assert message.role == "tool" or len(message.blocks) == returned.total()
            assert returned <= waiting
            waiting -= returned
        elif message.role != "tool":
            assert not waiting
            waiting = Counter(call.id for call in message.tool_calls)
            assert not waiting or message.role == "assistant"
    assert not waiting


def test_strays_in_the_wrong_message_are_left_out():
    mixed = Message(role="user", blocks=(ToolResultBlock("z", "r"), TextBlock("hello")))
    repaired = repair_turn([mixed])
    assert (repaired.messages, repaired.orphans) == ((user("hello"),), 1)


def test_answers_of_nothing_but_empty_texts_go():
    said = assistant(TextBlock(""), TextBlock(""))
    assert repair_turn([said]).messages == ()
    assert repair_turn([said]).empty == 1


@given(any_message, st.booleans())
def test_what_is_taken_for_sound_is_what_a_repair_leaves_as_it_is(message, goes_on):
    with mock.patch.object(repair, "_is_sound", return_value=False):
        expected = repair_turn([message], goes_on=goes_on)
    assert repair_turn([message], goes_on=goes_on) == expected
