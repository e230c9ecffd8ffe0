"""Answers as HTML: what models write is laid out, and nothing of it is ever a tag."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import tried
from growth import ends
from mull.transcripts.markdown_html import markdown_html
from transcript_samples import ANSWER

TAGS = {
    *("p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "span", "blockquote", "hr", "pre", "code"),
    *("strong", "em", "del", "a", "div", "table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {"dir", "href", "rel", "start", "class", "tabindex", "data-language"}
VOID = {"hr"}


class Reader(HTMLParser):
    """Checks that tags are balanced and known; collects text and addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.addresses: list[str] = []

    def handle_starttag(self, tag, attrs):
        assert tag in TAGS
        assert {name for name, _ in attrs} <= ATTRIBUTES
        self.addresses += [value for name, value in attrs if name == "href"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def handle_comment(self, data):
        raise AssertionError(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


def _read(text: str) -> Reader:
    reader = Reader()
    reader.feed(markdown_html(text))
    reader.close()
    assert not reader.open
    return reader


PIECES = st.sampled_from(
    [
        "<b>", "</b>", "<!--", "&amp;", '"', "'", "`", "``", "```", "**", "*", "_", "~~", "[", "](",
        ")", "!", "http://a.b", "javascript:", "\n", "\n\n", "- ", "1. ", "> ", "# ", "|", "|-|",
        "word", " ", "\\", "    ", "<https://x.y>", "é", "(", "]", "***", "\t", "\x00", "===",
    ]
)  # fmt: skip


@tried(2)
@given(st.lists(PIECES, max_size=25).map("".join))
def test_whatever_is_written_the_tags_are_ours_and_balanced(text):
    reader = _read(text)
    assert all(
        address.startswith(("http://", "https://", "mailto:")) for address in reader.addresses
    )


@tried(2)
@given(st.text(alphabet="ab <>&\"'\n", max_size=60))
def test_no_character_of_plain_text_is_lost(text):
    shown = _read(text).text
    assert "".join(shown.split()) == "".join(text.replace(">", "").split()) or ">" in text
    assert [c for c in shown if c in "ab<&\"'"] == [c for c in text if c in "ab<&\"'"]


def p(inner: str) -> str:
    return f'<p dir="auto">{inner}</p>'


def a(address: str, said: str) -> str:
    return f'<a href="{address}" rel="noopener noreferrer nofollow">{said}</a>'


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a *b* **c** ***d*** ~~e~~ _f_", p("a <em>b</em> <strong>c</strong> <strong><em>d</em>"
         "</strong> <del>e</del> <em>f</em>")),
        ("2*3*4 and snake_case_name and __init__", p("2*3*4 and snake_case_name and __init__")),
        ("这是**重点**内容", p("这是<strong>重点</strong>内容")),
        ("**open", p("**open")),
        ("**a *b** c*", p("<em>a b c</em>")),
        ("*a **b** c*", p("<em>a <strong>b</strong> c</em>")),
        ("**S**ingle", p("<strong>S</strong>ingle")),
        ("**[a](https://b.c) d**", p(a("https://b.c", "<strong>a</strong>")
         + "<strong> d</strong>")),
        ("[a](https://b.c)[d](https://e.f)", p(a("https://b.c", "a") + a("https://e.f", "d"))),
        ("&copy; &lt;b&gt; &#8238;", p("© &lt;b&gt;")),
        ("`a*b*` ``c`d`` `e", p("<code>a*b*</code> <code>c`d</code> `e")),
        ("\\*no\\* \\[x\\]", p("*no* \\[x\\]")),
        ("one\n  two", p("one\n  two")),
        ("one\\\ntwo<br>three", p("one\ntwo\nthree")),
        ("word " * 14 + "end\nof it", p("word " * 14 + "end of it")),
        ("word " * 14 + "end.\nNext", p("word " * 14 + "end.\nNext")),
        ("word " * 14 + "end  \nnext", p("word " * 14 + "end\nnext")),
        ("[a](https://b.c/d_(e))", p(a("https://b.c/d_(e)", "a"))),
        ("[a](javascript:alert(1))", p("[a](javascript:alert(1))")),
        ("[a](data:text/html,x)", p("[a](data:text/html,x)")),
        ("[a](JavaScript:x)", p("[a](JavaScript:x)")),
        ('[a](https://b.c/"x)', p(a("https://b.c/&quot;x", "a"))),
        ("![graph](https://b.c/g.png)", p(a("https://b.c/g.png", "🖼 graph"))),
        ("see https://b.c/d.", p(f"see {a('https://b.c/d', 'https://b.c/d')}.")),
        ("<https://b.c>", p(a("https://b.c", "https://b.c"))),
        ("<b>x</b>", p("&lt;b&gt;x&lt;/b&gt;")),
        ("# A\n## B ##\n####### C", '<h3 dir="auto">A</h3>\n<h4 dir="auto">B</h4>\n'
         + p("####### C")),
        ("Title\n=====\ntext", '<h3 dir="auto">Title</h3>\n' + p("text")),
        ("a\n\n---\n\nb", p("a") + "\n<hr>\n" + p("b")),
        ("> a\n> b", f"<blockquote>{p('a' + chr(10) + 'b')}</blockquote>"),
        ("```py x\n<a>\n  b\n```", '<pre tabindex="0" data-language="py"><code>&lt;a&gt;\n  b\n'
         "</code></pre>"),
        ("```\nno end", '<pre tabindex="0"><code>no end\n</code></pre>'),
        ("    x = 1", '<pre tabindex="0"><code>x = 1\n</code></pre>'),
        ("    a\n\n\n    b\n\nc", f'<pre tabindex="0"><code>a\n\n\nb\n</code></pre>\n{p("c")}'),
        ("```py\nif a: # <b>\n```", '<pre tabindex="0" data-language="py"><code>'
         '<span class="keyword">if</span> a: <span class="comment"># &lt;b&gt;</span>\n'
         "</code></pre>"),
        ("- a\n- b", '<ul><li dir="auto"><span>a</span></li>'
         '<li dir="auto"><span>b</span></li></ul>'),
        ("3. a\n4. b", '<ol start="3"><li dir="auto"><span>a</span></li>'
         '<li dir="auto"><span>b</span></li></ol>'),
        ("- [x] a\n- [ ] b", '<ul><li dir="auto">☑ <span>a</span></li>'
         '<li dir="auto">☐ <span>b</span></li></ul>'),
        ("1. a\n  - b", '<ol><li dir="auto"><span>a</span>\n<ul><li dir="auto"><span>b</span></li>'
         "</ul></li></ol>"),
        ("|a|b|\n|:-:|-:|\n|1|`|`|", '<div class="wide" tabindex="0"><table><thead><tr>'
         '<th class="middle">a</th><th class="right">b</th></tr></thead><tbody><tr>'
         '<td class="middle">1</td><td class="right"><code>|</code></td></tr></tbody></table>'
         "</div>"),
    ],
)  # fmt: skip
def test_what_becomes_of_it(text, html):
    assert markdown_html(text) == html


