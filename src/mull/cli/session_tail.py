"""Follows a session that another process writes, as it grows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TextIO

from mull.history.log import Entry, Record
from mull.neutral.blocks import TextBlock, ThinkingBlock
from mull.neutral.messages import Message
from mull.store.sessions.journal import fold
from mull.store.sessions.records import ends_answer
from mull.store.sessions.values import JournalBatch, SessionStore
from mull.tui.text.safe import neutralise

__all__ = ["Tail", "follow"]

_PAUSE = 0.2


class Tail:
    """Turns records and the journal into text that was not printed yet."""

    def __init__(self, *, answers: bool) -> None:
        self._answers = answers
        self._batches: list[JournalBatch] = []
        self._printed = ""  # of the answer that is coming
        self._last = ""  # of anything

    def add(self, records: Sequence[Record], batches: Sequence[JournalBatch]) -> str:
        """The new text; `batches` come after `records`."""
        new = ""
        for record in records:
            new += self._rest_of(record)
            if ends_answer(record):
                self._batches, self._printed = [], ""
        if batches:
            self._batches += batches
            new += "".join(map(self._rest_of, fold(self._batches)))
        return new

    def end(self) -> str:
        """The end of the last line."""
        return "\n" if self._last and not self._last.endswith("\n") else ""

    def _rest_of(self, record: Record) -> str:
        if not isinstance(record, Entry) or record.message.role != "assistant":
            return ""
        text = self._text(record.message)
        if self._printed and text.startswith(self._printed):
            new = text.removeprefix(self._printed)
        else:  # another answer, or this one was first classified differently
            new = "\n\n" + text if text and self._last else text
        self._printed = text
        self._last = new or self._last
        return new

    def _text(self, message: Message) -> str:
        parts: list[str] = []
        for block in message.blocks:
            if isinstance(block, ThinkingBlock):
                parts.append(block.thought)
            elif isinstance(block, TextBlock) and self._answers:
                parts.append(block.text)
        text = "\n\n".join(part for part in parts if part.strip())
        return neutralise(text.removesuffix("\r"))  # the other half of a line end is still to come


def follow(
    store: SessionStore,
    session: str,
    out: TextIO,
    *,
    answers: bool,
) -> bool:
    """Print new text until nobody writes the session; returns whether anybody did at first."""
    tail = Tail(answers=answers)
    position, after = store.info(session).records, 0
    was_running = running = store.holder(session) is not None
    while True:
        records, batches = store.news(session, position, after)
        position += len(records)
        after = batches[-1].number if batches else after
        out.write(tail.add(records, batches))
        out.flush()
        if not running:
            out.write(tail.end())
            return was_running
        time.sleep(_PAUSE)
        running = store.holder(session) is not None  # before the last look, not after it
