"""Sessions are opened in one way: by name or id, the last one, or a new one, with their tools."""

from __future__ import annotations

import asyncio
import os
from datetime import date
from pathlib import Path

import msgspec
import pytest

from mcp_servers import plain
from mull.agent.engine import Engine
from mull.agent.instructions import BASE
from mull.agent.opening import Opening, open_kept, open_session, open_session_async
from mull.agent.setup import load_setup
from mull.agent.toolbox import Toolbox
from mull.neutral.errors import (
    ConfigError,
    LocalError,
    NoModelError,
    SessionBusy,
    SessionError,
    UnknownModel,
)
from mull.neutral.events import StateChanged, ThinkingDelta
from mull.neutral.messages import user
from mull.store.sessions.sqlite import SqliteSessions
from mull.testing.server import STALL, Reply, ScriptedServer
from tool_calls import is_running

MODEL = "zai/glm-4.7"


def chunk(delta, finish=None):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def answer(text="fine"):
    return Reply.events(chunk({"content": text}), chunk({}, "stop"), "[DONE]")


def calling(name, arguments="{}"):
    call = {"index": 0, "id": "c1", "function": {"name": name, "arguments": arguments}}
    return Reply.events(chunk({"tool_calls": [call]}), chunk({}, "tool_calls"), "[DONE]")


@pytest.fixture
def opened(store):
    """The id and the name of what is opened, after something was said in it."""

    def opened(*words, **more):
        with (
            ScriptedServer([answer()]) as server,
            open_session(
                *words,
                **{"model": MODEL, "folder": "/w", "base_url": server.url, **more},
                engine=Engine(load_setup()),
                store=store,
            ) as session,
        ):
            session.ask("hello")
        return session.info.id, session.info.name

    return opened


@pytest.fixture
def begin(store):
    """Open what is meant, as the command and the terminal do."""

    def begin(opening, **more):
        told = []
        opened = open_kept(store, Engine(load_setup()), opening, warn=told.append, **more)
        session = asyncio.run(opened)
        session.told = told
        return session

    return begin


def boxed(folder, servers=None, **more):
    setup = load_setup()
    setup.config = msgspec.structs.replace(setup.config, mcp=servers or {})
    return Toolbox(setup, folder, mode="yes", trusted=True, **more)


def pid_of(result):
    """What the scripted server's tool `pid` said: the number of its process."""
    (said,) = [block.output for block in result.messages[1].blocks]
    return int(said)


# Which one


def test_a_name_begins_a_session_and_finds_it_again(opened):
    made = opened("notes")
    assert made[1] == "notes"
    assert opened("Notes") == made
    assert opened(made[0]) == made


def test_a_name_is_not_taken_for_the_beginning_of_an_id(opened):
    (other, _) = opened()
    _, _, letters = other.partition("-")
    assert opened(letters[:2]) != (other, None)
    assert opened(letters[:2])[1] == letters[:2]


def test_the_last_one_of_the_folder(opened):
    made = opened()
    assert opened(last=True) == made
    with pytest.raises(SessionError, match="no session of this folder"):
        opened(last=True, folder="/elsewhere")


def test_a_session_of_another_folder_is_told_of_where_tools_are(opened, begin, tmp_path):
    made, _ = opened(folder="/there")
    for toolbox, told in (
        (None, []),
        (boxed(tmp_path), [f"session {made} was started in /there: tools now work in /here"]),
    ):
        with begin(Opening("/here", reference=made), toolbox=toolbox) as session:
            assert session.told == told


# What is on disk


def test_a_session_in_which_nothing_was_said_is_never_on_disk(begin, store):
    with begin(Opening("/w", model=MODEL)) as session:
        session.set("reasoning.effort", "low")
        session.switch("deepseek/deepseek-v4")
        assert store.list() == []
        assert store.holder(session.info.id) == os.getpid()
    assert store.list() == []
    assert store.holder(session.info.id) is None


def test_what_was_chosen_before_the_first_word_is_stored_with_it(store):
    with ScriptedServer([answer()]) as server:
        more = {"base_url": server.url, "key": "k", "store": store, "folder": "/w"}
        with open_session(model=MODEL, settings={"reasoning.effort": "LOW"}, **more) as session:
            session.set("context.limit", 5000)
            session.ask("hello")
            info = session.info
    assert store.list() == [info]
    assert (info.title, info.turns, info.records) == ("hello", 1, 2)
    assert info.settings == {"reasoning.effort": "low", "context.limit": 5000}
    with open_session(info.id, settings={"context.limit": 6000}, store=store) as again:
        assert again.snapshot()["context.limit"] == 6000
        assert again.snapshot()["reasoning.effort"] == "low"


def test_a_name_is_taken_from_the_moment_it_is_given(begin, store):
    first = begin(Opening("/w", name="mine", model=MODEL))
    assert [info.name for info in store.list()] == ["mine"]
    with pytest.raises(SessionError, match=r'is already called "[mM]ine"'):
        begin(Opening("/w", name="Mine", model=MODEL))
    with begin(Opening("/w", model=MODEL)) as second:
        with pytest.raises(SessionError, match=r'is already called "[mM]ine"'):
            second.rename("mine")
        assert second.info.name is None
        second.rename("yours")
    first.close()
    assert sorted(info.name for info in store.list()) == ["mine", "yours"]


