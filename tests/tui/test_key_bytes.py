"""What a terminal sends, as keys: the old way, the kitty protocol, modifyOtherKeys, pastes."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.keys import Keys

from effort import tried
from mull.tui.screen.key_bytes import ESC, KeyDecoder

ALT = Keys.Escape
ENTER, BACK, UP = Keys.ControlM, Keys.ControlH, Keys.Up


def decode(*reads):
    """The keys of so many reads."""
    keys = []
    decoder = KeyDecoder(keys.append)
    for read in reads:
        decoder.feed(read)
    decoder.flush()
    return [(key.key, key.data) if key.key == Keys.BracketedPaste else key.key for key in keys]


@pytest.mark.parametrize(
    ("reads", "keys"),
    [
        (["\x1b"], [ESC]),
        (["\x1b", "but"], [ESC, "b", "u", "t"]),
        (["\x1bb"], [ALT, "b"]),
        (["\x1b\x1b"], [ESC, ESC]),
        (["\x1b", "\x1b", "x"], [ESC, ESC, "x"]),
        (["\x1b[A"], [UP]),
        (["\x1b", "[A"], [UP]),
        (["\x1b[", "A"], [UP]),
        (["\x1bO", "A"], [UP]),
        (["\x1b\x1b[A"], [ALT, UP]),
        (["\x1b["], [ALT, "["]),
        (["\x1bO"], [ALT, "O"]),
        (["\x1b]"], [ALT, "]"]),
        (["\x1b\r"], [ALT, ENTER]),
        (["a\x1b\x7fb"], ["a", ALT, BACK, "b"]),
        (["\x1b[27u"], [ESC]),
        (["\x1b[27;1u"], [ESC]),
        (["\x1b[27;129u"], [ESC]),
        (["\x1b[13;2u"], [ALT, ENTER]),
        (["\x1b[27;2;13~"], [ALT, ENTER]),
        (["\x1b[27;5;13~"], [ALT, ENTER]),
        (["\x1b[13u"], [ENTER]),
        (["\x1b[57414u"], [ENTER]),
        (["\x1b[9;2u"], [Keys.BackTab]),
        (["\x1b[98;3u"], [ALT, "b"]),
        (["\x1b[98:66;4u"], [ALT, "B"]),
        (["\x1b[98;4u"], [ALT, "B"]),
        (["\x1b[99;5u"], [Keys.ControlC]),
        (["\x1b[1089::99;5u"], [Keys.ControlC]),
        (["\x1b[99;69u"], [Keys.ControlC]),
        (["\x1b[99;5:3u"], []),
        (["\x1b[91;5u"], [ESC]),
        (["\x1b[32;5u"], [Keys.ControlAt]),
        (["\x1b[127;5u"], [ALT, BACK]),
        (["\x1b[99;9u"], []),
        (["\x1b[57441u"], []),
        (["\x1b[57419u"], [UP]),
        (["\x1b[1;129A"], [UP]),
        (["\x1b[1;1A"], [UP]),
        (["\x1b[1;5A"], [Keys.ControlUp]),
        (["\x1b[3;129~"], [Keys.Delete]),
        (["\x1b[?0u"], []),
        (["\x1b[12;", "1R"], [Keys.CPRResponse]),
        (["\x1b[?62;22cx"], ["x"]),
        (["\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\x"], ["x"]),
        (["\x1b]11;rgb:1e1e", "/1e1e/2e2e\x07x"], ["x"]),
        (["\x1b[999zx"], ["x"]),
        (["\x1b[1;\rx"], [ENTER, "x"]),
        (["\x1b]11;\rx"], [ALT, "]", "1", "1", ";", ENTER, "x"]),
        (["\x1b[99999999999999999999u"], []),
        (["\x1b[55296;3u"], []),
        (["\x1b[200~a\x1bb\x1b[27u\x1b[201~c"], [(Keys.BracketedPaste, "a\x1bb\x1b[27u"), "c"]),
        (["\x1b[200~a\x1b", "[201~"], [(Keys.BracketedPaste, "a")]),
        (["\x1b[200~a\x1b[20", "1~b"], [(Keys.BracketedPaste, "a"), "b"]),
        (["\x1b[200~a\x1b", "x\x1b[201~"], [(Keys.BracketedPaste, "a\x1bx")]),
    ],
)
def test_sequences(reads, keys):
    assert decode(*reads) == keys


def test_a_paste_is_not_cut_by_a_flush_or_by_any_way_of_reading():
    text = "one\x1b[A\x1b\ntwo\x1b[201"
    sent = f"\x1b[200~{text}\x1b[201~!"
    for at in range(len(sent)):
        keys = []
        decoder = KeyDecoder(keys.append)
        decoder.feed(sent[:at])
        if at >= len("\x1b[200~"):
            decoder.flush()
        decoder.feed(sent[at:])
        assert [key.data for key in keys] == [text, "!"], at


def test_the_terminal_says_that_it_knows_the_protocol():
    spoken = []
    decoder = KeyDecoder(lambda key: None, lambda: spoken.append(1))
    decoder.feed("\x1b[?")
    decoder.flush()
    decoder.feed("0u")
    assert spoken == [1]


BYTES = st.text(st.sampled_from("\x1b[]O;:?~u2701A\rb\x07\\ж\x03"), max_size=24)


@tried(2)
@given(st.lists(BYTES, max_size=6))
def test_nothing_that_comes_is_an_error_and_nothing_stays_behind(reads):
    keys = []
    decoder = KeyDecoder(keys.append)
    for read in reads:
        decoder.feed(read)
        decoder.flush()
    decoder.feed("\x03\x1b[201~")  # what was begun ends here, whatever it was
    before = len(keys)
    decoder.feed("x")
    assert [key.key for key in keys[before:]] == ["x"]


SEQUENCES = st.sampled_from(
    ["a", "ж", "\r", "\x03", "\x1b[A", "\x1bOP", "\x1b[27u", "\x1b[13;2u", "\x1b[27;5;13~",
     "\x1b[1;129B", "\x1b[200~one\x1btwo\x1b[201~", "\x1b]11;rgb:1/2/3\x07", "\x1b[?62c"]
)  # fmt: skip


@tried(2)
@given(st.lists(SEQUENCES, max_size=8), st.lists(st.integers(0, 120), max_size=8))
def test_however_a_line_cuts_what_is_sent_the_keys_are_the_same(sequences, cuts):
    sent = "".join(sequences)
    places = sorted({0, *(cut for cut in cuts if cut < len(sent)), len(sent)})
    reads = [sent[a:b] for a, b in itertools.pairwise(places)]
    assert decode(*reads) == decode(sent)
