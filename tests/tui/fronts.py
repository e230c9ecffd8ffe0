"""Terminals that are not there: a front that collects lines, and a conversation around it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from mull.agent.engine import Engine
from mull.agent.session import Session
from mull.agent.setup import load_setup
from mull.catalog.load import shipped
from mull.store.sessions.sqlite import SqliteSessions
from mull.store.sessions.writing import go_on_writing
from mull.testing.server import Reply, ScriptedServer
from mull.tui.commands.table import run_command
from mull.tui.screen.front import Item, Question
from mull.tui.screen.keys import KEYS
from mull.tui.screen.theme import Theme, theme_for
from mull.tui.text.lines import Line, line_width, plain_text

WIDTH = 60


class FakeFront:
    """Gives scripted answers and remembers what it was asked."""

    has_keys = True
    keys = KEYS

    def __init__(self, width: int = WIDTH, theme: Theme | None = None) -> None:
        self.theme = theme or theme_for("plain", None, "none")
        self.width = width
        self.picks: list[str | None] = []
        self.secrets: list[str | None] = []
        self.asked_for: list[str] = []
        self.offered: list[tuple[str, list[Item]]] = []
        self.typed: list[str] = []
        self.left = False
        self.cleared = 0
        self.viewed: list[Any] = []

    def refresh(self) -> None:
        pass

    def clear(self) -> None:
        self.cleared += 1

    def repaint(self, change: Callable[[int], int]) -> None:
        change(0)

    async def view(self, title: str, documents: Any, *, unfolded: str) -> None:
        self.viewed.append((title, [document.title for document in documents()], unfolded))

    def set_theme(self, name: str) -> None:
        self.theme = theme_for(name, None, "none")

    async def ask(self, question: Question) -> tuple[str, str]:
        raise AssertionError(f"nobody answers {question.title}")

    async def secret(self, title: str) -> str | None:
        self.asked_for.append(title)
        return self.secrets.pop(0) if self.secrets else None

    async def pick(
        self,
        title: str,
        items: Sequence[Item],
        found: str = "",
        mark: Any = None,
        preview: Any = None,
    ) -> str | None:
        self.mark, self.preview = mark, preview
        self.offered.append((title, list(items)))
        return self.picks.pop(0)

    draft = ""

    def put(self, text: str) -> None:
        self.typed.append(text)

    def copy(self, text: str) -> bool:
        self.copied = text
        return True

    def leave(self) -> None:
        self.left = True


class FakeTalk:
    """What commands need of a conversation, and what they did to it."""

    def __init__(self, session: Session, front: FakeFront | None = None) -> None:
        self.session = session
        self.front = front or FakeFront()
        self.last: Any = None
        self.sent: Any = None
        self.attached: list[Any] = []
        self.ran: list[Any] = []
        self.busy = False
        self.lines: list[Line] = []
        self.warnings: list[str] = []
        self.done: list[Any] = []

    @property
    def text(self) -> str:
        """All that was shown since the last look; nothing of it is too wide."""
        for line in self.lines:
            assert line_width(line) <= self.front.width, line
        text, self.lines = plain_text(self.lines), []
        return text

    def show(self, lines: Sequence[Line]) -> None:
        self.lines += lines

    def tell(self, text: str, *, warning: bool = False) -> None:
        from mull.tui.conversation.fixed import remarked
        from mull.tui.conversation.sections import Look

        if warning:
            self.warnings.append(text)
        self.lines += remarked("note", text).draw(Look(self.front.theme, self.front.width, "full"))

    def submit(self, message: Any) -> None:
        self.done.append(("submit", message))

    def send(self, text: str) -> None:
        self.done.append(("send", text))

    def retry(self) -> None:
        self.done.append("retry")

    @asynccontextmanager
    async def working(self, state: str) -> AsyncIterator[None]:
        self.done.append(("working", state))
        yield

    def redraw(self) -> None:
        self.done.append("redraw")

    def show_thoughts(self, mode: str) -> None:
        self.done.append(("view", mode))

    def cycle_view(self) -> str:
        self.done.append("cycle")
        return "hidden"

    def set_theme(self, name: str) -> None:
        self.front.set_theme(name)
        self.done.append(("theme", name))

    async def open(
        self, reference: str | None = None, *, new: bool = False, fork_at: int | None = None
    ) -> None:
        self.done.append(("open", reference, new, fork_at))

    async def say(self, text: str) -> None:
        """One whole turn, as the terminal would have it."""
        stream = self.session.submit(text)
        async for _ in stream:
            pass
        self.last, self.sent = stream.result, stream.prepared


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def answer(text: str, thought: str = "hm", usage: dict[str, Any] | None = None) -> Reply:
    """An answer with a thought before it, and its counts where they are given."""
    last = {"choices": [], "usage": usage} if usage else None
    return Reply.events(
        chunk({"reasoning_content": thought}),
        chunk({"content": text}),
        chunk({}, "stop"),
        *([last] if last else []),
        "[DONE]",
    )


def sessions_of(folder: Path) -> Path:
    """The store of the conversations in a folder."""
    return folder.with_name(f"{folder.name}-store") / "sessions.db"


@contextmanager
def at_terminal(folder: Any, *replies: Reply, model: str = "zai/glm-4.7", **more: Any):
    """A conversation over a scripted server, or with models `elsewhere`, where nobody answers.

    `more` goes to the session. Its store is beside the folder: the names of its files hold letters
    that differ from run to run, and whoever completes a file would find them.
    """
    front, sets = more.pop("front", None), more.pop("sets", ())
    elsewhere = more.pop("elsewhere", False)
    store = SqliteSessions(sessions_of(folder))
    with ScriptedServer(list(replies)) as server:
        url = None if elsewhere else server.url
        info = store.create(folder=str(folder), model=model, base_url=url)
        setup = load_setup(sets=sets)
        if not setup.config.overlay:
            vars(setup)["_catalog"] = shipped()  # read once for all tests, not once for each
        session = Session(go_on_writing(store, info.id), engine=Engine(setup), key="k", **more)
        talk = FakeTalk(session, front)
        talk.server = server
        try:
            yield talk
        finally:
            session.close()
            store.close()


def drive(talk: FakeTalk, *steps: str) -> str:
    """Commands (`/…`) and messages, one after the other; what the last command shows."""

    async def work() -> None:
        try:
            for step in steps:
                talk.lines = []
                await (run_command(talk, step[1:]) if step.startswith("/") else talk.say(step))
        finally:
            await talk.session.engine.close()

    asyncio.run(work())
    return talk.text
