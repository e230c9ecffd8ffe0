"""A case of the suite, as it is stored: what is said, what the endpoints answer, what must hold."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Mapping
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
    "Client",
    "Endpoint",
    "Forbidden",
    "Invoked",
    "Kind",
    "Reply",
    "Shows",
    "Step",
    "find_suite",
    "load_cases",
    "load_pairs",
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
    "crossing",
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
    "crossing": "a client of one API keeps the reasoning of a model behind another",
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


_DATA = re.compile(rb"^data: ?([^\r\n]*)", re.MULTILINE)


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


class Client(_Data, frozen=True):
    """Who talks to a gateway: the API that it speaks, and whether it sends back only the texts and
    calls of an answer.
    """

    dialect: Dialect
    forgets: bool = False


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


class Invoked(_Data, frozen=True):
    """An answer of Bedrock to InvokeModel: a message, and its events in base64 of binary data."""

    document: dict[str, Any]
    stream64: str


class Reply(_Data, frozen=True):
    """An answer in both forms: the request decides which is sent.

    A stream is text, or base64 of binary data; it is sent in pieces that end at the byte positions
    in `cuts` or after `every` so many bytes, and with `broken` the connection breaks at its end.
    `delivered` is what was complete when it broke, as a document. `invoke` is what Bedrock answers
    to a client that uses InvokeModel instead of Converse.
    """

    shows: Shows
    """What a client must report of the answer."""
    document: dict[str, Any] | None = None
    """The answer to a request without streaming; None if every request streams."""
    stream: str | None = None
    """The stream as text; None if it is binary, or never requested."""
    stream64: str | None = None
    """The stream in base64, if it is binary."""
    cuts: tuple[int, ...] = ()
    """Byte positions at which the stream is divided."""
    every: int = 0
    """The size of the pieces in bytes; 0 divides at `cuts` alone."""
    broken: bool = False
    """Whether the connection breaks at the end of the stream."""
    delivered: dict[str, Any] | None = None
    """What a client had received when the connection broke, as a document."""
    invoke: Invoked | None = None
    """The same answer for a client that uses InvokeModel."""

    def pieces(self) -> tuple[bytes, ...] | None:
        """The stream as it is sent."""
        if self.stream is None and self.stream64 is None:
            return None
        data = (self.stream or "").encode() or b64decode(self.stream64 or "")
        return self._pieces(data, self.cuts)

    def array_pieces(self) -> tuple[bytes, ...]:
        """The same events as Gemini sends them without `alt=sse`: the members of a JSON array, cut
        at the same places. A stream that breaks leaves the array open.
        """
        stream = (self.stream or "").encode()
        array, cuts = bytearray(b"["), []
        for event in _DATA.finditer(stream):
            array += b",\r\n" if len(array) > 1 else b""
            start, end = event.span(1)
            cuts += [len(array) + cut - start for cut in self.cuts if start < cut < end]
            array += event[1]
        return self._pieces(bytes(array if self.broken else array + b"]\n"), cuts)

    def _pieces(self, data: bytes, cuts: Iterable[int]) -> tuple[bytes, ...]:
        edges = [0, *(range(self.every, len(data), self.every) if self.every else cuts), len(data)]
        return tuple(data[start:end] for start, end in pairwise(edges))


class Check(_Data, frozen=True):
    """What must hold for a request's body. Without a path, the whole of it is meant.

    `has`: a value at the path is exactly this one. `joined`: the text parts of a list at the path
    are exactly this, however it is divided among them. `order`: of the values at the path, these
    occur once each, in this order. `lacks`: no text right at the path contains this. `any_of`: at
    least one of these holds.
    """

    path: str = ""
    has: Any = None
    joined: str | None = None
    order: tuple[str, ...] | None = None
    lacks: str | None = None
    any_of: tuple[Check, ...] = ()


class Case(_Data, frozen=True):
    """One conversation, and what must become of it."""

    id: str
    """The name of the case, as in `anthropic/interleaved/blocking`."""
    kind: Kind
    """What the case is about; `KINDS` has a sentence for each."""
    title: str
    """What happens in it, in one line."""
    sources: Annotated[tuple[str, ...], Meta(min_length=1, description="public reports")]
    """Where such traffic, or a client that failed with it, is described."""
    call: Annotated[
        Literal["blocking", "streaming"], Meta(description="which call of the client is used")
    ]
    """Whether the client streams."""
    endpoints: dict[str, Endpoint]
    """Who answers, by a name that steps refer to."""
    steps: tuple[Step, ...]
    """What the client does, in order."""
    replies: dict[str, tuple[Reply, ...]]
    """The answers of each endpoint, in order."""
    requests: dict[str, tuple[tuple[Check, ...], ...]] = {}
    """What must hold for each request to an endpoint, in order."""
    evidence: Literal["captured", "constructed"] = "constructed"
    """Whether the answers were recorded (`captured`) or written by hand (`constructed`)."""
    client: Annotated[Client | None, Meta(description="only in pairs, for gateways")] = None
    """Who talks to the gateway; None if the client under test is no gateway."""


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
    return _load((folder or find_suite()) / "cases")


def load_pairs(folder: Path | None = None) -> list[Case]:
    """The cases for gateways alone: a client of one API, a model of another."""
    return _load((folder or find_suite()) / "pairs")


def _load(folder: Path) -> list[Case]:
    return [case for file in sorted(folder.glob("*.json")) for case in _decode(file.read_bytes())]


_decode = msgspec.json.Decoder(list[Case]).decode
