"""The documentation site in a real browser, opened from disk: search, theme, phone."""

from __future__ import annotations

import pytest
from tools import docs_site

from browser import Page, browsing, find_chromium

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_chromium() is None, reason="chromium is not installed: apt-get install chromium"
    ),
]
_FOUND = """new Promise((resolve) => {
  const look = () => {
    const links = [...document.querySelectorAll("#found a")].map((link) => link.href);
    if (links.length) resolve(links); else requestAnimationFrame(look);
  };
  look();
})"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs") / "site"
    assert docs_site.build(folder) == []
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with browsing(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def page(browser):
    page = Page(browser, width=1200, height=900, dark=False)
    yield page
    page.close()


def test_search_finds_a_page_from_a_folder_below(page, site):
    page.open(site / "how-to/index.html")
    page.evaluate("document.getElementById('search').focus()")
    page.call("Input.insertText", text="thought signatures")
    links = page.evaluate(_FOUND)
    assert links[0] == (site / "how-to/gemini-thought-signatures.html").as_uri()
    assert all(address.startswith("file:") for address in page.requests())


def test_the_theme_follows_the_reader_and_can_be_switched(browser, site):
    page = Page(browser, width=1200, height=900, dark=True)
    page.open(site / "index.html")
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(colour)
    page.click("#theme")
    assert page.evaluate(colour) != dark
    page.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("width", [390, 1200])
def test_no_page_is_wider_than_the_window(browser, site, width):
    page = Page(browser, width=width, height=900, dark=False)
    for path in sorted(site.rglob("*.html")):
        page.open(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    page.close()
