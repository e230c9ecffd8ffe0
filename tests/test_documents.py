"""The papers are true: what they name exists, and every item they call done has a test.

A row of a table in docs/documents is `| item | status | where |`, and the status is `here`,
`in part`, `not yet` or `no`. An item with an id (REQ-THINK-…, BR-…, EC-…, ERR-…) that is here, if
only in part, must be named by a test: in its name (`br_005`) or in words (`BR-005`).
"""

import json
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from mull.neutral.messages import message_from_json, message_to_json
from mull.neutral.target import Compat
from mull.neutral.thinking import WRITERS

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted((ROOT / "docs/documents").glob("*.md"))
PAPERS = [
    *DOCUMENTS,
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/how-to").glob("*.md")),
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
]
STATUSES = {"here", "in part", "not yet", "no"}
_ID = re.compile(r"\b(?:REQ-THINK-\d{3}(?:\.\d+)?|(?:BR|EC|ERR)-\d{3})\b")
_QUOTED = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*/?")
_DOTTED = re.compile(r"mull(?:\.\w+)+")
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)")
_ENDINGS = (".py", ".json", ".jsonl", ".md", "/")


def rows(path):
    """The cells of each row of its tables, without heads and rules."""
    previous = ""
    for line in path.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        is_head = not previous.startswith("|")
        previous = line
        if line.startswith("|") and not is_head and not set(line) <= set("|-: "):
            yield cells


def statuses():
    """The status of every id that has a row of its own."""
    found = {}
    for path in DOCUMENTS:
        for item, status, *_ in rows(path):
            for name in _ID.findall(item):
                found.setdefault(name, set()).add(status)
    return found


def mentioned():
    return {name for path in DOCUMENTS for name in _ID.findall(path.read_text())}


def is_named(name):
    words = re.escape(name)
    in_a_name = name.lower().replace("-", "_").replace(".", "_")
    pattern = re.compile(rf"(?:{words}|{in_a_name})(?!\d)")
    return any(pattern.search(text) for text in _tests())


@cache
def _tests():
    others = (path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__).resolve())
    return [path.read_text() for path in others]


def names(pattern):
    """What is quoted in the papers and looks like this, with the paper it stands in."""
    return sorted(
        {
            (path.relative_to(ROOT).as_posix(), quoted)
            for path in PAPERS
            for quoted in _QUOTED.findall(path.read_text())
            if re.fullmatch(pattern, quoted)
        }
    )


def test_there_are_five_documents_in_whole_rows():
    assert [path.name[:3] for path in DOCUMENTS] == ["000", "001", "002", "003", "004"]
    for path in DOCUMENTS:
        table = list(rows(path))
        assert table
        assert [row for row in table if len(row) != 3 or row[1] not in STATUSES] == []


def test_every_id_that_is_spoken_of_has_a_row():
    assert mentioned() - set(statuses()) == set()


@pytest.mark.parametrize(
    "name", sorted(name for name, said in statuses().items() if said != {"not yet"})
)
def test_what_is_here_is_named_by_a_test(name):
    assert is_named(name), f"no test names {name}"


def test_a_longer_number_is_another_id():
    assert is_named("BR-005")
    assert not is_named("BR-00")
    assert not is_named("REQ-THINK-006.99")


@pytest.mark.parametrize(("paper", "quoted"), names(r"tests/[\w/.-]+\.py::\w+"))
def test_every_test_that_is_named_exists(paper, quoted):
    file, _, name = quoted.partition("::")
    assert re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE)


@pytest.mark.parametrize(("paper", "quoted"), names(_DOTTED.pattern))
def test_every_module_and_name_exists(paper, quoted):
    parts = quoted.split(".")
    if parts[1] == "adapters":  # it can only be imported where its library is installed
        text = (ROOT / "src/mull/adapters" / f"{parts[2]}.py").read_text()
        assert len(parts) == 3 or f"class {parts[3]}(" in text or f"class {parts[3]}:" in text
        return
    for end in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        return
    pytest.fail(f"nothing is called {quoted}")


@pytest.mark.parametrize(
    ("paper", "quoted"),
    [
        (paper, quoted)
        for paper, quoted in names(_PATH.pattern)
        if "/" in quoted.rstrip("/") and quoted.endswith(_ENDINGS) and quoted[:2] != "./"
    ],
)
def test_every_path_exists(paper, quoted):
    assert any((place / quoted).exists() for place in (ROOT, ROOT / "src/mull"))


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for file, place in _LINK.findall(path.read_text()):
        page = path.parent / file if file else path
        assert page.exists(), file
        assert not place or place in anchors(page), place


def anchors(page):
    """The places in a page as GitHub names them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_the_messages_in_the_architecture_are_what_the_code_writes():
    text = (ROOT / "docs/architecture.md").read_text()
    shown = [
        block
        for block in re.findall(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        if "role" in json.loads(block)
    ]
    assert shown
    for block in shown:
        assert json.loads(message_to_json(message_from_json(block))) == json.loads(block)


_OF_A_DIALECT = ("/encode.py", "/decode.py", "/answer.py", "/asked.py", "/surface.py")


def test_the_architecture_names_every_module():
    text = (ROOT / "docs/architecture.md").read_text()
    package = ROOT / "src/mull"
    files = {path.relative_to(package).as_posix() for path in package.glob("*/**/*.py")}
    of_a_dialect = {name for name in files if name.endswith(_OF_A_DIALECT)}
    wanted = {name for name in files - of_a_dialect if not name.endswith("__init__.py")}
    assert {name for name in wanted if f"`{name}`" not in text} == set()


def test_the_architecture_names_every_compat_key_and_every_writer():
    text = (ROOT / "docs/architecture.md").read_text()
    wanted = {*Compat.__struct_encode_fields__, *WRITERS}
    assert {name for name in wanted if f"`{name}`" not in text} == set()
