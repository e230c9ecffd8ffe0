"""What `mull ask` keeps for `--continue`, and what it leaves alone."""

from __future__ import annotations

import io
import os

import pytest

from mull.cli.main import main
from mull.store.sessions import open_sessions
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
