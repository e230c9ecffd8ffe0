"""What is measured, in the order of the page, and which figures decide the project's targets."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["GOALS", "SECTIONS", "Goal"]

SECTIONS = {
    "road": "End to end over loopback, per chunk",
    "decode": "Decoding a stream, per chunk",
    "write": "Writing a response, per chunk",
    "startup": "Cold start",
    "history": "Long conversations",
    "store": "The store of sessions",
    "gateway": "The gateway",
    "memory": "The memory of the gateway",
    "library": "The library beside others",
    "draw": "Drawing a stream",
    "terminal": "At the terminal, beside other assistants",
    "interrupt": "From Esc to the end of a response",
    "catalog": "The model catalog",
}
"""A section is the module of that name: `run()` gives its figures, its docstring is printed."""


class Goal(NamedTuple):
    """A target of the project: met if every figure meets its own whose name this matches."""

    what: str
    section: str
    figures: str


GOALS = (
    Goal("End to end in each dialect, beside the physical limit", "road", r"^[\w-]+: mull, "),
    Goal("The best peer end to end in each dialect, beside mull", "road", r"^[\w-]+: the best"),
    Goal("`import mull`, beside `import msgspec`", "startup", r"^import mull, ms CPU"),
    Goal("`mull --version`, beside an empty program", "startup", r"^mull --version, ms CPU"),
    Goal("A whole `mull ask`, beside an empty program", "startup", r"^mull ask, whole, ms CPU"),
    Goal("`mull` until its prompt is usable, beside the same", "startup", r"^prompt: mull, ms CPU"),
    Goal("First preparation of 10,000 turns", "history", r"10,000 turns, first time"),
    Goal("The 10,001st turn, beside the 11th", "history", r"^one turn more than 10,000"),
)
