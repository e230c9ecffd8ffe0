"""Finds the lines two texts have in common, in bounded time however long they are.

Lines that occur exactly once in both usually keep their order: they split the texts into small
regions (Patience). Within a region the fewest insertions and deletions are computed (Myers). A
region that would take too long counts as completely replaced, so that the result is always a
correct diff, and usually the shortest.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["Hunk", "Run", "hunks"]

_MOST_STEPS = 2_000_000
_MOST_CHANGES = 500


class Run(NamedTuple):
    """Consecutive lines in the old text and in the new one; `same` if they are equal."""

    same: bool
    old: range
    new: range


class Hunk(NamedTuple):
    """Changes close to each other, with context lines."""

    runs: tuple[Run, ...]

    @property
    def old(self) -> range:
        """The old lines that it covers."""
        return range(self.runs[0].old.start, self.runs[-1].old.stop)

    @property
    def new(self) -> range:
        """The new lines that it covers."""
        return range(self.runs[0].new.start, self.runs[-1].new.stop)


def hunks(old: Sequence[str], new: Sequence[str], context: int) -> Iterator[Hunk]:
    """The changes from old to new, with this many context lines around each."""
    gathered: list[Run] = []
    for run in _runs(old, new):
        if not run.same:
            gathered.append(run)
            continue
        size = len(run.old)
        if not gathered:
            gathered = [_part(run, max(0, size - context), size)]
        elif size <= 2 * context:
            gathered.append(run)
        else:
            yield Hunk((*gathered, _part(run, 0, context)))
            gathered = [_part(run, size - context, size)]
    if any(not run.same for run in gathered):
        last = gathered[-1]
        gathered[-1] = _part(last, 0, min(context, len(last.old))) if last.same else last
        yield Hunk(tuple(gathered))


def _part(run: Run, start: int, stop: int) -> Run:
    return Run(True, run.old[start:stop], run.new[start:stop])


def _runs(old: Sequence[str], new: Sequence[str]) -> Iterator[Run]:
    """Both texts as alternating same and changed runs."""
    at_old = at_new = 0
    for start_old, start_new, size in _joined(_Matching(old, new).blocks()):
        if start_old > at_old or start_new > at_new:
            yield Run(False, range(at_old, start_old), range(at_new, start_new))
        at_old, at_new = start_old + size, start_new + size
        yield Run(True, range(start_old, at_old), range(start_new, at_new))
    if at_old < len(old) or at_new < len(new):
        yield Run(False, range(at_old, len(old)), range(at_new, len(new)))


_Block = tuple[int, int, int]


def _joined(blocks: Iterator[_Block]) -> Iterator[_Block]:
    """Adjacent blocks joined."""
    held: _Block | None = None
    for block in blocks:
        if held and (held[0] + held[2], held[1] + held[2]) == block[:2]:
            held = (held[0], held[1], held[2] + block[2])
            continue
        if held and held[2]:
            yield held
        held = block
    if held and held[2]:
        yield held


class _Matching:
    """The search for common lines; its steps are counted over all regions."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        numbers: dict[str, int] = {}
        self._old = [numbers.setdefault(line, len(numbers)) for line in old]
        self._new = [numbers.setdefault(line, len(numbers)) for line in new]
        self._steps = _MOST_STEPS

    def blocks(self) -> Iterator[_Block]:
        """Where both have the same lines, in order."""
        waiting = [(0, len(self._old), 0, len(self._new), False)]
        while waiting:
            start_old, end_old, start_new, end_new, is_same = waiting.pop()
            if is_same:
                yield start_old, start_new, end_old - start_old
                continue
            head = self._common(start_old, end_old, start_new, end_new)
            if head:
                yield start_old, start_new, head
            start_old, start_new = start_old + head, start_new + head
            tail = self._common_end(start_old, end_old, start_new, end_new)
            if tail:
                waiting.append((end_old - tail, end_old, end_new - tail, end_new, True))
            end_old, end_new = end_old - tail, end_new - tail
            if start_old == end_old or start_new == end_new:
                continue
            anchors = self._anchors(start_old, end_old, start_new, end_new)
            if not anchors:
                yield from self._myers(start_old, end_old, start_new, end_new)
                continue
            waiting += reversed([*_between(anchors, start_old, end_old, start_new, end_new)])

    def _common(self, start_old: int, end_old: int, start_new: int, end_new: int) -> int:
        most = min(end_old - start_old, end_new - start_new)
        old, new = self._old, self._new
        return next((n for n in range(most) if old[start_old + n] != new[start_new + n]), most)

    def _common_end(self, start_old: int, end_old: int, start_new: int, end_new: int) -> int:
        most = min(end_old - start_old, end_new - start_new)
        old, new = self._old, self._new
        return next((n for n in range(most) if old[end_old - 1 - n] != new[end_new - 1 - n]), most)

    def _anchors(
        self, start_old: int, end_old: int, start_new: int, end_new: int
    ) -> list[tuple[int, int]]:
        """Lines that occur once in each, as many as keep their order."""
        once_old = _once(self._old, start_old, end_old)
        once_new = _once(self._new, start_new, end_new)
        pairs = [(at, once_new[line]) for line, at in once_old.items() if line in once_new]
        return _rising(pairs)

    def _myers(self, start_old: int, end_old: int, start_new: int, end_new: int) -> list[_Block]:
        """The blocks between the fewest changes; none if that takes too long."""
        old, new = self._old[start_old:end_old], self._new[start_new:end_new]
        if not set(old) & set(new):
            return []
        farthest, trail = {1: 0}, []
        for changes in range(min(_MOST_CHANGES, len(old) + len(new)) + 1):
            trail.append(farthest)
            farthest = farthest.copy()
            for diagonal in range(-changes, changes + 1, 2):
                x = _step(farthest, diagonal, changes)
                begin = x
                while x < len(old) and 0 <= x - diagonal < len(new) and old[x] == new[x - diagonal]:
                    x += 1
                farthest[diagonal] = x
                self._steps -= 1 + (x - begin) // 8
                if x >= len(old) and x - diagonal >= len(new):
                    return _walked(trail, len(old), len(new), start_old, start_new)
            self._steps -= len(farthest) // 8
            if self._steps < 0:
                return []
        return []


