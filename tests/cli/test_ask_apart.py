"""Single questions are kept apart from conversations, and can be found all the same."""

from __future__ import annotations

import json

import pytest

from mull.cli.main import main
from mull.store.sessions.sqlite import open_sessions, this_folder
from mull.testing.server import Reply, ScriptedServer

GOOD = Reply.events(
    {"choices": [{"index": 0, "delta": {"content": "yes"}, "finish_reason": "stop"}]}, "[DONE]"
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def mull(capsys, monkeypatch, tmp_path):
    """Runs a command with a model at hand."""
    (tmp_path / "nothing").touch()

    def mull(*words, model=True):
        with (tmp_path / "nothing").open() as nobody, ScriptedServer([GOOD, GOOD]) as server:
            monkeypatch.setattr("sys.stdin", nobody)
            place = ["-m", "openai-compatible/m", "--base-url", server.url] if model else []
            status = main([*words, *place])
        said = capsys.readouterr()
        return status, said.out, said.err, [request.json for request in server.requests]

    return mull


def converse():
    """A conversation of this folder, as the terminal keeps one."""
    from mull.history.log import Entry
    from mull.neutral.messages import user

    store = open_sessions()
    info = store.create(folder=this_folder(), model="openai-compatible/m")
    store.append(info.id, 0, Entry(user("talked"), 1.0))
    return info.id


def test_what_ask_is_asked_is_no_conversation(mull):
    mull("ask", "one")
    mull("ask", "--name", "two", "two")
    talked = converse()
    store = open_sessions()
    assert [info.kind for info in store.list()] == ["conversation", "ask", "ask"]
    assert [info.id for info in store.list(kind="conversation")] == [talked]
    assert store.last(this_folder(), "conversation").id == talked
    assert store.last(this_folder(), "ask").name == "two"


def test_continue_goes_on_with_the_last_question_and_not_with_a_conversation(mull):
    mull("ask", "one")
    converse()
    *_, requests = mull("ask", "-c", "more")
    assert [message["content"] for message in requests[0]["messages"]] == ["one", "yes", "more"]


def test_where_there_are_only_conversations_ask_says_how_to_go_on_with_one(mull):
    talked = converse()
    status, _, err, requests = mull("ask", "--continue", "more")
    assert (status, requests) == (2, [])
    assert f"`mull ask --session {talked}` continues the last conversation (talked)" in err


def test_where_there_are_only_questions_mull_says_how_to_go_on_with_one(mull):
    mull("ask", "one")
    (asked,) = open_sessions().list()
    status, _, err, requests = mull("--plain", "-c")
    assert (status, requests) == (2, [])
    assert f"`mull --session {asked.id}` continues the last of them (one)" in err


def test_a_question_that_a_conversation_goes_on_with_becomes_one(mull):
    from mull.agent.engine import Engine
    from mull.agent.opening import Opening, open_kept
    from mull.agent.setup import load_setup
    from mull.cli import interrupt
    from mull.neutral.messages import user

    mull("ask", "one")
    store = open_sessions()
    (asked,) = store.list()

    async def go_on():
        engine = Engine(load_setup())
        opening = Opening(this_folder(), reference=asked.id)
        async with engine, await open_kept(store, engine, opening) as session:
            assert store.info(asked.id).kind == "ask"  # looking at it changes nothing
            session.take(user("more"))

    interrupt.run(go_on())
    assert store.info(asked.id).kind == "conversation"


def test_asked_on_a_conversation_stays_one(mull):
    talked = converse()
    mull("ask", "--session", talked, "more")
    assert open_sessions().info(talked).kind == "conversation"


def test_they_are_listed_apart(mull):
    mull("ask", "one")
    talked = converse()
    (asked,) = open_sessions().list(kind="ask")
    for words in (["sessions"], ["sessions", "list"]):
        _, out, _, _ = mull(*words, model=False)
        assert talked in out
        assert asked.id not in out
        assert out.endswith("1 single question of `mull ask`: `mull sessions --asks` lists them.\n")
    for words in (["sessions", "--asks"], ["sessions", "list", "--asks"]):
        _, out, _, _ = mull(*words, model=False)
        assert asked.id in out
        assert talked not in out
    _, out, _, _ = mull("sessions", "--asks", "--json", model=False)
    assert [(info["id"], info["kind"]) for info in json.loads(out)] == [(asked.id, "ask")]


def test_they_are_found_by_words_and_by_id(mull):
    mull("ask", "about whales")
    (asked,) = open_sessions().list()
    assert asked.id in mull("sessions", "search", "whales", model=False)[1]
    assert "about whales" in mull("sessions", "show", asked.id, model=False)[1]


def test_a_copy_of_one_is_to_be_gone_on_with(mull):
    mull("ask", "one")
    store = open_sessions()
    (asked,) = store.list()
    assert store.fork(asked.id).kind == "conversation"
