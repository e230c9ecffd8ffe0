"""How wide text is, where it may be cut, and what of it may reach a terminal."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mull.tui.text.safe import Inbox, neutralise
from mull.tui.text.width import cell_width, clusters, fitted, has_sure_width, is_wide

FAMILY = "👩\u200d👩\u200d👧"
texts = st.text(
    st.one_of(
        st.sampled_from("ab -日本語。é한👩👧🇩🇪🏽☀\u200d\ufe0f\u0301\u093f"),
        st.characters(codec="utf-8"),
    ),
    max_size=30,
)


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("", 0),
        ("plain", 5),
        ("日本語", 6),
        ("한글", 4),
        ("ｆｕｌｌ", 8),
        ("e\u0301", 1),
        ("👍", 2),
        ("👍🏽", 2),
        ("🏽", 2),
        (FAMILY, 2),
        ("🇩🇪", 2),
        ("🇩🇪🇫🇷", 4),
        ("☀", 1),
        ("☀\ufe0f", 2),
        ("⌚\ufe0e", 2),
        ("\u1100\u1161\u11a8", 2),
        ("कि", 2),
        ("שלום", 4),
        ("\u0627\u064b", 1),
        ("a\u200db", 2),
        ("●•▎─│☐☑↪…", 9),
    ],
)
def test_the_cells_of_a_text(text, width):
    assert cell_width(text) == width


def test_single_characters_are_as_wide_as_another_table_says():
    """rich's tables are the judge; for spacing marks the larger width is meant."""
    judged = 0
    for code in [*range(0x20, 0x7F), *range(0xA1, 0x3000, 3), *range(0x3000, 0x1FB00, 7)]:
        character = chr(code)
        odd = unicodedata.category(character) in ("Cn", "Cs", "Cc", "Cf", "Mc", "Co")
        if odd or 0x1F3FB <= code <= 0x1F3FF:
            continue
        judged += 1
        assert cell_width(character) == cell_len(character), hex(code)
    assert judged > 10_000


@given(texts)
def test_clusters_are_the_text_and_their_widths_its_width(text):
    found = list(clusters(text))
    assert "".join(cluster for cluster, _ in found) == text
    assert sum(width for _, width in found) == cell_width(text)


@pytest.mark.parametrize("whole", [FAMILY, "e\u0301\u0301", "🇩🇪", "👍🏽", "☀\ufe0f", "कि"])
def test_what_is_drawn_as_one_is_one_cluster(whole):
    assert [cluster for cluster, _ in clusters(f"a{whole}b")] == ["a", whole, "b"]


@pytest.mark.parametrize(
    ("text", "width", "short"),
    [
        ("plain", 5, "plain"),
        ("plain text", 6, "plain…"),
        ("plain text", 7, "plain…"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        (f"a{FAMILY}b", 3, "a…"),
        ("abc", 0, ""),
    ],
)
def test_text_is_cut_to_fit(text, width, short):
    assert fitted(text, width) == short


@given(texts, st.integers(1, 20))
def test_cut_text_fits(text, width):
    assert cell_width(fitted(text, width)) <= width


def test_wide_characters_are_places_to_break():
    assert [is_wide(c) for c in "aé日👍\u0301。"] == [False, False, True, True, False, True]


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text):
    safe = neutralise(text)
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", safe
    )
    safe.encode()


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇"),
        ("\x9b2J\x90q", "�2J�q"),
        ("50%\r100%\r\nok", "50%␍100%\nok"),
        ("rm\x08\x08\x7f", "rm␈␈␡"),
        ("user\u202etxt.exe", "user�txt.exe"),
        ("\u2067שלום\u2069", "שלום"),
        ("one\u2028two", "one\ntwo"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("half \ud83d", "half �"),
        ("سلام", "سلام"),
    ],
)
def test_control_characters_become_visible_or_go(text, safe):
    assert neutralise(text) == safe


@given(st.lists(st.sampled_from(["a", "\r", "\n", "\r\n", "\x1b[0m", "\u202e"]), max_size=12))
def test_it_makes_no_difference_how_text_was_cut(pieces):
    inbox, taken = Inbox(), ""
    for piece in pieces:
        inbox.add(piece)
        taken += inbox.take()
    assert taken + inbox.take(final=True) == neutralise("".join(pieces))


@pytest.mark.parametrize(
    "text", ["plain", "“typographic” – │ ❯ ✓ ⠋ …", "Кириллица", "日本語。", "é"]
)
def test_terminals_agree_about_letters_and_signs(text):
    assert has_sure_width(text)


@pytest.mark.parametrize(
    "text", ["👍", "👍🏽", FAMILY, "🇩🇪", "☀\ufe0f", "e\u0301", "कि", "1\ufe0f\u20e3"]
)
def test_terminals_disagree_about_emoji_and_marks(text):
    assert not has_sure_width(f"plain {text}")
