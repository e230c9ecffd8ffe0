"""What `mull ask` keeps for `--continue`, and what it leaves alone."""

from __future__ import annotations

import io
import os

import pytest

from mull.cli.main import main
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
