"""How often the disk is waited for: once for what is said, once for what is answered."""

from __future__ import annotations

import io
import sqlite3

import pytest

from mull.agent.setup import profiles
from mull.cli.main import main
from mull.settings.profile import Profile
from mull.store.sessions import database
from mull.store.sessions.sqlite import SqliteSessions, open_sessions
from mull.testing import Call, Say, StrictServer, Think
from tui.fronts import answer, at_terminal, drive

SONNET = "anthropic/claude-sonnet-4-5"


class Commits:
    """Transactions that have changed something: those that SQLite waits for the disk with."""

    def __init__(self) -> None:
        self.count = 0

    def watch(self, connection: sqlite3.Connection) -> None:
        seen = connection.total_changes

        def told(statement: str) -> None:
            nonlocal seen
            if statement == "COMMIT" and connection.total_changes != seen:
                seen = connection.total_changes
                self.count += 1

        connection.set_trace_callback(told)

    def taken(self) -> int:
        count, self.count = self.count, 0
        return count


@pytest.fixture
def commits(monkeypatch):
    counted, connect = Commits(), database._connect

    def watched(path):
        connection = connect(path)
        counted.watch(connection)
        return connection

    open_sessions().list()  # a store is made once
    monkeypatch.setattr(database, "_connect", watched)
    return counted


@pytest.fixture
def ask(monkeypatch, tmp_path, commits):
    monkeypatch.chdir(tmp_path)

    def ask(script, *words):
        monkeypatch.setattr("sys.stdin", io.StringIO())
        with StrictServer("anthropic", script) as server:
            assert main(["ask", "--base-url", server.url, *words, "go"]) == 0
        return commits.taken()

    return ask


def test_a_question_and_its_answer_are_a_commit_each(ask):
    fine = [[Think("hm"), Say("fine")]]
    assert ask(fine, "-m", SONNET) == 2
    assert ask(fine, "--continue") == 2
    assert ask(fine, "--continue", "-m", f"{SONNET}/high", "--system", "Be brief.") == 2
    assert ask(fine, "-m", SONNET, "--name", "kept") == 3  # the name is taken before it is asked
    assert ask(fine, "--session", "kept") == 2
    assert ask(fine, "-m", SONNET, "--no-save") == 0


def test_a_round_of_tools_is_two_more(ask, tmp_path):
    (tmp_path / "a.txt").write_text("hello")
    script = [[Think("look"), Call("read", {"path": "a.txt"})], [Say("done")]]
    # the question, the call, its result, the answer
    assert ask(script, "-m", SONNET, "--tools", "read") == 4


def test_a_change_at_the_terminal_is_one_commit(tmp_path, commits):
    profiles().save("calm", Profile(settings={"reasoning.effort": "low"}))
    with at_terminal(tmp_path, answer("fine"), elsewhere=False) as talk:
        drive(talk, "hello")
        commits.taken()
        for command in (
            "/model claude-sonnet-4-5/high",
            "/model gemini-2.5-pro --thinking-budget=5000",
            "/set context.limit=90000",
            "/thinking effort low",
            "/profile load calm",
        ):
            drive(talk, command)
            assert commits.taken() == 1, command
        drive(talk, "/set", "/context", "/stats")
        assert commits.taken() == 0


def test_opening_and_closing_waits_for_nothing(tmp_path, commits):
    store = SqliteSessions(tmp_path / "sessions.db")
    made = store.create(folder="/w", model=SONNET)
    commits.taken()
    info, hold = store.draft(folder="/w")
    hold.release()
    assert store.recover(made.id) == []
    store.close()
    assert commits.taken() == 0
    assert info.id != made.id
