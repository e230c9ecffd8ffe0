"""What `mull ask` keeps for `--continue`, and what it leaves alone."""

from __future__ import annotations

import io
import os

import pytest

from mull.cli.main import main
from mull.history.log import Entry
from mull.neutral.events import Finished, TextDelta
from mull.neutral.messages import user
from mull.store.sessions.sqlite import open_sessions
from mull.testing.server import Reply, ScriptedServer


def answer(text):
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": "stop"}
    return Reply.events({"choices": [choice]}, "[DONE]")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def ask(capsys, monkeypatch):
    def ask(*words, replies=()):
        monkeypatch.setattr("sys.stdin", Terminal())
        with ScriptedServer(replies or [answer("yes")]) as server:
            place = ["-m", "openai-compatible/m", "--base-url", server.url]
            main(["ask", *(place if "-m" not in words else []), *words])
        capsys.readouterr()
        return server.requests

    return ask


def test_instructions_hold_for_the_third_question_too(ask):
    ask("--system", "be kind", "one")
    ask("--continue", "two")
    (request,) = ask("--continue", "three")
    assert [m["content"] for m in request.json["messages"]] == [
        *("be kind", "one", "yes", "two", "yes", "three")
    ]


@pytest.mark.parametrize(
    "model",
    [
        "openai-compatible/m",
        "anthropic/claude-sonnet-4-5",
        "google/gemini-2.5-pro",
        "openai/gpt-5",
    ],
)
def test_instructions_that_are_given_now_overrule_those_of_the_session(capsys, monkeypatch, model):
    """Whatever the dialect: the next request has them, and so has the one after it."""
    monkeypatch.setattr("sys.stdin", Terminal())
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "k")
    refused = Reply.json({"error": {"message": "no"}}, 403)
    with ScriptedServer([refused] * 5) as server:
        place = ["-m", model, "--base-url", server.url]
        main(["ask", *place, "--system", "Be kind.", "--name", "talk", "one"])
        main(["ask", "--session", "talk", "two"])
        main(["ask", "--session", "talk", "--system", "Be terse.", "three"])
        main(["ask", "--continue", "four"])
        main(["ask", "--continue", "--system", "", "five"])
    bodies = [request.body.decode() for request in server.requests]
    assert ["Be kind." in body for body in bodies] == [True, True, False, False, False]
    assert ["Be terse." in body for body in bodies] == [False, False, True, True, False]


def test_instructions_given_now_reach_a_session_with_tools_and_others_keep_theirs(ask, tmp_path):
    ask("--tools", "read", "--system", "Be kind.", "one")
    (kept,) = ask("--continue", "--tools", "read", "two")
    (changed,) = ask("--continue", "--tools", "read", "--system", "Be terse.", "three")
    assert "Be kind." in kept.json["messages"][0]["content"]
    assert changed.json["messages"][0]["content"].startswith("Be terse.")
    assert "Be kind." not in changed.json["messages"][0]["content"]


@pytest.mark.parametrize("tools", ["none", "read"])
def test_the_terminal_obeys_instructions_that_are_given_now(ask, monkeypatch, capsys, tools):
    ask("--system", "Be kind.", "--name", "talk", "one")
    bodies = []
    for words in ((), ("--system", "Be terse."), ()):
        read_end, write_end = os.pipe()
        os.write(write_end, b"go on\n")
        os.close(write_end)
        with ScriptedServer([answer("yes")]) as server, open(read_end) as typed:
            monkeypatch.setattr("sys.stdin", typed)
            place = ["--plain", "--session", "talk", "--base-url", server.url, "--tools", tools]
            assert main([*place, *words]) == 0
            bodies.append(server.requests[0].body.decode())
    assert ["Be kind." in body for body in bodies] == [True, False, False]
    assert ["Be terse." in body for body in bodies] == [False, True, True]