def _step(farthest: dict[int, int], diagonal: int, changes: int) -> int:
    if diagonal == -changes:
        return farthest[diagonal + 1]
    if diagonal != changes and farthest[diagonal - 1] < farthest[diagonal + 1]:
        return farthest[diagonal + 1]
    return farthest[diagonal - 1] + 1


def _walked(trail: list[dict[int, int]], x: int, y: int, old: int, new: int) -> list[_Block]:
    """The blocks along the path back."""
    found: list[_Block] = []
    for changes in range(len(trail) - 1, -1, -1):
        farthest, diagonal = trail[changes], x - y
        down = diagonal == -changes or (
            diagonal != changes and farthest[diagonal - 1] < farthest[diagonal + 1]
        )
        before = diagonal + 1 if down else diagonal - 1
        from_x = farthest[before] if changes else 0
        begin = (from_x if down else from_x + 1) if changes else 0
        if x > begin:
            found.append((old + begin, new + begin - diagonal, x - begin))
        x, y = from_x, from_x - before
    return found[::-1]


def _once(lines: Sequence[int], start: int, end: int) -> dict[int, int]:
    counted = Counter(lines[start:end])
    return {lines[at]: at for at in range(start, end) if counted[lines[at]] == 1}


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest increasing subsequence of the pairs."""
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, (_, right) in enumerate(pairs):
        at = bisect_left(tops, right)
        before.append(ends[at - 1] if at else -1)
        tops[at : at + 1] = [right]
        ends[at : at + 1] = [number]
    found: list[tuple[int, int]] = []
    number = ends[-1] if ends else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]


def _between(
    anchors: Sequence[tuple[int, int]], start_old: int, end_old: int, start_new: int, end_new: int
) -> Iterator[tuple[int, int, int, int, bool]]:
    for old, new in anchors:
        yield start_old, old, start_new, new, False
        yield old, old + 1, new, new + 1, True
        start_old, start_new = old + 1, new + 1
    yield start_old, end_old, start_new, end_new, False
