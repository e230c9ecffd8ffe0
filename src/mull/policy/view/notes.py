"""What is said of a view that differs from the log: how much of what, and by which setting."""

from __future__ import annotations

from mull.neutral.request import Note
from mull.policy.view.turn import Tally

__all__ = ["WARNED_OF", "view_notes"]

_SAID_OF = (
    ("off", "reasoning.enabled", "{n} stored {thoughts} not sent: thinking is off", False),
    ("stripped", "reasoning.stripFromContext", "{n} stored {thoughts} not sent, as set", False),
    ("excluded", "reasoning.includeInContext", "{n} stored {thoughts} not sent, as set", False),
    (
        "required",
        "reasoning.includeInContext",
        "{n} {thoughts} of the open tool chain sent anyway: the endpoint requires them;"
        " when the chain ends they are left out, which ends the prompt cache",
        False,
    ),
    (
        "returned",
        "reasoning.includeInContext",
        "{n} {thoughts} of the open tool chain sent back to the server that sent them;"
        " when the chain ends they are left out, which ends the prompt cache",
        False,
    ),
    ("untaken", "reasoning", "{n} {thoughts} not sent: the endpoint takes none back", False),
    ("unsigned", "reasoning", "{n} {thoughts} not sent: no signature to verify", False),
    (
        "unreadable",
        "reasoning",
        "{n} {thoughts} not sent: nothing that the endpoint could read",
        False,
    ),
    (
        "unfollowed",
        "reasoning",
        "{n} {thoughts} at the end of an answer not sent: the API takes none",
        False,
    ),
    ("refused", "reasoning", "{n} {thoughts} left out: the endpoint refused them", False),
    ("foreign", "reasoning.handoff", "{n} {thoughts} of another model left out", False),
    ("opaque", "history", "{n} {pieces} that only another model understands left out", False),
    ("strange", "history", "{n} {pieces} of a kind that only another API knows left out", True),
    ("handed_over", "reasoning.handoff", "{n} {thoughts} of another model sent as text", False),
    ("condensed", "reasoning.condenseOver", "{n} long {thoughts} sent as a stored summary", False),
    (
        "forbidden",
        "reasoning.enabled",
        "{n} {thoughts} left out: the endpoint takes none while thinking is off",
        False,
    ),
    ("unfinished", "history", "{n} unfinished {answers} not sent: asked again since", False),
    ("interrupted", "history", "{n} interrupted {answers} sent as far as it went", False),
    (
        "unmade_calls",
        "history",
        "{n} tool {calls} of an interrupted answer not sent: never run",
        False,
    ),
    ("unanswered", "history", "{n} {questions} without any answer not sent again", False),
    ("empty", "history", "{n} {answers} of thinking alone not sent", False),
    ("closed_calls", "history", "{n} tool {calls} without a result closed", True),
    ("orphans", "history", "{n} tool {results} without a call not sent", True),
    ("cut_calls", "history", "{n} tool {calls} cut at the token limit not sent", True),
    (
        "renamed",
        "history",
        "{n} tool {calls} sent under another name: {model} takes no such name",
        True,
    ),
    (
        "malformed",
        "history",
        "{n} tool {calls} sent with the arguments as text: they are no JSON object",
        True,
    ),
    ("images", "input", "{n} {images} left out: {model} takes none", True),
    ("audio_files", "input", "{n} audio {files} left out: {model} takes none", True),
    ("videos", "input", "{n} {videos} left out: {model} takes none", True),
    ("pdfs", "input", "{n} {PDFs} left out: {model} takes none", True),
)
WARNED_OF = tuple(field for field, _, _, warning in _SAID_OF if warning)
"""The differences that a person should know of when they are new."""

_NOUNS = (
    "thoughts", "pieces", "answers", "questions", "calls", "results", "images", "files", "videos",
    "PDFs",
)  # fmt: skip
_MANY = {noun: noun for noun in _NOUNS}
_ONE = {noun: noun.removesuffix("s") for noun in _NOUNS}


def view_notes(tally: Tally, news: Tally, model: str) -> list[Note]:
    """A note for each kind of difference, with its number; `news` is what may be warned of."""
    notes = []
    for field, about, text, warning in _SAID_OF:
        if n := getattr(tally, field):
            said = text.format(n=n, model=model, **(_ONE if n == 1 else _MANY))
            warns = warning and bool(getattr(news, field))
            notes.append(Note(about=about, text=said, warning=warns, kind=field))
    return notes
