"""What happens in a turn reaches everybody who asked, whatever the others do with it."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading

import pytest
import trio

from loops import until
from mull.agent.hub import Hub
from mull.agent.library import Conversation
from mull.neutral.errors import LocalError, RefusedError
from mull.neutral.events import Finished, StateChanged, TextDelta, ThinkingDelta
from mull.testing import Call, Say, StrictServer, Think
from mull.testing.server import STALL, Reply, ScriptedServer

KIMI = "moonshotai/kimi-k2-thinking"


def chunk(delta, finish=None):
    return {"id": "c1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


WHOLE = Reply.events(chunk({"content": "yes"}), chunk({}, "stop"), "[DONE]")


def look(at: str) -> str:
    """Look."""
    return f"{at}: a heron"


def test_a_subscriber_that_fails_is_left_out_and_the_others_hear_all(caplog):
    heard, failed = [], []

    def fail(events):
        failed.append(events)
        raise ValueError("full")

    hub = Hub(heard.append, fail, heard.append)
    with caplog.at_level(logging.WARNING, "mull"):
        hub.publish((TextDelta("a"),))
        hub.publish((TextDelta("b"),))
    assert heard == [(TextDelta("a"),)] * 2 + [(TextDelta("b"),)] * 2
    assert len(failed) == 1
    assert [record.message for record in caplog.records] == [
        "a subscriber failed and receives no more events: ValueError: full"
    ]


def test_subscribers_of_a_conversation_hear_what_a_stream_gives():
    first, second, broken = [], [], []

    def breaks(event):
        broken.append(event)
        raise RuntimeError

    script = [[Think("where?"), Call("look", {"at": "pond"})], [Think("so"), Say("a heron")]]
    with StrictServer("kimi", script) as server:
        talk = Conversation(KIMI, base_url=server.url, key="k", tools=[look])
        talk.subscribe(breaks)
        talk.subscribe(first.append)
        stop = talk.subscribe(second.append)
        events = list(talk.stream("what is there?"))
        assert first == second == events
        assert len(broken) == 1
        stop()
    assert [e.state for e in events if isinstance(e, StateChanged)] == [
        *("sending", "streaming", "tools", "sending", "streaming", "done")
    ]


def test_a_slow_reader_holds_up_neither_the_answer_nor_the_others():
    heard = []

    async def run():
        talk, ended = Conversation(KIMI, base_url=server.url, key="k"), asyncio.Event()
        talk.subscribe(heard.append)
        talk.subscribe(lambda event: ended.set() if isinstance(event, Finished) else None)
        async with talk.stream_async("q") as stream:
            await anext(stream)
            await ended.wait()  # reads nothing, and yet the turn comes to its end
            assert talk.messages[-1].text == "yes"
            rest = [event async for event in stream]
        assert rest == heard[1:]

    with ScriptedServer([WHOLE]) as server:
        asyncio.run(run())


@pytest.mark.parametrize("how", ["cancel", "drop", "close", "leave"])
def test_a_stream_that_is_left_ends_its_turn_and_keeps_what_came(how):
    async def read(stream, begun):
        async for event in stream:
            if isinstance(event, ThinkingDelta):
                begun.set()
                if how == "leave":
                    break

    async def run():
        talk = Conversation(KIMI, base_url=server.url, key="k")
        stream, begun = talk.stream_async("q"), asyncio.Event()
        if how == "leave":
            async with stream:
                await read(stream, begun)
        else:
            reading = asyncio.ensure_future(read(stream, begun))
            await begun.wait()
            if how == "close":
                await stream.aclose()
                await reading
            else:
                del stream
                reading.cancel()
                await asyncio.wait({reading})
                del reading
                gc.collect()
        assert await asyncio.to_thread(server.requests[0].wait_left)
        await until(lambda: talk._running is None)
        assert talk.messages[-1].status == "interrupted"
        assert talk.messages[-1].thinking[0].thought == "half a th"
        assert (await talk.ask_async("again")).text == "yes"

    half = Reply.events(chunk({"reasoning_content": "half a th"}), STALL)
    with ScriptedServer([half, WHOLE]) as server:
        asyncio.run(run())


def test_what_waits_is_read_before_the_error_is_raised():
    async def run():
        talk = Conversation(KIMI, base_url=server.url, key="k")
        stream, seen = talk.stream_async("q"), []

        async def read_slowly():
            async for event in stream:
                seen.append(event)
                await asyncio.sleep(0.01)

        with pytest.raises(RefusedError):
            await read_slowly()
        assert [event.state for event in seen] == ["sending", "failed"]
        assert [event async for event in stream] == []

    with ScriptedServer([Reply.json({"error": {"message": "no"}}, 403)]) as server:
        asyncio.run(run())


class Unspeakable(Exception):
    def __str__(self):
        raise ValueError

    __repr__ = __str__


def test_a_subscriber_whose_error_cannot_be_written_down_harms_nobody_either(caplog):
    heard = []

    def fail(events):
        raise Unspeakable

    hub = Hub(fail, heard.append)
    hub.publish((TextDelta("a"),))
    assert heard == [(TextDelta("a"),)]
    assert caplog.messages == ["a subscriber failed and receives no more events: Unspeakable"]


def test_a_subscriber_may_end_that_while_it_is_told_and_once_more():
    heard = []

    def hear(event):
        heard.append(event)
        stop()

    with ScriptedServer([WHOLE, WHOLE]) as server:
        talk = Conversation(KIMI, base_url=server.url, key="k")
        stop = talk.subscribe(hear)
        assert talk.ask("q").text == talk.ask("q").text == "yes"
        stop()
    assert len(heard) == 1


def test_an_asynchronous_subscriber_is_refused():
    async def hear(event):
        pass

    with pytest.raises(LocalError, match="ordinary function"):
        Conversation(KIMI, key="k").subscribe(hear)


def test_what_wants_to_end_the_program_reaches_whoever_asked_and_nobody_else():
    def leave(event):
        raise SystemExit(3)

    with ScriptedServer([WHOLE]) as server:
        talk = Conversation(KIMI, base_url=server.url, key="k")
        stop = talk.subscribe(leave)
        with pytest.raises(SystemExit):
            talk.ask("q")
        stop()
        assert talk.ask("q").text == "yes"


HALF = Reply.events(chunk({"reasoning_content": "half a th"}), STALL)


async def read_a_thought(stream):
    async for event in stream:
        if isinstance(event, ThinkingDelta):
            return


def test_after_a_stream_was_dropped_the_next_question_is_answered():
    async def run():
        talk = Conversation(KIMI, base_url=server.url, key="k")
        async for event in talk.stream_async("q"):
            if isinstance(event, ThinkingDelta):
                break
        assert (await talk.ask_async("again")).text == "yes"
        assert [m.status for m in talk.messages] == [None, "interrupted", None, "complete"]

    with ScriptedServer([HALF, WHOLE]) as server:
        asyncio.run(run())


def test_a_stream_that_is_held_keeps_its_conversation_busy():
    async def run():
        talk = Conversation(KIMI, base_url=server.url, key="k")
        stream = talk.stream_async("q")
        await read_a_thought(stream)
        for refused in (talk.undo, talk.clear):
            with pytest.raises(LocalError, match=r"is already answering: .*close its stream"):
                refused()
        with pytest.raises(LocalError, match="is already answering"):
            await talk.ask_async("again")
        await stream.aclose()
        assert talk.undo().text == "q"
        assert talk.messages == ()

    with ScriptedServer([HALF]) as server:
        asyncio.run(run())


def test_a_second_reader_of_a_stream_is_refused_and_the_first_reads_on():
    async def run():
        talk = Conversation(KIMI, base_url=server.url, key="k")
        async with talk.stream_async("q") as stream:
            await read_a_thought(stream)
            first = asyncio.ensure_future(anext(stream, None))
            await asyncio.sleep(0)
            with pytest.raises(LocalError, match="already has a reader"):
                await anext(stream)
            assert not first.done()
            await stream.aclose()
            assert await first == StateChanged("done", 1, 50)
            assert await anext(stream, None) is None

    with ScriptedServer([HALF]) as server:
        asyncio.run(run())


def test_a_stream_is_read_on_its_own_event_loop_and_closed_from_any():
    async def run():
        talk = Conversation(KIMI, base_url=server.url, key="k")
        stream = talk.stream_async("q")
        await read_a_thought(stream)
        with pytest.raises(LocalError, match="another event loop"):
            await asyncio.to_thread(asyncio.run, stream.__anext__())
        await asyncio.to_thread(asyncio.run, stream.aclose())
        assert talk.messages[-1].status == "interrupted"

    with ScriptedServer([HALF]) as server:
        asyncio.run(run())


def test_a_stream_that_is_waited_for_in_one_thread_can_be_closed_in_another():
    seen = []

    def read():
        seen.extend(stream)

    with ScriptedServer([HALF]) as server:
        talk = Conversation(KIMI, base_url=server.url, key="k")
        thinks = threading.Event()
        talk.subscribe(lambda e: thinks.set() if isinstance(e, ThinkingDelta) else None)
        stream = talk.stream("q")
        reading = threading.Thread(target=read)
        reading.start()
        assert thinks.wait(30)
        stream.close()
        reading.join(30)
        assert not reading.is_alive()
    assert any(isinstance(event, ThinkingDelta) for event in seen)
    assert talk.messages[-1].status == "interrupted"


def test_under_trio_a_stream_says_what_to_do():
    async def run():
        await anext(Conversation(KIMI, base_url="http://127.0.0.1:9", key="k").stream_async("q"))

    with pytest.raises(LocalError, match="under trio, run the blocking calls in a thread"):
        trio.run(run)
