"""Commands that switch between sessions, and go back within one."""

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
    """The sessions of this folder, or the places in them that contain all the words."""
    words, session = split_words(text), host.session
    if words:
        return _show_hits(host, session.store.search(words, None, session.info.folder, MOST_HITS))
    infos, shown = Known(host).sessions(), page(host)
    this = session.info
    shown.text(f"This session: {this.id}  {this.label or '(empty)'}")
    rows = [
        (info.id, info.label, f"{_turns(info)}, {_age(info)}{_running(host, info)}")
        for info in infos
    ]
    shown.table(rows, (shown.theme.accent, shown.theme.text, shown.theme.note), give=1)
    if not rows:
        shown.text("There are no other conversations in this folder.", shown.theme.note)
    shown.text("/resume continues one, /sessions WORDS searches them.", shown.theme.note)
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
        shown.text("No session in this folder contains all of these words.", theme.note)
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
    """Continue another session, given by id, start of the id or name, or chosen from a list of all,
    or of those that contain the words.

    Raises:
        LocalError: there is no such session, or another process has it open.
    """
    reference = text.strip()
    infos = _found(host, reference) if reference else Known(host).sessions()
    if reference and not infos:
        return await host.open(reference)
    if not infos:
        raise SessionError(
            "there is no other conversation in this folder; /resume WORDS also "
            "searches single questions of `mull ask`"
        )
    by_name = {f"{info.label} · {info.id}": info for info in infos}
    items = [Item(name, f"{_turns(info)}, {_age(info)}") for name, info in by_name.items()]
    picked = await host.front.pick("Which session?", items)
    if picked is not None:
        await host.open(by_name[picked].id)


def _found(host: Host, text: str) -> list[SessionInfo]:
    """The sessions of this folder that contain all the words, including single questions; none if
    the text is the name of a session.
    """
    store, here = host.session.store, host.session.info
    try:
        store.find(text, here.folder)
    except SessionError:
        hits = store.search(split_words(text), None, here.folder, MOST_HITS)
        found = {hit.session.id: hit.session for hit in hits if hit.session.id != here.id}
        return [*found.values()]
    return []


async def begin_session(host: Host, text: str) -> None:
    """Start a new session with the same model."""
    if text.strip():
        raise LocalError("/new takes no arguments: type your message in the new session")
    await host.open(None, new=True)


async def fork_session(host: Host, text: str) -> None:
    """Continue in a copy of this session, whole or up to the end of a turn.

    Raises:
        LocalError: there is no such turn.
    """
    session = host.session
    word = single(split_words(text), "/fork [TURN]")
    records = tuple(session.log)
    if not records:
        raise LocalError("the session is empty: there is nothing to copy")
    label = session.info.label
    await host.open(session.info.id, fork_at=_end_of(records, word))
    host.tell(f"This is a copy of {label or session.info.id}; the original is unchanged.")


def _end_of(records: Sequence[Record], word: str | None) -> int:
    if word is None:
        return len(records)
    turns = split_turns(records)
    if not word.isascii() or not word.isdigit() or not 1 <= int(word) <= len(turns):
        there = f"it has {len(turns)}" if turns else "it has no turns yet"
        raise LocalError(
            f"/fork takes the number of a turn of this session, and {there}: /stats lists them"
        )
    turn = turns[int(word) - 1]
    return max(at for at in turn if isinstance(records[at], Entry)) + 1


async def rename_session(host: Host, text: str) -> None:
    """Name the session, or remove its name.

    Raises:
        SessionError: another session has this name, or it is not a valid name.
    """
    name = text.strip()
    host.session.rename(name or None)
    host.tell(
        f"This session is now called {name}." if name else "This session no longer has a name."
    )


async def retry_turn(host: Host, text: str) -> None:
    """Discard the last answer and ask again."""
    if text.strip():
        raise LocalError("/retry takes no arguments")
    host.retry()


async def undo_turn(host: Host, text: str) -> None:
    """Undo the last turns, including changes to files, and put the text of the first one back into
    the input line.

    Raises:
        LocalError: there are not that many turns.
    """
    word = single(split_words(text), "/undo [TURNS]") or "1"
    if not word.isascii() or not word.isdigit():
        raise LocalError("/undo takes the number of turns to undo")
    message = host.session.undo(int(word))
    host.redraw()
    host.front.put(typed(message))
    what = "Undid the last turn" if word == "1" else f"Undid the last {word} turns"
    host.tell(f"{what}; the model no longer sees it. /redo restores it.")
    _tell_files(host)


async def redo_turn(host: Host, text: str) -> None:
    """Restore what the last /undo removed, including files.

    Raises:
        LocalError: nothing was undone, or a message was sent since.
    """
    if text.strip():
        raise LocalError("/redo takes no arguments")
    host.session.redo()
    host.redraw()
    host.tell("Restored what /undo removed.")
    _tell_files(host)


def _tell_files(host: Host) -> None:
    """Report changes to files: `retry.py +1 −1`."""
    for file in host.session.restored:
        name = path_words(host, Path(file.path)) if file.path else ""
        if not name:
            host.tell(f"What commands changed was left as it is: {file.problem}", warning=True)
        elif file.problem:
            host.tell(f"{name} was left unchanged: {file.problem}", warning=True)
        else:
            host.tell(f"{name} +{file.added:,} −{file.removed:,}")


def session_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    """Sessions by name or id."""
    if len(words) > 1:
        return ()
    return [Item(info.name or info.id, info.label) for info in known.sessions()]
