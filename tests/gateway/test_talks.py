"""Whole conversations of every kind of client, on every upstream and from one to another."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conversations import messages as any_message
from effort import tried
from gateway.talking import (
    UPSTREAMS,
    Change,
    Held,
    Round,
    conversations,
    hold,
    manners,
    own,
    shortened_conversations,
    world,
)
from gateway.test_square import Broken
from growth import ends
from mull.gateway.anchors import carriers_of
from mull.gateway.attach import attach, keys_of
from mull.gateway.memory import InProcess
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolResultBlock
from mull.neutral.messages import Message, assistant
from mull.testing import Call, Say, Think
from mull.testing.ledger import Ledger
from talks import TALKS, Manner, Result

LOOK = Call("look", {"at": "a"})


def SHUT(_):
    """No envelope opens."""


@pytest.fixture(scope="module")
def everything():
    with world(InProcess()) as made:
        yield made


@pytest.fixture(scope="module")
def forgetful():
    with world(Broken(), remembers=False) as made:
        yield made


@pytest.mark.parametrize("dialect", TALKS)
@tried(0.4)
@given(data=st.data())
def test_no_conversation_loses_a_thought(everything, dialect, data):
    hold(everything, TALKS[dialect](data.draw(manners)), data.draw(conversations()))


@pytest.mark.parametrize("dialect", TALKS)
@tried(0.2)
@given(data=st.data())
def test_turns_keep_their_thoughts_after_older_ones_were_dropped(everything, dialect, data):
    hold(everything, TALKS[dialect](data.draw(manners)), data.draw(shortened_conversations()))


@pytest.mark.parametrize("dialect", [name for name in TALKS if name != "stored"])
@pytest.mark.parametrize("upstream", ["gemini", "deepseek"])
@pytest.mark.parametrize("acts", [[Think("a")], [Think("a"), LOOK]], ids=["text", "call"])
def test_dropping_the_first_turn_costs_the_second_nothing(everything, dialect, upstream, acts):
    one = Held(TALKS[dialect](Manner(drops=True)))
    calls = [Result() for act in acts if act is LOOK]
    for number in range(3):
        one.begin(f"{upstream} to {dialect} with {len(calls)}, {number}")
        if calls:
            one.take_round(everything, Round(acts, upstream, False, 0, calls, [0]))
        one.take_round(everything, Round([Think("b"), Say("Yes.")], upstream, False, 0))
        if number == 1:
            one.change(Change("drop", 0.5))


def test_the_same_words_in_two_turns_are_never_one_answer_restored_twice(everything):
    one = Held(TALKS["responses"](Manner(drops=True)))
    for number, words in enumerate(["begin", "go on, then", "go on, then", "go on, then"]):
        one.begin(words)
        one.take_round(everything, Round([Think(words), Say("Yes.")], "openai", False, 0))
        if number == 0:
            one.change(Change("drop", 0.5))
            one.altered = True  # from here on nothing tells its equal turns apart
    issued = [carrier for turn in one.carriers[:-1] for _, some in turn for carrier in some]
    came = list(everything.upstreams["openai"].server.returned[-1])
    assert [carrier for carrier in issued if carrier in came] == came


def held(made, talk, upstream, *answers, stream=False, question=None):
    """One turn; the property's own checks are in each round."""
    one = Held(talk)
    one.begin(question or own("go"))
    for acts in answers:
        results = [Result() for act in acts if isinstance(act, Call)]
        one.take_round(made, Round(acts, upstream, stream, 0, results, range(len(results))))


PIECES = [Say("I look."), Think("a"), LOOK, Think("b"), LOOK]


@pytest.mark.parametrize("dialect", ["messages", "contents"])
@pytest.mark.parametrize("drops", [False, True])
def test_an_answer_sent_back_block_by_block_is_known(everything, dialect, drops):
    talk = TALKS[dialect](Manner(drops=drops, splits=True))
    held(everything, talk, "openai", PIECES, [Think("c"), Say("Done.")])


def test_pieces_known_from_another_conversation_are_still_pieces(everything):
    """The first text of an answer may be all that another one said to the same question."""
    question = own("go")
    held(everything, TALKS["contents"](), "kimi", [Say("I look.")], question=question)
    talk = TALKS["contents"](Manner(drops=True, splits=True, nameless=True))
    held(everything, talk, "openai", PIECES, [Say("Done.")], question=question)


@pytest.mark.parametrize("dialect", TALKS)
def test_texts_trimmed_piece_by_piece_are_still_the_same(everything, dialect):
    talk = TALKS[dialect](Manner(respaces=True))
    acts = [Think("a"), Say(" one\n"), Think("b"), Say("\ntwo "), LOOK]
    held(everything, talk, "anthropic-bound", acts, [Say("Done.")])


class Lost(InProcess):
    """A store that works, but whose records are gone."""

    async def keep(self, scope, keys, data):
        return []


