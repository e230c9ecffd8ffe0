"""A case of the suite, as it is stored: what is said, what the endpoints answer, what must hold."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from mull.neutral.messages import Dialect

__all__ = [
    "KINDS",
    "TOOL",
    "Case",
    "Check",
    "Endpoint",
    "Forbidden",
    "Kind",
    "Reply",
    "Shows",
    "Step",
    "find_suite",
    "load_cases",
]

Kind: TypeAlias = Literal[
    "text",
    "signature",
    "redacted",
    "encrypted",
    "field",
    "order",
    "empty",
    "interleaved",
    "parallel",
    "tags",
    "mirrored",
    "framing",
    "cut",
    "resume",
    "switch",
    "compaction",
    "unlisted",
    "leak",
    "rules",
    "counted",
]
KINDS: Mapping[Kind, str] = {
    "text": "the thought's own text comes back with its tool call",
    "signature": "signed thoughts come back as they were signed",
    "redacted": "thoughts without text come back",
    "encrypted": "encrypted reasoning comes back with the item that followed it",
    "field": "reasoning comes back in the field it came in",
    "order": "each round's thought stays with its own calls, in order",
    "empty": "an empty thought is not a missing one",
    "interleaved": "thoughts between texts and calls stay in their places",
    "parallel": "several calls in one answer stay one answer",
    "tags": "thoughts in tags are separated from the answer, and nothing else is",
    "mirrored": "a thought that is sent twice is kept once",
    "framing": "however the bytes are split and framed, the same is read",
    "cut": "a broken answer is reported, and does not poison what follows",
    "resume": "a stored conversation sends what it would have sent",
    "switch": "another model gets no foreign thoughts, and the first gets its own back",
    "compaction": "what is left after the oldest turns are dropped is still valid",
    "unlisted": "models that no catalog lists keep their reasoning too",
    "leak": "thoughts are never shown or sent as answers",
    "rules": "requests obey the endpoint's rules about reasoning",
    "counted": "reasoning tokens are reported as the endpoint counted them",
}
TOOL: Mapping[str, Any] = {
    "name": "look",
    "description": "Look at something.",
    "parameters": {
        "type": "object",
        "properties": {"at": {"type": "string", "description": "what to look at"}},
        "required": ["at"],
    },
    "result": "nothing there",
}
"""The tool that every case offers, and what it always returns."""


class _Data(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename="camel",
):
    """JSON with camelCase names."""


class Forbidden(_Data, frozen=True):
    """A field that the endpoint rejects, with its words."""

    path: str
    message: str
    status: int = 400


class Endpoint(_Data, frozen=True):
    """Who answers. `rules` names the strict provider that judges requests."""

    provider: str
    dialect: Dialect
    model: str
    rules: str
    forbids: tuple[Forbidden, ...] = ()


class Step(_Data, frozen=True):
    """What the client does: ask an endpoint, store and resume, or drop all but the last turns."""

    ask: str | None = None
    text: str | None = None
    resume: Annotated[bool, Meta(description="store the conversation, forget it, load it")] = False
    keep: Annotated[int | None, Meta(description="drop all but this many of the last turns")] = None


class Shows(_Data, frozen=True):
    """What a client must report of an answer; white space around its text is free. If it
    `may_fail`, an error will do as well.
    """

    text: str | None = None
    thoughts: tuple[str, ...] = ()
    reasoning_tokens: int | None = None
    complete: bool = True
    may_fail: bool = False


class Reply(_Data, frozen=True):
    """An answer in both forms: the request decides which is sent.

    A stream is text, or base64 of binary data; it is sent in pieces that end at the byte positions
    in `cuts` or after `every` so many bytes, and with `broken` the connection breaks at its end.
    `delivered` is what was complete when it broke, as a document.
    """

    shows: Shows
    document: dict[str, Any] | None = None
    stream: str | None = None
    stream64: str | None = None
    cuts: tuple[int, ...] = ()
    every: int = 0
    broken: bool = False
    delivered: dict[str, Any] | None = None

    def pieces(self) -> tuple[bytes, ...] | None:
        """The stream as it is sent."""
        if self.stream is None and self.stream64 is None:
            return None
        data = (self.stream or "").encode() or b64decode(self.stream64 or "")
        cuts = range(self.every, len(data), self.every) if self.every else self.cuts
        edges = [0, *cuts, len(data)]
        return tuple(data[start:end] for start, end in pairwise(edges))


class Check(_Data, frozen=True):
    """What must hold for a request's body. Without a path, the whole of it is meant.

    `has`: a value at the path is exactly this one. `order`: of the values at the path, these occur
    once each, in this order. `lacks`: no text right at the path contains this. `any_of`: at least
    one of these holds.
    """

    path: str = ""
    has: Any = None
    order: tuple[str, ...] | None = None
    lacks: str | None = None
    any_of: tuple[Check, ...] = ()


class Case(_Data, frozen=True):
    """One conversation, and what must become of it."""

    id: str
    kind: Kind
    title: str
    sources: Annotated[tuple[str, ...], Meta(min_length=1, description="public reports")]
    call: Annotated[
        Literal["blocking", "streaming"], Meta(description="which call of the client is used")
    ]
    endpoints: dict[str, Endpoint]
    steps: tuple[Step, ...]
    replies: dict[str, tuple[Reply, ...]]
    requests: dict[str, tuple[tuple[Check, ...], ...]] = {}
    evidence: Literal["captured", "constructed"] = "constructed"


def find_suite() -> Path:
    """The folder of the suite: in the installed package, or in the repository.

    Raises:
        FileNotFoundError: there is neither.
    """
    inside = Path(__file__).parent
    for folder in (inside / "suite", inside.parents[3] / "fidelity"):
        if (folder / "cases").is_dir():
            return folder
    raise FileNotFoundError("the fidelity suite is not installed")


def load_cases(folder: Path | None = None) -> list[Case]:
    """All cases, in a fixed order."""
    found = sorted(((folder or find_suite()) / "cases").glob("*.json"))
    return [case for file in found for case in _decode(file.read_bytes())]


_decode = msgspec.json.Decoder(list[Case]).decode
