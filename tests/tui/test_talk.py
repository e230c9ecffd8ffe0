"""A conversation without a terminal: what is drawn when, and what the lines of a pipe become."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest

from mull.agent.attachments import expand_mentions
from mull.history.log import Entry, Log
from mull.neutral.blocks import MediaBlock, TextBlock
from mull.neutral.errors import LocalError
from mull.neutral.events import BlockEnded, TextDelta, ThinkingDelta, UsageReported
from mull.neutral.messages import Message, user
from mull.neutral.usage import Usage
from mull.tui.conversation.attached import folded
from mull.tui.screen.painter import Painter
from mull.tui.screen.plain_lines import LineReader
from mull.tui.screen.theme import theme_for
from mull.tui.talk import Talk
from mull.tui.turn import in_pieces
from tui.fronts import FakeFront

PLAIN = theme_for("plain", None, "none")


def text_of(lines):
    return ["".join(span.text for span in line) for line in lines]


@pytest.fixture
def painter():
    return Painter(PLAIN, 60, "preview", refresh=lambda: None, clock=lambda: 0.0)


def test_a_remark_waits_below_the_paragraph_that_arrives(painter):
    painter.event(TextDelta("one half, "))
    painter.tell("a remark")
    painter.event(UsageReported(Usage(output=1)))
    final, live = painter.frame()
    assert final == []
    assert text_of(live) == ["one half,", "", "a remark"]
    painter.event(TextDelta("other half"))
    painter.event(BlockEnded())
    final, live = painter.frame()
    assert text_of(final) == ["one half, other half", "", "a remark"]
    assert live == []


def test_a_remark_between_turns_is_there_at_once(painter):
    painter.tell("hello")
    assert text_of(painter.frame().final) == ["hello"]


def test_a_stop_draws_what_waits(painter):
    painter.event(ThinkingDelta("hm"))
    painter.tell("a remark")
    painter.stopped()
    text = "\n".join(text_of(painter.frame().final))
    assert text.index("hm") < text.index("Interrupted") < text.index("a remark")


def test_what_is_queued_cannot_command_the_terminal(painter):
    painter.queued(["next: a\x1b[2Jb\nc"])
    assert text_of(painter.frame().live) == ["  next: a␛[2Jb c"]


def test_a_mentioned_file_is_drawn_as_its_name(tmp_path):
    (tmp_path / "a.py").write_text("print('```')\n")
    said, _ = expand_mentions("see @a.py please", tmp_path)
    assert isinstance(said, Message)
    assert "print(" in said.text
    assert [block.text for block in folded(said).blocks] == ["see @a.py please", "[a.py]"]


def test_other_messages_are_drawn_whole():
    two = Message(role="user", blocks=(TextBlock("one"), TextBlock("\n\ntwo:\nthree")))
    picture = Message(role="user", blocks=(TextBlock("x"), MediaBlock("image/png", data="AA==")))
    for message in (two, picture, user("plain"), Message(role="assistant", blocks=two.blocks)):
        assert folded(message) == message


def read_all(data, pieces=1):
    async def read():
        end, start = os.pipe()
        try:
            reader = LineReader(end)
            size = -(-len(data) // pieces) or 1
            for at in range(0, len(data), size):
                os.write(start, data[at : at + size])
            os.close(start)
            lines = []
            while (line := await reader.read()) is not None:
                lines.append(line)
            return lines
        finally:
            os.close(end)

    return asyncio.run(read())


def test_lines_are_read_whole_however_they_come():
    assert read_all(b"one\r\ntwo\n\nlast", 3) == ["one", "two", "", "last"]
    assert read_all(b"") == []
    assert read_all(b"\xff\n") == ["\N{REPLACEMENT CHARACTER}"]


def test_who_closes_the_lines_waits_for_none():
    async def closed():
        end, start = os.pipe()
        reader = LineReader(end)
        waiting = asyncio.create_task(reader.read())
        await asyncio.sleep(0)
        reader.close()
        line = await waiting
        os.close(start)
        os.close(end)
        return line

    assert asyncio.run(closed()) is None


def test_what_mull_said_to_the_model_is_not_drawn_as_the_users_words(painter):
    log = Log([user("q")])
    log.add(Entry(user("Go on."), own=True))
    painter.open(log)
    assert text_of(painter.frame().final) == ["❯ q", "", "mull told the model: Go on."]


class Refusing:
    """A session whose endpoint has no key."""

    class target:
        class facts:
            input = ("image",)

    class info:
        folder = "."

    def way(self):
        """Its access has no fault that could be asked for."""

    def submit(self, said):
        raise LocalError("there is no key")


def test_what_could_not_be_said_is_put_back_with_what_was_attached(painter):
    picture = MediaBlock("image/png", data="AA==")

    async def say():
        front = FakeFront()
        front.echoes = True
        talk = Talk(None, front, painter, None)
        talk._session = Refusing()
        talk.attached.append(picture)
        talk.say("look")
        await talk.wait()
        return front.typed, talk.attached

    assert asyncio.run(say()) == (["look"], [picture])


class LongAnswer:
    """A stream whose text comes in one piece."""

    result = prepared = None
    silence = 0.0

    def __init__(self, event):
        self._event = event

    async def __aiter__(self):
        yield self._event

    async def aclose(self):
        pass


@pytest.mark.parametrize("kind", [TextDelta, ThinkingDelta])
def test_a_stop_is_heard_while_a_text_in_one_piece_is_drawn(painter, monkeypatch, kind):
    drawn, begun = [], asyncio.Event()

    def draw(event):
        drawn.append(event.text)
        begun.set()

    async def stop_soon():
        work = asyncio.ensure_future(talk._draw(LongAnswer(kind("word " * 400_000, 0))))
        await begun.wait()
        work.cancel()
        await asyncio.wait([work])
        assert work.cancelled()

    front = FakeFront()
    front.alert = lambda *words: None
    talk = Talk(None, front, painter, None)
    monkeypatch.setattr(painter, "event", draw)
    asyncio.run(stop_soon())
    assert 1 <= len(drawn) <= 3
    assert drawn[0].startswith("word word")


def test_pieces_of_a_text_are_the_text_and_others_stay_themselves():
    long = TextDelta("ab" * 50_000, 3)
    assert "".join(piece.text for piece in in_pieces(long)) == long.text
    assert {piece.key for piece in in_pieces(long)} == {3}
    assert max(len(piece.text) for piece in in_pieces(long)) < 20_000
    for event in (TextDelta("a"), UsageReported(Usage(output=1)), BlockEnded()):
        assert [*in_pieces(event)] == [event]


class Opened:
    """A session of which nothing is asked."""

    def take_back(self):
        """Nothing was said."""


def loading(painter, meanwhile):
    """What is run, and the front, where so much is done while a conversation is loading."""
    ran, loads = [], threading.Event()

    async def command(talk, text):
        ran.append((text, talk.is_open))

    async def start():
        front = FakeFront()
        front.echoes = True
        talk = Talk(Closed(), front, painter, command)

        async def begin():
            await talk.early.load(lambda: loads.wait(60))
            talk._session = Opened()

        talk.start(begin)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        left = await meanwhile(talk)
        loads.set()
        if not left:
            await talk.wait()
        return front

    return ran, asyncio.run(start())


class Closed:
    """A desk that is left."""

    async def close(self):
        """No processes were started."""


def test_what_is_entered_while_loading_is_run_when_the_session_is_open(painter):
    async def meanwhile(talk):
        talk.enter("/one")
        talk.queue("/two")
        assert not talk.stop(), "there is no model to interrupt"

    ran, front = loading(painter, meanwhile)
    assert ran == [("one", True), ("two", True)]
    assert not front.left


def test_a_conversation_that_is_left_while_loading_runs_nothing(painter):
    async def meanwhile(talk):
        talk.enter("/one")
        await talk.close()
        return True

    ran, front = loading(painter, meanwhile)
    assert ran == []
    assert front.left
