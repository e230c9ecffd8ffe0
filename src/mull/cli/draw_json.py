"""An answer for programs: one JSON object, or a line per event followed by the same object.

The object has the same shape however the answer ended: it contains what arrived, and `error` says
what went wrong.
"""

from __future__ import annotations

from typing import TextIO

import msgspec

from mull.agent.debug import CODE as DEBUG
from mull.agent.results import Result
from mull.cli.draw import BROKEN, Kept, tell
from mull.neutral.blocks import Value
from mull.neutral.errors import (
    BudgetError,
    CatalogError,
    LocalError,
    MisfitError,
    MullError,
    NetworkError,
    RefusedError,
    SessionError,
)
from mull.neutral.events import Corrected, Event, Failed, Warned
from mull.neutral.messages import Status
from mull.neutral.target import Target

__all__ = ["JsonLines", "JsonObject", "Problem", "result_json"]

_KINDS: tuple[tuple[type[MullError], str], ...] = (
    (NetworkError, "network"),
    (RefusedError, "refused"),
    (MisfitError, "schema"),
    (SessionError, "session"),
    (CatalogError, "model"),
    (BudgetError, "budget"),
    (LocalError, "usage"),
)
_encode = msgspec.json.Encoder().encode


class Problem(Value, frozen=True):
    """What went wrong: a word for programs, and a text for people. For a rejection, the status and
    code of the response, the provider's request id, and the seconds it asks to wait.
    """

    kind: str
    message: str
    status: int | None = None
    code: str | None = None
    request_id: str | None = None
    retry_after: float | None = None


def _problem(error: MullError, kept: Kept) -> Problem:
    kind = next((kind for known, kind in _KINDS if isinstance(error, known)), "error")
    if kind == "usage" and kept.result is not None:
        kind = "stopped"  # a request was made, and mull itself stopped
    if not isinstance(error, RefusedError):
        return Problem(kind, str(error))
    return Problem(kind, str(error), error.status, error.code, error.request_id, error.retry_after)


class _Json:
    """What both forms collect until the object is printed."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = out
        self._err = err
        self._broken: Failed | None = None

    def begin(self, target: Target) -> None:
        pass

    def event(self, event: Event) -> None:
        if isinstance(event, Failed):
            self._broken = event
        elif isinstance(event, Corrected):
            tell(f"{event.text}; asking again", self._err)

    def tick(self) -> None:
        pass

    def end(self, kept: Kept) -> None:
        broken, error = self._broken, None
        if broken is not None and kept.result is not None and kept.result.status in BROKEN:
            kind = "network" if broken.status == "interrupted" else "refused"
            error = Problem(kind, broken.text, code=broken.code, request_id=kept.request_id)
        self._print(result_json(kept, error))

    def failed(self, error: MullError, kept: Kept) -> None:
        self._print(result_json(kept, _problem(error, kept), "error"))

    def interrupted(self, left: str, kept: Kept) -> None:
        problem = Problem("interrupted", f"interrupted; {left}" if left else "interrupted")
        self._print(result_json(kept, problem, "interrupted"))

    def _print(self, document: bytes) -> None:
        raise NotImplementedError


class JsonObject(_Json):
    """One object at the end. Output of DEBUG=1 is for people, and printed immediately."""

    def event(self, event: Event) -> None:
        super().event(event)
        if isinstance(event, Warned) and event.code == DEBUG:
            tell(event.text, self._err)

    def _print(self, document: bytes) -> None:
        self._out.write(msgspec.json.format(document, indent=2).decode() + "\n")


class JsonLines(_Json):
    """A line for each event, and a last one of type `result`."""

    def event(self, event: Event) -> None:
        super().event(event)
        self._line(_encode(event))

    def _print(self, document: bytes) -> None:
        self._line(b'{"type":"result",' + document[1:])

    def _line(self, data: bytes) -> None:
        self._out.write(data.decode() + "\n")
        self._out.flush()


def result_json(kept: Kept, error: Problem | None = None, status: Status | None = None) -> bytes:
    """The complete answer as JSON; `status` is its ending if the message has none."""
    result: Result | None = kept.result
    if result is None or not result.message.blocks:
        ended = status or (result.status if result else "error")
    else:
        ended = result.status if status is None or result.status in BROKEN else status
    return _encode(
        {
            "text": result.text if result else "",
            "thinking": result.thinking if result else "",
            "status": ended,
            "usage": result.usage if result else None,
            "notes": result.notes if result else (),
            "message": result.message if result and result.message.blocks else None,
            "value": kept.value,
            "model": kept.model,
            "session": kept.session,
            "cost": kept.cost,
            "duration": kept.seconds,
            "requestId": (error and error.request_id) or kept.request_id,
            "error": error,
        }
    )