def test_two_that_begin_at_once_have_ids_of_their_own(store):
    clock = 1_785_500_000.0
    still = SqliteSessions(store._database._path, clock=lambda: clock)
    drafts = [still.draft(folder="/w") for _ in range(3)]
    made = still.create(folder="/w")
    copy = still.fork(made.id)
    ids = [info.id for info, _ in drafts] + [made.id, copy.id]
    assert len(set(ids)) == len(ids)
    for info, hold in drafts:
        assert still.begin(info).id == info.id
        hold.release()
    still.close()


def test_messages_from_elsewhere_begin_a_session(store):
    with open_session(model=MODEL, messages=[user("one"), user("two")], store=store) as session:
        assert [m.text for m in session.messages] == ["one", "two"]
        assert session.info.title == "one"
    with pytest.raises(LocalError, match="for a new session"):
        open_session(session.info.id, messages=[user("three")], store=store)
    open_session(session.info.id, store=store).close()  # it was let go of


@pytest.mark.parametrize(
    ("opening", "error"),
    [
        (Opening("/w"), NoModelError),
        (Opening("/w", name="n", model="no-such-model-anywhere"), UnknownModel),
        (Opening("/w", model=MODEL, name="-x"), SessionError),
    ],
)
def test_what_cannot_be_opened_leaves_nothing_and_starts_nothing(
    begin, store, tmp_path, opening, error
):
    toolbox = boxed(tmp_path, {"a": plain()})
    with pytest.raises(error):
        begin(opening, toolbox=toolbox)
    assert not toolbox.is_started
    assert store.list() == []
    assert list((tmp_path / "session-locks").glob("*")) == []


def test_where_the_first_word_cannot_be_stored_nothing_is_asked(store, monkeypatch):
    def refuse(*_):
        raise ConfigError("the disk is full")

    with ScriptedServer([answer()]) as server:
        more = {"base_url": server.url, "key": "k", "store": store, "folder": "/w"}
        with open_session(model=MODEL, **more) as session:
            with monkeypatch.context() as patch:
                patch.setattr(store, "begin", refuse)
                with pytest.raises(ConfigError, match="the disk is full"):
                    session.ask("hello")
            assert server.requests == []
            assert not session.log
            assert session.ask("hello").text == "fine"


# The prompt and the tools


def test_a_new_session_is_told_what_there_is_to_know(begin, tmp_path):
    (tmp_path / "AGENTS.md").write_text("Always use tabs.")
    prompts = {
        "plain": begin(Opening("/w", model=MODEL)),
        "given": begin(Opening("/w", model=MODEL, system="Be kind.")),
        "base": begin(Opening("/w", model=MODEL, base=BASE)),
        "tools": begin(Opening("/w", model=MODEL), toolbox=boxed(tmp_path)),
    }
    said = {}
    for name, session in prompts.items():
        said[name] = session.options.system
        assert session.info.system == said[name]
        session.close()
    assert said["plain"] == ""
    assert said["given"] == "Be kind."
    assert said["base"] == f"{BASE}\n\nToday is {date.today()}."
    assert said["tools"].startswith(f"{BASE}\n\nYou have tools.")
    assert said["tools"].endswith("Always use tabs.")


def test_the_library_sends_the_prompt_and_offers_the_tools_of_servers(store, tmp_path):
    (tmp_path / "AGENTS.md").write_text("Always use tabs.")
    toolbox = boxed(tmp_path, {"a": plain("--tools", "pid")})
    replies = [calling("mcp__a__pid"), answer("done"), calling("mcp__a__pid"), answer("done")]
    with ScriptedServer(replies) as server:
        with open_session(
            model=MODEL, base_url=server.url, key="k", store=store, toolbox=toolbox
        ) as session:
            first = session.ask("which?")
            again = asyncio.run(session.ask_async("and now?"))  # on a loop of its own
        sent = server.requests[0].json
    assert sent["messages"][0]["role"] == "system"
    assert "Always use tabs." in sent["messages"][0]["content"]
    assert "mcp__a__pid" in [tool["function"]["name"] for tool in sent["tools"]]
    assert pid_of(first) == pid_of(again)
    assert not is_running(pid_of(first))


def test_on_the_callers_loop_the_servers_end_with_the_session(store, tmp_path):
    toolbox = boxed(tmp_path, {"a": plain("--tools", "pid")})

    async def talk(url):
        async with await open_session_async(
            model=MODEL, base_url=url, key="k", store=store, toolbox=toolbox
        ) as session:
            pid = pid_of(await session.ask_async("which?"))
            assert is_running(pid)
        return pid

    with ScriptedServer([calling("mcp__a__pid"), answer()]) as server:
        assert not is_running(asyncio.run(talk(server.url)))


