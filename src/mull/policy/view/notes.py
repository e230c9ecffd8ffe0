"""Notes about how a view differs from the log: how much of what, and because of which setting."""

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
    ("untaken", "reasoning", "{n} {thoughts} not sent: the endpoint accepts none back", False),
    ("unsigned", "reasoning", "{n} {thoughts} not sent: no signature to verify", False),
    (
        "unreadable",
        "reasoning",
        "{n} {thoughts} not sent: the endpoint could not read them",
        False,
    ),
    (
        "unfollowed",
        "reasoning",
        "{n} {thoughts} at the end of an answer not sent: the API accepts none there",
        False,
    ),
    ("refused", "reasoning", "{n} {thoughts} left out: the endpoint rejected them", False),
    ("unaccepted", "history", "{n} {pieces} left out: the endpoint rejected them", False),
    ("foreign", "reasoning.handoff", "{n} {thoughts} of another model left out", False),
    ("opaque", "history", "{n} {pieces} that only another model understands left out", False),
    ("strange", "history", "{n} {pieces} of a kind that only another API supports left out", True),
    ("broken", "history", "{n} {pieces} of answers that cannot be used not sent", True),
    (
        "earlier",
        "history",
        "{n} {pieces} in place of earlier messages left out: only another provider can read it",
        True,
    ),
    ("handed_over", "reasoning.handoff", "{n} {thoughts} of another model sent as text", False),
    ("condensed", "reasoning.condenseOver", "{n} long {thoughts} sent as a stored summary", False),
    (
        "forbidden",
        "reasoning.enabled",
        "{n} {thoughts} left out: the endpoint accepts none while thinking is off",
        False,
    ),
    (
        "unfinished",
        "history",
        "{n} unfinished {answers} not sent: the question was asked again",
        False,
    ),
    ("interrupted", "history", "{n} interrupted {answers} sent up to the interruption", False),
    (
        "unmade_calls",
        "history",
        "{n} tool {calls} of an interrupted answer not sent: never run",
        False,
    ),
    ("unanswered", "history", "{n} {questions} without an answer not sent again", False),
    ("empty", "history", "{n} {answers} that only contain thinking not sent", False),
    ("closed_calls", "history", "{n} tool {calls} without a result closed", True),
    ("orphans", "history", "{n} tool {results} without a call not sent", True),
    ("cut_calls", "history", "{n} tool {calls} cut at the token limit not sent", True),
    (
        "renamed",
        "history",
        "{n} tool {calls} sent under another name: {model} does not accept the name",
        True,
    ),
    (
        "malformed",
        "history",
        "{n} tool {calls} sent with the arguments as text: they are not a JSON object",
        True,
    ),
    ("images", "input", "{n} {images} left out: {model} accepts none", True),
    ("audio_files", "input", "{n} audio {files} left out: {model} accepts none", True),
    ("videos", "input", "{n} {videos} left out: {model} accepts none", True),
    ("pdfs", "input", "{n} {PDFs} left out: {model} accepts none", True),
)
WARNED_OF = tuple(field for field, _, _, warning in _SAID_OF if warning)
"""The differences that the user should know about when they are new."""

_NOTHING = Tally()
_NOUNS = (
    "thoughts", "pieces", "answers", "questions", "calls", "results", "images", "files", "videos",
    "PDFs",
)  # fmt: skip
_MANY = {noun: noun for noun in _NOUNS}
_ONE = {noun: noun.removesuffix("s") for noun in _NOUNS}


def view_notes(tally: Tally, news: Tally, model: str) -> list[Note]:
    """A note for each kind of difference, with its number; `news` is what may be a warning."""
    notes: list[Note] = []
    if tally == _NOTHING:
        return notes
    for field, about, text, warning in _SAID_OF:
        if n := getattr(tally, field):
            said = text.format(n=n, model=model, **(_ONE if n == 1 else _MANY))
            warns = warning and bool(getattr(news, field))
            notes.append(Note(about=about, text=said, warning=warns, kind=field))
    return notes
