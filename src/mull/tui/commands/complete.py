"""What can be typed next: commands, their words, and files that a message mentions.

Everything is asked of the table of commands, and by that of the registries. What begins as typed
comes first, then what holds it, then what has its letters in order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from mull.neutral.errors import MullError
from mull.tui.commands.host import Host
from mull.tui.commands.known import Known
from mull.tui.screen.front import Item
from mull.tui.screen.picker import score

__all__ = ["Offer", "SlashCompleter", "offers"]

MOST = 200
_MENTION = re.compile(r'(?<!\S)@(?:"([^"\n]*)|([^\s"]*))$')


class Offer(NamedTuple):
    """Text that can stand from `start` on, in place of what was typed there."""

    text: str
    start: int
    about: str = ""


def offers(known: Known, typed: str) -> list[Offer]:
    """What can follow the text before the cursor, the best first."""
    try:
        if typed.startswith("/"):
            return _command_offers(known, typed)
        return _mention_offers(known, typed)
    except MullError:  # what is typed halfway is no error yet
        return []


def _mention_offers(known: Known, typed: str) -> list[Offer]:
    found = _MENTION.search(typed)
    if found is None:
        return []
    return [_mention(item, found.start()) for item in known.files(found[1] or found[2] or "")]


def _mention(item: Item, start: int) -> Offer:
    """A name with spaces is quoted; a folder's stays open, because more is to follow."""
    if " " not in item.name:
        return Offer(f"@{item.name}", start, item.about)
    end = "" if item.name.endswith("/") else '"'
    return Offer(f'@"{item.name}{end}', start, item.about)


def _command_offers(known: Known, typed: str) -> list[Offer]:
    # not before the first prompt
    from mull.tui.commands.prompts import prompt_commands
    from mull.tui.commands.table import COMMANDS, find_command

    name, space, rest = typed[1:].partition(" ")
    if not space:
        rows = (*COMMANDS, *prompt_commands(known))
        items = [Item(f"/{row.name}", row.line) for row in rows]
        return _fitting(items, typed, 0)
    *before, last = rest.split(" ")
    words = [*filter(None, before), last]
    prompts = prompt_commands(known) if ":" in name else ()
    found = find_command(name, prompts).offers(known, words)
    return _fitting(found, last, len(typed) - len(last))


def _fitting(items: Iterable[Item], word: str, start: int) -> list[Offer]:
    """The items that fit a word, the best first, in their own order among equals."""
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
    """The offers for prompt_toolkit. `host` gives the conversation, once there is one."""

    def __init__(self, host: Callable[[], Host | None]) -> None:
        self._host = host
        self._known: Known | None = None

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """What can follow the text before the cursor."""
        host, typed = self._host(), document.text_before_cursor
        if self._known is None and host is not None:
            self._known = Known(host)
        for offer in offers(self._known, typed) if self._known else ():
            start = offer.start - len(typed)
            yield Completion(offer.text, start_position=start, display_meta=offer.about)
