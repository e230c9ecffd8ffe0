"""The documentation site: every page is on it, every link leads somewhere, nothing is loaded."""

import json
import re

import pytest
from tools import docs_site
from tools.docs_html import render


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs") / "site"
    assert docs_site.build(folder) == []
    return folder


def test_every_page_of_the_documentation_is_in_the_table_of_contents(site):
    assert docs_site.unlisted() == set()
    for group in docs_site.PAGES.values():
        for source in group:
            assert (site / docs_site.page_file(source)).is_file()


def test_no_two_pages_share_a_file():
    files = [docs_site.page_file(s) for group in docs_site.PAGES.values() for s in group]
    assert len(files) == len(set(files))


def test_the_site_loads_nothing_from_elsewhere(site):
    for path in site.rglob("*.html"):
        loaded = re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="([^"]*)"', path.read_text())
        assert loaded or path.parent.name == "images"  # an exported page stands alone
        assert not [address for address in loaded if ":" in address], path


def test_every_entry_of_the_search_index_leads_to_a_heading(site):
    text = (site / "search.js").read_text()
    index = json.loads(text.removeprefix("window.searchIndex="))
    assert len(index) > 300
    pages = {path.relative_to(site).as_posix(): path.read_text() for path in site.rglob("*.html")}
    for address, page, heading, _ in index:
        file, _, anchor = address.partition("#")
        assert page
        assert heading
        assert not anchor or f'id="{anchor}"' in pages[file]
    listed = {path for path in pages if not path.startswith("images/")}
    assert {address.partition("#")[0] for address, *_ in index} == listed


@pytest.mark.parametrize("link", ["missing.html", "index.html#missing", "#missing"])
def test_a_broken_link_is_found(tmp_path, link):
    (tmp_path / "index.html").write_text(f'<h1 id="top">A</h1><a href="{link}">b</a>')
    assert list(docs_site.broken_links(tmp_path)) == [f"index.html: {link}"]
    (tmp_path / "index.html").write_text('<h1 id="top">A</h1><a href="index.html#top">b</a>')
    assert list(docs_site.broken_links(tmp_path)) == []


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(FileExistsError, match="other files"):
        docs_site.build(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_headings_are_numbered_and_links_rewritten():
    page = render(
        "<!-- generated -->\n# A `b` & c\n\nSee [d](d.md#e), ![f](f.svg), <b>.\n\n"
        "## Same\n\n## Same\n",
        lambda address: f"../{address}",
    )
    assert [section.heading.id for section in page.sections] == ["a-b--c", "same", "same-1"]
    assert page.title == "A b & c"
    assert '<a href="../d.md#e">d</a>' in page.html
    assert '<img alt="f" src="../f.svg">' in page.html
    assert "&lt;b&gt;" in page.html
    assert "generated" not in page.html
