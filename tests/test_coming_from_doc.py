"""docs/coming-from.md: what is shown of mull runs, what is shown of others is Python."""

import ast
import re
from pathlib import Path

import mull
from page_examples import blocks
from test_library_doc import examples, server

__all__ = ["server"]
PAGE = Path(__file__).parents[1] / "docs/coming-from.md"


def test_every_example_prints_what_is_shown(server, capsys):
    names = {"BASE_URL": server.url}
    found = list(examples(PAGE.read_text()))
    assert len(found) == 6
    for code, shown in found:
        exec(compile(code, PAGE.name, "exec"), names)
        assert capsys.readouterr().out == shown, code


def test_what_is_shown_of_others_is_python():
    others = [one.text for one in blocks(PAGE) if one.kind == "py"]
    assert len(others) == 6
    for code in others:
        ast.parse(code)


def test_every_name_of_mull_exists():
    named = set(re.findall(r"\bmull\.([A-Za-z_]\w*)", PAGE.read_text()))
    assert not {name for name in named if not hasattr(mull, name)}
