"""The JSON of a thinking block, wherever mull writes one: what document 001's schema demands."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from mull.cli.main import main
from mull.history.log import Entry
from mull.neutral.blocks import TextBlock, ThinkingBlock
from mull.neutral.messages import assistant, user
from mull.store.sessions.records import encode_record
from mull.store.sessions.sqlite import open_sessions, sessions_path, this_folder
from mull.testing import Call, Say, StrictServer, Think

FIXTURES = Path(__file__).parents[1] / "fixtures"
MODELS = {
    "anthropic": "anthropic/claude-sonnet-4-5",
    "gemini": "google/gemini-3-pro-preview",
    "openai_chat": "moonshotai/kimi-k2-thinking",
    "openai_responses": "openai/gpt-5",
}
HIDING = {
    "anthropic": "anthropic/claude-sonnet-4-5",
    "openai": "openai/gpt-5",
    "openrouter": "openrouter/anthropic/claude-sonnet-4.5",
}


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.chdir(tmp_path)
    for name in ("ANTHROPIC", "GEMINI", "OPENAI", "OPENROUTER"):
        monkeypatch.setenv(f"{name}_API_KEY", "k")


def thinking_in(value):
    """The thinking blocks anywhere in a document."""
    if isinstance(value, list):
        return [block for item in value for block in thinking_in(item)]
    if not isinstance(value, dict):
        return []
    own = [value] if value.get("type") == "thinking" and "text" not in value else []
    return own + [block for item in value.values() for block in thinking_in(item)]


def check(blocks):
    assert blocks
    assert all(isinstance(block["thought"], str) for block in blocks)


@pytest.mark.parametrize("provider", HIDING)
def test_a_thought_without_text_has_its_key_in_every_json(provider, capsys):
    def answers():
        return [
            [Think("unseen", hidden=True), Call("list", {})],
            [Think("", hidden=True), Say("x")],
        ]

    def out(*words):
        assert main(list(words)) == 0
        return capsys.readouterr().out

    ask = ["ask", "-m", HIDING[provider], "--tools", "read"]
    with StrictServer(provider, [*answers(), *answers()]) as server:
        one = json.loads(out(*ask, "--base-url", server.url, "--json", "--name", "a", "q"))
        lines = out(*ask, "--base-url", server.url, "--stream-json", "q").splitlines()
    assert server.refusals == []
    shown = json.loads(out("sessions", "show", "a", "--json"))
    exported = json.loads(out("sessions", "export", "a", "--format", "json"))
    result = json.loads(lines[-1])
    for document in (shown, exported):
        check(thinking_in(document))
        assert any(not block["thought"] for block in thinking_in(document))
    for document in (one, result):
        for block in thinking_in(document["message"]):
            assert isinstance(block["thought"], str)


@pytest.mark.parametrize("dialect", MODELS)
def test_wire_decode_writes_it_for_every_answer(dialect, capsys):
    found = []
    for file in sorted((FIXTURES / dialect).glob("*.sse")):
        main(["wire", "decode", "-m", MODELS[dialect], str(file)])
        found += thinking_in(json.loads(capsys.readouterr().out).get("blocks", []))
    check(found)


def test_a_session_from_before_it_was_always_written_opens_and_goes_on(capsys):
    """The bytes on disk stay as they are; what is read from them is whole."""
    hidden = assistant(ThinkingBlock(redacted="abc"), TextBlock("yes"))
    old = encode_record(Entry(hidden, 2.0)).replace(b'"thought":"",', b"")
    assert b"thought" not in old
    store = open_sessions()
    made = store.create(folder=this_folder(), name="old", model=HIDING["anthropic"])
    store.append(made.id, 0, Entry(user("q"), 1.0), Entry(hidden, 2.0))
    with store._database.writing() as connection:
        connection.execute("UPDATE records SET data = ? WHERE position = 1", (old,))
    store.close()
    assert main(["sessions", "show", "old", "--json"]) == 0
    (block,) = thinking_in(json.loads(capsys.readouterr().out))
    assert (block["thought"], block["redacted"]) == ("", "abc")
    with StrictServer("anthropic", [[Say("and so on")]]) as server:
        assert main(["ask", "--session", "old", "--base-url", server.url, "go on"]) == 0
    assert "and so on" in capsys.readouterr().out
    with sessions_path().open("rb") as file:
        assert old in file.read()
