"""`mull sessions export` and `import` as a person runs them; what fails changes nothing."""

from __future__ import annotations

import io
import json
import os
import stat
import sys
from argparse import ArgumentParser
from pathlib import Path

import pytest

from mull.agent.exports import FORMATS
from mull.catalog.resolve import resolve
from mull.cli.main import main
from mull.cli.transcripts import add_export, add_import
from mull.history.log import Entry
from mull.neutral.blocks import TextBlock, ThinkingBlock
from mull.neutral.errors import CatalogError, ConfigError, LocalError, SessionError
from mull.neutral.events import ThinkingDelta
from mull.neutral.messages import assistant, user
from mull.neutral.usage import Usage
from mull.policy.cost import cost_of
from mull.store.sessions.sqlite import this_folder
from mull.transcripts.formats import from_jsonl
from mull.transcripts.reading import read_transcript
from transcript_samples import KIMI, RECORDS

SECRET = "plover-secret-quill"


@pytest.fixture
def session(store):
    info = store.create(
        folder=this_folder(),
        name="retry",
        model="anthropic/claude-sonnet-4-5",
        system="Be brief.",
        settings={"reasoning.effort": "high"},
    )
    store.append(info.id, 0, *RECORDS)
    return store.info(info.id)


def run(*words: str) -> int:
    parser = ArgumentParser()
    actions = parser.add_subparsers()
    add_export(actions)
    add_import(actions)
    options = parser.parse_args(words)
    return options.action(options)


@pytest.mark.parametrize("form", FORMATS)
def test_a_session_goes_to_standard_output_in_every_format(form, session, capsysbinary):
    assert run("export", session.id, "--format", form) == 0
    out, err = capsysbinary.readouterr()
    assert err == b""
    begins = {
        "md": b"# retry\n",
        "json": b'{\n  "type": "session",\n  "version": 1,\n  "title": "Our client',
        "jsonl": b'{"type":"session","version":1,"title":"Our client',
        "html": b"<!doctype html>",
    }
    assert out.startswith(begins[form])
    assert b"I should look at the file first." in out
    assert session.id.encode() in out


def test_without_a_name_the_last_session_of_the_folder_is_written_as_markdown(
    session, capsysbinary
):
    assert run("export") == 0
    assert capsysbinary.readouterr().out.startswith(b"# retry\n")


@pytest.mark.parametrize(
    "name", ["talk.md", "talk.json", "talk.jsonl", "talk.HTML", "a/b/talk.htm"]
)
def test_the_ending_of_the_file_chooses_the_format(name, session, capsys):
    assert run("export", "retry", "-o", name) == 0
    written = Path(name).read_bytes()
    first = {"md": b"#", "js": b"{", "ht": b"<"}[Path(name).suffix[1:3].lower()]
    assert written.startswith(first)
    assert capsys.readouterr().out == f"Wrote {name} ({len(written) / 1000:,.0f} kB).\n"
    assert stat.S_IMODE(os.stat(name).st_mode) == 0o600


def test_no_file_is_overwritten_unless_that_is_asked_for(session):
    Path("talk.md").write_text("mine")
    with pytest.raises(ConfigError, match=r"talk\.md already exists: choose another"):
        run("export", "retry", "-o", "talk.md")
    assert Path("talk.md").read_text() == "mine"
    assert run("export", "retry", "-o", "talk.md", "--force") == 0
    assert Path("talk.md").read_text().startswith("# retry")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ["retry", "-o", "talk.pdf"],
            r"unknown file extension in talk.pdf: use \.md, \.json, \.jsonl or \.html",
        ),
        (
            ["retry", "--format", "json", "--no-thinking"],
            "--no-thinking works only with md and html: json ",
        ),
        (["nothing"], "nothing"),
        (["retry", "-o", ".", "--format", "md"], r"\. already exists"),
    ],
)
def test_what_cannot_be_exported_is_said(words, complaint, session):
    with pytest.raises(LocalError, match=complaint):
        run("export", *words)


def test_an_answer_that_was_still_coming_is_exported_too(session, store, capsysbinary):
    store.journal(session.id, [ThinkingDelta("half a thou", 0, "thinking")], KIMI)
    run("export", "retry", "--format", "jsonl")
    *before, last = from_jsonl(capsysbinary.readouterr().out).records
    assert before == list(RECORDS)
    assert (last.message.status, last.message.thinking[0].thought) == ("interrupted", "half a thou")


def test_both_are_subcommands_of_mull_sessions(session, capsys):
    assert main(["sessions", "export", "retry", "-o", "talk.json"]) == 0
    assert main(["sessions", "import", "talk.json", "--name", "copy"]) == 0
    assert main(["sessions", "import", "missing.json"]) == 2
    out, err = capsys.readouterr()
    assert [line.split(" ")[0] for line in out.splitlines()] == ["Wrote", "Imported"]
    assert err == "mull: cannot import missing.json: No such file or directory\n"


def test_a_folder_without_sessions_says_so(store):
    with pytest.raises(SessionError, match="no session is stored for this folder"):
        run("export")


def test_a_file_that_cannot_be_written_leaves_nothing(session):
    Path("file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot write file/talk\.md"):
        run("export", "retry", "-o", "file/talk.md")


@pytest.mark.parametrize("form", ["md", "html"])
def test_thinking_can_be_left_out_of_what_is_shown(form, session, capsysbinary):
    run("export", "retry", "--format", form, "--no-thinking")
    out = capsysbinary.readouterr().out
    assert b"I should look at the file first." not in out
    assert b"nothing increases it" in out


