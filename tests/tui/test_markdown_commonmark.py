"""Blocks and marks are found where CommonMark finds them; markdown-it-py is the judge."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mull.markdown.events import URL
from mull.markdown.inline import InlineParser
from mull.tui.text.lines import plain_text
from mull.tui.text.markdown import markdown_lines
from tui.commonmark import reference_flags, reference_lines
from tui.screens import BARE

BLOCKS = [
    "# head\n", "## two ##\n", "- a\n", "- b\n", "1. x\n", "2. y\n", "   in y\n", "> q\n",
    "> > r\n", "```py\n", "```\n", "\n", "\n\n", "text **bold**\n", "more *it* `c`\n", "    code\n",
    "* * *\n", "~~~\n", "word\n", "> - l\n", "- > q\n", "+ p\n", "3) z\n", "# \n", "   > q3\n",
    "***\n", "* s\n", "1986. year\n", "1. 1. n\n",
]  # fmt: skip

SAMPLES = [
    "Intro:\n\n1. One\n   - sub\n   - sub two\n2. Two\n\n   More.\n\n   ```sh\n   ls\n   ```\n",
    "- a\n\n  b\n\n- c\n  > quoted\n  > more\n\nend",
    "> # Head\n> - x\n> - y\n>\n> done\n\nafter",
    "* a\n    * b\n        * c\n* d",
    "Title\n---\n\ntext\n***\nmore",
    "1. a\n2. b\n1) c\n- d\n- e\n+ f",
    "```\na\n\n\nb\n```\n````md\n```\n````",
    "**bold** _it_ __very strong__ a_b_c *a*b `x``y` ``a`b``",
    "[a](<bc>) [d](e \"t\") ![i](j) <https://k.l/>",
    "a\\*b\\* \\# c\n\\- d\n&copy; &#x41;",
    "- [link](u)\n- `code`\n\n\n- **b**",
    "   three spaces\n    four go on\n\n    four begin",
    "~~a~~ ~b~",
]  # fmt: skip


def drawn(text):
    lines = plain_text(markdown_lines(text, BARE, 500)).split("\n")
    return [line.rstrip() for line in lines if line.strip(" ▎")]


@pytest.mark.parametrize("text", SAMPLES)
def test_answers_of_models_have_the_blocks_of_commonmark(text):
    assert drawn(text) == reference_lines(text)


@given(st.lists(st.sampled_from(BLOCKS), max_size=9).map("".join))
def test_so_have_random_documents(text):
    assert drawn(text) == reference_lines(text)


@given(st.text("**__ab .`x", max_size=16))
def test_marks_pair_as_in_commonmark(text):
    assume(not re.search("__[abx][abx_]*__", text))  # a name of Python's, to us
    parser = InlineParser()
    parser.feed(f"x{text}x")
    found = [(c, flags) for said, flags, _ in parser.finish() for c in said if not flags & URL]
    assert found == reference_flags(f"x{text}x")