def test_an_answer_of_a_model_is_laid_out():
    html = markdown_html(ANSWER)
    for tag in ("<pre", "<table>", "<ul>", "<strong>", "<a href="):
        assert html.count(tag) == 1, tag
    assert "**" not in html


@pytest.mark.parametrize(
    "unit",
    ["*", "[a](", "*a _b ", "`", "` `` ", "> ", "- ", "- a\n", "> a\n", "[", "a\n", "1. a\n\n",
     "[a](x(b)", "\\", "  - a\n    - b\n", "|-", "<https://", "    x\n", "**a*", "~~a ", "_a*",
     "*a]", "[*", "*a* "],
)  # fmt: skip
def test_the_cost_grows_with_the_text_alone(unit):
    with ends():
        markdown_html(unit * (100_000 // len(unit)))


DOCS = '<a href="https://docs.example/a" rel="noopener noreferrer nofollow">'


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("See [the docs][d].", f"See {DOCS}the docs</a>."),
        ("[D][] and [d]", f"{DOCS}D</a> and {DOCS}d</a>"),
        ("**[the *docs*][D ]**", f"{DOCS}<strong>the <em>docs</em></strong></a>"),
        ("![p][d]", f"{DOCS}🖼 p</a>"),
        ("[`x`][d] `[y][d]`", f"{DOCS}<code>x</code></a> <code>[y][d]</code>"),
        ("[x](https://docs.example/a) [d]", f"{DOCS}x</a> {DOCS}d</a>"),
    ],
)
@pytest.mark.parametrize(
    "whole",
    [
        "{}\n\n[d]: https://docs.example/a",
        '[d]: <https://docs.example/a> "A title"\n\n{}',
        "{}\n\n[D]: https://docs.example/a 'Title'\n\n[d]: https://other.example\n",
    ],
)
def test_references_are_links_to_what_is_defined(text, html, whole):
    assert markdown_html(whole.format(text)) == f'<p dir="auto">{html}</p>'


@pytest.mark.parametrize(
    "text",
    [
        "[a][other]\n\n[d]: https://x.example",
        "```\n[d]: https://x.example\n```\n\n[a][d]",
        "[a]: https://x.example is defined, and nothing refers to it",
    ],
)
def test_references_that_nothing_defines_stay_as_they_are_written(text):
    shown = markdown_html(text)
    assert "[a]" in shown
    assert "]: " in shown


def test_a_reference_leads_nowhere_but_to_the_web():
    shown = markdown_html("[a][d]\n\n[d]: javascript:alert(1)")
    assert shown == '<p dir="auto">[a](javascript:alert(1))</p>'
