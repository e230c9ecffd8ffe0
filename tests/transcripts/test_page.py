"""The HTML export: one file that loads nothing, says what is missing, and can be read by all."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given, settings

from conversations import listed
from mull.history.log import Entry
from mull.neutral.blocks import (
    MediaBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.neutral.messages import Message, assistant, user
from mull.neutral.usage import Usage
from mull.transcripts.page import POLICY, to_html
from mull.transcripts.style import DARK, LIGHT, SCRIPT, STYLE
from mull.transcripts.transcript import Transcript, TurnRow
from transcript_samples import SAMPLE, transcripts

EVIL = "</p></details></script><script>alert(1)</script><img src=x onerror=alert(1)>\"'><b>"


class Reader(HTMLParser):
    """The page as elements: names with attributes, and the text inside each kind."""

    VOID = frozenset({"meta", "img", "br", "hr"})
    ALONE = frozenset({"rect", "line", "circle", "polygon", "polyline"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        element = (tag, dict(attrs))
        self.elements.append(element)
        if tag not in self.VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        assert tag in self.ALONE
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        for tag, attributes in self.open:
            for name in (tag, f"{tag}.{attributes.get('class')}"):
                self.texts[name] = self.texts.get(name, "") + data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def _page(*records: Entry, **known) -> str:
    return to_html(Transcript(records=records, **known))


def _answer(*blocks, **more) -> Entry:
    return Entry(assistant(*blocks, **more))


def test_the_policy_forbids_the_network_and_every_script_but_its_own():
    hashed = b64encode(sha256(SCRIPT.encode()).digest()).decode()
    reader = Reader(to_html(SAMPLE))
    policies = [m["content"] for m in reader.all("meta") if "http-equiv" in m]
    assert policies == [POLICY]
    assert "default-src 'none'" in POLICY
    assert f"script-src 'sha256-{hashed}';" in POLICY
    assert "img-src data:;" in POLICY
    assert [reader.texts["script"]] == [SCRIPT]
    assert "unsafe-inline" not in POLICY.replace("style-src 'unsafe-inline'", "")


def test_nothing_in_the_page_points_to_something_to_load():
    html = to_html(SAMPLE)
    reader = Reader(html)
    assert {tag for tag, _ in reader.elements} & {"link", "iframe", "object", "embed"} == set()
    for tag, attributes in reader.elements:
        assert not (attributes.get("src") or "data:").startswith(("http", "//")), tag
        assert not any(name.startswith("on") or name == "style" for name in attributes)
    assert "url(" not in STYLE
    assert "@import" not in STYLE
    assert [i["src"][:22] for i in reader.all("img")] == ["data:image/png;base64,"]
    assert [i["alt"].partition(",")[0] for i in reader.all("img")] == ["image/png"]


@settings(max_examples=25)
@given(transcripts)
def test_any_conversation_makes_a_page_of_balanced_elements(transcript):
    reader = Reader(to_html(transcript))
    assert reader.texts["script"] == SCRIPT
    assert len(reader.all("h1")) == 1


@pytest.mark.parametrize(
    "records",
    [
        (Entry(user(EVIL)),),
        (_answer(TextBlock(EVIL)),),
        (_answer(ThinkingBlock(EVIL)),),
        (_answer(ToolCallBlock("c", EVIL, {EVIL: EVIL, "list": [EVIL]})),),
        (_answer(ToolCallBlock("c", "f", {}, EVIL)),),
        (Entry(Message(role="tool", blocks=(ToolResultBlock("c", EVIL),))),),
        (
            _answer(ToolCallBlock("c", "edit", {})),
            Entry(Message(role="tool", blocks=(ToolResultBlock("c", diff=EVIL),))),
        ),
        (Entry(Message(role="user", blocks=(MediaBlock(EVIL, EVIL, EVIL, EVIL),))),),
        (Entry(Message(role="user", blocks=(MediaBlock("image/png", EVIL),))),),
    ],
)
def test_what_was_said_is_never_part_of_the_page(records):
    plain = {tag for tag, _ in Reader(to_html(SAMPLE)).elements} - {"img", "b"}
    reader = Reader(_page(*records, title=EVIL, model=EVIL, id=EVIL, system=EVIL))
    assert {tag for tag, _ in reader.elements} - plain <= {"b"}
    assert all(not b for b in reader.all("b"))
    assert reader.texts["script"] == SCRIPT
    assert "onerror" in reader.texts["body"]


def test_thoughts_are_folded_and_say_what_they_took():
    reader = Reader(to_html(SAMPLE))
    thoughts = [d for d in reader.all("details") if d.get("class") == "thought"]
    assert ["open" in d for d in thoughts] == [True, False, True, True, False]
    summaries = reader.texts["summary"]
    for said in (
        "Thought for 1.1 s · 61 tokens",
        "Thought for 12 s · 448 tokens",
        "Thought for 3 s",
    ):
        assert said in summaries
    assert (
        "The user wants to know why the retry loop never ends." in reader.texts["details.thought"]
    )


def test_r03_a_thought_without_text_is_explained_and_a_blank_one_is_not_there():
    html = to_html(SAMPLE)
    assert html.count('<p class="thought">The provider sent only a signature, no text.</p>') == 1
    assert html.count("The provider sent this thinking redacted: only it can read it.") == 1
    encrypted = _page(_answer(ThinkingBlock("", encrypted="gAAAA")))
    assert "The provider sent this thinking encrypted: only it can read it." in encrypted
    details = _page(_answer(ThinkingBlock("", wire=listed([{"type": "x"}]))))
    assert "The provider sent only data of its own, no text." in details
    blank = _page(Entry(user("q")), _answer(ThinkingBlock(" \n "), TextBlock("a")))
    assert 'class="thought"' not in blank


def test_calls_show_their_arguments_and_results_stand_with_them():
    html = to_html(SAMPLE)
    call = html[html.index("<code>read_file</code>") : html.index("<code>search</code>")]
    assert "<dt>path</dt><dd><code>src/client/retry.py</code></dd>" in call
    assert '<summary class="">Result: 30 lines</summary>' in call
    assert '<p class="label bad">Failed</p>' in html
    assert 'class="tool">' not in html.partition('<article class="tool')[2][:100]


def test_a_change_is_shown_as_its_diff():
    result = ToolResultBlock("c", "edited a.py (+1 −1)", diff="--- a/a.py\n+++ b/a.py\n-<b>\n+new")
    call = ToolCallBlock("c", "edit", {"path": "a.py", "old": "<b>", "new": "new"})
    html = _page(_answer(call), Entry(Message(role="tool", blocks=(result,))))
    assert '<span class="removed">-&lt;b&gt;</span>' in html
    assert '<span class="added">+new</span>' in html
    assert "<dt>old</dt>" not in html
    assert "edited a.py" in html


def test_a_result_without_a_call_and_a_call_without_a_result_are_shown():
    html = _page(
        _answer(ToolCallBlock("a", "look", {})),
        Entry(Message(role="tool", blocks=(ToolResultBlock("b", "stray"),))),
    )
    assert "No result." in html
    assert "stray" in html


def test_results_go_to_the_call_of_their_own_answer_where_ids_repeat():
    html = _page(
        _answer(ToolCallBlock("call_0", "one", {})),
        Entry(Message(role="tool", blocks=(ToolResultBlock("call_0", "first"),))),
        _answer(ToolCallBlock("call_0", "two", {})),
        Entry(Message(role="tool", blocks=(ToolResultBlock("call_0", "second"),))),
    )
    one, two = html.index("<code>one</code>"), html.index("<code>two</code>")
    assert one < html.index(">first") < two < html.index(">second")


def test_what_became_of_a_record_is_said():
    reader = Reader(to_html(SAMPLE))
    classes = [a["class"] for a in reader.all("article")]
    assert classes.count("you back") == 1
    assert "requests contain this summary of turn 1" in reader.texts["div.mark"]
    assert "Interrupted: the answer broke off here." in reader.texts["p.bad"]


def test_unknown_is_said_and_never_drawn_as_zero():
    reader = Reader(to_html(SAMPLE))
    assert "≥ $0.0452" in reader.texts["dl.tiles"]
    assert "1 of 5 turns unknown" in reader.texts["dl.tiles"]
    assert "≥ 809" in reader.texts["dl.tiles"]
    unknown = [r for r in reader.all("rect") if r["class"] == "unknown"]
    assert len(unknown) == 3
    assert "unknown" in reader.texts["details.numbers"]


def test_a_known_sum_has_no_bound():
    record = _answer(TextBlock("x"), usage=Usage(10, 5, 2, 15, 0))
    row = TurnRow(1, input=10, output=5, reasoning=2, cache_read=0, cost=0.25, context=15)
    tiles = Reader(_page(Entry(user("q")), record, rows=(row,))).texts["dl.tiles"]
    assert "≥" not in tiles
    assert "$0.25" in tiles
    assert "40% of output" in tiles


def test_output_that_no_provider_split_is_one_bar():
    row = TurnRow(1, input=10, output=5, cost=None)
    reader = Reader(_page(Entry(user("q")), rows=(row,)))
    assert [r["class"] for r in reader.all("rect")] == ["mixed", "input"]
    assert "output 5" in reader.texts["ul.legend"]
    assert "Unknown: no price is known for this model." in reader.texts["figure.money"]
    assert "Unknown: the provider did not report it." in reader.texts["figure.window"]


def test_without_any_counts_there_are_no_charts():
    html = _page(Entry(user("q")), rows=(TurnRow(1),))
    assert "The provider reported no token counts: cost unknown." in html
    assert "<svg" not in html
    assert '<dl class="tiles">' not in html


def _bars(html: str, name: str) -> list[float]:
    found = re.findall(rf'<rect class="{name}" [^>]*height="([\d.]+)"', html)
    return [float(height) for height in found]


def test_bars_are_as_high_as_what_they_stand_for():
    rows = tuple(
        TurnRow(n, input=1000 * n, output=300 * n, reasoning=100 * n, cost=0.5 * n, context=n)
        for n in (1, 2, 4)
    )
    html = _page(Entry(user("q")), rows=rows)
    for name, top in (("reasoning", 88 / 3), ("answer", 88 * 2 / 3), ("input", 56), ("cost", 96)):
        assert _bars(html, name) == pytest.approx([top / 4, top / 2, top], abs=0.06), name
    assert "Turn 4: 1,200 written (400 reasoning), 4,000 read" in html


def test_a_long_conversation_is_drawn_in_groups_that_hold_everything():
    rows = tuple(TurnRow(n, input=1, output=2, reasoning=1, cost=0.01) for n in range(1, 1_001))
    html = _page(Entry(user("q")), rows=rows)
    assert len(_bars(html, "reasoning")) == 100
    assert "a bar for every 10 turns" in html
    assert "Turns 991 to 1000: 20 written (10 reasoning), 10 read" in html
    assert "reasoning 1,000" in html


def test_every_chart_has_words_for_who_cannot_see_it():
    reader = Reader(to_html(SAMPLE))
    labels = [svg["aria-label"] for svg in reader.all("svg") if svg.get("role") == "img"]
    assert len(labels) == 3
    assert labels[0] == "Tokens of each turn: reasoning ≥ 809, answer ≥ 719, input ≥ 14,130"
    assert labels[2] == "Cost of each turn, ≥ $0.0452 in all"
    assert len(reader.all("section")) == 5
    assert all(section["aria-label"] for section in reader.all("section"))
    assert all("alt" in image for image in reader.all("img"))


def test_headings_go_down_one_step_at_a_time_and_the_page_names_its_language():
    reader = Reader(to_html(SAMPLE))
    levels = [int(tag[1]) for tag, _ in reader.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert reader.all("html") == [{"lang": "en"}]


def test_what_was_typed_is_shown_as_it_was_typed():
    html = _page(Entry(user("  a **b**\n\n    c <d>  ")))
    assert '<p class="said" dir="auto">  a **b**\n\n    c &lt;d&gt;  </p>' in html


def test_thinking_can_be_left_out():
    html = to_html(SAMPLE, thinking=False)
    for thought in (
        "I should look at the file first",
        'class="thought',
        "shorter version",
        "<button",
    ):
        assert thought not in html
    assert "nothing increases it" in html


def test_an_empty_conversation_is_still_a_page():
    assert "This conversation is empty." in to_html(Transcript())


def test_times_nobody_can_write_down_are_left_out():
    assert "UTC" not in to_html(Transcript(created=1e300))
    assert "2026-11-15 08:06 UTC" in to_html(SAMPLE)


def _luminance(colour: str) -> float:
    def linear(channel: int) -> float:
        share = channel / 255
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(int(colour[at : at + 2], 16)) for at in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


TEXT_ON = [
    *(("ink", ground) for ground in ("paper", "you", "code")),
    *(("quiet", ground) for ground in ("paper", "you", "code")),
    *(("link", ground) for ground in ("paper", "thought", "you", "code")),
    *((text, "thought") for text in ("thought-ink", "thought-quiet")),
    *(("bad", ground) for ground in ("paper", "code")),
    *((role, "code") for role in ("keyword", "string", "number")),
]


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), TEXT_ON)
def test_text_has_the_contrast_that_everyone_can_read(theme, text, ground):
    assert _contrast(theme[text], theme[ground]) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(
    "part", ["reasoning", "answer", "input", "mixed", "you-edge", "thought-edge"]
)
def test_what_a_chart_draws_stands_out_from_the_page(theme, part):
    assert _contrast(theme[part], theme["paper"]) >= 3


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_thoughts_are_shaded_visibly_and_quietly(theme):
    assert 1.05 < _contrast(theme["thought"], theme["paper"]) < 1.4
    is_dark = _luminance(theme["paper"]) < 0.2
    assert (_luminance(theme["thought"]) > _luminance(theme["paper"])) == is_dark


def test_the_style_sheet_uses_only_colours_that_have_a_name():
    assert LIGHT.keys() == DARK.keys()
    used = set(re.findall(r"var\(--([\w-]+)\)", STYLE))
    assert used == LIGHT.keys()
    rules = re.sub(r"--[\w-]+:#[0-9a-f]+;?", "", STYLE)
    assert re.findall(r"#[0-9a-f]{3,6}\b", rules) == []


def test_what_mull_said_in_the_users_name_is_marked_as_its_own():
    records = (Entry(user("q")), Entry(user("Go on."), own=True))
    html = to_html(Transcript(records=records))
    assert re.findall(r'<article class="(\w+)"><h3 dir="auto">(\w+)</h3>', html) == [
        ("you", "You"),
        ("mull", "mull"),
    ]
