"""Envelopes: what opens them, what they hold, and which key seals them."""

from __future__ import annotations

import hmac
import json
import random
import zlib
from base64 import b64decode, b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import tried
from mull.gateway import envelope
from mull.gateway.envelope import MOST_SEALED, Envelopes, Sealed, is_envelope
from mull.neutral.blocks import TextBlock, ThinkingBlock
from mull.neutral.messages import Origin

ORIGIN = Origin("kimi", "openai-chat", "k2", "http://x")
SEALED = Sealed(ORIGIN, {0: ThinkingBlock("Hm.", signature="s"), 2: TextBlock("t")}, {0: 1}, "a1")
MARK, TAG = 6, 16  # the bytes of what every envelope begins with, and of its tag

texts = st.text(max_size=200)


@tried(1)
@given(texts, texts, st.binary(min_size=1, max_size=40), st.data())
def test_an_envelope_opens_in_its_scope_and_not_when_it_was_altered(scope, thought, key, data):
    made = Sealed(ORIGIN, {0: ThinkingBlock(thought, signature="s"), 2: TextBlock("t")})
    one = Envelopes(key)
    text = one.seal(scope, made)
    assert text is not None
    assert is_envelope(text)
    assert one.open(scope, text) == made
    assert Envelopes(b"new", key).open(scope, text) == made
    assert one.open(scope + "x", text) is None
    assert Envelopes(b"other" + key).open(scope, text) is None
    at = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.sampled_from("Aa0+/"))
    if text[at] != letter:
        assert one.open(scope, text[:at] + letter + text[at + 1 :]) in (None, made)
    assert one.open(scope, thought) is None


def sealed(held: Sealed = SEALED, scope: str = "", key: bytes = b"k") -> bytes:
    text = Envelopes(key).seal(scope, held)
    assert text is not None
    return b64decode(text)


def opened(data: bytes, scope: str = "", key: bytes = b"k") -> Sealed | None:
    return Envelopes(key).open(scope, b64encode(data).decode())


@pytest.mark.parametrize("at", range(MARK + TAG))
def test_every_byte_before_the_content_counts(at):
    data = bytearray(sealed())
    assert opened(bytes(data)) == SEALED
    data[at] ^= 1
    assert opened(bytes(data)) is None


def test_clients_hold_envelopes_for_months_so_their_form_stays():
    data = sealed(scope="ann")
    mark, tag, content = data[:MARK], data[MARK : MARK + TAG], data[MARK + TAG :]
    assert mark == b"mull1."
    assert tag == hmac.digest(b"k", b"ann\0" + content, "sha256")[:TAG]
    assert json.loads(zlib.decompress(content)) == {
        "origin": {
            "provider": "kimi",
            "dialect": "openai-chat",
            "model": "k2",
            "endpoint": "http://x",
        },
        "blocks": {
            "0": {"type": "thinking", "thought": "Hm.", "signature": "s"},
            "2": {"type": "text", "text": "t"},
        },
        "calls": {"0": 1},
        "answer": "a1",
    }


def test_what_is_no_envelope_does_not_open():
    data = sealed()
    text = b64encode(data).decode()
    for other in ("", "ä", "mull1.", text[:-1], text + "!", f"{text[:9]}\n{text[9:]}", "*" + text):
        assert Envelopes(b"k").open("", other) is None
    assert not is_envelope("x" + text)
    assert not is_envelope("sig")


def test_what_another_version_sealed_does_not_open():
    key = b"k"
    for content in (b"no zlib at all", envelope.packed(b"no JSON"), envelope.packed(b'{"a":1}')):
        tag = envelope._tag(key, "", content)
        assert opened(b"mull1." + tag + content, key=key) is None


def noise(length: int) -> str:
    return "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=length))


def test_an_envelope_has_at_most_eight_kilobytes():
    one = Envelopes(b"k")
    held = Sealed(ORIGIN, {0: ThinkingBlock(noise(8_000))})
    size = len(sealed(held)) - MARK - TAG
    assert one.seal("", held, most=size) is not None
    assert one.seal("", held, most=size - 1) is None
    assert MOST_SEALED == 8_192
    assert one.seal("", Sealed(ORIGIN, {0: ThinkingBlock(noise(40_000))})) is None


def test_an_envelope_is_not_unpacked_without_a_limit():
    """It is signed, so only a gateway can have packed it; still no more than a megabyte."""
    large = Sealed(ORIGIN, {0: ThinkingBlock("a" * ((1 << 20) - 300))})
    assert opened(sealed(large)) == large
    assert opened(sealed(Sealed(ORIGIN, {0: ThinkingBlock("a" * (1 << 20))}))) is None


def test_a_key_that_the_others_use_seals_from_then_on():
    kept: list[bytes] = []
    one = Envelopes(b"own", b"old", keep=kept.append)
    before = {key: b64encode(sealed(key=key)).decode() for key in (b"own", b"old", b"theirs")}
    one.adopt(b"own")
    assert (one.key, kept) == (b"own", [])
    one.adopt(b"theirs")
    assert (one.key, kept) == (b"theirs", [b"theirs"])
    assert one.seal("", SEALED) == before[b"theirs"]
    assert all(one.open("", text) == SEALED for text in before.values())
    one.adopt(b"own")
    assert (one.key, kept) == (b"own", [b"theirs", b"own"])
    assert one._keys == (b"own", b"theirs", b"old")
    unwatched = Envelopes(b"own")
    unwatched.adopt(b"theirs")
    assert unwatched.key == b"theirs"
