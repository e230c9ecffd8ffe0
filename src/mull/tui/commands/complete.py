"""Completion: commands, their arguments, and files that a message mentions.

All candidates come from the command table, and through it from the registries. Prefix matches come
first, then substring matches, then matches of the letters in order.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import NamedTuple

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from mull.neutral.errors import LocalError, MullError
from mull.tui.commands.host import Host
from mull.tui.commands.known import Known
from mull.tui.commands.mention import TYPED_MENTION, is_mention
from mull.tui.screen.front import Item
from mull.tui.screen.picker import score

__all__ = ["Offer", "SlashCompleter", "offers"]

MOST = 200


class Offer(NamedTuple):
    """A completion that replaces the text from `start` on."""

    text: str
    start: int
    about: str = ""


def offers(known: Known, typed: str) -> list[Offer]:
    """Completions for the text before the cursor, the best first."""
    try:
        if typed.startswith("/"):
            return _command_offers(known, typed)
        return _mention_offers(known, typed)
    except MullError:  # incomplete input is not an error yet
        return []


def _mention_offers(known: Known, typed: str) -> list[Offer]:
    found = TYPED_MENTION.search(typed)
    if found is None:
        return []
    offered = known.project.find(found[1] or found[2] or "")
    return [_mention(item, found.start()) for item in offered]


def _mention(item: Item, start: int) -> Offer:
    """A name with spaces is quoted; a folder is left unquoted at its end, because more may
    follow.
    """
    if " " not in item.name:
        return Offer(f"@{item.name}", start, item.about)
    end = "" if item.name.endswith("/") else '"'
    return Offer(f'@"{item.name}{end}', start, item.about)


def _command_offers(known: Known, typed: str) -> list[Offer]:
    # not before the first prompt
    from mull.tui.commands.table import COMMANDS, brought_commands, find_command

    name, space, rest = typed[1:].partition(" ")
    if not space:
        rows = (*COMMANDS, *brought_commands(known))
        items = [Item(f"/{row.name}", row.line) for row in rows]
        return _fitting(items, typed, 0)
    *before, last = rest.split(" ")
    words = [*filter(None, before), last]
    found = find_command(name, brought_commands(known)).offers(known, words)
    return _fitting(found, last, len(typed) - len(last))


def _fitting(items: Iterable[Item], word: str, start: int) -> list[Offer]:
    """The items that match a word, the best first; equal matches keep their order."""
    ranked = [
        (rank, at, item)
        for at, item in enumerate(items)
        if (rank := _rank(item.name.lower(), word.lower())) is not None
    ]
    best = sorted(ranked, key=lambda one: one[:2])[:MOST]
    return [Offer(item.name, start, item.about) for _, _, item in best]


def _rank(name: str, word: str) -> int | None:
    at = name.find(word)
    if at > 0:
        return 2 if name[at - 1].isalnum() else 1
    if at == 0:
        return 0
    return None if score(name, word) is None else 3


class SlashCompleter(Completer):
    """The completions for prompt_toolkit. `host` returns the conversation once there is one."""

    def __init__(self, host: Callable[[], Host | None]) -> None:
        self._host = host
        self._known: Known | None = None

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """The same, without blocking: listing a large project runs beside the conversation."""
        host = self._host()
        if host is not None and is_mention(document.text_before_cursor):
            await asyncio.to_thread(self._ready(host).project.look)
        for completion in self.get_completions(document, complete_event):
            yield completion

    def taken(self, typed: str) -> str:
        """What Enter accepts for an incomplete command or file: the first completion.

        A match of scattered letters in a path is too weak for that.
        """
        from mull.tui.commands.table import brought_commands, find_command

        host = self._host()
        if host is None:
            return typed
        if found := TYPED_MENTION.search(typed):
            return self._file(self._ready(host), typed, found)
        if not re.fullmatch(r"/\S+", typed):
            return typed
        known, name = self._ready(host), typed[1:]
        try:
            find_command(name, brought_commands(known))
        except LocalError:
            return next((offer.text for offer in offers(known, typed)), typed)
        return typed

    def _file(self, known: Known, typed: str, found: re.Match[str]) -> str:
        offered = offers(known, typed)
        word = found[1] or found[2] or ""
        if not word or not offered or any(typed.endswith(one.text.rstrip("/")) for one in offered):
            return typed
        best = offered[0]
        return typed[: best.start] + best.text if word.lower() in best.text.lower() else typed

    def _ready(self, host: Host) -> Known:
        if self._known is None:
            self._known = Known(host)
        return self._known

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Completions for the text before the cursor."""
        host, typed = self._host(), document.text_before_cursor
        for offer in offers(self._ready(host), typed) if host else ():
            start = offer.start - len(typed)
            yield Completion(offer.text, start_position=start, display_meta=offer.about)
