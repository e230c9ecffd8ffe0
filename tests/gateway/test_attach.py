"""What becomes of the answers that a client sends back: never another's thinking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from mull.gateway.anchors import (
    NOBODY,
    Identity,
    answer_key,
    call_key,
    carrier_key,
    thought_keys,
)
from mull.gateway.attach import Attached, Unknown, attach, keys_of, past_of
from mull.gateway.envelope import Envelopes, Sealed
from mull.gateway.ids import mint, provider_id
from mull.gateway.record import Kept
from mull.gateway.relay import Client, Relay
from mull.neutral.assemble import assemble, tell
from mull.neutral.blocks import (
    Block,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Wire,
)
from mull.neutral.messages import Dialect, Message, Origin, assistant, user

CLAUDE = Origin("anthropic", "anthropic", "claude", "http://c")
OPENAI = Origin("openai", "openai-responses", "gpt-5", "http://o")
KIMI = Origin("kimi", "openai-chat", "k2", "http://k")
ONE, TWO = "toolu_0123456789abcdef01", "toolu_fedcba987654321002"


class Desk:
    """A gateway without HTTP: its answers go out and are kept, and conversations come back."""

    def __init__(self, client: Dialect = "anthropic", origin: Origin = CLAUDE) -> None:
        self.client = client
        self.origin = origin
        self.envelopes = Envelopes(b"k" * 32)
        self.records: dict[str, Kept | None] = {}
        self._numbers = count(1)

    def unseal(self, text: str) -> Sealed | None:
        return self.envelopes.open("", text)

    def answer(self, talk: Sequence[Message], *blocks: Block, who: Identity = NOBODY) -> Message:
        """Answer a conversation; returns the answer as its client has it."""
        number = next(self._numbers)
        relay = Relay(Client(self.client), self.origin, self.envelopes, f"answer {number}")
        sent = Message(role="assistant", status="complete", origin=self.origin, blocks=blocks)
        got = assemble(relay.translate([*tell(sent)]))
        keys, kept = relay.keep(keys_of(talk, self.unseal, who).past)
        for key in keys:
            self.records[key] = kept if self.records.get(key, kept) == kept else None
        return replace(got, origin=None)

    def back(
        self, talk: Sequence[Message], who: Identity = NOBODY, unknown: Unknown = "bare"
    ) -> Attached:
        """What is sent upstream of a conversation that comes back."""
        keys = keys_of(talk, self.unseal, who).of_each
        wanted = {key for some in keys for key in (*some.row, *some.own)}
        found = {key: self.records[key] for key in wanted if key in self.records}
        return attach(talk, keys, found, self.unseal, unknown)


def dropped(answer: Message) -> Message:
    """The answer as a client keeps it that keeps no reasoning."""
    kept = []
    for block in answer.blocks:
        match block:
            case TextBlock():
                kept.append(TextBlock(block.text))
            case ToolCallBlock():
                kept.append(replace(block, signature=None, wire=None))
    return assistant(*kept)


def thinking(thought: str) -> ThinkingBlock:
    return ThinkingBlock(thought, signature=f"signature of {thought}")


def thoughts(attached: Attached) -> list[list[Block]]:
    """The thinking of each answer."""
    return [[*one.thinking] for one in attached.messages if one.role == "assistant"]


def notes(attached: Attached) -> str:
    return "; ".join(note.text for note in attached.notes)


def result(call_id: str, output: str = "milk") -> Message:
    return Message(role="tool", blocks=(ToolResultBlock(call_id, output),))


SEVERAL = "nothing to tell them apart"
NOT_FOUND = "1 answer was not found: sent without signatures and encrypted reasoning"
HELLO = TextBlock("Hello!")


# Conversations that look alike.


@pytest.mark.parametrize("client", ["anthropic", "openai-chat"])
def test_what_a_client_sends_back_is_its_own_whatever_looks_alike(client):
    desk = Desk(client)
    talks = []
    for number in range(3):
        talk = [user("hi")]
        talks.append([*talk, desk.answer(talk, thinking(f"{number}"), HELLO), user("and?")])
    for number, talk in enumerate(talks):
        attached = desk.back(talk)
        assert thoughts(attached) == [[thinking(f"{number}")]]
        assert attached.messages[1].origin == CLAUDE
        assert not attached.notes


@pytest.mark.parametrize("drops", ["all", "carriers"])
def test_of_several_candidates_none_is_taken_and_the_client_is_told(drops):
    desk = Desk()
    talk = [user("hi")]
    for number in range(2):
        given = desk.answer(talk, ThinkingBlock("Hm.", signature=f"{number}"), HELLO)
    kept = dropped(given) if drops == "all" else assistant(ThinkingBlock("Hm."), HELLO)
    attached = desk.back([*talk, kept])
    assert thoughts(attached) == [[]]
    (note,) = attached.notes
    assert note.text.startswith("1 answer was like others of this client, with nothing to tell")
    assert note.warning
    assert attached.records == {}


def test_one_candidate_is_taken():
    desk = Desk()
    talk = [user("hi")]
    given = desk.answer(talk, thinking("Hm."), HELLO)
    attached = desk.back([*talk, dropped(given)])
    assert thoughts(attached) == [[thinking("Hm.")]]
    assert not attached.notes
    assert [*attached.records.values()] == [desk.records[answer_key("answer 1")]]
    assert {*attached.records} <= {*desk.records}


def test_the_same_answer_kept_twice_is_one():
    desk = Desk(origin=KIMI, client="openai-chat")
    talk = [user("hi")]
    for _ in range(2):
        given = desk.answer(talk, ThinkingBlock("Hm."), HELLO)
    assert thoughts(desk.back([*talk, dropped(given)])) == [[ThinkingBlock("Hm.")]]


@pytest.mark.parametrize("who", [Identity("You are {}."), Identity("Be brief.", "session {}")])
def test_system_prompt_and_session_tell_candidates_apart(who):
    desk = Desk()
    talk = [user("hi")]
    for number in range(2):
        named = Identity(*(part.format(number) for part in who))
        given = desk.answer(talk, thinking(f"{number}"), HELLO, who=named)
    for number in range(2):
        named = Identity(*(part.format(number) for part in who))
        assert thoughts(desk.back([*talk, dropped(given)], named)) == [[thinking(f"{number}")]]
    assert thoughts(desk.back([*talk, dropped(given)])) == [[]]


def test_of_one_session_the_answer_under_the_same_system_prompt_is_meant():
    desk = Desk()
    talk = [user("hi")]
    plan, build = Identity("Plan.", "s"), Identity("Build.", "s")
    given = desk.answer(talk, thinking("a"), HELLO, who=plan)
    sent = [*talk, dropped(given)]
    assert thoughts(desk.back(sent, build)) == [[thinking("a")]]
    desk.answer(talk, thinking("b"), HELLO, who=build)
    assert thoughts(desk.back(sent, build)) == [[thinking("b")]]
    assert thoughts(desk.back(sent, plan)) == [[thinking("a")]]
    assert SEVERAL in notes(desk.back(sent, Identity("Review.", "s")))


def test_what_a_client_leaves_of_a_conversation_is_not_the_beginning_of_another():
    desk = Desk()
    short = [user("go on")]
    short.append(dropped(desk.answer(short, thinking("a"), HELLO)))
    long = [user("hi")]
    long += [dropped(desk.answer(long, thinking("b"), HELLO)), user("go on")]
    long.append(dropped(desk.answer(long, thinking("c"), HELLO)))
    assert thoughts(desk.back(long)) == [[thinking("b")], []]
    for left in (long[2:], short):
        assert thoughts(desk.back(left)) == [[]]
        assert SEVERAL in notes(desk.back(left))


def test_an_answer_is_found_after_the_oldest_turns_are_gone():
    desk = Desk()
    talk = [user("hi")]
    talk += [dropped(desk.answer(talk, thinking("a"), HELLO)), user("go on")]
    talk += [dropped(desk.answer(talk, thinking("b"), TextBlock("Sure."))), user("and?")]
    assert thoughts(desk.back(talk)) == [[thinking("a")], [thinking("b")]]
    assert thoughts(desk.back(talk[2:])) == [[thinking("b")]]
    assert thoughts(desk.back([*talk[:1], *talk[2:]])) == [[thinking("b")]]


# What contradicts a candidate.


@pytest.mark.parametrize(
    "sent",
    [
        [ThinkingBlock("Other."), HELLO],
        [ThinkingBlock("", signature="unknown"), HELLO],
        [ThinkingBlock("Hm.", signature="unknown"), HELLO],
        [TextBlock("Hello!", signature="unknown")],
        [ThinkingBlock("Hm.", signature="signature of Hm."), ThinkingBlock("More."), HELLO],
    ],
)
def test_a_candidate_is_not_taken_over_what_the_client_says_itself(sent):
    desk = Desk()
    talk = [user("hi")]
    desk.answer(talk, thinking("Hm."), HELLO)
    del desk.records[carrier_key("signature of Hm.")]
    attached = desk.back([*talk, assistant(*sent)])
    assert thoughts(attached) == [[]]
    assert notes(attached) == NOT_FOUND


@pytest.mark.parametrize(
    "sent",
    [
        [HELLO],
        [ThinkingBlock("H m.\n"), HELLO],
        [ThinkingBlock("", signature="signature of Hm."), HELLO],
        [ThinkingBlock(""), HELLO],
        [OpaqueBlock({"type": "compaction", "signature": "of earlier messages"}), HELLO],
    ],
)
def test_a_candidate_is_taken_if_nothing_contradicts_it(sent):
    desk = Desk()
    talk = [user("hi")]
    desk.answer(talk, thinking("Hm."), HELLO)
    del desk.records[carrier_key("signature of Hm.")]
    assert thoughts(desk.back([*talk, assistant(*sent)])) == [[thinking("Hm.")]]


def sealed_by(key: bytes, answer: str = "other") -> str:
    held = Sealed(CLAUDE, {0: thinking("Sealed.")}, {0: 0}, answer)
    text = Envelopes(key).seal("", held)
    assert text is not None
    return text


@pytest.mark.parametrize("text", ["Hello!", "Bye."])
def test_a_carrier_that_all_answers_of_a_server_have_proves_nothing(text):
    desk = Desk()
    desk.answer([user("hi")], ThinkingBlock("Another's.", signature="all"), HELLO)
    own = (ThinkingBlock("Mine.", signature="all"), TextBlock(text))
    attached = desk.back([user("hi"), assistant(*own)], unknown="trusted")
    assert attached.messages[1].blocks == own
    assert attached.records == {}


def test_an_envelope_that_opens_is_not_another_answer_that_looks_alike():
    """Also if its own record is gone: it holds the thinking itself."""
    desk = Desk("openai-chat")
    talk = [user("hi")]
    desk.answer(talk, thinking("Hm."), HELLO)
    own = ThinkingBlock("Hm.", encrypted=sealed_by(b"k" * 32))
    for _ in "one", "several":
        attached = desk.back([*talk, assistant(own, HELLO)])
        assert thoughts(attached) == [[thinking("Sealed.")]]
        assert not notes(attached)
        desk.answer(talk, thinking("Hm?"), HELLO)


@pytest.mark.parametrize(("thought", "found"), [("Hm.", ["Hm."]), ("Other.", []), ("", [])])
def test_an_envelope_that_does_not_open_leaves_it_to_the_thinking_beside_it(thought, found):
    desk = Desk("openai-chat")
    talk = [user("hi")]
    desk.answer(talk, thinking("Hm."), HELLO)
    sent = assistant(ThinkingBlock(thought, encrypted=sealed_by(b"lost")), HELLO)
    assert thoughts(desk.back([*talk, sent])) == [[thinking(one) for one in found]]


def test_a_call_on_record_is_proof_whatever_stands_beside_it():
    desk = Desk()
    talk = [user("hi")]
    desk.answer(talk, thinking("Hm."), ToolCallBlock(ONE, "read"))
    sent = assistant(ThinkingBlock("Other.", signature="unknown"), ToolCallBlock(ONE, "read"))
    assert thoughts(desk.back([*talk, sent])) == [[thinking("Hm.")]]


# What proves more comes first.


def test_any_call_on_record_is_proof():
    desk = Desk()
    calls = ToolCallBlock(ONE, "r"), ToolCallBlock(TWO, "r")
    desk.answer([user("hi")], thinking("a"), *calls)
    for at, call in enumerate(calls):
        own = assistant(*calls[:at], replace(call, id="call_0"), *calls[at + 1 :])
        attached = desk.back([user("other"), own, *(result(one.id) for one in own.tool_calls)])
        assert thoughts(attached) == [[thinking("a")]]


def test_an_envelope_comes_before_a_carrier_and_that_before_a_call():
    def kept(thought: str) -> Kept:
        return Kept(CLAUDE, (thinking(thought), ToolCallBlock("x", "read")))

    seal = sealed_by(b"k" * 32, "answer 1")
    blocks = [
        ToolCallBlock(ONE, "read"),
        ThinkingBlock("", signature="known"),
        ThinkingBlock("", signature=seal),
    ]
    desk = Desk()
    desk.records = {call_key(ONE): kept("by call")}
    assert thoughts(desk.back([assistant(*blocks)])) == [[thinking("by call")]]
    desk.records[carrier_key("known")] = kept("by carrier")
    assert thoughts(desk.back([assistant(*blocks)])) == [[thinking("by carrier")]]
    desk.records[answer_key("answer 1")] = kept("by envelope")
    assert thoughts(desk.back([assistant(*blocks)])) == [[thinking("by envelope")]]


def test_the_thinking_itself_comes_before_what_was_said():
    desk = Desk(origin=KIMI, client="openai-chat")
    sent = assistant(ThinkingBlock("Hm."), HELLO)
    (key,) = thought_keys(sent)
    (said,) = past_of([user("hi")]).keys(sent)
    marked = ThinkingBlock("Hm.", source_field="reasoning")
    desk.records = {
        said: Kept(KIMI, (ThinkingBlock("Hm."), HELLO)),
        key: Kept(KIMI, (marked, HELLO)),
    }
    assert thoughts(desk.back([user("hi"), sent])) == [[marked]]


# Answers after calls.


def chain(desk: Desk, call_id: str, thought: str, question: str = "hi") -> list[Message]:
    """A turn with a call, as a client has it that drops reasoning."""
    talk = [user(question)]
    call = desk.answer(talk, thinking("call " + thought), ToolCallBlock(call_id, "r"))
    talk += [dropped(call), result(call.tool_calls[0].id)]
    talk.append(dropped(desk.answer(talk, thinking(thought), HELLO)))
    return talk


def test_the_last_answer_of_a_chain_belongs_to_its_calls():
    desk = Desk()
    talks = [chain(desk, ONE, "a"), chain(desk, TWO, "b")]
    for talk, thought in zip(talks, "ab", strict=True):
        talk[0] = user("hi (it is Monday)")
        assert thoughts(desk.back(talk)) == [[thinking("call " + thought)], [thinking(thought)]]


def test_ids_that_a_client_counts_itself_are_those_of_other_conversations_too():
    """One conversation loses its first turn, so its second call has the number of the first."""
    desk = Desk()

    def numbered(talk: list[Message], number: int) -> list[Message]:
        call = replace(talk[1].tool_calls[0], id=f"call_{number}")
        return [talk[0], assistant(call), result(f"call_{number}"), *talk[3:]]

    first = numbered(chain(Desk(), ONE, "x", "one"), 0)
    desk.answer(first[:3], thinking("a"), HELLO)
    second = numbered(chain(Desk(), TWO, "x", "two"), 0)
    attached = desk.back(second)
    assert thoughts(attached) == [[], []]
    assert "2 answers were not found" in notes(attached)


def test_the_last_call_before_an_answer_says_whether_its_place_is_known():
    """A client has added a call of its own to one on record."""
    desk = Desk()
    own = ToolCallBlock("call_0", "look")
    called = dropped(desk.answer([user("hi")], thinking("a"), ToolCallBlock(ONE, "look")))
    other = [user("one"), assistant(own), result("call_0")]
    given = desk.answer(other, thinking("b"), HELLO)
    both = assistant(*called.blocks, own)
    attached = desk.back([user("two"), both, result(ONE), result("call_0"), dropped(given)])
    assert thoughts(attached) == [[], []]


def test_a_call_id_that_several_answers_have_proves_nothing():
    """As of an upstream that begins to count anew in every conversation."""
    desk = Desk()
    one, two = chain(desk, ONE, "a", "one"), chain(desk, ONE, "b", "two")
    assert thoughts(desk.back(one)) == [[thinking("call a")], [thinking("a")]]
    assert thoughts(desk.back(two)) == [[thinking("call b")], [thinking("b")]]
    one[0] = user("something else")
    attached = desk.back(one)
    assert thoughts(attached) == [[], []]
    assert "1 answer was like others" in notes(attached)
    assert "1 answer was not found" in notes(attached)


# One record restores one answer.


def test_of_two_answers_with_one_proof_the_last_has_the_record():
    desk = Desk()
    talk = [user("hi")]
    given = desk.answer(talk, thinking("a"), HELLO)
    attached = desk.back([*talk, given, user("and?"), given, user("so?")])
    assert thoughts(attached) == [[], [thinking("a")]]
    assert "1 answer was not found" in notes(attached)


def test_an_answer_that_is_proven_takes_the_record_from_one_that_looks_alike():
    desk = Desk()
    talk = [user("hi")]
    given = desk.answer(talk, thinking("a"), HELLO)
    for sent in ([given, user("hi"), dropped(given)], [dropped(given), user("hi"), given]):
        attached = desk.back([*talk, *sent, user("so?")])
        assert thoughts(attached) == [
            [thinking("a")] if one is given else [] for one in sent if one.role == "assistant"
        ]


def test_of_two_answers_to_the_same_words_nobody_knows_which_is_meant():
    desk = Desk()
    talk = [user("hi")]
    given = dropped(desk.answer(talk, thinking("a"), HELLO))
    attached = desk.back([*talk, given, user("hi"), given, user("so?")])
    assert thoughts(attached) == [[], []]
    assert "2 answers were not found" in notes(attached)


def test_of_two_answers_with_the_same_thinking_the_last_has_the_record():
    desk = Desk()
    desk.answer([user("hi")], thinking("a"), HELLO)
    sent = assistant(ThinkingBlock("a"), HELLO)
    attached = desk.back([user("one"), sent, user("two"), sent, user("so?")])
    assert thoughts(attached) == [[], [thinking("a")]]


def test_a_record_is_not_restored_twice_by_two_keys():
    """Once by its thinking, once by what was said."""
    desk = Desk()
    talk = [user("hi")]
    given = desk.answer(talk, thinking("a"), HELLO)
    repeated = assistant(ThinkingBlock("a"), HELLO)
    attached = desk.back([*talk, dropped(given), user("and?"), repeated, user("so?")])
    assert thoughts(attached) == [[], [thinking("a")]]


@pytest.mark.parametrize("client", ["anthropic", "openai-chat"])
@pytest.mark.parametrize(
    "blocks",
    [
        (thinking("a"), TextBlock("So."), thinking("b"), HELLO),
        (thinking("a"), ToolCallBlock(ONE, "r")),
        (thinking("a"), ToolCallBlock(ONE, "r"), ToolCallBlock(TWO, "r")),
    ],
)
def test_a_record_is_not_restored_twice_by_two_proofs(client, blocks):
    """An answer that its client has copied, with two carriers or calls that prove it."""
    desk = Desk(client)
    given = desk.answer([user("hi")], *blocks)
    turn = [given, *(result(call.id) for call in given.tool_calls)]
    for sent in (turn, [dropped(given), *turn[1:]] if given.tool_calls else turn):
        attached = desk.back([user("hi"), *sent, user("and?"), *sent, user("so?")])
        assert thoughts(attached) == [[], [one for one in blocks if isinstance(one, ThinkingBlock)]]
        assert "1 answer was not found" in notes(attached)


def test_an_envelope_is_not_opened_twice():
    desk = Desk("openai-chat")
    given = desk.answer([user("hi")], thinking("a"), HELLO)
    desk.records.clear()
    attached = desk.back([user("hi"), given, user("and?"), given, user("so?")])
    assert thoughts(attached) == [[thinking("a")], []]


def test_a_copied_call_and_its_result_have_one_id():
    desk = Desk("openai-chat", KIMI)
    given = desk.answer(
        [user("hi")],
        ThinkingBlock("a"),
        ToolCallBlock("functions.a_tool_with_a_long_name:0", "r"),
        ToolCallBlock("functions.a_tool_with_a_long_name:1", "r"),
    )
    turn = [dropped(given), *(result(call.id) for call in given.tool_calls)]
    sent = desk.back([user("hi"), *turn, user("and?"), *turn, user("so?")]).messages
    (first, results), (second, _) = sent[1:3], sent[4:6]
    asked = [call.id for call in first.tool_calls]
    assert asked == [one.call_id for one in results.blocks if isinstance(one, ToolResultBlock)]
    assert asked == [call.id for call in second.tool_calls]
    assert asked[0].startswith("functions.")


def test_one_record_of_two_calls_is_proven_twice():
    """A client that sends the calls of an answer as two answers, a question between them."""
    desk = Desk()
    talk = [user("hi")]
    given = desk.answer(
        talk, thinking("a"), ToolCallBlock(ONE, "r"), ToolCallBlock(TWO, "r", {"n": 2})
    )
    one, two = (assistant(call) for call in given.tool_calls)
    attached = desk.back([*talk, one, result(ONE), user("and?"), two, result(TWO)])
    assert thoughts(attached) == [[], []]
    assert "1 answer was sent back with other tool calls" in notes(attached)
    assert "1 answer was not found" in notes(attached)


# Answers in pieces.

LOOK, LIST = ToolCallBlock(ONE, "look", {"at": "a"}), ToolCallBlock(TWO, "list", {"at": "b"})
WHOLE = (thinking("a"), TextBlock("I look."), LOOK, thinking("b"), LIST)


def pieces(desk: Desk, *blocks: Block, drops: bool = True) -> list[Message]:
    """An answer that its client keeps block by block."""
    given = desk.answer([user("hi")], *blocks)
    return [assistant(block) for block in (dropped(given) if drops else given).blocks]


def answers(attached: Attached) -> list[tuple[Block, ...]]:
    return [one.blocks for one in attached.messages if one.role == "assistant"]


@pytest.mark.parametrize("drops", [True, False])
def test_an_answer_that_comes_block_by_block_is_one(drops):
    desk = Desk()
    some = pieces(desk, *WHOLE, drops=drops)
    attached = desk.back([user("hi"), *some, result(ONE), result(TWO)])
    assert answers(attached) == [WHOLE]
    assert [one.role for one in attached.messages] == ["user", "assistant", "tool"]
    assert [block.call_id for block in attached.messages[2].blocks] == [ONE, TWO]
    assert not attached.notes


@pytest.mark.parametrize("drops", [True, False])
def test_an_answer_whose_calls_and_results_alternate_is_one(drops):
    desk = Desk()
    some = pieces(desk, *WHOLE, drops=drops)
    cut = next(at for at, one in enumerate(some) if one.tool_calls) + 1
    attached = desk.back([user("hi"), *some[:cut], result(ONE), *some[cut:], result(TWO)])
    assert answers(attached) == [WHOLE]
    assert [one.role for one in attached.messages] == ["user", "assistant", "tool"]
    assert [block.call_id for block in attached.messages[2].blocks] == [ONE, TWO]


def test_texts_in_a_row_are_one_answer_if_they_were():
    desk = Desk()
    said = [TextBlock("one"), TextBlock(" two")]
    desk.answer([user("hi")], thinking("a"), *said)
    row = [assistant(block) for block in said]
    assert answers(desk.back([user("hi"), *row, user("so?")])) == [(thinking("a"), *said)]
    other = [assistant(TextBlock("one")), assistant(TextBlock("three"))]
    attached = desk.back([user("hi"), *other, user("so?")])
    assert answers(attached) == [(TextBlock("one"),), (TextBlock("three"),)]


def test_a_piece_that_is_all_of_another_answer_is_still_a_piece():
    desk = Desk()
    said = [TextBlock("one"), TextBlock(" two")]
    desk.answer([user("hi")], thinking("short"), said[0])
    desk.answer([user("hi")], thinking("long"), *said)
    row = [assistant(block) for block in said]
    assert answers(desk.back([user("hi"), *row, user("so?")])) == [(thinking("long"), *said)]


def test_pieces_of_several_candidates_are_several():
    desk = Desk()
    said = [TextBlock("one"), TextBlock(" two")]
    for thought in "ab":
        desk.answer([user("hi")], thinking(thought), *said)
    attached = desk.back([user("hi"), *(assistant(block) for block in said), user("so?")])
    assert answers(attached) == [tuple(said)]
    assert SEVERAL in notes(attached)


def test_a_row_that_is_proven_is_not_found_by_its_words():
    """Its pieces have a carrier on record; the words of the whole are those of another answer."""
    desk = Desk()
    said = [TextBlock("one"), TextBlock(" two")]
    proven = desk.answer([user("p")], thinking("a"), *said)
    desk.answer([user("hi")], thinking("b"), *said)
    row = [assistant(*proven.blocks[:2]), assistant(proven.blocks[2])]
    assert answers(desk.back([user("hi"), *row, user("so?")])) == [(thinking("a"), *said)]


def test_text_that_nobody_knows_belongs_to_the_answer_beside_it():
    desk = Desk()
    given = dropped(desk.answer([user("hi")], thinking("a"), LOOK))
    for row in ([given, assistant(HELLO)], [assistant(HELLO), given]):
        attached = desk.back([user("hi"), *row, result(ONE)])
        assert answers(attached) == [(thinking("a"), HELLO, LOOK)]
    attached = desk.back([user("hi"), given, result(ONE), assistant(HELLO), user("so?")])
    assert answers(attached) == [(thinking("a"), LOOK), (HELLO,)]


def test_a_call_that_nobody_knows_belongs_to_no_other_answer():
    desk = Desk()
    given = dropped(desk.answer([user("hi")], thinking("a"), LOOK))
    unknown = assistant(LIST)
    for row in ([given, unknown], [unknown, given]):
        attached = desk.back([user("hi"), *row, result(ONE), result(TWO)])
        expected = [(thinking("a"), LOOK), (LIST,)]
        assert answers(attached) == (expected if row[0] is given else expected[::-1])


def test_text_between_two_answers_belongs_to_the_first():
    desk = Desk()
    one = dropped(desk.answer([user("hi")], thinking("a"), LOOK))
    two = dropped(desk.answer([user("hi")], thinking("b"), LIST))
    attached = desk.back([user("hi"), one, assistant(HELLO), two, result(ONE), result(TWO)])
    assert answers(attached) == [(thinking("a"), HELLO, LOOK), (thinking("b"), LIST)]


def test_two_answers_that_nobody_knows_stay_two():
    attached = Desk().back([user("hi"), assistant(HELLO), assistant(TextBlock("x")), user("so?")])
    assert answers(attached) == [(HELLO,), (TextBlock("x"),)]


def test_two_answers_in_a_row_stay_two():
    desk = Desk()
    talk = [user("hi")]
    talk.append(dropped(desk.answer(talk, thinking("a"), HELLO)))
    talk.append(dropped(desk.answer(talk, thinking("b"), TextBlock("So?"))))
    attached = desk.back([*talk, user("and?")])
    assert answers(attached) == [(thinking("a"), HELLO), (thinking("b"), TextBlock("So?"))]


def test_pieces_before_and_after_a_question_are_two_answers():
    desk = Desk()
    text, call = (assistant(block) for block in dropped(desk.answer([], HELLO, LOOK)).blocks)
    attached = desk.back([call, result(ONE), user("hi"), call, result(ONE)])
    assert len(answers(attached)) == 2
    attached = desk.back([text, user("hi"), call, result(ONE)])
    assert len(answers(attached)) == 2


def test_the_same_answer_before_and_after_a_strange_result_is_two_answers():
    desk = Desk()
    given = desk.answer([user("hi")], thinking("a"), HELLO)
    attached = desk.back([user("hi"), given, result(ONE), given], unknown="trusted")
    assert [one.role for one in attached.messages] == ["user", "assistant", "tool", "assistant"]


def test_the_same_call_twice_is_two_answers():
    """Of an upstream that gives every call the same id, and does not think."""
    desk = Desk()
    talk = [user("hi")]
    for _ in range(2):
        talk += [dropped(desk.answer(talk, LOOK)), result(ONE)]
    attached = desk.back(talk)
    assert answers(attached) == [(LOOK,), (LOOK,)]
    assert [one.role for one in attached.messages] == ["user", *["assistant", "tool"] * 2]


def test_what_stands_between_calls_and_results_follows_them():
    desk = Desk()
    given = desk.answer([user("hi")], thinking("a"), LOOK, LIST)
    reminder = Message(role="system", blocks=(TextBlock("Be quick."),))
    talk = [user("hi"), given, reminder, result(ONE), user("and?"), result(TWO), user("so?")]
    attached = desk.back(talk)
    assert [one.role for one in attached.messages] == [
        "user",
        "assistant",
        "tool",
        "system",
        "user",
        "user",
    ]
    assert [one.text for one in attached.messages[3:]] == ["Be quick.", "and?", "so?"]
    assert [block.call_id for block in attached.messages[2].blocks] == [ONE, TWO]


def test_a_result_of_an_earlier_call_stays_where_it_is():
    talk = [assistant(LOOK), result(ONE), user("hi"), assistant(LIST), user("so?"), result(ONE)]
    roles = [one.role for one in Desk().back(talk).messages]
    assert roles == ["assistant", "tool", "user", "assistant", "user", "tool"]
    talk = [user("hi"), result("nobody's"), assistant(LOOK), result(ONE)]
    assert [one.role for one in Desk().back(talk).messages] == ["user", "tool", "assistant", "tool"]
    talk = [result("nobody's"), user("hi")]
    assert [one.role for one in Desk().back(talk).messages] == ["tool", "user"]


def test_of_answers_in_a_row_each_is_followed_by_its_own_results():
    """Anthropic takes them for one answer. Of those on record each is one of its own."""
    desk = Desk()
    given = dropped(desk.answer([user("hi")], thinking("a"), LOOK))
    other = ToolResultBlock("nobody's", "beer")
    both = Message(role="tool", blocks=(other, *result(TWO).blocks, *result(ONE).blocks, HELLO))
    for first in (assistant(LOOK), given):
        talk = [user("hi"), first, assistant(LIST), both, user("so?"), assistant(HELLO)]
        _, look, milk, lists, rest, *end = desk.back(talk).messages
        assert (look.tool_calls, lists.tool_calls) == ((LOOK,), (LIST,))
        assert (milk, rest.blocks) == (result(ONE), (other, *result(TWO).blocks, HELLO))
        assert end == [user("so?"), assistant(HELLO)]
    nothing = Message(role="user", blocks=())
    talk = [assistant(HELLO), assistant(LIST), result(TWO), assistant(LOOK), assistant(HELLO)]
    assert Desk().back([*talk, nothing, *talk]).messages == (*talk, nothing, *talk)


def test_results_in_a_row_are_one_message():
    talk = [user("hi"), assistant(LOOK, LIST), result(TWO), result(ONE), user("so?")]
    *_, results, _ = Desk().back(talk).messages
    assert [block.call_id for block in results.blocks] == [TWO, ONE]


def test_a_conversation_without_calls_is_left_as_it_is():
    talk = [user("hi"), user("there"), assistant(HELLO), user("so?")]
    attached = Desk().back(talk)
    assert all(one is other for one, other in zip(attached.messages, talk, strict=True))
    assert Desk().back([]).messages == ()


def test_what_a_client_wrote_beside_pieces_is_kept_with_the_answer():
    desk = Desk()
    some = pieces(desk, *WHOLE)
    some[0] = replace(some[0], wire=Wire("anthropic", {"": {"x": 1}}))
    attached = desk.back([user("hi"), *some, result(ONE), result(TWO)])
    (answer,) = (one for one in attached.messages if one.role == "assistant")
    assert answer.wire == Wire("anthropic", {"": {"x": 1}})
    assert answer.blocks == WHOLE


# What of an answer is the client's, and what the record's.


def test_an_answer_is_restored_as_its_provider_sent_it():
    desk = Desk("openai-chat", KIMI)
    blocks = (
        ThinkingBlock("Hm."),
        TextBlock("I look. "),
        ToolCallBlock("look:0", "look", {"a": 1}),
    )
    talk = [user("hi")]
    given = dropped(desk.answer(talk, *blocks))
    call = given.tool_calls[0]
    assert provider_id(call.id) == "look:0"
    sent = [
        replace(given, blocks=(TextBlock("I look."), replace(call, arguments='{ "a": 1 }'))),
        result(call.id),
    ]
    _, answer, results = desk.back([*talk, *sent]).messages
    assert answer == assistant(*blocks, origin=KIMI)
    assert results == result("look:0")


def test_the_text_is_the_clients():
    desk = Desk()
    talk = [user("hi")]
    desk.answer(talk, thinking("a"), HELLO, TextBlock("You."), LOOK, TextBlock("There."))
    for sent, expected in (
        ([TextBlock("Bye."), LOOK], (thinking("a"), TextBlock("Bye."), LOOK)),
        ([LOOK, TextBlock("Bye.")], (thinking("a"), TextBlock("Bye."), LOOK)),
        ([LOOK], (thinking("a"), LOOK)),
    ):
        attached = desk.back([*talk, assistant(*sent), result(ONE)])
        assert answers(attached) == [expected]
        assert not attached.notes


def test_the_clients_text_stands_where_the_answers_own_stood():
    desk = Desk()
    talk = [user("hi")]
    desk.answer(talk, thinking("a"), LOOK, TextBlock("There."))
    attached = desk.back([*talk, assistant(TextBlock("Bye."), LOOK), result(ONE)])
    assert answers(attached) == [(thinking("a"), LOOK, TextBlock("Bye."))]


@pytest.mark.parametrize("text", ["Bye.", ""])
def test_encrypted_thinking_does_not_stand_before_another_text_than_it_led_to(text):
    desk = Desk(origin=OPENAI)
    talk = [user("hi")]
    a, b, c = (ThinkingBlock(one, encrypted=one, id=f"rs_{one}") for one in "abc")
    desk.answer(talk, a, b, HELLO, c, LOOK)
    said = [TextBlock(text)] if text else []
    attached = desk.back([*talk, assistant(*said, LOOK), result(ONE)])
    readable = ThinkingBlock("a"), ThinkingBlock("b")
    assert answers(attached) == [(*readable, *said, c, LOOK)]
    (note,) = attached.notes
    assert "other text: the encrypted reasoning before it left out" in note.text
    desk.answer([user("more")], c, replace(LOOK, id=TWO))
    attached = desk.back([user("more"), assistant(HELLO, replace(LOOK, id=TWO)), result(TWO)])
    assert answers(attached) == [(HELLO, c, replace(LOOK, id=TWO))]
    assert not attached.notes


def test_text_that_the_record_has_none_of_comes_before_calls_or_last():
    desk = Desk()
    talk = [user("hi")]
    desk.answer(talk, thinking("a"), LOOK)
    attached = desk.back([*talk, assistant(LOOK, HELLO), result(ONE)])
    assert answers(attached) == [(thinking("a"), HELLO, LOOK)]
    given = desk.answer([user("alone")], thinking("b"))
    attached = desk.back([user("alone"), assistant(*given.blocks, HELLO)])
    assert answers(attached) == [(thinking("b"), HELLO)]


@pytest.mark.parametrize(
    "calls", [[LIST], [LOOK, LIST], [replace(LOOK, input={"at": "z"})], [replace(LOOK, name="x")]]
)
def test_with_other_calls_an_answer_goes_without_its_thinking(calls):
    desk = Desk()
    talk = [user("hi")]
    given = desk.answer(talk, thinking("a"), TextBlock("I look.", signature="s"), LOOK)
    signed = [replace(one, signature="c", wire=Wire("anthropic", {})) for one in calls]
    attached = desk.back([*talk, assistant(*given.blocks[:2], *signed)])
    assert answers(attached) == [(TextBlock("I look."), *calls)]
    assert attached.messages[1].origin is None
    (note,) = attached.notes
    assert note.text == "1 answer was sent back with other tool calls: reasoning left out"
    assert note.warning


def test_other_calls_have_the_ids_of_their_provider_too():
    desk = Desk("openai-chat", KIMI)
    given = desk.answer(
        [user("hi")], ToolCallBlock("look:0", "look"), ToolCallBlock("look:1", "look")
    )
    first, second = (call.id for call in given.tool_calls)
    sent = assistant(ToolCallBlock(second, "list"), ToolCallBlock("other", "look"))
    _, answer, *_ = desk.back([user("hi"), sent, result(second)]).messages
    assert [call.id for call in answer.tool_calls] == ["look:1", "other"]
    assert desk.back([user("hi"), sent, result(second)]).messages[2] == result("look:1")
    assert first != second


COMPACTED = OpaqueBlock({"type": "compaction", "encrypted_content": "so far"})
SEARCHED = OpaqueBlock({"type": "web_search", "id": "1"})


def test_what_stands_for_earlier_messages_stays_before_the_answer():
    desk = Desk()
    talk = [user("hi")]
    desk.answer(talk, thinking("a"), LOOK)
    attached = desk.back([*talk, assistant(HELLO, COMPACTED, LOOK)])
    assert answers(attached) == [(HELLO, COMPACTED, thinking("a"), LOOK)]
    attached = desk.back([*talk, assistant(COMPACTED, replace(LOOK, input={"at": "z"}))])
    (answer,) = (one for one in attached.messages if one.role == "assistant")
    assert answer.blocks == (COMPACTED, replace(LOOK, input={"at": "z"}))
    assert answer.origin == CLAUDE


def test_what_an_answer_itself_stands_for_is_there_once():
    desk = Desk()
    talk = [user("hi")]
    whole = (thinking("a"), COMPACTED, thinking("b"), LOOK)
    desk.answer(talk, *whole)
    attached = desk.back([*talk, assistant(HELLO, COMPACTED, LOOK)])
    assert answers(attached)[0][:3] == whole[:3]
    attached = desk.back([*talk, assistant(COMPACTED, LOOK)])
    assert answers(attached) == [whole[1:]]


def test_what_only_the_clients_provider_understands_is_added_where_it_was():
    desk = Desk()
    talk = [user("hi")]
    desk.answer(talk, thinking("a"), LOOK)
    for sent, expected in (
        ((SEARCHED, LOOK), (SEARCHED, thinking("a"), LOOK)),
        ((LOOK, SEARCHED), (thinking("a"), LOOK, SEARCHED)),
        ((SEARCHED, LOOK, COMPACTED), None),
    ):
        attached = desk.back([*talk, assistant(*sent)])
        assert expected is None or answers(attached) == [expected]
    desk.answer([user("p")], thinking("b"), SEARCHED, LIST)
    attached = desk.back([user("p"), assistant(SEARCHED, LIST)])
    assert answers(attached) == [(thinking("b"), SEARCHED, LIST)]


# Envelopes alone.


def envelope(held: Mapping[int, Block], calls: Mapping[int, int], answer: str = "gone") -> str:
    text = Envelopes(b"k" * 32).seal("", Sealed(CLAUDE, {**held}, {**calls}, answer))
    assert text is not None
    return text


def opened(*blocks: Block, unknown: Unknown = "bare") -> Message:
    (answer,) = Desk().back([assistant(*blocks)], unknown=unknown).messages
    return answer


def carrier(held: Mapping[int, Block], calls: Mapping[int, int], thought: str = "") -> Block:
    return ThinkingBlock(thought, encrypted=envelope(held, calls))


def test_an_envelope_gives_its_thinking_back_in_its_place():
    a, b, c = thinking("a"), thinking("b"), thinking("c")
    one, two = TextBlock("one"), TextBlock("two")
    seals = carrier({0: a}, {0: 0}), carrier({2: b}, {2: 0}), carrier({5: c}, {5: 1})
    answer = opened(seals[0], one, seals[1], two, LOOK, seals[2], LIST)
    assert answer.blocks == (a, one, b, two, LOOK, c, LIST)
    assert answer.origin == CLAUDE
    # a client that puts all thinking first, and joins texts
    answer = opened(*seals, TextBlock("one two"), LOOK, LIST)
    assert answer.blocks == (a, TextBlock("one two"), b, LOOK, c, LIST)
    # texts alone: what was said before a thought stays before it
    answer = opened(carrier({1: a}, {1: 0}), one, two)
    assert answer.blocks == (one, a, two)
    # a client that puts all text before the calls that thinking led to
    seals = carrier({0: a, 1: LOOK}, {0: 0, 1: 0}), carrier({3: b, 4: LIST}, {3: 1, 4: 1})
    assert opened(*seals, one, LOOK, LIST).blocks == (a, LOOK, one, b, LIST)
    assert opened(*seals, one).blocks == (a, one, b)
    # thinking at the end
    assert opened(carrier({2: c}, {2: 1}), LOOK).blocks == (LOOK, c)
    assert opened(carrier({1: c}, {1: 0}), one).blocks == (one, c)


def test_an_envelope_gives_a_call_its_own_id_and_signature():
    sealed = ToolCallBlock("look:0", "look", signature="s", wire=Wire("gemini", {"x": 1}))
    seal = carrier({1: sealed}, {1: 0})
    answer = opened(seal, HELLO, LOOK, LIST)
    assert answer.blocks == (
        HELLO,
        replace(LOOK, id="look:0", signature="s", wire=Wire("gemini", {"x": 1})),
        LIST,
    )
    second = opened(carrier({2: replace(sealed, name="list")}, {2: 1}), LOOK, LIST)
    assert [call.id for call in second.tool_calls] == [ONE, "look:0"]
    other = opened(carrier({1: replace(sealed, name="other")}, {1: 0}), LOOK)
    assert other.tool_calls == (LOOK,)
    earlier = opened(carrier({0: sealed}, {}), LOOK)
    assert [call.id for call in earlier.tool_calls] == ["look:0"]


def test_results_go_under_the_ids_that_an_envelope_gave_its_calls():
    seal = carrier({1: ToolCallBlock("look:0", "look")}, {1: 0})
    talk = [assistant(seal, LOOK, LIST), Message(role="tool", blocks=(*result(ONE).blocks,))]
    _, results = Desk().back(talk).messages
    assert results == result("look:0")
    _, results = Desk().back([talk[0], result(TWO)]).messages
    assert results == result(TWO)


@pytest.mark.parametrize("origin", [CLAUDE, KIMI])
def test_results_go_to_their_calls_under_ids_that_the_client_counts_itself(origin):
    """Anew in each turn, and the last is of an answer that nobody knows."""
    desk = Desk("openai-chat", origin)
    sent: list[Message] = []
    for turn in ("one", "two", "three"):
        sent.append(user(turn))
        calls = [ToolCallBlock(f"read:{at}", "read", {turn: at}) for at in range(2)]
        if turn != "three":
            desk.answer(sent, thinking(turn), *calls)
        own = [replace(call, id=f"call_{at}") for at, call in enumerate(calls)]
        sent += [assistant(*own), *(result(call.id, f"{turn} {call.id}") for call in own)]
    attached = desk.back(sent)
    assert [len(some) for some in thoughts(attached)] == [1, 1, 0]
    names = [call.id for one in attached.messages for call in one.tool_calls]
    assert names == ["read:0", "read:1"] * 2 + ["call_0", "call_1"]
    results = [one for message in attached.messages for one in message.blocks]
    results = [one for one in results if isinstance(one, ToolResultBlock)]
    assert [one.call_id for one in results] == names
    assert [one.output for one in results][-1] == "three call_1"


def test_of_the_envelopes_of_two_answers_in_one_message_the_first_counts():
    """Their places are those in their own answers."""
    first = ThinkingBlock("", encrypted=envelope({0: thinking("a")}, {0: 0}, "1"))
    second = ThinkingBlock("", encrypted=envelope({0: thinking("b")}, {0: 0}, "2"))
    assert opened(first, HELLO, second, TextBlock("Bye.")).thinking == (thinking("a"),)
    text = Envelopes(b"k" * 32).seal("", Sealed(KIMI, {1: thinking("c")}, {1: 0}, "1"))
    foreign = ThinkingBlock("", encrypted=text)
    assert opened(first, foreign, HELLO).thinking == (thinking("a"),)


def test_a_reference_without_its_record_restores_nothing():
    referring = ThinkingBlock("Hm.", encrypted=envelope({}, {}))
    attached = Desk().back([assistant(referring, HELLO)])
    assert attached.messages == (assistant(HELLO),)
    assert notes(attached) == NOT_FOUND


# Answers that nobody knows.

STRANGE = (
    ThinkingBlock("Hm.", "summary", signature="s", kind="summary"),
    ThinkingBlock("", redacted="r"),
    TextBlock("Hello!", signature="t", wire=Wire("anthropic", {})),
    replace(LOOK, signature="c", wire=Wire("anthropic", {})),
    SEARCHED,
)


@pytest.mark.parametrize(
    ("unknown", "expected"),
    [
        ("bare", (HELLO, LOOK, SEARCHED)),
        ("readable", (ThinkingBlock("Hm.", kind="summary"), HELLO, LOOK, SEARCHED)),
        ("trusted", STRANGE),
    ],
)
def test_what_is_sent_of_an_answer_that_nobody_knows(unknown: Unknown, expected: tuple[Any, ...]):
    answer = replace(assistant(*STRANGE), origin=KIMI)
    attached = Desk().back([answer], unknown=unknown)
    assert attached.messages == (assistant(*expected),)
    if unknown == "trusted":  # nothing is missing
        assert attached.notes == ()
        return
    assert notes(attached) == NOT_FOUND
    assert not attached.notes[0].warning


def test_of_what_only_its_provider_understands_nothing_is_missing():
    attached = Desk().back([assistant(SEARCHED)], unknown="trusted")
    assert attached.messages == (assistant(SEARCHED),)
    assert not attached.notes


@pytest.mark.parametrize("unknown", ["bare", "readable", "trusted"])
def test_nobody_is_sent_an_envelope(unknown):
    for key in (b"k" * 32, b"lost"):
        text = Envelopes(key).seal("", Sealed(CLAUDE, {}, {}, "gone"))
        answer = opened(ThinkingBlock("", signature=text), HELLO, unknown=unknown)
        assert answer.blocks == (HELLO,)


@pytest.mark.parametrize("unknown", ["bare", "trusted"])
def test_an_id_that_spells_out_the_providers_is_read(unknown):
    own = mint("openai-chat", "look:0")
    talk = [assistant(ToolCallBlock(own, "look")), result(own)]
    call, results = Desk().back(talk, unknown=unknown).messages
    assert call.tool_calls[0].id == "look:0"
    assert results == result("look:0")
    seal = carrier({0: thinking("a")}, {0: 0})
    call, results = Desk().back([assistant(seal, *talk[0].blocks), result(own)]).messages
    assert call.tool_calls[0].id == "look:0"


def test_an_answer_without_anything_to_leave_out_is_sent_as_it_is():
    answer = assistant(HELLO, LOOK)
    assert Desk().back([answer]).messages[0] is not None
    plain = assistant(HELLO)
    assert Desk().back([plain]).messages[0] is plain
    foreign = replace(plain, origin=KIMI)
    assert Desk().back([foreign]).messages[0] == plain


def test_other_blocks_beside_results_are_left_alone():
    desk = Desk("openai-chat", KIMI)
    given = dropped(desk.answer([user("hi")], ToolCallBlock("look:0", "look")))
    call_id = given.tool_calls[0].id
    mixed = Message(role="user", blocks=(*result(call_id).blocks, HELLO, *result("other").blocks))
    *_, last = desk.back([user("hi"), given, mixed]).messages
    assert last.blocks == (*result("look:0").blocks, HELLO, *result("other").blocks)
    plain, empty = user("so?"), Message(role="user", blocks=result("other").blocks)
    *_, one, two = desk.back([user("hi"), given, plain, empty]).messages
    assert (one is plain, two is empty) == (True, True)


def test_notes_count_answers():
    desk = Desk()
    talk: list[Message] = []
    for number in range(2):
        for thought in "ab":
            desk.answer([user(f"{number}")], thinking(thought), HELLO)
        desk.answer([user("x")], ToolCallBlock((ONE, TWO)[number], "look"))
        other = assistant(ToolCallBlock((ONE, TWO)[number], "list"))
        talk += [user(f"{number}"), assistant(HELLO), user("y"), assistant(TextBlock("z"))]
        talk += [user("x"), other]
    altered, several, unknown = (note.text for note in desk.back(talk).notes)
    assert altered.startswith("2 answers were sent back with other tool calls")
    assert several == (
        "2 answers were like others of this client, with nothing to tell them apart: reasoning left"
        " out. Name the session in prompt_cache_key, user or x-session-id"
    )
    assert unknown.startswith("2 answers were not found")