@pytest.fixture(scope="module")
def without_records():
    with world(Lost(), remembers=False) as made:
        yield made


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("dialect", ["chat", "messages", "contents", "responses"])
@pytest.mark.parametrize("store", ["forgetful", "without_records"])
def test_a_faithful_client_needs_no_store(store, dialect, upstream, stream, request):
    made = request.getfixturevalue(store)
    made.upstreams[upstream].script.clear()
    first = [Think("a"), Say("I look."), LOOK, LOOK]
    if upstream not in ("kimi", "deepseek"):
        first = [Think("a"), Think("b", hidden=True), Say("I look."), LOOK, Think("c"), LOOK]
    one = Held(TALKS[dialect]())
    # other APIs have no place for the signature of a text, which Gemini does not insist on
    last = [] if upstream == "gemini" and dialect != "contents" else [[Say("Yes.")]]
    for answers in ([first, [Think("d"), LOOK], [Think("e"), Say("Done.")]], last):
        one.begin(own("go"))
        for acts in answers:
            results = [Result() for act in acts if isinstance(act, Call)]
            one.take_round(made, Round(acts, upstream, stream, 0, results, range(len(results))))


@pytest.mark.parametrize("drops", [False, True])
@pytest.mark.parametrize("upstream", ["anthropic", "openai", "gemini", "openrouter"])
@pytest.mark.parametrize("dialect", TALKS)
def test_a_conversation_goes_on_after_its_upstream_has_new_keys(dialect, upstream, drops):
    talk = TALKS[dialect](Manner(drops=drops))
    with world(InProcess()) as made:
        one = made.upstreams[upstream]
        for turn in range(4):
            if turn == 1:  # from here on it knows nothing of what it gave
                one.server._ledger = Ledger(b"new")
            one.script.append([Think(f"thought {turn}"), Say(f"answer {turn}")])
            talk.ask("and now?")
            assert talk.hear(made.urls[0], upstream, stream=turn % 2 == 0).text == f"answer {turn}"
            assert len(one.server.refusals) == min(turn, 1)
            returned = one.server.returned[-1]
        assert len(returned) == 2  # those of the new key


def test_an_envelope_keeps_its_place_where_texts_are_joined(forgetful):
    acts = [Say("one"), Think("a"), Say("two"), LOOK, Think("b"), LOOK]
    held(forgetful, TALKS["chat"](), "anthropic-bound", acts, [Say("Done.")])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("upstream", ["openai", "anthropic", "anthropic-bound"])
def test_an_envelope_keeps_its_place_where_texts_stand_before_calls(forgetful, upstream, stream):
    """They were after a call: the thinking led to that, not to the text."""
    acts = [Think("a"), LOOK, Say("one"), Think("b"), LOOK]
    held(forgetful, TALKS["chat"](), upstream, acts, [Say("Done.")], stream=stream)


@pytest.mark.parametrize("dialect", [name for name in TALKS if name != "stored"])
@pytest.mark.parametrize("acts", [[Think("a"), Say("Yes.")], [Think("a"), LOOK, Say("Yes.")]])
def test_an_edited_answer_costs_no_other_its_thinking(everything, dialect, acts):
    upstream = everything.upstreams["openai"]
    talk = TALKS[dialect]()
    one = Held(talk)
    for step in (acts, [Think("b"), Say("More.")]):
        one.begin(own("go"))
        results = [Result() for act in step if act is LOOK]
        one.take_round(everything, Round(step, "openai", False, 0, results, range(len(results))))
    talk.retell(0, "No.")
    one.altered = True
    one.begin("and now?")
    one.take_round(everything, Round([Say("Done.")], "openai", False, 0))
    kept = one.carriers if LOOK in acts else one.carriers[1:]
    issued = [carrier for turn in kept[:-1] for _, some in turn for carrier in some]
    assert list(upstream.server.returned[-1]) == issued


def test_an_envelope_that_cannot_be_opened_goes_to_no_upstream(forgetful):
    """One that another gateway sealed, with a key that this one does not have."""
    talk = TALKS["chat"]()
    held(forgetful, talk, "anthropic", [Think("a"), LOOK])
    (entry,) = talk.turns[0][1]["reasoning_details"]
    entry["data"] = entry["data"][:-8] + "AAAAAAA="
    upstream = forgetful.upstreams["openrouter"]
    upstream.script.append([Say("Done.")])
    talk.hear(forgetful.urls[0], "openrouter", stream=False)
    assert entry["data"][:9].encode() not in upstream.server.requests[-1].body


def test_answers_in_a_row_take_time_by_their_number():
    count = 30_000
    row = [Message(role="assistant", blocks=(TextBlock("a"),))] * count
    results = [Message(role="tool", blocks=(ToolResultBlock("c", "r"),))] * count
    messages = [*row, *results]
    with ends():
        attach(messages, keys_of(messages, SHUT).of_each, {}, SHUT)


@given(st.lists(any_message, max_size=4), st.sampled_from(["bare", "readable"]))
@example([assistant(ThinkingBlock("t", signature="s"))], "bare")
@example([assistant(TextBlock("a"), ThinkingBlock("t", signature="s"))], "bare")
def test_an_answer_that_nobody_knows_goes_without_what_only_its_origin_reads(messages, unknown):
    attached = attach(messages, keys_of(messages, SHUT).of_each, {}, SHUT, unknown)
    for answer in attached.messages:
        if answer.role == "assistant":
            assert answer.origin is None
            assert not any(map(carriers_of, answer.blocks))
            assert unknown == "readable" or not answer.thinking
