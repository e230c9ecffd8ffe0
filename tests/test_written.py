"""A file that any version of mull has written opens in this one.

`python -m tools.written` wrote a folder of them for each version; what is asserted here is what a
person would miss: no file is refused, nothing in it is lost.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from prompt_toolkit.history import FileHistory
from tools import written
from tools.written import PLACE

from mull.agent.mcp.memory import Memory
from mull.cli.main import main
from mull.history.log import Condensed, Entry, Summary, Undone
from mull.neutral.blocks import ThinkingBlock
from mull.policy.approval import parse_rule
from mull.store.approvals import load_policy
from mull.store.catalog import load_catalog
from mull.store.config import load_config
from mull.store.keys import Keys
from mull.store.lessons import load_lessons
from mull.store.profiles import Profiles
from mull.store.sessions.sqlite import SqliteSessions
from mull.transcripts.reading import read_transcript

VERSIONS = sorted(path.name for path in PLACE.iterdir())
KINDS = {
    "config/config.toml",
    "config/models.json",
    "config/profiles/.default",
    "config/profiles/work.json",
    "config/tools.toml",
    "data/catalog.jsonl",
    "data/keys.json",
    "data/lessons.json",
    "data/mcp/files.json",
    "data/sessions.db",
    "data/typed",
    "exports/session.html",
    "exports/session.json",
    "exports/session.jsonl",
    "exports/session.md",
}


@pytest.fixture(params=VERSIONS)
def place(request, tmp_path, monkeypatch):
    """The files of one version as a user has them: writable, and keys for their owner alone."""
    home = tmp_path / "home"
    shutil.copytree(PLACE / request.param, home)
    for path in home.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    monkeypatch.setenv("MULL_CONFIG_DIR", str(home / "config"))
    monkeypatch.setenv("MULL_DATA_DIR", str(home / "data"))
    return home


@pytest.fixture
def kept(place):
    store = SqliteSessions(place / "data/sessions.db")
    yield store
    store.close()


def files(place):
    return {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}


def test_what_is_written_today_has_every_kind(tmp_path):
    written.write(tmp_path / "now")
    assert files(tmp_path / "now") == KINDS


def test_no_kind_of_any_version_is_left_out(place):
    assert files(place) <= KINDS


def test_config(place):
    config = load_config(place / "config/config.toml")
    assert config.model == "acme/thinker"
    assert config.settings == {"reasoning.includeInContext": True}
    assert config.providers["acme"].base_url == "https://acme.example/v1"
    assert config.compat_rows[-1]["set"] == {"thinkingWriter": "anthropic-budget"}
    assert config.mcp["files"].args == ("--ro",)
    assert config.themes["mine"]["thinking"] == "italic"


def test_profiles(place):
    profiles = Profiles(place / "config/profiles")
    assert profiles.default() == "work"
    profile = profiles.load("work")
    assert profile.model_name == "acme/thinker"
    assert profile.parameters.temperature == 0.5
    assert profile.settings == {"reasoning.includeInContext": False}


def test_rules(place):
    policy = load_policy(place / "config", Path("/project"))
    assert [rule.text for rule in policy.rules] == [parse_rule("allow", "run(git status)").text]


def test_catalog_and_own_models(place):
    warned = []
    catalog = load_catalog(place / "config", place / "data", (), warned.append)
    assert warned == []
    assert catalog.facts("acme", "thinker").limit.context == 123456
    assert catalog.facts("acme", "small").limit.context == 1000
    assert catalog.providers["acme"].env == ("ACME_API_KEY",)


def test_keys(place):
    keys = Keys(place / "data", {})
    assert keys.stored() == {"acme": "file"}
    assert keys.find("acme", ()).key.reveal() == "made-up-opens-nothing"


def test_lessons(place):
    (entry,) = load_lessons(place / "data").entries
    assert entry.lesson.compat == {"reasoningOut": "never"}
    assert entry.lesson.refused == ("00ff",)


def test_what_a_tool_server_offered(place):
    server = load_config(place / "config/config.toml").mcp["files"]
    memory = Memory(place / "data/mcp/files.json", server)
    now = {"name": "look", "description": "looks at what it should not", "inputSchema": {}}
    assert memory.standing(now).altered == ("description",)


def test_what_was_typed(place):
    typed = FileHistory(str(place / "data/typed"))
    assert list(typed.load_history_strings()) == ["What is in a.py?\nand b.py?"]


def check_records(records):
    message = records[1].message
    first, sealed, opaque, text, call = message.blocks
    assert (first.thought, first.signature) == ("The file is small.", "SIGNED")
    assert sealed == ThinkingBlock("", "redacted_thinking", redacted="SEALED")
    assert opaque.data == {"type": "server_tool_use", "id": "s1"}
    assert text.text == "I look."
    assert (call.input, call.arguments) == ({"path": "a.py"}, '{ "path":"a.py" }')
    assert message.usage.reasoning == 61
    assert message.origin.endpoint == "https://acme.example/v1"
    assert records[0].message.blocks[1].name == "a.png"
    assert records[2].message.blocks[0].output == "print('hi')\n"
    assert [type(record) for record in records[4:]] == [Entry, Undone, Condensed, Summary]
    assert (records[5].start, records[5].end) == (4, 5)
    assert records[6].text == "small file"
    assert records[7].text == "They looked at a.py."


def test_a_session(kept):
    info, records = kept.load(kept.find("kept", "/project").id)
    check_records(records)
    assert (info.model, info.system) == ("acme/thinker", "Be brief.")
    assert info.settings == {"reasoning.includeInContext": True}
    assert len(kept.load(kept.find("fork", "/project").id)[1]) == 4
    assert [found.session.id for found in kept.search("prints")]


def test_an_answer_that_broke_off(kept):
    session = kept.find("broken off", "/project").id
    with kept.hold(session) as hold:
        kept.recover(session, hold)
    _, (asked, answer) = kept.load(session)
    assert asked.message.text == "and b.py?"
    assert answer.message.status == "interrupted"
    assert answer.message.text == "b.py is"
    assert answer.message.blocks[0].thought == "It is"


def test_a_session_goes_on(kept):
    session = kept.find("kept", "/project").id
    records = kept.load(session)[1]
    kept.append(session, len(records), records[3])
    assert kept.load(session)[1][len(records)] == records[3]


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_exports(place, form):
    transcript = read_transcript((place / f"exports/session.{form}").read_bytes())
    check_records(transcript.records)
    assert transcript.system == "Be brief."


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sessions", "list", "--all"], "kept"),
        (["sessions", "show", "kept"], "It prints hi."),
        (["sessions", "import", "exports/session.json"], ""),
        (["profile", "list"], "work"),
        (["keys", "list"], "acme"),
        (["models", "show", "acme/thinker"], "acme"),
        (["mcp", "list"], "files"),
        (["settings"], "reasoning.includeInContext"),
    ],
)
def test_commands_say_what_they_said(place, words, said, capsys, monkeypatch):
    monkeypatch.chdir(place)
    assert main(words) == 0, capsys.readouterr().err
    out, err = capsys.readouterr()
    assert said in out
    assert "damaged" not in err
    assert os.listdir(place / "data")
