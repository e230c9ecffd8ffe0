"""The HTML export in a real browser: it folds, complains of nothing, and talks to nobody."""

from __future__ import annotations

import pytest

from browser import Page, browsing, find_chromium
from mull.history.log import Entry
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.messages import Message, assistant, user
from mull.transcripts.page import to_html
from mull.transcripts.transcript import Transcript
from transcript_samples import SAMPLE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_chromium() is None, reason="chromium is not installed: apt-get install chromium"
    ),
]

LIGHT, DARK = False, True
SCREENS = {
    "wide-light": (1000, LIGHT),
    "wide-dark": (1000, DARK),
    "phone-light": (390, LIGHT),
    "phone-dark": (390, DARK),
}
CLOSED = "details.thought:not([open])"
EVIL = """\
</p></details></script><script>window.evil = 1</script>
<img src=http://127.0.0.1:9/a onerror="window.evil = 1">
<link rel=stylesheet href=http://127.0.0.1:9/b><iframe src=http://127.0.0.1:9/c></iframe>
<style>@import "http://127.0.0.1:9/d"</style><svg onload="window.evil = 1"></svg>
![x](http://127.0.0.1:9/e) [x](javascript:window.evil=1) <a href="javascript:evil=1">x</a>"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with browsing(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def show(browser, tmp_path):
    """Opens a page, either of a transcript or as it is written."""
    pages: list[Page] = []

    def show(
        what: Transcript | str, width: int = 1000, dark: bool = LIGHT, *, scripts: bool = True
    ) -> Page:
        path = tmp_path / "talk.html"
        path.write_text(what if isinstance(what, str) else to_html(what), encoding="utf-8")
        pages.append(page := Page(browser, width=width, height=900, dark=dark))
        page.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        page.open(path)
        return page

    yield show
    for page in pages:
        page.close()


def _requested(page: Page) -> list[str]:
    """The addresses it asked for, without the data that it holds itself."""
    return [address for address in page.requests() if not address.startswith("data:")]


def _is_folded(page: Page, selector: str) -> bool:
    """Whether the thought can be seen, by its height and by what the browser says."""
    height, shown = page.evaluate(
        f"(() => {{ const e = document.querySelector({selector!r});"
        " return [e.clientHeight, e.querySelector('.text').checkVisibility()] })()"
    )
    assert shown == (height > 200)
    return not shown


@pytest.mark.parametrize(("width", "dark"), SCREENS.values(), ids=SCREENS)
def test_a_click_folds_and_unfolds_and_the_page_complains_of_nothing(show, tmp_path, width, dark):
    page = show(SAMPLE, width, dark)
    page.evaluate(f"document.querySelector('{CLOSED}').id = 'one'")
    assert _is_folded(page, "#one")
    page.click("#one > summary")
    assert not _is_folded(page, "#one")
    page.click("#one > summary")
    assert _is_folded(page, "#one")
    assert page.complaints() == []
    assert _requested(page) == [(tmp_path / "talk.html").as_uri()]


@pytest.mark.parametrize(("width", "dark"), SCREENS.values(), ids=SCREENS)
def test_the_page_fits_and_wears_the_colours_that_were_asked_for(show, width, dark):
    page = show(SAMPLE, width, dark)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(22, 23, 27)" if dark else "rgb(251, 250, 247)")
    shade = page.evaluate("getComputedStyle(document.querySelector('.thought')).backgroundColor")
    assert shade not in (ground, "rgba(0, 0, 0, 0)")
    narrow = "[...document.querySelectorAll('svg[role=img]')].every(s => s.clientWidth > 120)"
    assert page.evaluate(narrow) is True
    loaded = "[...document.images].every(image => image.complete && image.naturalWidth === 48)"
    assert page.evaluate(loaded) is True


def test_one_button_opens_and_closes_all_thoughts(show):
    page = show(SAMPLE)
    count = f"document.querySelectorAll('{CLOSED}').length"
    assert page.evaluate(count) == 2
    assert page.evaluate("document.querySelector('button').textContent") == "Open all thoughts"
    page.click("button")
    assert page.evaluate(count) == 0
    assert page.evaluate("document.querySelector('button').textContent") == "Close all thoughts"
    page.click("button")
    assert page.evaluate(count) == 5
    assert page.complaints() == []


def test_a_bar_of_a_chart_leads_to_its_turn(show):
    page = show(SAMPLE)
    page.click("figure.money a:nth-of-type(3) rect")
    assert page.evaluate("location.hash") == "#turn-3"


def test_without_scripts_the_page_is_whole_and_still_folds(show):
    page = show(SAMPLE, scripts=False)
    assert page.evaluate("document.querySelector('button').hidden") is True
    page.evaluate(f"document.querySelector('{CLOSED}').id = 'one'")
    page.click("#one > summary")
    assert not _is_folded(page, "#one")
    said = page.evaluate("document.querySelector('main').textContent")
    assert "increment attempt in the except branch" in said


def test_on_paper_every_fold_is_open(show):
    page = show(SAMPLE)
    page.evaluate(f"document.querySelector('{CLOSED}').id = 'one'")
    page.call("Emulation.setEmulatedMedia", media="print")
    assert not _is_folded(page, "#one")
    assert page.evaluate("getComputedStyle(document.querySelector('.bar')).display") == "none"


def test_nothing_a_model_or_a_tool_says_runs_or_loads(show, tmp_path):
    talk = (
        user(EVIL),
        assistant(ThinkingBlock(EVIL), TextBlock(EVIL), ToolCallBlock("c", EVIL, {EVIL: EVIL})),
        Message(role="tool", blocks=(ToolResultBlock("c", EVIL),)),
    )
    page = show(Transcript(title=EVIL, system=EVIL, records=tuple(map(Entry, talk))))
    assert page.evaluate("typeof window.evil") == "undefined"
    assert page.evaluate("document.querySelectorAll('iframe, link, main style').length") == 0
    assert _requested(page) == [(tmp_path / "talk.html").as_uri()]
    assert page.complaints() == []


def test_the_policy_holds_where_a_tag_would_get_through(show):
    """The second wall: with markup planted into the page itself, nothing runs."""
    page = show(to_html(SAMPLE).replace("<main>", f"<main>{EVIL}"))
    assert page.evaluate("typeof window.evil") == "undefined"
    refused = [said["entry"]["text"] for said in page.complaints() if "entry" in said]
    assert any("Content Security Policy" in text for text in refused)
