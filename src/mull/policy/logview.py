"""Keeps the view of a growing log up to date, turn by turn.

The log only grows, so the view of each turn is kept and only turns whose place changed (the last
one, the last one with thinking) are made again: a new turn costs what is new, not what is old.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import overload

from mull.history.log import Log
from mull.neutral.messages import Message
from mull.policy.reasoning import has_thinking, starts_turn
from mull.policy.tokens import MESSAGE_OVERHEAD, Counter, count_block
from mull.policy.view import Place, Rules, Tally, TurnView, view_turn

__all__ = ["LogView", "Memory"]

KEPT_VIEWS = 2
"""One request may look twice, when its own history keeps it from thinking."""


class _Turn:
    """One turn of the log, its current view, and where that stands among all sent messages."""

    __slots__ = ("at", "messages", "place", "tokens", "view")

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.place: Place | None = None
        self.at = 0
        self.tokens = 0
        self.view = TurnView((), Tally())


class _Counts:
    """The tokens of the log's blocks, each counted once; the log keeps them, and so their ids."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._known: dict[int, int] = {}

    def stored(self, message: Message) -> int:
        """The tokens of a message of the log."""
        for block in message.blocks:
            if id(block) not in self._known:
                self._known[id(block)] = count_block(block, self._counter)
        return self.message(message)

    def message(self, message: Message) -> int:
        """The tokens of a message, most of whose blocks are the log's."""
        total = MESSAGE_OVERHEAD
        for block in message.blocks:
            known = self._known.get(id(block))
            total += count_block(block, self._counter) if known is None else known
        return total


class Sent(Sequence[Message]):
    """The first messages of a list that only grows behind them: as good as a copy, and free."""

    __slots__ = ("_length", "_messages")

    def __init__(self, messages: list[Message]) -> None:
        self._messages = messages
        self._length = len(messages)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, at: int) -> Message: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, at: int | slice) -> Message | tuple[Message, ...]:
        places = range(self._length)[at]
        if isinstance(places, int):
            return self._messages[places]
        return tuple(self._messages[place] for place in places)

    def __iter__(self) -> Iterator[Message]:
        return islice(self._messages, self._length)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False
        return all(one == another for one, another in zip(self, other, strict=True))

    def __repr__(self) -> str:
        return repr(tuple(self))


class LogView:
    """The messages a request would hold under one set of rules, with their count."""

    def __init__(self, rules: Rules, counts: _Counts) -> None:
        self._rules = rules
        self._counts = counts
        self._turns: list[_Turn] = []
        self._seen = 0
        self._placed = 0
        self._last_thinking = -1
        self._messages: list[Message] = []
        self._given = 0
        self.tally = Tally()
        self.tokens = 0
        self.raw_tokens = 0

    @property
    def last_turn(self) -> tuple[Message, ...]:
        """The last turn as it is sent."""
        return self._turns[-1].view.messages if self._turns else ()

    def sent(self) -> Sent:
        """All messages as they are sent; later changes do not reach what was given out."""
        self._given = len(self._messages)
        return Sent(self._messages)

    def catch_up(self, log: Log) -> None:
        """Take in what the log gained since the last time."""
        changed = {len(self._turns) - 1, self._last_thinking}
        for at in range(self._seen, len(log.active)):
            message = log.active[at]
            if not self._turns or starts_turn(message):
                self._turns.append(_Turn())
            self._turns[-1].messages.append(message)
            self._turns[-1].place = None
            self.raw_tokens += self._counts.stored(message)
            current = len(self._turns) - 1
            if has_thinking(message):
                self._last_thinking = current
            changed.add(current)
        self._seen = len(log.active)
        for index in sorted(changed - {-1}):
            self._renew(index)

    def _renew(self, index: int) -> None:
        turn = self._turns[index]
        place = Place(index == len(self._turns) - 1, index == self._last_thinking)
        if turn.place == place:
            return
        if index >= self._placed:  # turns are placed in order, so a new one goes at the end
            turn.at, self._placed = len(self._messages), index + 1
        old, turn.view, turn.place = turn.view, view_turn(turn.messages, place, self._rules), place
        tokens = sum(map(self._counts.message, turn.view.messages))
        self.tokens += tokens - turn.tokens
        turn.tokens = tokens
        self.tally += turn.view.tally - old.tally
        self._put(turn.at, old.messages, turn.view.messages)
        shift = len(turn.view.messages) - len(old.messages)
        if shift:
            for later in self._turns[index + 1 : self._placed]:
                later.at += shift

    def _put(self, at: int, old: Sequence[Message], new: Sequence[Message]) -> None:
        if len(old) == len(new) and all(a is b for a, b in zip(old, new, strict=True)):
            return
        if at < self._given:  # what was given out must not change
            self._messages, self._given = self._messages.copy(), 0
        self._messages[at : at + len(old)] = new


class Memory:
    """What is remembered of one log: block counts by counter, and the latest views."""

    def __init__(self) -> None:
        self._counts: dict[str, _Counts] = {}
        self._views: dict[tuple[Rules, str], LogView] = {}
        self._version = 0

    def view(self, log: Log, rules: Rules, counter: Counter) -> LogView:
        """The view under these rules, up to date."""
        if log.version != self._version:
            self._views.clear()
            self._version = log.version
        key = rules, counter.name
        view = self._views.pop(key, None)
        if view is None:
            counts = self._counts.setdefault(counter.name, _Counts(counter))
            view = LogView(rules, counts)
            while len(self._views) >= KEPT_VIEWS:
                self._views.pop(next(iter(self._views)))
        view.catch_up(log)
        self._views[key] = view  # only now: nobody else may see a view that is half made
        return view
