"""Sessions: kept as they grow, opened again, taken back, and never lost to a full disk."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from shutil import copy

import pytest

from conversations import decided
from mull.agent.engine import Engine
from mull.agent.recording import TimedRecorder
from mull.agent.session import Session
from mull.agent.setup import load_setup
from mull.history.log import Entry, Undone
from mull.neutral.blocks import TextBlock
from mull.neutral.errors import ConfigError, LocalError, RefusedError, SessionBusy, SettingError
from mull.neutral.events import TextDelta, ThinkingDelta, UsageReported
from mull.neutral.messages import assistant, user
from mull.policy.view.repair import INTERRUPTED
from mull.store.sessions.sqlite import SqliteSessions
from mull.store.sessions.writing import go_on_writing
from mull.testing.server import STALL, Reply, ScriptedServer
from side_calls import engine_at


def chunk(delta, finish=None):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def answer(text, thought="hm"):
    return Reply.events(
        chunk({"reasoning_content": thought}),
        chunk({"content": text}),
        chunk({}, "stop"),
        "[DONE]",
    )


@contextmanager
def talking(store, *replies, info=None, **more):
    with ScriptedServer(list(replies)) as server:
        if info is None:
            info = store.create(folder="/w", name="kept", model="zai/glm-4.7", base_url=server.url)
        else:
            info = store.update(info.id, base_url=server.url)
        session = Session(
            go_on_writing(store, info.id), engine=Engine(load_setup()), key="k", **more
        )
        session.server = server
        try:
            yield session
        finally:
            session.close()


def on_a_loop(session, work):
    async def run():
        try:
            return await work()
        finally:
            await session.engine.close()

    return asyncio.run(run())


def say(session, text):
    return on_a_loop(session, lambda: _drain(session.submit(text)))


def stored(store, session):
    return store.load(session.info.id)[1]


def test_what_was_said_is_on_disk_and_comes_back_with_the_same_request(store):
    with talking(store, answer("one"), answer("two")) as session:
        say(session, "first")
        say(session, "second")
        before = session.prepared()
        assert [e.message.text for e in stored(store, session)] == ["first", "one", "second", "two"]
        first, second = stored(store, session)[1::2]
        assert first.thought_seconds is not None
        assert second.seconds >= second.thought_seconds
    again = Session(go_on_writing(store, session.info.id), engine=Engine(load_setup()))
    assert decided(again.prepared()) == decided(before)
    assert again.log.messages == session.log.messages
    again.close()


def test_nobody_else_can_write_an_open_session(store):
    with talking(store) as session, pytest.raises(SessionBusy):
        Session(go_on_writing(store, session.info.id), engine=Engine(load_setup()))
    with talking(store, info=session.info):
        pass


def test_settings_and_model_come_back_with_the_session_and_the_command_line_goes_before(store):
    with talking(store) as session:
        session.set("reasoning.effort", "LOW")
        session.set("reasoning.includeInContext", True)
        session.unset("reasoning.includeInContext")
        session.switch("deepseek/deepseek-v4")
        assert session.snapshot()["reasoning.effort"] == "low"
    with talking(store, info=session.info) as again:
        assert again.target.name == "deepseek/deepseek-v4"
        assert again.snapshot()["reasoning.effort"] == "low"
        assert again.info.settings == {"reasoning.effort": "low"}
        with pytest.raises(SettingError):
            again.set("reasoning.effort", "hard")
        assert again.info.settings == {"reasoning.effort": "low"}
    engine = Engine(load_setup(sets=["reasoning.effort=high"]))
    third = Session(go_on_writing(store, again.info.id), engine=engine)
    assert third.snapshot()["reasoning.effort"] == "high"
    third.close()


def test_a_level_that_is_set_after_the_model_holds(store):
    with talking(store) as session:
        session.switch("openai/gpt-5.1/high")
        assert session.snapshot()["reasoning.effort"] == "high"
        session.set("reasoning.effort", "low")
        assert session.snapshot()["reasoning.effort"] == "low"


def test_retry_takes_the_answer_back_and_asks_for_another(store):
    with talking(store, answer("one"), answer("other")) as session:
        say(session, "q")
        on_a_loop(session, lambda: _drain(session.retry()))
        assert [m.text for m in session.log.messages] == ["q", "other"]
        first, second = session.server.requests
        assert first.json["messages"] == second.json["messages"]
        assert stored(store, session)[2] == Undone(1, 2, stored(store, session)[2].at)


@pytest.mark.parametrize("how", ["refused", "left", "not begun"])
def test_an_answer_that_no_other_came_for_stands_again(store, how):
    replies = [Reply(before=(STALL,)) if how == "left" else Reply.json({"error": "no"}, 400)]

    async def again():
        stream = session.retry()
        if how == "not begun":
            return
        reading = asyncio.ensure_future(_drain(stream))
        if how == "left":
            await asyncio.to_thread(session.server.wait_requests, 2)
            reading.cancel()
        await asyncio.wait({reading})
        assert reading.cancelled() or isinstance(reading.exception(), RefusedError)

    with talking(store, answer("one"), *replies) as session:
        say(session, "q")
        on_a_loop(session, again)
        assert [m.text for m in session.log.messages] == ["q", "one"]
        info = session.info
    assert store.load(info.id)[0].turns == 1
    with talking(store, answer("two"), info=info) as session:
        say(session, "more")
        sent = session.server.requests[0].json["messages"]
    assert [message["content"] for message in sent] == ["q", "one", "more"]


async def _drain(stream):
    async for _ in stream:
        pass


def test_undo_takes_the_last_turn_back_and_gives_the_words_back(store):
    with talking(store, answer("one"), answer("two"), answer("three")) as session:
        say(session, "q1")
        say(session, "q2")
        assert session.undo() == user("q2")
        say(session, "q3")
        sent = session.server.requests[-1].json["messages"]
        assert [m["content"] for m in sent if m["role"] == "user"] == ["q1", "q3"]
        assert session.undo() == user("q3")
        assert session.undo() == user("q1")
        with pytest.raises(LocalError, match="no turns yet"):
            session.undo()


def test_without_a_key_the_last_answer_is_not_taken_back(store):
    with talking(store, answer("one")) as session:
        say(session, "q1")
    store.update(session.info.id, base_url=None)
    again = Session(go_on_writing(store, session.info.id), engine=Engine(load_setup()))
    with pytest.raises(ConfigError, match="key"):
        again.retry()
    assert [m.text for m in again.log.messages] == ["q1", "one"]
    again.close()


def test_words_that_mull_wrote_belong_to_the_turn_of_the_user(store):
    with talking(store, answer("one"), answer("two"), answer("other")) as session:
        say(session, "q1")
        say(session, "q2")
        session._keep(Entry(user("go on"), own=True))
        session._keep(Entry(assistant(TextBlock("done"))))
        assert store.load(session.info.id)[0].turns == 2
        on_a_loop(session, lambda: _drain(session.retry()))
        assert [m.text for m in session.log.messages] == ["q1", "one", "q2", "other"]
        session._keep(Entry(user("go on"), own=True))
        assert session.undo() == user("q2")
        assert [m.text for m in session.log.messages] == ["q1", "one"]


def test_s01_a_stopped_turn_is_stored_as_interrupted_shown_and_sent_as_such(store):
    half = Reply.events(chunk({"reasoning_content": "half a tho"}), STALL)
    with talking(store, half, answer("yes")) as session:

        async def stop():
            stream = session.submit("q")
            async for event in stream:
                if isinstance(event, ThinkingDelta):
                    break
            await stream.aclose()

        on_a_loop(session, stop)
    with talking(store, answer("yes"), info=session.info) as again:
        assert again.log.messages[-1].status == "interrupted"
        assert again.log.messages[-1].thinking[0].thought == "half a tho"
        say(again, "go on")
        sent = again.server.requests[0].json["messages"]
        assert [m["role"] for m in sent] == ["user", "assistant", "user"]
        assert sent[1]["content"] == INTERRUPTED


def test_an_answer_is_journaled_while_it_comes(store):
    half = Reply.events(chunk({"reasoning_content": "safe"}), STALL)
    with talking(store, half) as session:

        async def look():
            stream = session.submit("q")
            async for event in stream:
                if isinstance(event, ThinkingDelta):
                    break
            assert store.news(session.info.id, 0)[1] == []  # it is safe within the second
            session._recorder._flush()
            found = store.news(session.info.id, 0)[1]
            await stream.aclose()
            return found

        (batch,) = on_a_loop(session, look)
        assert ThinkingDelta("safe", 0, "reasoning_content") in batch.events
        assert batch.origin == session.target.origin


BEGINS = {"type": "message_start", "message": {"id": "m", "model": "x", "content": []}}
CLAUDE_THINKS = (
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking"}},
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "thinking_delta", "thinking": "half"},
    },
)


@pytest.mark.parametrize(
    ("model", "thinks"),
    [
        ("moonshotai/kimi-k2-thinking", (chunk({"reasoning_content": "half"}),)),
        ("anthropic/claude-opus-4-7", (BEGINS, *CLAUDE_THINKS)),
    ],
)
def test_after_a_switch_and_a_crash_an_answer_is_of_the_model_that_was_asked(
    store, tmp_path, model, thinks
):
    counted = {**BEGINS, "message": {"id": "m", "content": [], "usage": {"input_tokens": 7}}}

    async def stop_at(session, kind):
        """Leave when such an event has come; what is on disk then."""
        stream = session.submit("q")
        async for event in stream:
            if isinstance(event, kind):
                break
        await asyncio.sleep(0)
        session._recorder._flush()
        (crashed := tmp_path / kind.__name__).mkdir()
        for file in tmp_path.glob("sessions.db*"):
            copy(file, crashed)
        await stream.aclose()
        return SqliteSessions(crashed / "sessions.db")

    async def run():
        assert (await stop_at(session, UsageReported)).recover(session.info.id) == []
        session.switch(model)
        return await stop_at(session, ThinkingDelta)

    replies = [Reply.events(counted, STALL), Reply.events(*thinks, STALL)]
    with ScriptedServer(replies) as server:
        info = store.create(folder="/w", model="anthropic/claude-sonnet-4-5")
        session = Session(go_on_writing(store, info.id), engine=engine_at(server.url))
        crashed = on_a_loop(session, run)
        session.close()
    (recovered,) = crashed.recover(info.id)
    crashed.close()
    assert len(recovered.message.thinking) == 1
    assert recovered.message.origin == session.target.origin
    assert session.target.name == model
    assert recovered.message.usage is None


class Stubborn:
    """A journal whose disk is full for a while."""

    def __init__(self) -> None:
        self.full = True
        self.records: list = []
        self.events: list = []

    def begin(self, origin) -> None:
        pass

    def event(self, event) -> None:
        self.events.append(event)
        if self.full:
            raise ConfigError("the disk is full")

    def append(self, *records) -> None:
        if self.full:
            raise ConfigError("the disk is full")
        self.records += records

    def flush(self) -> None:
        pass


def test_what_a_full_disk_refused_is_written_with_what_comes_next():
    journal, told = Stubborn(), []

    async def run():
        recorder = TimedRecorder(journal, told.append)
        recorder.events((TextDelta("a"),))
        recorder.append(Entry(user("one")))
        recorder.append(Entry(user("two")))
        journal.full = False
        recorder.append(Entry(user("three")))

    asyncio.run(run())
    assert [entry.message.text for entry in journal.records] == ["one", "two", "three"]
    (warning,) = told
    assert warning.startswith("not saved: the disk is full")


def test_events_are_flushed_by_the_clock_when_no_more_come():
    flushed = asyncio.Event()

    class Quiet(Stubborn):
        full = False

        def __init__(self) -> None:
            super().__init__()
            self.full = False

        def flush(self) -> None:
            flushed.set()

    async def run():
        recorder = TimedRecorder(Quiet(), print, seconds=0.01)
        recorder.events((TextDelta("a"),))
        await flushed.wait()

    asyncio.run(run())


class Queueing(Stubborn):
    """A journal that keeps most events in mind and only fails when it writes."""

    def event(self, event) -> None:
        self.events.append(event)
        if self.full and len(self.events) % 3 == 0:
            raise ConfigError("the disk is full")


def test_a_full_disk_is_told_of_once_however_long_the_answer_is():
    journal, told = Queueing(), []

    async def run():
        recorder = TimedRecorder(journal, told.append)
        for _ in range(30):
            recorder.events((TextDelta("a"),))
        recorder.append(Entry(user("one")))

    asyncio.run(run())
    assert len(told) == 1


@pytest.mark.parametrize("full", [True, False])
def test_the_end_says_what_became_of_what_was_not_saved(full):
    journal, told = Stubborn(), []

    async def run():
        recorder = TimedRecorder(journal, told.append)
        recorder.append(Entry(user("one")))
        recorder.append(Entry(user("two")))
        journal.full = full
        recorder.close()
        recorder.close()

    asyncio.run(run())
    lost = "the last 2 messages of the session could not be saved: the disk is full"
    assert told[1:] == [lost if full else "everything is saved now"]
    assert len(journal.records) == (0 if full else 2)


def test_a_stored_setting_that_is_not_allowed_any_longer_is_left_out_and_told(store):
    settings = {"reasoning.effort": "bogus", "gone.key": 1, "context.limit": 5000}
    info = store.create(folder="/w", model="zai/glm-4.7", settings=settings)
    told = []
    with talking(store, info=info, warn=told.append) as session:
        assert session.snapshot()["context.limit"] == 5000
        assert session.snapshot()["reasoning.effort"] is None
    assert len(told) == 2
    assert told[0].startswith(
        'ignoring a setting of this session: reasoning.effort cannot be "bogus"'
    )


def test_half_a_character_that_is_said_is_stored_and_sent_as_a_sign(store):
    with talking(store, answer("one"), answer("two")) as session:
        say(session, "a\udcffb \ud83d\ude00")
        say(session, "more")
        assert stored(store, session)[0].message.text == "a\ufffdb 😀"
        assert len(stored(store, session)) == 4
        sent = session.server.requests[0].json["messages"][-1]["content"]
        assert sent == "a\ufffdb 😀"
