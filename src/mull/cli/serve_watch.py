"""`mull serve --watch`: prints requests to the gateway as they are answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from mull.gateway.watching import Summary, pieces_of, summary_of
from mull.policy.cost import format_cost

if TYPE_CHECKING:
    from mull.gateway.job import Job
    from mull.gateway.observing import Outcome
    from mull.neutral.events import Event

__all__ = ["Printer"]

_LABELS = {"thought": "thinking", "text": "answer", "call": "tool call", "note": "note"}
_LONGEST = 400
"""Characters after which text is printed even if its line has not ended."""


class _Line:
    """The text of a request that has not been printed yet."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.kind = ""
        self.text = ""


class Printer:
    """Prints the start of each request, its thinking and answer line by line, and its outcome.

    Every line begins with the request's number, so that concurrent requests can be told apart.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lines: dict[int, _Line] = {}
        self._count = 0

    def began(self, job: Job) -> None:
        """Print the client, the model, and the notes on what was changed."""
        self._count += 1
        line = self._lines[id(job)] = _Line(self._count)
        one = summary_of(job)
        dialects = one.speaks if one.speaks == one.upstream else f"{one.speaks} → {one.upstream}"
        client = f"{one.client}: " if one.client else ""
        self._print(line, f"{client}{one.asked or '?'} → {one.provider}/{one.model} ({dialects})")
        for note in job.notes:
            self._print(line, f"{note.about}: {note.text}")

    def emitted(self, job: Job, events: Sequence[Event]) -> None:
        """Print the lines that are complete."""
        line = self._lines.get(id(job))
        if line is None:
            return
        for kind, text in pieces_of(events):
            if kind != line.kind:
                self._flush(line)
                line.kind = kind
            line.text += text
            *complete, line.text = line.text.split("\n")
            if len(line.text) > _LONGEST:
                complete, line.text = [*complete, line.text], ""
            for text_line in complete:
                self._print_text(line, text_line)

    def ended(self, job: Job, outcome: Outcome) -> None:
        """Print the outcome, duration, usage and cost."""
        line = self._lines.pop(id(job), None)
        if line is None:
            return
        self._flush(line)
        self._print(line, _end(summary_of(job, outcome)))

    def _flush(self, line: _Line) -> None:
        text, line.text = line.text, ""
        self._print_text(line, text)

    def _print_text(self, line: _Line, text: str) -> None:
        if text.strip():
            self._print(line, f"{_LABELS[line.kind]:<9}  {text}")

    def _print(self, line: _Line, text: str) -> None:
        print(f"#{line.number} {text}", file=self._out, flush=True)


def _end(one: Summary) -> str:
    facts = [one.state if one.state != "left" else "the client disconnected"]
    if one.error:
        facts[0] += f": {one.error}"
    if one.total is not None:
        facts.append(f"{one.total:.1f} s")
    if one.input is not None:
        facts.append(f"{one.input:,} tokens in{_part(one.cached, 'cached')}")
    if one.output is not None:
        facts.append(f"{one.output:,} out{_part(one.reasoning, 'reasoning')}")
    if one.cost is not None:
        facts.append(format_cost(one.cost))
    return ", ".join(facts)


def _part(count: int | None, name: str) -> str:
    return f" ({count:,} {name})" if count is not None else ""
