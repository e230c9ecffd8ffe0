"""What a client is given of an answer, and what is kept of it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from mull.gateway.anchors import (
    NOBODY,
    Identity,
    Past,
    answer_key,
    call_key,
    carrier_key,
    thought_keys,
)
from mull.gateway.envelope import Envelopes, Sealed, is_envelope
from mull.gateway.ids import is_sound, mint, provider_id
from mull.gateway.record import Kept
from mull.gateway.relay import Client, Relay
from mull.neutral.assemble import tell
from mull.neutral.blocks import (
    Block,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Wire,
)
from mull.neutral.events import (
    BlockEnded,
    Event,
    Finished,
    Started,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
    UsageReported,
)
from mull.neutral.messages import Dialect, Message, Origin, assistant, user
from mull.neutral.usage import Usage

ENVELOPES = Envelopes(b"k" * 32)
SOUND, OTHER = "call_0123456789abcdef", "call_fedcba9876543210"
FOREIGN: list[Dialect] = ["openai-chat", "openai-responses", "gemini"]  # to Anthropic
FIELD = {"openai-chat": "encrypted", "openai-responses": "encrypted", "gemini": "signature"}


def origin(dialect: Dialect) -> Origin:
    return Origin("p", dialect, "m", "http://x")


def relay(client: Dialect = "anthropic", upstream: Dialect = "anthropic", **more: Any) -> Relay:
    return Relay(Client(client, "ann"), origin(upstream), ENVELOPES, "answer-1", **more)


def events_of(*blocks: Block, ends: bool = False) -> list[Event]:
    """The events of an answer; most upstreams do not say where a block ends."""
    told = tell(Message(role="assistant", status="complete", blocks=blocks))
    return [one for one in told if ends or not isinstance(one, BlockEnded)]


def opened(envelope: str | None) -> Sealed:
    assert envelope is not None
    assert ENVELOPES.open("", envelope) is None  # only in the scope of its client
    sealed = ENVELOPES.open("ann", envelope)
    assert sealed is not None
    return sealed


def calls_in(events: list[Event]) -> list[ToolCallDelta]:
    return [one for one in events if isinstance(one, ToolCallDelta)]


def carriers_in(events: list[Event]) -> list[ThinkingCarrier]:
    return [one for one in events if isinstance(one, ThinkingCarrier)]


SIGNED = ThinkingBlock("Hm.", signature="sig")
CALL = ToolCallBlock(SOUND, "read", {"path": "a"})


# A client of the upstream's own API.


def test_in_its_own_api_a_client_gets_what_the_upstream_sent():
    blocks = (SIGNED, TextBlock("Hello.", signature="t"), ThinkingBlock("", redacted="r"))
    sent = events_of(*blocks, ends=True)
    one = relay()
    assert one.translate(sent) == sent
    assert one.upstream.blocks == blocks


def test_in_its_own_api_only_the_ids_of_calls_change():
    signed = ToolCallBlock(SOUND, "read", {"path": "a"}, None, "g", Wire("anthropic", {"x": 1}))
    sent = events_of(SIGNED, TextBlock("Hello.", signature="t"), signed)
    got = relay().translate(sent)
    assert [one for one in got if not isinstance(one, ToolCallDelta)] == [
        one for one in sent if not isinstance(one, ToolCallDelta)
    ]
    (call,) = calls_in(got)
    assert (call.key, call.id, call.name, call.arguments) == (
        "call 2",
        SOUND,
        "read",
        '{"path":"a"}',
    )
    assert (call.signature, call.wire) == ("g", Wire("anthropic", {"x": 1}))


# The ids of calls.


@pytest.mark.parametrize(("dialect", "prefix"), [("anthropic", "toolu_"), ("openai-chat", "call_")])
def test_an_id_that_repeats_or_that_clients_rewrite_is_replaced(dialect, prefix):
    (call,) = calls_in(relay(dialect).translate(events_of(ToolCallBlock("functions.read:0", "r"))))
    assert call.id is not None
    assert call.id.startswith(prefix)
    assert provider_id(call.id) == "functions.read:0"


@pytest.mark.parametrize(
    ("call_id", "sound"),
    [
        ("toolu_0123456789abcdef01", True),
        ("call_aVeryLongNameWithoutNumbers", False),
        ("call_0123456789", False),
        ("functions.read:0123456789abcdef", False),
        ("a1" * 33, False),
    ],
)
def test_an_id_is_kept_that_no_other_call_has_and_that_every_client_takes(call_id, sound):
    assert is_sound(call_id) == sound


@pytest.mark.parametrize("call_id", ["functions.read:0", "functions.ü:1", "x." * 13, "x." * 14, ""])
def test_a_new_id_is_short_and_says_the_providers_only_if_it_was_not_altered(call_id):
    made = mint("anthropic", call_id)
    assert len(made) <= 64
    if not call_id or len(call_id) > 26:
        assert provider_id(made) is None
        return
    assert provider_id(made) == call_id
    altered = made[:-4] + ("a" if made[-4] != "a" else "b") + made[-3:]
    assert provider_id(altered) is None


def test_a_call_without_an_id_gets_one():
    one = relay()
    (call,) = calls_in(one.translate([ToolCallDelta("k", None, "read", "{}")]))
    assert call.id is not None
    assert call.id.startswith("toolu_")
    assert provider_id(call.id) is None
    _, kept = one.keep(Past())
    assert kept.ids == {call_key(call.id): "call_0"}


def test_a_call_that_comes_in_pieces_has_its_id_once():
    one = relay("openai-chat")
    pieces = [
        ToolCallDelta("k", SOUND, "read", ""),
        ToolCallDelta("k", None, None, '{"path":'),
        ToolCallDelta("k", None, None, '"a"}'),
    ]
    got = [made for piece in pieces for made in one.translate([piece])]
    assert [(one.id, one.key, one.arguments) for one in calls_in(got)] == [
        (SOUND, "call 0", ""),
        (None, "call 0", '{"path":'),
        (None, "call 0", '"a"}'),
    ]
    _, kept = one.keep(Past())
    assert kept.ids == {call_key(SOUND): SOUND}


@pytest.mark.parametrize("second", [SOUND, SOUND.upper(), SOUND.replace("_", "-")])
def test_two_calls_with_one_id_of_the_upstream_are_two_calls(second):
    """Also if a client could take them for one: ids are found whatever it does to them."""
    one = relay("openai-chat")
    got = one.translate(
        [
            ToolCallDelta("a", SOUND, "read", "{}"),
            ToolCallDelta("b", second, "read", "{}"),
            ToolCallDelta("c", OTHER, "read", "{}"),
        ]
    )
    ids = [call.id or "" for call in calls_in(got)]
    assert len({*map(call_key, ids)}) == 3
    assert ids[::2] == [SOUND, OTHER]
    assert provider_id(ids[1]) == second
    _, kept = one.keep(Past())
    assert kept.ids == {call_key(ids[0]): SOUND, call_key(ids[1]): second, call_key(OTHER): OTHER}


def test_a_tool_that_was_renamed_for_the_upstream_has_its_own_name():
    one = relay(names={"read_x": "read.x"})
    got = one.translate([ToolCallDelta("a", SOUND, "read_x"), ToolCallDelta("b", OTHER, "write")])
    assert [call.name for call in calls_in(got)] == ["read.x", "write"]
    assert [call.name for call in one.upstream.tool_calls] == ["read.x", "write"]


# A client of another API: envelopes.


@pytest.mark.parametrize("client", FOREIGN)
def test_thinking_ends_with_an_envelope_where_the_client_keeps_a_carrier(client):
    sent = events_of(SIGNED, TextBlock("Hello."))
    started, thought, carrier, ended, text, *_ = relay(client).translate(sent)
    assert isinstance(started, Started)
    assert thought == ThinkingDelta("Hm.", "thought 1")
    assert isinstance(carrier, ThinkingCarrier)
    assert ended == BlockEnded("thought 1")
    assert text == TextDelta("Hello.", "block 1")
    envelope = getattr(carrier, FIELD[client])
    assert carrier == ThinkingCarrier("thought 1", **{FIELD[client]: envelope})
    assert opened(envelope) == Sealed(origin("anthropic"), {0: SIGNED}, {0: 0}, "answer-1")


def test_each_thought_has_its_own_envelope():
    first, second = ThinkingBlock("One.", signature="a"), ThinkingBlock("Two.", signature="b")
    got = relay("openai-chat").translate(events_of(first, second, CALL, SIGNED, TextBlock("x")))
    assert [one.key for one in got if isinstance(one, ThinkingDelta)] == [
        "thought 1",
        "thought 2",
        "thought 3",
    ]
    held = [opened(one.encrypted) for one in carriers_in(got)]
    led_to = replace(CALL, input={}, arguments=None)
    assert [one.blocks for one in held] == [{0: first}, {1: second, 2: led_to}, {3: SIGNED}]
    assert [one.calls for one in held] == [{0: 0}, {1: 0, 2: 0}, {3: 1}]
    ends = [one.key for one in got if isinstance(one, BlockEnded)]
    assert [key for key in ends if "thought" in str(key)] == ["thought 1", "thought 2", "thought 3"]


def test_a_thought_ends_where_the_upstream_says_so():
    got = relay("openai-responses").translate(events_of(SIGNED, ends=True))
    kinds = [type(one) for one in got]
    assert kinds == [Started, ThinkingDelta, ThinkingCarrier, BlockEnded, BlockEnded, Finished]


def test_for_an_api_that_puts_calls_last_a_thought_ends_where_what_it_led_to_begins():
    got = relay("openai-chat").translate(events_of(SIGNED, CALL, TextBlock("x"), ends=True))
    kinds = [type(one) for one in got[:5]]
    assert kinds == [Started, ThinkingDelta, ThinkingCarrier, BlockEnded, ToolCallDelta]
    (carrier,) = carriers_in(got)
    led_to = replace(CALL, input={}, arguments=None)
    assert opened(carrier.encrypted).blocks == {0: SIGNED, 1: led_to}
    alone = relay("openai-chat").translate(events_of(SIGNED, ends=True))
    kinds = [type(one) for one in alone]
    assert kinds == [Started, ThinkingDelta, ThinkingCarrier, BlockEnded, Finished]


def test_a_thought_that_only_has_a_carrier_begins_empty():
    hidden = ThinkingBlock("", redacted="secret", kind="summary")
    first, carrier, *_ = relay("openai-chat").translate(events_of(hidden))[1:]
    assert first == ThinkingDelta("", "thought 1", kind="summary")
    assert isinstance(carrier, ThinkingCarrier)
    assert carrier.redacted is None
    assert opened(carrier.encrypted).blocks == {0: hidden}
    bare = relay("openai-chat").translate([ThinkingCarrier("k", redacted="secret")])
    assert bare == [ThinkingDelta("", "thought 1", kind="raw")]


def test_a_thought_goes_on_in_pieces():
    one = relay("openai-chat")
    pieces: list[Event] = [ThinkingDelta("H", "k"), ThinkingDelta("m.", "k")]
    got = [made for piece in pieces for made in one.translate([piece])]
    assert got == [ThinkingDelta("H", "thought 1"), ThinkingDelta("m.", "thought 1")]
    assert one.translate([ThinkingCarrier("k", signature="s")]) == []
    *_, end = one.translate([UsageReported(usage := Usage(1, 2))])
    assert end == UsageReported(usage)
    assert one.translate([Finished("stop")]) == [Finished("stop")]


def test_what_only_the_upstream_reads_of_a_text_stays_with_it():
    signed = TextBlock("Hello.", signature="s")
    wired = TextBlock(" You.", wire=Wire("gemini", {"x": 1}))
    sent = [*events_of(signed, wired), TextDelta("", "last", signature="late")]
    texts = [
        one for one in relay("anthropic", "gemini").translate(sent) if isinstance(one, TextDelta)
    ]
    assert texts == [TextDelta("Hello.", "block 0"), TextDelta(" You.", "block 1")]


@pytest.mark.parametrize("client", ["anthropic", "openai-chat", "openai-responses"])
def test_the_carrier_of_a_call_is_in_the_envelope_before_it(client):
    signed = ToolCallBlock(SOUND, "read", {"path": "a"}, '{ "path": "a" }', "sig")
    bare = ToolCallBlock(SOUND, "read", signature="sig")
    thought = ThinkingBlock("Hm.")
    field = "signature" if client == "anthropic" else "encrypted"

    got = relay(client, "gemini").translate(events_of(thought, signed, CALL))
    (carrier,) = carriers_in(got)
    assert opened(getattr(carrier, field)).blocks == {0: thought, 1: bare}
    assert [call.signature for call in calls_in(got)] == [None, None]

    got = relay(client, "gemini").translate(events_of(signed))[1:]
    begun, carrier, ended, call, *_ = got
    assert begun == ThinkingDelta("", "thought 1")
    assert isinstance(carrier, ThinkingCarrier)
    assert carrier.key == "thought 1"
    assert opened(getattr(carrier, field)) == Sealed(
        origin("gemini"), {0: bare}, {0: 0}, "answer-1"
    )
    assert ended == BlockEnded("thought 1")
    assert isinstance(call, ToolCallDelta)


def test_a_carrier_of_a_call_is_sealed_once():
    one = relay("anthropic", "gemini")
    got = one.translate(
        [
            ToolCallDelta("k", SOUND, "read", "", "sig"),
            ToolCallDelta("k", None, None, "{}", "sig"),
        ]
    )
    assert len(carriers_in(got)) == 1


def test_the_thoughts_of_two_signed_calls_are_two():
    signed = [ToolCallBlock(name, "read", signature="sig") for name in (SOUND, OTHER)]
    got = relay("anthropic", "gemini").translate(events_of(*signed))
    assert [one.key for one in carriers_in(got)] == ["thought 1", "thought 2"]
    assert [opened(one.signature).calls for one in carriers_in(got)] == [{0: 0}, {1: 1}]


def test_a_call_without_carriers_only_ends_the_thought():
    wired = ToolCallBlock(SOUND, "read", wire=Wire("openai-chat", {"index": 3}))
    got = relay("anthropic", "openai-chat").translate(events_of(ThinkingBlock("Hm."), wired))
    (carrier,) = carriers_in(got)
    assert opened(carrier.signature).blocks == {0: ThinkingBlock("Hm.")}
    kinds = [type(one) for one in got[1:5]]
    assert kinds == [ThinkingDelta, ThinkingCarrier, BlockEnded, ToolCallDelta]
    (call,) = calls_in(got)
    assert call.wire is None
    alone = relay("anthropic", "openai-chat").translate(events_of(wired))
    assert not carriers_in(alone)


def test_a_client_that_keeps_the_signatures_of_calls_has_all_thinking_on_the_first():
    first, second = ThinkingBlock("One.", signature="a"), ThinkingBlock("Two.", signature="b")
    sent = events_of(first, TextBlock("I look."), second, CALL, ToolCallBlock(OTHER, "read"))
    one, other = calls_in(relay("gemini").translate(sent))
    assert opened(one.signature) == Sealed(
        origin("anthropic"),
        {0: first, 2: second, 3: ToolCallBlock(SOUND, "read")},
        {0: 0, 2: 0, 3: 0},
        "answer-1",
    )
    assert other.signature is None
    signed = ToolCallBlock(SOUND, "read", signature="sig")
    got = relay("gemini", "openai-chat").translate(events_of(signed))
    assert [type(one) for one in got] == [Started, ToolCallDelta, Finished]
    assert opened(calls_in(got)[0].signature).blocks == {0: signed}


def test_in_its_own_api_the_signature_of_a_call_is_the_upstreams():
    signed = ToolCallBlock(SOUND, "read", signature="sig")
    (call,) = calls_in(relay("gemini", "gemini").translate(events_of(signed)))
    assert call.signature == "sig"


def test_thinking_that_is_too_long_leaves_a_reference():
    import random

    noise = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=40_000))
    got = relay("openai-chat").translate(events_of(ThinkingBlock(noise), TextBlock("x")))
    (carrier,) = carriers_in(got)
    assert opened(carrier.encrypted) == Sealed(origin("anthropic"), {}, {}, "answer-1")


def test_without_an_envelope_thinking_ends_all_the_same(monkeypatch):
    monkeypatch.setattr(Envelopes, "seal", lambda *_: None)
    got = relay("openai-chat").translate(events_of(SIGNED))[1:3]
    assert got == [ThinkingDelta("Hm.", "thought 1"), BlockEnded("thought 1")]
    signed = ToolCallBlock(SOUND, "read", signature="sig")
    got = relay("anthropic", "gemini").translate(events_of(signed))[1:3]
    assert got == [ThinkingDelta("", "thought 1"), BlockEnded("thought 1")]


# What is kept.


@pytest.mark.parametrize("client", ["anthropic", "openai-chat"])
def test_an_answer_is_kept_as_the_upstream_sent_it_under_all_that_may_come_back(client):
    blocks = (SIGNED, TextBlock("Hello.", signature="t"), ToolCallBlock("read:0", "read"))
    one = relay(client)
    (call,) = calls_in(one.translate(events_of(*blocks)))
    past = Past(identity := Identity("Be brief.", "s"))
    past.add(user("q"))
    keys, kept = one.keep(past)
    assert kept == Kept(origin("anthropic"), blocks, {call_key(call.id or ""): "read:0"})
    again = Past(identity)
    again.add(user("q"))
    sent = assistant(*blocks)
    wanted = {answer_key("answer-1"), call_key(call.id or "")}
    wanted |= {*thought_keys(sent), *again.keys(sent)}
    if client == "anthropic":  # no other client was given them
        wanted |= {carrier_key("sig"), carrier_key("t")}
    assert {*keys} == wanted
    assert is_sound(call.id or "")


def test_what_is_no_call_has_no_id():
    one = relay()
    one.translate([ToolCallDelta("k", SOUND, None, "{}")])
    _, kept = one.keep(Past(NOBODY))
    assert kept.ids == {}


def test_an_envelope_is_never_taken_for_a_carrier_of_the_upstream():
    (carrier,) = carriers_in(relay("openai-chat").translate(events_of(SIGNED, TextBlock("x"))))
    assert is_envelope(carrier.encrypted or "")