def test_costs_come_from_the_catalog_and_unknown_models_stay_unknown(store, capsysbinary):
    usage = Usage(100_000, 10_000, 5_000, 110_000, 0)
    stranger = type(KIMI)("nobody", "openai-chat", "stranger")
    info = store.create(folder=this_folder())
    talk = []
    for origin in (KIMI, stranger, None):
        talk += [Entry(user("q")), Entry(assistant(TextBlock("a"), origin=origin, usage=usage))]
    store.append(info.id, 0, *talk)
    run("export", "--format", "jsonl")
    rows = from_jsonl(capsysbinary.readouterr().out).rows
    price = cost_of(usage, resolve("moonshotai/kimi-k2-thinking").facts.cost)
    assert price
    assert [row.cost for row in rows] == [price, None, None]


def test_what_is_exported_can_be_imported_and_is_the_same(session, store, capsysbinary):
    run("export", "retry", "-o", "talk.jsonl")
    capsysbinary.readouterr()
    assert run("import", "talk.jsonl", "--name", "again") == 0
    info = store.find("again", this_folder())
    assert capsysbinary.readouterr().out.decode() == (
        f"Imported as session {info.id} (5 turns): again\n"
    )
    assert info.id != session.id
    assert (info.model, info.system) == (session.model, session.system)
    assert store.load(info.id)[1] == store.load(session.id)[1]
    run("export", "again", "-o", "again.jsonl")
    assert (
        Path("again.jsonl").read_bytes().partition(b"\n")[2]
        == (Path("talk.jsonl").read_bytes().partition(b"\n")[2])
    )


MESSAGES = [
    {"role": "user", "content": "What is in a.py?"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "SIG"},
            {"type": "text", "text": "Nothing."},
        ],
    },
]


def test_a_list_of_messages_becomes_a_session_of_its_writer(store, capsys):
    Path("list.json").write_text(json.dumps({"system": "Be brief.", "messages": MESSAGES}))
    assert run("import", "list.json", "--from", "anthropic/claude-sonnet-4-5") == 0
    (info,) = store.list()
    assert capsys.readouterr().out == (
        f"Imported as session {info.id} (1 turn): What is in a.py?\n"
    )
    assert (info.system, info.model) == ("Be brief.", "anthropic/claude-sonnet-4-5")
    _, answer = (record.message for record in store.load(info.id)[1])
    assert answer.blocks[0] == ThinkingBlock("hm", "thinking", signature="SIG", kind="summary")
    assert answer.origin == resolve("anthropic/claude-sonnet-4-5").origin


def test_standard_input_can_be_imported(store, monkeypatch):
    data = json.dumps({"model": "no-such-model", "messages": MESSAGES}).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert run("import", "-") == 0
    (info,) = store.list()
    assert info.model is None
    assert store.load(info.id)[1] == list(read_transcript(data).records)


@pytest.mark.parametrize(
    ("content", "words", "complaint"),
    [
        (b"[{}]", [], r"^cannot import talk.json: messages\[0\].role is None"),
        (b"{", [], "^cannot import talk.json: line 1: not JSON"),
        (None, [], "^cannot import talk.json: No such file or directory"),
        (json.dumps(MESSAGES).encode(), ["--name", "x" * 99], "a session cannot be called"),
        (json.dumps(MESSAGES).encode(), ["--name", "retry"], 'is already called "retry"'),
        (
            json.dumps(MESSAGES).encode(),
            ["--from", "moonshotai/kimi-k2-thinking"],
            "give the model",
        ),
    ],
)
def test_what_cannot_be_imported_leaves_no_session(content, words, complaint, session, store):
    if content is not None:
        Path("talk.json").write_bytes(content)
    with pytest.raises(LocalError, match=complaint):
        run("import", "talk.json", *words)
    assert [one.id for one in store.list()] == [session.id]


def test_an_unknown_writer_is_refused(store):
    Path("talk.json").write_text(json.dumps(MESSAGES))
    with pytest.raises(CatalogError):
        run("import", "talk.json", "--from", "no-such-provider/none")
    assert store.list() == []


def test_a_session_that_cannot_be_filled_is_not_begun(store, monkeypatch):
    Path("talk.json").write_text(json.dumps(MESSAGES))
    monkeypatch.setattr(
        "mull.store.sessions.sqlite.SqliteSessions._add",
        lambda *_: (_ for _ in ()).throw(ConfigError("the disk is full")),
    )
    with pytest.raises(ConfigError, match="the disk is full"):
        run("import", "talk.json")
    assert store.list() == []


@pytest.mark.parametrize("form", FORMATS)
def test_no_key_reaches_an_export(form, session, monkeypatch, capsysbinary):
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    config = Path(os.environ["MULL_CONFIG_DIR"]) / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[providers.anthropic]\nheaders = {{ "X-Gate" = "{SECRET}" }}\n')
    run("export", "retry", "--format", form)
    assert SECRET.encode() not in capsysbinary.readouterr().out


def test_a_damaged_default_profile_does_not_keep_a_session_from_being_exported(
    session, capsysbinary
):
    profiles = Path(os.environ["MULL_CONFIG_DIR"]) / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "bad.json").write_text("{")
    (profiles / ".default").write_text("bad")
    assert run("export", "retry") == 0
