"""Keeps the view of a growing log up to date, turn by turn and round by round.

The log only grows, so the view of each round (a message with the results that follow it) is kept.
Only new rounds are computed, and all rounds of a turn whose place changed what happens to its
thinking: a new round costs what is new, not what is old.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, overload

from mull.history.log import Log
from mull.neutral.blocks import Block, ThinkingBlock
from mull.neutral.messages import Message
from mull.policy.parts import Counted, Parts, Sums, count_message
from mull.policy.reasoning import has_thinking
from mull.policy.tokens import (
    CHARACTERS,
    MESSAGE_OVERHEAD,
    Counter,
    count_block,
    count_blocks,
)
from mull.policy.view.notes import WARNED_OF
from mull.policy.view.repair import Repair, is_unfinished, repair_turn
from mull.policy.view.turn import (
    UNCHANGED,
    Condensing,
    Keep,
    Rules,
    Standing,
    Tally,
    View,
    is_open_chain,
    is_paused,
    is_plain,
    keep_for,
    view_repaired,
)

if TYPE_CHECKING:
    from mull.policy.view.binding import Bound

__all__ = ["LogView", "Memory"]

KEPT_VIEWS = 4
"""Two models in turn, whose requests may need two views each: a history can keep them from
thinking."""
_NOTHING = View((), UNCHANGED)
_LEFT_OUT = View((), Tally(unanswered=1))


class _Round:
    """A message with the results that directly follow it: as stored, in order, and as sent. One
    that `is_plain` is always sent as it is."""

    __slots__ = ("counted", "is_plain", "messages", "repaired", "view")

    def __init__(self, message: Message) -> None:
        self.messages = [message]
        self.is_plain = is_plain(message)
        self.repaired = Repair((message,) if self.is_plain else ())
        self.view = _NOTHING
        self.counted: Sequence[Counted] = ()

    def add(self, result: Message) -> None:
        """Add a message of results."""
        self.messages.append(result)
        self.is_plain = False


class _Turn:
    """One turn of the log, and its place among all sent messages.

    The rounds up to `fresh` are up to date under `keep`. An unanswered question that was `asked`
    here is sent as long as it is the last.
    """

    __slots__ = ("asked", "at", "fresh", "is_left_out", "keep", "length", "rounds")

    def __init__(self, asked: bool) -> None:
        self.asked = asked
        self.is_left_out = False
        self.rounds: list[_Round] = []
        self.fresh = 0
        self.keep: Keep | None = None
        self.at = 0
        self.length = 0

    def take(self, message: Message) -> None:
        """Add a message of the log."""
        rounds = self.rounds
        changed = len(rounds)
        if not rounds or not message.carries_results:
            if rounds and is_unfinished(rounds[-1].messages[0]):
                changed -= 1  # the turn continued without that answer
            rounds.append(_Round(message))
        else:
            rounds[-1].add(message)
            changed -= 1
        self.fresh = min(self.fresh, changed)

    @property
    def is_unanswered(self) -> bool:
        """Whether the question has no answer."""
        if not self.asked:
            return False
        return not any(m.blocks and m.role != "user" for one in self.rounds for m in one.messages)

    def repair(self) -> None:
        """Repair the new rounds."""
        last = len(self.rounds) - 1
        for at, one in enumerate(self.rounds[self.fresh :], self.fresh):
            if not one.is_plain:
                one.repaired = repair_turn(one.messages, goes_on=at < last)

    def is_in_chain(self, *, last: bool) -> bool:
        """Whether the repaired turn is an open chain: one that waits for the model to continue, or
        that paused and was left so.
        """
        left = (one.repaired.messages for one in reversed(self.rounds))
        end = next(filter(_has_unspoken, left), ())
        return is_open_chain(end) if last else is_paused(end)


def _has_unspoken(messages: Sequence[Message]) -> bool:
    return not all(message.is_spoken for message in messages)


class _Counts:
    """The tokens of the log's messages and their blocks, each counted once; the log keeps them
    alive, and so their ids.
    """

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._is_rough = counter.name == CHARACTERS.name
        self._blocks: dict[int, int] = {}
        self._messages: dict[int, Counted] = {}

    def stored(self, message: Message) -> Counted:
        """The tokens of a message of the log."""
        known = self._messages.get(id(message))
        if known is None:
            known = self._messages[id(message)] = self._count(message, self._stored_block)
        return known

    def _stored_block(self, block: Block) -> int:
        count = self._blocks[id(block)] = count_block(block, self._counter)
        return count

    def sent(self, message: Message) -> Counted:
        """The tokens of a message that may be the log's."""
        known = self._messages.get(id(message))
        return self._count(message, self.sent_block) if known is None else known

    def sent_block(self, block: Block) -> int:
        """The tokens of a block that may be the log's."""
        known = self._blocks.get(id(block))
        return count_block(block, self._counter) if known is None else known

    def _count(self, message: Message, count: Callable[[Block], int]) -> Counted:
        parts = count_message(message, count)
        if self._is_rough:
            return Counted(parts, sum(parts.values()))
        return Counted(parts, MESSAGE_OVERHEAD + count_blocks(message.blocks, CHARACTERS))


