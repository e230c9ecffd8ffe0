"""The one view: never changes the log, counts what it sends, and costs only what is new."""

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
    tool_turn,
)
from conversations import messages as any_message
from mull.history.log import Entry, Log
from mull.neutral.blocks import TextBlock
from mull.neutral.messages import assistant, messages_to_json, user
from mull.neutral.request import RequestOptions, Tool
from mull.policy.prepare import prepare
from mull.policy.tokens import (
    CHARACTERS,
    MESSAGE_OVERHEAD,
    SafeCounter,
    count_blocks,
    count_tools,
)
from mull.tokenizers import counter_named

BUDGET = [{"type": "budget_tokens", "min": 1024, "max": 64_000}]
TARGETS = [
    target(),
    target("openai-effort", compat={"requires_reasoning": "tool_calls"}),
    target(
        "anthropic-budget",
        dialect="anthropic",
        options=BUDGET,
        can_be_off=True,
        thinks_by_default=False,
        compat={"requires_reasoning": "tool_calls"},
    ),
]
some_settings = st.fixed_dictionaries(
    {},
    optional={
        "includeInContext": st.booleans(),
        "stripFromContext": st.sampled_from(["all", "allButLast", "none"]),
        "handoff": st.sampled_from(["drop", "text"]),
        "enabled": st.booleans(),
        "effort": st.sampled_from(["none", "low", "high"]),
    },
)
turns = st.one_of(
    st.builds(plain_turn, st.just("p"), thinks=st.booleans()),
    st.builds(tool_turn, st.just("t"), st.integers(1, 2), st.sampled_from([None, ELSEWHERE])),
    st.builds(lambda message: [user("q"), message], any_message),
    st.just([user("q"), assistant(thought("cut"), status="interrupted")]),
)
histories = st.lists(turns, max_size=4).map(lambda parts: [m for turn in parts for m in turn])


def recount(prepared, conversation):
    """The count from scratch: everything the request holds, block by block."""
    request = prepared.request
    total = sum(MESSAGE_OVERHEAD + count_blocks(m.blocks, CHARACTERS) for m in request.messages)
    if request.system:
        total += CHARACTERS.count(request.system) + MESSAGE_OVERHEAD
    return total + count_tools(request.tools, CHARACTERS)


WORDS = SafeCounter("words", False, lambda: lambda text: len(text.split()))


@given(histories, some_settings, st.sampled_from(TARGETS), st.integers(0, 8))
def test_the_estimate_from_characters_is_of_what_is_sent_whatever_counts(
    history, settings, where, before
):
    log, options = Log(history[:before]), RequestOptions(system="be brief")
    prepare(log, snapshot(**settings), where, options, counter=WORDS)
    for message in history[before:]:
        log.append(message)
    prepared = prepare(log, snapshot(**settings), where, options, counter=WORDS)
    assert prepared.characters == recount(prepared, options)


@given(histories | st.lists(any_message, max_size=8), some_settings, st.sampled_from(TARGETS))
def test_prepare_never_changes_the_log(history, settings, where):
    log = Log(history)
    before = messages_to_json(log.messages)
    prepare(log, snapshot(**settings), where)
    assert messages_to_json(log.messages) == before
    assert all(kept is given for kept, given in zip(log.messages, history, strict=True))


@given(histories, some_settings, st.sampled_from(TARGETS), st.text(max_size=20))
def test_the_effective_count_is_the_count_of_what_is_sent(history, settings, where, system):
    conversation = RequestOptions(system=system, tools=(Tool("f", "does", {"type": "object"}),))
    prepared = prepare(Log(history), snapshot(**settings), where, conversation)
    assert prepared.tokens == recount(prepared, conversation)


@given(histories, st.lists(some_settings, min_size=1, max_size=3), st.sampled_from(TARGETS))
def test_growing_step_by_step_equals_starting_afresh(history, settings, where):
    """The cache of a growing log gives what a new log gives, through changes of settings too."""
    growing = Log()
    for at, message in enumerate(history):
        growing.append(message)
        now = snapshot(**settings[at % len(settings)])
        afresh = prepare(Log(growing.messages), now, where)
        assert decided(prepare(growing, now, where)) == decided(afresh)


@given(histories, some_settings, st.sampled_from(TARGETS))
def test_what_was_given_out_does_not_change_when_the_log_grows(history, settings, where):
    log, now, given_out = Log(), snapshot(**settings), []
    for message in history:
        log.append(message)
        sent = prepare(log, now, where).request.messages
        given_out.append((sent, tuple(sent)))
    assert all(sent == before for sent, before in given_out)


def test_messages_of_a_request_are_a_sequence_like_any_other():
    sent = prepare(Log([user("a"), user("b"), user("c")]), snapshot(), target()).request.messages
    assert sent[-1] == user("c")
    assert sent[1:] == (user("b"), user("c"))
    assert sent == (user("a"), user("b"), user("c"))
    assert sent != (user("a"), user("b"))
    assert sent != 3
    assert repr(sent) == repr(tuple(sent))
    with pytest.raises(IndexError):
        sent[3]