def test_servers_that_somebody_else_started_are_left_running(store, tmp_path):
    toolbox = boxed(tmp_path, {"a": plain()})

    async def talk():
        await toolbox.start()
        for shares in (True, False):
            opening = Opening("/w", model=MODEL)
            session = await open_kept(
                store, Engine(load_setup()), opening, toolbox=toolbox, shares_tools=shares
            )
            await session.aclose()
            assert [status.state for status in toolbox.mcp.statuses] == ["ready"]
        await toolbox.close()

    asyncio.run(talk())


def test_a_toolbox_that_was_closed_with_a_session_is_started_for_the_next(store, tmp_path):
    toolbox = boxed(tmp_path, {"a": plain("--tools", "pid")})
    pids = []
    with ScriptedServer([calling("mcp__a__pid"), answer()] * 2) as server:
        for _ in range(2):
            with open_session(
                model=MODEL, base_url=server.url, key="k", store=store, toolbox=toolbox
            ) as session:
                pids.append(pid_of(session.ask("which?")))
            assert "mcp__a__pid" not in toolbox.offered()
    assert pids[0] != pids[1]
    assert not any(map(is_running, pids))


def test_where_the_tools_are_wrong_their_servers_end_and_the_session_is_let_go(store, tmp_path):
    toolbox = boxed(tmp_path, {"a": plain()}, wanted="mcp__a__gone")
    with pytest.raises(LocalError, match="unknown tool"):
        open_session("mine", model=MODEL, store=store, folder="/w", toolbox=toolbox)
    assert [status.state for status in toolbox.mcp.statuses] == ["stopped"]
    assert store.list() == []
    assert not list(Path(tmp_path / "session-locks").glob("*"))


# The end


HALF = Reply.events(chunk({"reasoning_content": "half a th"}), STALL)


@pytest.mark.parametrize("how", ["blocking", "async", "close on the loop"])
def test_what_a_stream_had_brought_when_its_session_was_closed_is_kept(store, how):
    async def ask(url):
        session = await open_session_async("a", model=MODEL, base_url=url, key="k", store=store)
        stream = session.stream_async("q")
        async for event in stream:
            if isinstance(event, ThinkingDelta):
                break
        if how == "async":
            await session.aclose()
        else:
            session.close()

    with ScriptedServer([HALF]) as server:
        if how == "blocking":
            with open_session("a", model=MODEL, base_url=server.url, key="k", store=store) as one:
                stream = one.stream("q")
                while not isinstance(next(stream), ThinkingDelta):
                    pass
            assert [type(event) for event in stream] == [StateChanged]
        else:
            asyncio.run(ask(server.url))
        assert server.requests[0].wait_left()
    with open_session("a", store=store, key="k") as again:
        kept = again.messages[-1]
    assert (kept.status, kept.thinking[0].thought) == ("interrupted", "half a th")


def test_a_closed_session_refuses_whatever_it_is_asked(opened, store):
    made, _ = opened("mine")
    session = open_session(made, store=store, key="k")
    session.close()
    session.close()
    refused = [
        lambda: session.ask("more"),
        lambda: session.stream("more"),
        lambda: session.submit("more"),
        lambda: session.retry(),
        lambda: session.undo(),
        lambda: session.clear(),
        lambda: session.set("reasoning.effort", "low"),
        lambda: session.unset("reasoning.effort"),
        lambda: session.switch("deepseek/deepseek-v4"),
        lambda: session.rename("other"),
        lambda: session.undo_compression() or session._keep(session.log[0]),
    ]
    before = store.load(made)
    for refuse in refused:
        with pytest.raises(LocalError, match="this session is closed: open it again"):
            refuse()
    assert store.load(made) == before
    assert session.snapshot()["reasoning.effort"] is None
    assert [m.text for m in session.messages] == ["hello", "fine"]


def test_one_that_is_open_stays_as_it_is(opened, begin, store):
    made, _ = opened()
    before = store.info(made)
    with begin(Opening("/w", reference=made)), pytest.raises(SessionBusy):
        begin(Opening("/w", reference=made, model="deepseek/deepseek-v4", system="Be kind."))
    assert store.info(made) == before
    with begin(Opening("/w", reference=made, model="deepseek/deepseek-v4")) as session:
        assert session.target.name == "deepseek/deepseek-v4"
    assert store.info(made) == before  # until something is said


@pytest.mark.parametrize("other", ["anthropic/claude-sonnet-4-5", "zai/glm-4.6"])
def test_an_address_stays_with_its_provider_when_a_session_goes_on_with_another_model(store, other):
    def open_with(model=None, base_url=None):
        return open_session("talk", model=model, base_url=base_url, key="k", store=store)

    with ScriptedServer([answer()]) as server:
        with open_with(MODEL, server.url) as session:
            session.ask("hi")
        with open_with(other) as session:
            at_home = other.startswith("zai/")
            assert (session.info.base_url == server.url) == at_home
            assert (session.way().base_url == server.url) == at_home
