"""docs/reference/api.md: every public name stands in it once, whole, and says what it is."""

import re
from pathlib import Path

import pytest
from tools import docs_api

import mull
from mull.store.sessions.values import SessionStore

ROOT = Path(__file__).parents[1]
PAGE = docs_api.page()


def section(name):
    found = re.search(rf"^### {name}\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, name
    return found[1]


def test_every_public_name_has_its_section_once():
    headings = re.findall(r"^### (\w+)$", PAGE, re.MULTILINE)
    assert sorted([*headings, "__version__"]) == dir(mull)


def test_every_public_name_and_member_says_what_it_is():
    promised = set(vars(SessionStore))  # a store says "see SessionStore" for what that promises
    silent = {
        name
        for name, doc in docs_api.documented().items()
        if not doc and name.partition(".")[2] not in promised
    }
    assert silent == set()


def test_every_module_of_a_public_name_has_a_subject():
    modules = [one for _, modules in docs_api.SUBJECTS.values() for one in modules]
    assert sorted(modules) == sorted(mull._PUBLIC)


def test_every_link_leads_to_a_heading():
    seen, anchors = {}, set()
    for heading in re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE):
        slug = heading.lower().replace(" ", "-")
        number = seen[slug] = seen.get(slug, -1) + 1
        anchors.add(f"{slug}-{number}" if number else slug)
    assert set(re.findall(r"\(#([\w-]+)\)", PAGE)) <= anchors


@pytest.mark.parametrize("name", ["ask", "complete", "Conversation", "open_session"])
def test_keywords_of_a_typed_dictionary_name_it(name):
    options = "CompleteOptions" if name == "complete" else "ConversationOptions"
    assert f"Unpack[{options}]" in section(name)


def test_the_keywords_stand_once_each():
    dictionaries = (
        "RequestParameters",
        "TurnParameters",
        "ConnectionOptions",
        "ReachOptions",
        "ConversationOptions",
    )
    text = "".join(map(section, dictionaries))
    for keyword in mull.ConversationOptions.__optional_keys__:
        assert len(re.findall(rf"^    {keyword}: ", text, re.MULTILINE)) == 1, keyword


def test_events_show_their_fields_and_defaults():
    assert (
        "class ThinkingDelta:\n"
        "    text: str\n"
        "    key: int | str | None = None\n"
        "    source_field: str | None = None\n"
        '    kind: Literal["raw", "summary"] = "raw"\n'
    ) in section("ThinkingDelta")


def test_docstrings_of_fields_are_a_list():
    text = section("ThinkingBlock")
    assert "- `encrypted`: The thinking in encrypted form" in text
    assert text.index("three states.") < text.index("- `thought`: ") < text.index("has_carrier: ")


def test_errors_show_what_they_carry():
    text = section("RefusedError")
    assert "class RefusedError(RemoteError)" in text
    assert "`status: int`, `text: str`, `code: str | None`, `headers: dict[str, str]`" in text
    assert "**`request_id: str | None`**" in text
    assert "Attributes: `candidates: tuple[str, ...]`." in section("UnknownModel")


def test_what_nobody_outside_can_make_shows_no_constructor():
    assert "```python\nclass AsyncStream\n```" in section("AsyncStream")


def test_raises_are_a_list_of_links():
    assert "- [`SettingError`](#settingerror): the key" in section("Conversation")


PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
ABOUT_THE_INSIDE = {"architecture.md", "decisions.md", "accuracy.md", "cases.md"}
_CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_DEEP = re.compile(r"^\s*(?:from|import) (mull\.(?!testing\b|adapters\b)[\w.]+)", re.MULTILINE)
_NAMED = re.compile(r"`mull\.((?!testing\b|adapters\b)[a-z_]+)\.\w+[`(]")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_examples_import_public_names_alone(path):
    text = path.read_text()
    assert [found for code in _CODE.findall(text) for found in _DEEP.findall(code)] == []
    if path.name not in ABOUT_THE_INSIDE and "documents" not in path.parts:
        assert [one for one in _NAMED.findall(text) if one not in dir(mull)] == []


def test_no_docstring_shows_a_deep_import():
    for path in (ROOT / "src/mull").rglob("*.py"):
        for example in re.findall(r"^ *>>> (.*)$", path.read_text(), re.MULTILINE):
            assert not _DEEP.match(example), path


def test_a_deep_import_would_be_found():
    page = (
        "```python\nimport mull\nfrom mull.agent.engine import Engine\nimport mull.testing\n```\n"
    )
    assert [f for code in _CODE.findall(page) for f in _DEEP.findall(code)] == ["mull.agent.engine"]
    assert _NAMED.findall("`mull.policy.meter` and `mull.testing.refusal`") == ["policy"]