def test_a_session_that_is_open_elsewhere_keeps_its_instructions_and_its_model(ask):
    ask("--system", "Be kind.", "one")
    before, _ = last_session()
    hold = open_sessions().hold(before.id)
    try:
        assert ask("--session", before.id, "--system", "Be terse.", "two") == []
    finally:
        hold.release()
    assert last_session()[0] == before


def last_session():
    store = open_sessions()
    return store.load(store.last(os.getcwd()).id)


@pytest.mark.parametrize(
    "words",
    [
        ("-m", "claude-sonnet-4-5", "no key for this"),
        ("-m", "no-such-model-anywhere", "x"),
        ("--set", "reasoning.format=xml", "x"),
        ("--base-url", "nonsense", "x"),
    ],
)
def test_a_question_that_was_never_asked_leaves_the_last_conversation(ask, words):
    ask("first")
    before = last_session()
    assert ask(*words) == []
    assert last_session() == before
    assert [entry.message.text for entry in before[1]] == ["first", "yes"]


def test_a_refused_question_is_kept(ask):
    refused = Reply.json({"error": {"message": "no"}}, 403)
    ask("first", replies=[refused])
    assert [entry.message.text for entry in last_session()[1]] == ["first"]


@pytest.mark.parametrize(
    "model", ["openai-compatible/zed", "openai/gpt-5.2", "anthropic/claude-sonnet-4-5"]
)
def test_the_last_model_is_remembered_with_its_address_and_below_what_is_said(
    capsys, monkeypatch, model
):
    monkeypatch.setattr("sys.stdin", Terminal())
    refused = Reply.json({"error": {"message": "no"}}, 403)
    with ScriptedServer([refused] * 5) as server, ScriptedServer([refused]) as other:
        main(["ask", "-m", f"{model}/low", "--base-url", server.url, "1"])
        capsys.readouterr()
        for more in ([], ["--no-save"]):
            main(["ask", *more, "2"])
            told = f"no model given: using {model}/low at {server.url} (the last"
            assert told in capsys.readouterr().err
        monkeypatch.setenv("REASONING_EFFORT", "high")
        main(["ask", "3"])
        monkeypatch.delenv("REASONING_EFFORT")
        main(["ask", "--set", "reasoning.effort=high", "4"])
    bodies = [request.body for request in server.requests]
    assert len(bodies) == 5
    assert other.requests == []
    asked = [body.replace(b'"2"', b'"1"') for body in bodies[:3]]
    assert asked[0] == asked[1] == asked[2]
    assert b"low" in bodies[0] or b"22016" in bodies[0]
    for body in bodies[3:]:
        assert b"high" in body or b"62976" in body


def test_a_first_question_that_is_not_stored_stores_nothing(ask, monkeypatch, tmp_path):
    monkeypatch.setenv("MULL_DATA_DIR", str(tmp_path / "new"))
    monkeypatch.setattr("sys.stdin", Terminal())
    main(["ask", "--no-save", "one"])
    assert not (tmp_path / "new" / "sessions.db").exists()


@pytest.mark.parametrize("ended", [False, True], ids=["cut off", "whole"])
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_an_answer_that_a_kill_cut_short_is_told_of_and_kept(ask, capsys, monkeypatch, ended, form):
    """What the killed process had received is not drawn here, so nothing says where to see it."""
    ask("one")
    store = open_sessions()
    info = store.last(os.path.realpath("."), "ask")
    records = [Entry(user("slow"))]
    store.append(info.id, info.records, *records)
    came = [TextDelta("half an ans"), *([Finished("stop")] if ended else [])]
    store.journal(info.id, came, store.load(info.id)[1][1].message.origin)
    store.close()
    with ScriptedServer([answer("yes")]) as server:
        place = ["-m", "openai-compatible/m", "--base-url", server.url]
        assert main(["ask", *place, "--continue", *form, "go on"]) == 0
    told = f"session {info.id} ended in the middle of an answer, and what had arrived is kept\n"
    assert (told in capsys.readouterr().err) == (not ended)
    assert "half an ans" in server.requests[0].body.decode()
