"""The parts of a count: taken from what is sent, complete, and kept up to date as the log grows."""

from hypothesis import given
from hypothesis import strategies as st

from conversations import ELSEWHERE, decided, plain_turn, snapshot, target, thought, tool_turn
from conversations import messages as any_message
from mull.history.log import Condensed, Log, Summary, Undone
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import RequestOptions, Tool
from mull.policy.parts import Parts
from mull.policy.prepare import prepare
from mull.policy.tokens import CHARACTERS, MESSAGE_OVERHEAD, count_block, count_tools

NEEDS = target(compat={"requires_reasoning": "tool_calls"})
OPTIONS = RequestOptions(system="be brief", tools=(Tool("f", "does", {"type": "object"}),))
settings = st.fixed_dictionaries(
    {},
    optional={
        "includeInContext": st.booleans(),
        "stripFromContext": st.sampled_from(["all", "allButLast", "none"]),
        "handoff": st.sampled_from(["drop", "text"]),
        "condenseOver": st.sampled_from([1, 5, 100]),
    },
)
turns = st.one_of(
    st.builds(plain_turn, st.just("p"), thinks=st.booleans()),
    st.builds(tool_turn, st.just("t"), st.integers(1, 3), st.sampled_from([None, ELSEWHERE])),
    st.builds(lambda n: tool_turn("u", n)[:-1], st.integers(1, 3)),
    st.builds(lambda message: [user("q"), message], any_message),
    st.just([user("q"), assistant(thought("cut"), status="interrupted")]),
)
histories = st.lists(turns, max_size=4).map(lambda parts: [m for turn in parts for m in turn])


def tokens_of(messages, role, *kinds):
    found = (b for m in messages if m.role in role for b in m.blocks if isinstance(b, kinds))
    return sum(count_block(block, CHARACTERS) for block in found)


@given(histories, settings, st.sampled_from([target(), NEEDS]))
def test_the_parts_are_the_parts_of_what_is_sent(history, chosen, where):
    prepared = prepare(Log(history), snapshot(**chosen), where, OPTIONS)
    sent, parts = prepared.request.messages, prepared.parts
    everyone = ("system", "user", "assistant", "tool")
    assert parts.tools == count_tools(OPTIONS.tools, CHARACTERS)
    assert parts.thinking == tokens_of(sent, everyone, ThinkingBlock)
    assert parts.calls == tokens_of(sent, everyone, ToolCallBlock)
    assert parts.user == tokens_of(sent, ("user",), TextBlock) + MESSAGE_OVERHEAD * sum(
        message.role == "user" and not message.carries_results for message in sent
    )
    assert parts.answers == tokens_of(sent, ("assistant",), TextBlock) + MESSAGE_OVERHEAD * sum(
        message.role == "assistant" for message in sent
    )
    assert prepared.tokens == parts.total


@given(histories, settings)
def test_what_is_stored_counts_the_same_whatever_is_sent(history, chosen):
    prepared = prepare(Log(history), snapshot(**chosen), target(), OPTIONS)
    blocks = sum(count_block(block, CHARACTERS) for m in history for block in m.blocks)
    fixed = prepare(Log(), snapshot(), target(), OPTIONS).tokens
    assert prepared.raw_tokens == fixed + blocks + MESSAGE_OVERHEAD * len(history)


@given(histories, st.lists(settings, min_size=1, max_size=2), st.data())
def test_any_records_step_by_step_give_what_a_new_log_gives(history, chosen, data):
    """Summaries, shorter thoughts and things taken back too, through changes of settings."""
    growing = Log()
    for at, message in enumerate(history):
        growing.append(message)
        if data.draw(st.booleans()):
            growing.add(data.draw(some_record(growing)))
        now = snapshot(**chosen[at % len(chosen)])
        fresh = Log(records=list(growing))
        assert decided(prepare(growing, now, NEEDS)) == decided(prepare(fresh, now, NEEDS))


def some_record(log):
    place = st.integers(0, len(log) - 1)
    ranges = st.tuples(place, place).map(sorted)
    shorter = [
        Condensed(position, at, "short")
        for position, entry in log.entries()
        for at, block in enumerate(entry.message.blocks)
        if isinstance(block, ThinkingBlock)
    ]
    return st.one_of(
        ranges.map(lambda ends: Undone(ends[0], ends[1] + 1)),
        ranges.map(lambda ends: Summary(ends[0], ends[1] + 1, "in short")),
        st.sampled_from(shorter or [Undone(0, 0)]),
    )


def test_a_round_of_an_open_turn_touches_only_what_is_new(monkeypatch):
    """A chain of many rounds is not looked through again with each of them."""
    from mull.policy.view import log as logview

    chain = tool_turn("1", 40)
    log = Log(chain[:-5])
    prepare(log, snapshot(includeInContext=True), NEEDS)
    seen = []
    view = logview.view_repaired

    def spy(repaired, *more):
        seen.extend(repaired.messages)
        return view(repaired, *more)

    monkeypatch.setattr(logview, "view_repaired", spy)
    for message in chain[-5:-3]:
        log.append(message)
    prepared = prepare(log, snapshot(includeInContext=True), NEEDS)
    assert seen == chain[-5:-3]
    assert list(prepared.request.messages) == chain[:-3]


def test_a_late_result_takes_the_place_of_the_stand_in():
    call = ToolCallBlock("c", "look")
    log = Log([user("q"), assistant(call)])
    first = prepare(log, snapshot(), target()).request.messages
    assert first[2].blocks[0].is_error
    result = Message(role="tool", blocks=(ToolResultBlock("c", "seen"),))
    log.append(result)
    assert prepare(log, snapshot(), target()).request.messages[2] is result
    assert first[2].blocks[0].is_error


def test_parts_add_up_and_subtract():
    one, two = Parts(system=1, user=2, thinking=3), Parts(user=10, other=5)
    assert one + two == Parts(system=1, user=12, thinking=3, other=5)
    assert (one + two) - two == one
    assert (one + two).total == 21


def test_results_sent_in_the_users_name_are_results():
    mixed = Message(role="user", blocks=(ToolResultBlock("c", "abcdef"),))
    log = [user("q"), assistant(ToolCallBlock("c", "f")), mixed]
    parts = prepare(Log(log), snapshot(), target()).parts
    assert (parts.results, parts.user) == (3 + MESSAGE_OVERHEAD, 1 + MESSAGE_OVERHEAD)
