"""What every imitated provider does: read a request, judge it, write an answer, reject."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec
from msgspec.structs import replace

from mull.dialects.serving import answer_writer, write_answer
from mull.dialects.writer import About
from mull.neutral.assemble import tell
from mull.neutral.blocks import Block, Value
from mull.neutral.events import Event, TextDelta, ThinkingDelta, ToolCallDelta
from mull.neutral.messages import Dialect, Message
from mull.neutral.usage import Usage
from mull.testing.ledger import Issued, Ledger
from mull.testing.script import Act, Think, calls_in
from mull.testing.verdict import Verdict

__all__ = [
    "OPENAI_VARIABLES",
    "Asked",
    "Provider",
    "Written",
    "cut",
    "ending_of",
    "in_pieces",
    "render",
    "tokens",
    "usage_of",
]


OPENAI_VARIABLES: Mapping[str, str] = {
    "OPENAI_BASE_URL": "{url}/v1",
    "OPENAI_API_KEY": "strict",
}
_MODELS = re.compile(r".*?/models(?:/(?P<name>.+?))?/?")


class Asked(Value, frozen=True):
    """A request as its provider understands it: with the names and formats that the rules
    expect.
    """

    body: Mapping[str, Any]
    model: str
    streams: bool


class Written(Value, frozen=True):
    """An answer: what is kept of it, and both forms in which it can be sent."""

    issued: Issued
    whole: Mapping[str, Any]
    events: Sequence[Any]


class Provider(ABC):
    """One provider's rules and wire format. It stores nothing: what was issued is in the ledger."""

    name: ClassVar[str]
    models: ClassVar[tuple[str, ...]]
    """The models it lists. It answers as any requested model."""
    asks_by: ClassVar[str]
    """How a request asks for thinking."""

    variables: ClassVar[Mapping[str, str]]
    """The environment variables that its clients read; {url} stands for the address."""

    @abstractmethod
    def read(self, path: str, body: Mapping[str, Any]) -> Asked | None:
        """The request; None if the path is not one of this provider."""

    def restore(self, asked: Asked, ledger: Ledger) -> Asked | Verdict:
        """The request with what the provider stored for it; a verdict if it did not store it."""
        return asked

    @abstractmethod
    def verdicts(self, asked: Asked, ledger: Ledger) -> Iterator[Verdict]:
        """What is wrong with the request, certain findings first."""

    @abstractmethod
    def thinks(self, asked: Asked) -> bool:
        """Whether the request lets the model think."""

    def allowed(self, acts: Sequence[Act], asked: Asked) -> list[Act]:
        """The parts of an answer that the request allows."""
        thinks = self.thinks(asked)
        return [act for act in acts if thinks or not isinstance(act, Think)]

    @abstractmethod
    def write(self, acts: Sequence[Act], asked: Asked, ledger: Ledger) -> Written:
        """The allowed answer, with fresh ids and carriers."""

    @abstractmethod
    def issue(self, asked: Asked, document: Mapping[str, Any]) -> Issued:
        """What is kept of an answer that is sent as this document, whoever wrote it."""

    @abstractmethod
    def error(self, verdict: Verdict) -> tuple[int, Mapping[str, Any]]:
        """The status and body of a rejection."""

    @abstractmethod
    def carriers(self, body: Mapping[str, Any]) -> list[str]:
        """The reasoning that a request brings back, in order."""

    def count(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The response for a client that asks for the length of its request."""
        return None

    def look(self, method: str, path: str, ledger: Ledger) -> Mapping[str, Any] | None:
        """The response for a client that only looks something up or deletes it; None if there is
        none.
        """
        found = _MODELS.fullmatch(path) if method == "GET" else None
        if found is None:
            return None
        return self.model(found["name"]) if found["name"] else self.listed()

    def listed(self) -> Mapping[str, Any]:
        """The models, as this provider lists them."""
        return {"object": "list", "data": [self.model(name) for name in self.models]}

    def model(self, name: str) -> Mapping[str, Any]:
        """One model, as this provider describes it."""
        return {"id": name, "object": "model", "created": 0, "owned_by": self.name}


def cut(text: str) -> list[str]:
    """The text in at most three chunks, as deltas."""
    size = max(1, -(-len(text) // 3))
    return [text[at : at + size] for at in range(0, len(text), size)]


def render(
    dialect: Dialect, message: Message, about: About, events: Iterable[Event] | None = None
) -> tuple[dict[str, Any], list[bytes]]:
    """The answer in both forms: one document, and the chunks of a stream."""
    document: dict[str, Any] = msgspec.json.decode(write_answer(message, dialect, about).body)
    writer = answer_writer(dialect, about)
    told = in_pieces(tell(message)) if events is None else events
    return document, [frame for event in told if (frame := writer.feed(event))]


def in_pieces(events: Iterable[Event]) -> Iterator[Event]:
    """The same answer with its texts in chunks; the signature of a text comes after it."""
    for event in events:
        match event:
            case TextDelta(text, key):
                yield TextDelta("", key, wire=event.wire)
                yield from (TextDelta(piece, key) for piece in cut(text))
                yield TextDelta("", key, event.signature)
            case ThinkingDelta(text):
                yield from (replace(event, text=piece) for piece in cut(text) or [""])
            case ToolCallDelta(key, arguments=text):
                yield replace(event, arguments="")
                yield from (ToolCallDelta(key, arguments=piece) for piece in cut(text))
            case _:
                yield event


def ending_of(acts: Sequence[Act]) -> str:
    """Why the model stopped."""
    return "tool_calls" if calls_in(acts) else "stop"


def usage_of(asked: Any, said: Sequence[Block], thoughts: Sequence[Think]) -> Usage:
    """The approximate usage of an answer."""
    given, thought = tokens(asked), sum(map(tokens, thoughts))
    output = tokens(msgspec.to_builtins(said)) + thought
    return Usage(given, output, thought, given + output)


def tokens(*given: Any) -> int:
    """The approximate tokens of these values; thinking counts by its text."""
    texts = (one.text if isinstance(one, Think) else one for one in given)
    return sum(-(-len(msgspec.json.encode(text)) // 4) for text in texts)
