"""What a terminal would show in the end, whatever the pieces that it comes in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from growth import ends
from mull.agent.tools.printed import Printed, printed


@pytest.mark.parametrize(
    ("came", "seen"),
    [
        (b"plain\n", "plain\n"),
        (b"\x1b[38;5;196mred\x1b[m \x1b[1Gx\x1b[K\n", "red x\n"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "link\n"),
        (b"\x1b]0;title\x07text\x1b(B\x1b=\x1b7\n", "text\n"),
        (b"\x1bP1;2|data\x1b\\after\n", "after\n"),
        (b"10%\r20%\r30%\r\ndone", "30%\ndone"),
        (b"100%\r", "100%"),
        (b"N\bNA\bAM\bME\bE\n", "NAME\n"),
        (b"\b\bx\b\by\n", "y\n"),
        (b"a\0b\x0e\x7f\tc\n", "ab\tc\n"),
        (b"never ends \x1b]0;title\nnext\n", "never ends ]0;title\nnext\n"),
        (b"cut \x1b[3", "cut [3"),
        ("é\x85ü\n".encode(), "éü\n"),
        (b"\xff\n", "\ufffd\n"),
    ],
)
def test_only_what_is_seen_is_left(came, seen):
    assert printed(came) == seen


@given(
    st.lists(
        st.sampled_from(
            [
                "x",
                "é",
                "\n",
                "\r",
                "\r\n",
                "\b",
                "\x1b",
                "[",
                "31",
                "m",
                "]",
                "\x07",
                "\\",
                " ",
                "\0",
            ]
        ),
        max_size=40,
    ),
    st.lists(st.integers(0, 50), max_size=6),
)
def test_the_pieces_do_not_matter(parts, cuts):
    data = "".join(parts).encode()
    places = sorted({min(cut, len(data)) for cut in cuts})
    reader, text = Printed(), ""
    for start, end in zip([0, *places], [*places, len(data)], strict=True):
        text += reader.feed(data[start:end])
    assert text + reader.close() == printed(data)
    assert not any(char < " " and char not in "\n\t" for char in printed(data))


@pytest.mark.parametrize("piece", [b"\x1b[", b"\x1b]0;", b"x\r", b"a\b", b"\x1b]\x1b"])
def test_hostile_output_is_read_in_time_that_grows_with_it(piece):
    with ends():
        printed(piece * 500_000)
