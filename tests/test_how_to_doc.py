"""docs/how-to: every example runs, and the refusals on the pages are those that mull knows."""

import re
from pathlib import Path

import pytest

from mull.agent import shared
from mull.agent.engine import Engine
from mull.policy.failure import Failure
from mull.policy.heal.causes import causes_of
from mull.store.config import read_config
from page_examples import assert_shown, blocks, run_page

FOLDER = Path(__file__).parents[1] / "docs/how-to"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
_REFUSED = re.compile(r"^400 |^messages\.|^`thinking`|^The (encrypted|block)|^Item |^Function call")


@pytest.fixture(autouse=True)
def _own_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    engine = Engine()
    monkeypatch.setattr(shared, "engine", lambda: engine)
    yield
    shared.loop().run(engine.close)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_example_prints_what_is_shown(path, monkeypatch, capsys):
    assert run_page(path, monkeypatch, capsys) >= 2


def shown_refusals():
    for path in PAGES:
        for block in blocks(path):
            if block.kind == "text" and _REFUSED.match(block.text):
                yield pytest.param(block.text.strip().removeprefix("400 "), id=path.stem)


@pytest.mark.parametrize("words", list(shown_refusals()))
def test_every_refusal_on_the_pages_is_one_that_is_healed(words):
    assert list(causes_of(Failure(words, 400))), words


def test_every_row_for_a_config_file_can_be_read():
    tables = [(path, b.text) for path in PAGES for b in blocks(path) if b.kind == "toml"]
    assert tables
    for path, text in tables:
        assert read_config(text.encode(), path.name).compat


def test_the_list_leads_to_every_page():
    named = set(re.findall(r"\]\(([\w-]+\.md)\)", (FOLDER / "README.md").read_text()))
    assert named == {path.name for path in PAGES}


def test_gaps_are_any_lines_and_order_counts():
    assert_shown("...\nb\n...\nd\n...\n", "a\nb\nc\nd\ne\n")
    with pytest.raises(AssertionError):
        assert_shown("...\nd\n...\nb\n...\n", "a\nb\nc\nd\ne\n")
    with pytest.raises(AssertionError):
        assert_shown("a\n", "a\nb\n")