class Sent(Sequence[Message]):
    """A prefix of a list that only grows at its end: as good as a copy, and free."""

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
    """The messages of a request under one set of rules, with their cost."""

    def __init__(self, rules: Rules, counts: _Counts, short: Mapping[int, ThinkingBlock]) -> None:
        self._rules = rules
        self._counts = counts
        over = rules.condense_over
        self._condensing = None if over is None else Condensing(over, short, counts.sent_block)
        self._is_plain = True
        self._turns: list[_Turn] = []
        self._seen = 0
        self._placed = 0
        self._last_thinking = -1
        self._messages: list[Message] = []
        self._given = 0
        self._keeps: dict[tuple[bool, bool, bool], Keep] = {}
        self._sums = self._stored = Sums()  # one for both, as long as both are the same
        self.tally = UNCHANGED

    @property
    def parts(self) -> Parts:
        """The tokens of what is sent."""
        return self._sums.parts

    @property
    def characters(self) -> int:
        """The tokens of what is sent, estimated from characters."""
        return self._sums.characters

    @property
    def stored(self) -> Parts:
        """The tokens of all that is stored."""
        return self._stored.parts

    @property
    def last_turn(self) -> Sequence[Message]:
        """The last turn as sent."""
        return self._messages[self._turns[-1].at :] if self._turns else ()

    @property
    def lost_in_last_turn(self) -> int:
        """Thinking of the last turn that the endpoint rejected before."""
        return sum(one.view.tally.refused for one in self._turns[-1].rounds) if self._turns else 0

    @property
    def news(self) -> Tally:
        """What the last turn and the one before it lack: what older ones lack was already
        reported.
        """
        if self.tally is UNCHANGED or not any(getattr(self.tally, one) for one in WARNED_OF):
            return UNCHANGED
        recent = (one.view.tally for turn in self._turns[-2:] for one in turn.rounds)
        return sum(recent, UNCHANGED)

    def sent(self) -> Sent:
        """All messages as sent; later changes do not affect what was returned."""
        self._given = len(self._messages)
        return Sent(self._messages)

    def count(self, block: Block) -> int:
        """The tokens of a block, as counted here."""
        return self._counts.sent_block(block)

    def long_thoughts(self) -> Iterator[ThinkingBlock]:
        """Thinking blocks above the limit that have no condensed version yet."""
        for turn in self._turns:
            for one in turn.rounds:
                yield from one.view.long

    def catch_up(self, log: Log) -> None:
        """Process what the log gained since the last time."""
        if self._is_plain:
            if self._takes_plain(log):
                return
            self._start_over()
        changed = {len(self._turns) - 1, self._last_thinking}
        new = log.active[self._seen :]
        for at, message in enumerate(new, self._seen):
            self._stored.add(self._counts.stored(message))
            if not self._turns or (message.role == "user" and log.starts_turn(at)):
                self._turns.append(_Turn(log.was_asked(at)))
            self._turns[-1].take(message)
            current = len(self._turns) - 1
            if has_thinking(message):
                self._last_thinking = current
            changed.add(current)
        self._seen += len(new)
        for index in sorted(changed - {-1}):
            self._renew(index)

    def _takes_plain(self, log: Log) -> bool:
        """Add what is new as it is: as long as all messages are plain, turns do not matter.
        Whether that was possible; nothing has changed otherwise."""
        new = log.active[self._seen :]
        for at, message in enumerate(new, self._seen):
            if not is_plain(message) or (message.role == "user" and log.was_asked(at)):
                return False
        for message in new:
            self._stored.add(self._counts.stored(message))
        self._messages += new
        self._seen += len(new)
        return True

    def _start_over(self) -> None:
        self._is_plain = False
        self._seen, self._given, self._messages = 0, 0, []
        self._sums, self._stored = Sums(), Sums()

    def _renew(self, index: int) -> None:
        turn = self._turns[index]
        turn.repair()
        last = index == len(self._turns) - 1
        keep = self._keep(last, index == self._last_thinking, turn.is_in_chain(last=last))
        is_left_out = not last and turn.is_unanswered
        start = turn.fresh if (keep, is_left_out) == (turn.keep, turn.is_left_out) else 0
        if index >= self._placed:  # turns are placed in order, so a new one goes at the end
            turn.at, self._placed = len(self._messages), index + 1
        rounds = turn.rounds[start:]
        old = _sent_of(rounds)
        for one in rounds:
            if is_left_out:
                self._take_view(one, _LEFT_OUT if one is turn.rounds[0] else _NOTHING)
            elif one.is_plain:
                self._take_view(one, View(one.repaired.messages, UNCHANGED))
            else:
                rules, condensing = self._rules, self._condensing
                self._take_view(one, view_repaired(one.repaired, keep, rules, condensing))
        turn.keep, turn.is_left_out, turn.fresh = keep, is_left_out, len(turn.rounds)
        new = _sent_of(rounds)
        self._put(turn.at + turn.length - len(old), old, new)
        shift = len(new) - len(old)
        turn.length += shift
        if shift:
            for later in self._turns[index + 1 : self._placed]:
                later.at += shift

    def _keep(self, last: bool, last_thinking: bool, in_chain: bool) -> Keep:
        place = last, last_thinking, in_chain
        if place not in self._keeps:
            standing = Standing(last, last_thinking)
            self._keeps[place] = keep_for(standing, self._rules, in_chain=in_chain)
        return self._keeps[place]

    def _take_view(self, one: _Round, view: View) -> None:
        for counted in one.counted:
            self._sums.remove(counted)
        one.counted = [*map(self._counts.sent, view.messages)]
        for counted in one.counted:
            self._sums.add(counted)
        if view.tally is not one.view.tally and view.tally != one.view.tally:
            self.tally += view.tally - one.view.tally
        one.view = view

    def _put(self, at: int, old: Sequence[Message], new: Sequence[Message]) -> None:
        if len(old) == len(new) and all(a is b for a, b in zip(old, new, strict=True)):
            return
        if at < self._given:  # what was returned must not change
            self._messages, self._given = self._messages.copy(), 0
        self._messages[at : at + len(old)] = new


def _sent_of(rounds: Iterable[_Round]) -> list[Message]:
    return [message for one in rounds for message in one.view.messages]


class Memory:
    """The cache for one log: block counts by counter, and the latest views."""

    def __init__(self) -> None:
        self._counts: dict[str, _Counts] = {}
        self._views: dict[tuple[Rules, str], LogView] = {}
        self._bound: Bound | None = None
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
            view = LogView(rules, counts, log.condensed)
            while len(self._views) >= KEPT_VIEWS:
                self._views.pop(next(iter(self._views)))
        view.catch_up(log)
        self._views[key] = view  # only now: nobody else may see an unfinished view
        return view

    def bound(self, log: Log, messages: Sequence[Message], opening: str) -> Bound:
        """The messages for a model that binds its thinking to what precedes it."""
        bound = self._bound
        if bound is None or bound.opening != opening:
            from mull.policy.view.binding import Bound

            bound = Bound(opening, log.prefixes)
        self._bound = None  # nobody else may see an unfinished one
        bound.follow(messages)
        self._bound = bound
        return bound