def test_bookkeeping_of_the_log():
    log = Log([user("a")])
    entry = log.append(assistant(TextBlock("b")), at=3.5)
    assert entry == Entry(assistant(TextBlock("b")), 3.5)
    assert (len(log), log[1], next(iter(log)).message) == (2, entry, user("a"))


def test_req_think_005_1_br_004_stripped_thinking_does_not_count():
    long = "x" * 3000
    log = Log([user("q"), assistant(thought(long), TextBlock("a")), user("r")])
    without = prepare(log, snapshot(), target())
    included = prepare(log, snapshot(includeInContext=True), target())
    assert included.tokens - without.tokens == 1500
    assert without.raw_tokens == included.raw_tokens == included.tokens


def test_br_008_ec_004_settings_apply_from_the_next_request_and_history_stays():
    log = Log([*plain_turn("1"), user("next")])
    sent = [
        len(prepare(log, snapshot(includeInContext=on), target()).request.messages[1].thinking)
        for on in (False, True, False)
    ]
    assert sent == [0, 1, 0]
    assert log[1].message.thinking == (thought("T1"),)


def test_br_002_br_009_the_log_holds_every_thought_whatever_the_policy():
    log = Log(tool_turn("1", rounds=2))
    for strip in ("all", "allButLast", "none"):
        prepare(log, snapshot(stripFromContext=strip), target())
    assert sum(len(entry.message.thinking) for entry in log) == 3


def test_br_007_native_behaves_as_field():
    log = Log([*tool_turn("1"), user("next")])
    field, native = (
        decided(prepare(log, snapshot(includeInContext=True, format=form), TARGETS[1]))
        for form in ("field", "native")
    )
    assert field == native


def test_a_request_without_thinking_still_fits_the_window():
    chain = tool_turn("1", origin=ELSEWHERE)[:-1]
    log = Log([user("x" * 380_000), *chain[1:]])
    prepared = prepare(log, snapshot(effort="high"), TARGETS[2])
    assert prepared.request.thinking.state == "absent"
    assert prepared.request.max_tokens == 200_000 - prepared.tokens


def test_the_display_form():
    log = Log([user("abcdef")])
    assert prepare(log, snapshot(), target(context=212_000)).meter == "7/212000"
    assert prepare(log, snapshot(context__limit=99), target()).meter == "7/99"
    assert prepare(log, snapshot(), target(context=None)).meter == "7/?"


def test_the_request_carries_what_was_asked():
    conversation = RequestOptions(
        system="be brief", tool_choice="auto", temperature=0.5, max_tokens=77, stream=False
    )
    settings = snapshot(includeInContext=True, fieldName="reasoning")
    request = prepare(Log([user("q")]), settings, target(), conversation).request
    assert (request.system, request.tool_choice, request.temperature) == ("be brief", "auto", 0.5)
    assert (request.max_tokens, request.stream) == (77, False)
    assert (request.keep_thinking, request.reasoning_field) == (True, "reasoning")
    stripped = snapshot(includeInContext=True, stripFromContext="allButLast")
    assert not prepare(Log([user("q")]), stripped, target()).request.keep_thinking


def test_err_002_is_told_once():
    def load():
        raise RuntimeError("no file")

    counter = SafeCounter("x", True, load)
    log = Log([user("q")])
    first = prepare(log, snapshot(), target(), counter=counter)
    again = prepare(log, snapshot(), target(), counter=counter)
    assert [note.about for note in first.notes if note.warning] == ["tokens"]
    assert [note for note in again.notes if note.warning] == []
    assert (again.counter, again.exact) == ("characters", False)


def test_a_real_counter_is_named_and_used():
    prepared = prepare(
        Log([user("hello world")]), snapshot(), target(), counter=counter_named("o200k_base")
    )
    assert prepared.tokens == 2 + MESSAGE_OVERHEAD
    assert (prepared.counter, prepared.exact) == ("o200k_base", False)


def test_the_budget_follows_the_real_size_of_the_context():
    log = Log([user("x" * 400_000)])
    prepared = prepare(log, snapshot(effort="high"), TARGETS[2])
    assert prepared.tokens == 200_004
    assert prepared.request.max_tokens is not None
    small = prepare(Log([user("x")]), snapshot(effort="high"), TARGETS[2])
    assert small.request.thinking.budget == 62_976
    middle = prepare(Log([user("x" * 310_000)]), snapshot(effort="high"), TARGETS[2])
    assert middle.request.thinking.budget == 10_000


@pytest.mark.parametrize("tail", [1, 3])
def test_a_new_turn_touches_only_what_is_new(tail):
    counted = []

    class Spy:
        name, exact = "spy", False

        def count(self, text):
            counted.append(text)
            return len(text)

    log = Log([m for n in range(50) for m in plain_turn(str(n))])
    settings = snapshot(includeInContext=True, stripFromContext="allButLast")
    prepare(log, settings, target(), counter=Spy())
    counted.clear()
    for n in range(tail):
        log.append(user(f"new {n}"))
    prepare(log, settings, target(), counter=Spy())
    assert counted == [f"new {n}" for n in range(tail)]
