"""The commands that go from session to session, and back within one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mull.history.log import Entry, Record
from mull.neutral.errors import LocalError, SessionError
from mull.transcripts.transcript import split_turns
from mull.tui.commands.host import Host, page, path_words
from mull.tui.commands.known import Known
from mull.tui.commands.words import single, split_words
from mull.tui.conversation.attached import typed
from mull.tui.screen.front import Item
from mull.tui.text.lines import Span
from mull.tui.text.safe import neutralise
from mull.tui.text.width import fitted
from mull.tui.text.wrap import chopped

if TYPE_CHECKING:
    from mull.store.sessions.values import Hit, SessionInfo

__all__ = [
    "begin_session",
    "fork_session",
    "list_sessions",
    "redo_turn",
    "rename_session",
    "resume_session",
    "retry_turn",
    "session_offers",
    "undo_turn",
]

MOST_HITS = 20
_AGES = ((86_400, "day"), (3600, "hour"), (60, "minute"))


async def list_sessions(host: Host, text: str) -> None:
    """The sessions of this folder, or the places in them where all the words stand."""
    words, session = split_words(text), host.session
    if words:
        return _show_hits(host, session.store.search(words, None, session.info.folder, MOST_HITS))
    infos, shown = Known(host).sessions(), page(host)
    this = session.info
    shown.text(f"This session: {this.id}  {this.label or '(nothing said yet)'}")
    rows = [
        (info.id, info.label, f"{_turns(info)}, {_age(info)}{_running(host, info)}")
        for info in infos
    ]
    shown.table(rows, (shown.theme.accent, shown.theme.text, shown.theme.note), give=1)
    if not rows:
        shown.text("There is no other conversation in this folder.", shown.theme.note)
    shown.text("/resume goes on with one, /sessions WORDS searches them.", shown.theme.note)
    host.show(shown.lines)


def _show_hits(host: Host, hits: Sequence[Hit]) -> None:
    shown = page(host)
    theme = shown.theme
    for hit in hits:
        where = f"{hit.session.id}  turn {hit.turn}  {hit.kind}  "
        label = fitted(neutralise(hit.session.label), shown.width - len(where))
        shown.line(Span(where, theme.accent), Span(label, theme.text))
        spans = [
            Span(" ".join(neutralise(part).split("\n")), theme.warning if at % 2 else theme.note)
            for at, part in enumerate(hit.parts)
        ]
        shown.lines += [
            (Span("    ", theme.text), *line) for line in chopped(spans, shown.width - 4)
        ]
    if not hits:
        shown.text("Nothing in this folder's sessions holds all of these words.", theme.note)
    host.show(shown.lines)


def _turns(info: SessionInfo) -> str:
    return f"{info.turns:,} turn{'' if info.turns == 1 else 's'}"


def _age(info: SessionInfo) -> str:
    seconds = max(time.time() - info.updated, 0)
    for size, word in _AGES:
        count = int(seconds // size)
        if count:
            return f"{count} {word}{'' if count == 1 else 's'} ago"
    return "just now"


def _running(host: Host, info: SessionInfo) -> str:
    return ", running" if host.session.store.holder(info.id) is not None else ""


async def resume_session(host: Host, text: str) -> None:
    """Go on with another session: by id, its beginning or a name, or picked: of all, or of those
    that hold the words.

    Raises:
        LocalError: there is no such session, or another process has it open.
    """
    reference = text.strip()
    infos = _found(host, reference) if reference else Known(host).sessions()
    if reference and not infos:
        return await host.open(reference)
    if not infos:
        raise SessionError(
            "there is no other conversation in this folder; /resume WORDS looks in single questions"
            " of `mull ask` too"
        )
    by_name = {f"{info.label} · {info.id}": info for info in infos}
    items = [Item(name, f"{_turns(info)}, {_age(info)}") for name, info in by_name.items()]
    picked = await host.front.pick("Which session?", items)
    if picked is not None:
        await host.open(by_name[picked].id)


def _found(host: Host, text: str) -> list[SessionInfo]:
    """The sessions of this folder that hold all the words, single questions too; none where the
    text is what one of them is called."""
    store, here = host.session.store, host.session.info
    try:
        store.find(text, here.folder)
    except SessionError:
        hits = store.search(split_words(text), None, here.folder, MOST_HITS)
        found = {hit.session.id: hit.session for hit in hits if hit.session.id != here.id}
        return [*found.values()]
    return []


async def begin_session(host: Host, text: str) -> None:
    """Begin a new session with the same model."""
    if text.strip():
        raise LocalError("/new takes no words: say what you want in the new session")
    await host.open(None, new=True)


async def fork_session(host: Host, text: str) -> None:
    """Go on with a copy of this session, whole or up to the end of a turn.

    Raises:
        LocalError: there is no such turn.
    """
    session = host.session
    word = single(split_words(text), "/fork [TURN]")
    records = tuple(session.log)
    if not records:
        raise LocalError("nothing was said yet: there is nothing to copy")
    label = session.info.label
    await host.open(session.info.id, fork_at=_end_of(records, word))
    host.tell(f"This is a copy of {label or session.info.id}; the original stays as it was.")


def _end_of(records: Sequence[Record], word: str | None) -> int:
    if word is None:
        return len(records)
    turns = split_turns(records)
    if not word.isascii() or not word.isdigit() or not 1 <= int(word) <= len(turns):
        there = f"this session has {len(turns)}" if turns else "nothing was said yet"
        raise LocalError(f"/fork takes the number of a turn, and {there}: /stats lists them")
    turn = turns[int(word) - 1]
    return max(at for at in turn if isinstance(records[at], Entry)) + 1


async def rename_session(host: Host, text: str) -> None:
    """Give the session a name of its own, or take it away.

    Raises:
        SessionError: another one has it, or it cannot be a name.
    """
    name = text.strip()
    host.session.rename(name or None)
    host.tell(f"This session is called {name} now." if name else "This session has no name now.")


async def retry_turn(host: Host, text: str) -> None:
    """Take the last answer back and ask for another."""
    if text.strip():
        raise LocalError("/retry takes no words")
    host.retry()


async def undo_turn(host: Host, text: str) -> None:
    """Take the last turns back, files too, and put the first one's words into the line again.

    Raises:
        LocalError: there are not so many.
    """
    word = single(split_words(text), "/undo [TURNS]") or "1"
    if not word.isascii() or not word.isdigit():
        raise LocalError("/undo takes the number of turns to take back")
    message = host.session.undo(int(word))
    host.redraw()
    host.front.put(typed(message))
    what = "The last turn is" if word == "1" else f"The last {word} turns are"
    host.tell(f"{what} taken back; the model does not see it any more. /redo brings it back.")
    _tell_files(host)


async def redo_turn(host: Host, text: str) -> None:
    """Bring back what the last /undo took, files too.

    Raises:
        LocalError: nothing was undone, or something was said since.
    """
    if text.strip():
        raise LocalError("/redo takes no words")
    host.session.redo()
    host.redraw()
    host.tell("What /undo took is back.")
    _tell_files(host)


def _tell_files(host: Host) -> None:
    """Say what became of files: `retry.py +1 −1`."""
    for file in host.session.restored:
        name = path_words(host, Path(file.path))
        if file.problem:
            host.tell(f"{name} stays as it is: {file.problem}", warning=True)
        else:
            host.tell(f"{name} +{file.added:,} −{file.removed:,}")


def session_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    """Sessions by name or id."""
    if len(words) > 1:
        return ()
    return [Item(info.name or info.id, info.label) for info in known.sessions()]
