"""The Markdown export, judged by a CommonMark reader: nothing said gets out of its place."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from mull.history.log import Entry
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.messages import Message, assistant, user
from mull.transcripts.contain import contain, escape_marks, fence, inline_code
from mull.transcripts.markdown import to_markdown
from mull.transcripts.transcript import Transcript
from transcript_samples import ANSWER, LONG_THOUGHT, SAMPLE

_reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
OURS = re.compile(r"<details>\n<summary>[^<>]*</summary>\n?|</details>\n?")
OUR_INLINE = {"<sub>", "</sub>"}

FRAGMENTS = [
    "```", "````", "~~~", "```py", "    ```", "   ```", "\t```", "- ```", "> ```", "1. ~~~",
    "<details>", "</details>", "</summary>", "<!--", "-->", "<script>", "</sub>", "<![CDATA[",
    "<?php", "<b", "`", "``", "`<b>`", "\\`", "\\<b>", "|", "| a | b |", "|---|---|", "x `y | z`",
    "# Turn 9", "## Turn 9", "===", "---", "- item", "  - nested", "10. ten", "> quote",
    "[x]: <y>", "[a](<b>)", "text", "    code", "", "", "\t", "**bold", "&lt;", "<a href='`'>`",
]  # fmt: skip
nasty = st.lists(st.sampled_from(FRAGMENTS), max_size=9).flatmap(
    lambda parts: st.lists(
        st.sampled_from(["\n", "\n", "\n\n", " ", ""]), min_size=len(parts), max_size=len(parts)
    ).map(lambda gaps: "".join(p + g for p, g in zip(parts, gaps, strict=True)))
)


def _document(text: str) -> str:
    call = ToolCallBlock("c", f"name{text}", {"key": text})
    talk = (
        user(text),
        assistant(ThinkingBlock(text, "thinking"), TextBlock(text), call),
        Message(role="tool", blocks=(ToolResultBlock("c", text + "\n" * 30 + text),)),
        assistant(ThinkingBlock(text, "thinking"), TextBlock(text)),
        user("the last question"),
    )
    return to_markdown(Transcript(title=f"T {text}", system=text, records=tuple(map(Entry, talk))))


def _headings(markdown: str) -> list[tuple[str, str]]:
    """The headings that stand in no quote, list or fold of another."""
    tokens = _reader.parse(markdown)
    return [
        (token.tag, tokens[at + 1].content)
        for at, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0 and token.tag in ("h1", "h2", "h3")
    ]


@settings(max_examples=120)
@given(nasty)
@example("```\n<details>")
@example("```\n\t```\n")
@example("1. ```\n   code\n   ```\n   <!--")
@example("foo `bar\nbaz` <details> `x`")
@example("| ` | <b> | ` |\n|---|---|---|")
@example("para\n    ~~~\n    <details>\n    ~~~")
@example("- a\n\n      ```\n      x\n      ```\n<!--")
@example("   ```\ncode\n   ```\n<!--")
def test_nothing_that_was_said_gets_out_of_its_place(text):
    markdown = _document(text)
    tokens = _reader.parse(markdown)
    opened = 0
    for token in tokens:
        for inner in token.children or ():
            assert inner.type != "html_inline" or inner.content in OUR_INLINE
        if token.type == "html_block":
            assert OURS.fullmatch(token.content), token.content
            assert token.level == 0
            opened += 1 if token.content.startswith("<details>") else -1
            assert opened in (0, 1)
    assert opened == 0
    headings = _headings(markdown)
    assert headings[0][0] == "h1"
    assert [heading for heading in headings if heading[0] == "h2"] == [
        ("h2", "Turn 1"),
        ("h2", "Turn 2"),
    ]
    assert {said for tag, said in headings if tag == "h3"} <= {"You", "Assistant"}
    assert "the last question" in tokens[-2].content
    assert tokens[-2].type == "inline"


@pytest.mark.parametrize("text", [ANSWER, LONG_THOUGHT])
def test_ordinary_markdown_stays_as_it_is(text):
    assert contain(text) == text


@pytest.mark.parametrize(
    ("text", "contained"),
    [
        ("# Big\ntext", "#### Big\ntext"),
        ("###### Six", "###### Six"),
        ("Title\n===", "Title\n\\==="),
        ("Title\n---", "Title\n\n---"),
        ("see <b>this</b> and `<b>that</b>`", "see &lt;b>this&lt;/b> and `<b>that</b>`"),
        ("17*20+17*3 and `2*3*4` and *so*", "17\\*20+17\\*3 and `2*3*4` and *so*"),
        ("a < b and c<d", "a < b and c&lt;d"),
        ("```html\n<p># x</p>\n```", "```html\n<p># x</p>\n```"),
        (
            "1. do\n   ```sh\n   ls <dir>\n   ```\n2. on",
            "1. do\n   ```sh\n   ls <dir>\n   ```\n2. on",
        ),
        ("```\nno end", "````markdown\n```\nno end\n````"),
        ("> ```\n> x", "````markdown\n> ```\n> x\n````"),
        ("a\x1b[31mb\r\nc\x00", "a␛[31mb\nc␀"),
    ],
)
def test_what_becomes_of_marks_that_could_get_out(text, contained):
    assert contain(text) == contained


def test_a_fence_is_longer_than_any_inside():
    assert fence("a ```` b", "text") == "`````text\na ```` b\n`````"
    assert inline_code("a ` b") == "`` a ` b ``"
    assert escape_marks("a_b [c] <d> #1 `e`") == "a\\_b \\[c\\] \\<d\\> \\#1 \\`e\\`"


def test_the_sample_reads_as_a_conversation():
    markdown = to_markdown(SAMPLE)
    assert [said for tag, said in _headings(markdown) if tag == "h2"] == [
        f"Turn {n}" for n in range(1, 6)
    ]
    for expected in (
        "# Our client retries for ever when the server is down.\n",
        "- **Tokens:** ≥ 14,130 read, ≥ 1,528 written, ≥ 809 of them reasoning\n",
        "- **Cost:** ≥ $0.0452\n",
        "<summary>Thought for 12 s · 448 tokens</summary>\n\n> The user wants to know",
        "*The provider sent only a signature, no text.*",
        "*The provider sent this thinking redacted: only it can read it.*",
        '**Tool call** `read_file`\n\n```json\n{\n  "path": "src/client/retry.py"\n}\n```',
        "<summary>Result: 30 lines</summary>",
        "**Failed**\n\n```text\n1 failed, 41 passed\n```",
        "**Interrupted: the answer broke off here.**",
        "### You (taken back)\n\nForget the last question.",
        "**From here on, requests contain this summary of turn 1:**\n\n> The retry",
        "<summary>A shorter version of the thinking in turn 1</summary>",
        "*Attached: image/png, ",
        "&lt;script>alert('x')&lt;/script> & so on",
        "<sub>4,230 tokens read · 798 written · 509 of them reasoning · 17 s · cost $0.00453</sub>",
    ):
        assert expected in markdown, expected
    assert markdown.count("<details>") == markdown.count("</details>")


def test_thinking_can_be_left_out():
    markdown = to_markdown(SAMPLE, thinking=False)
    for thought in ("I should look at the file first", "signature", "redacted", "shorter version"):
        assert thought not in markdown
    assert "nothing increases it" in markdown


def test_a_conversation_without_anything_is_still_a_document():
    assert to_markdown(Transcript()) == "# Conversation\n"


def test_what_mull_said_in_the_users_name_is_marked_as_its_own():
    records = (Entry(user("q")), Entry(user("Go on."), own=True))
    markdown = to_markdown(Transcript(records=records))
    assert [said for tag, said in _headings(markdown) if tag == "h3"] == ["You", "mull"]


@pytest.mark.parametrize(
    "text",
    [
        "[a](javascript:alert(1))", "[a](  JaVaScRiPt:alert(1))", "[a](java&#115;cript:x)",
        "[a](data:text/html,x)", "[a](vbscript:x)", "[a](file:///etc/passwd)", "[a](x:y)",
        "[a][b]\n\n[b]: javascript:x", "[a][b]\n\n[b]:\njavascript:x", "[a](\njavascript:x)",
        "![a](http://evil.net/p.png)", "![a][b]\n\n[b]: http://evil.net/p.png",
        "\\\\![a](http://evil.net/p.png)", "[![a](http://evil.net/x)](http://b.org)",
        "- [a](<javascript:x>)", "| a |\n|---|\n| [x](javascript:y) |",
    ],
)  # fmt: skip
def test_no_reader_runs_or_fetches_anything(text):
    html = MarkdownIt("commonmark").enable("table").render(contain(text))
    assert "<img" not in html
    for target in re.findall(r'href="([^"]*)"', html):
        assert target.startswith(("http://", "https://"))


@pytest.mark.parametrize(
    "text",
    ["[a](https://b.org/c?d=e)", "[a](docs/x.md#y)", "[a](#b)", "[a](../x)", "[a](mailto:b@c.d)"],
)
def test_ordinary_links_stay(text):
    assert contain(text) == text


def test_a_change_is_shown_as_its_diff():
    result = ToolResultBlock("c", "edited a.py", diff="--- a/a.py\n+++ b/a.py\n-```\n+new")
    call = ToolCallBlock("c", "edit", {"path": "a.py", "old": "```", "new": "new"})
    talk = (user("q"), assistant(call), Message(role="tool", blocks=(result,)))
    markdown = to_markdown(Transcript(records=tuple(map(Entry, talk))))
    assert "````diff\n--- a/a.py\n+++ b/a.py\n-```\n+new\n````" in markdown
    assert '"old"' not in markdown
