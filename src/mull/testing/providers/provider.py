"""What every played provider does: read a request, judge it, write an answer, refuse."""

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
    """A request as its provider understands it: names and shapes as the rules expect them."""

    body: Mapping[str, Any]
    model: str
    streams: bool


class Written(Value, frozen=True):
    """An answer: what is kept of it, and both forms in which it can go out."""

    issued: Issued
    whole: Mapping[str, Any]
    events: Sequence[Any]


class Provider(ABC):
    """One provider's rules and wire format. It keeps nothing: what was issued is in the ledger."""

    name: ClassVar[str]
    models: ClassVar[tuple[str, ...]]
    """What it lists. It answers as any model that is asked for."""
    asks_by: ClassVar[str]
    """How a request asks for thoughts."""

    variables: ClassVar[Mapping[str, str]]
    """What its clients read from the environment; {url} stands for the address."""

    @abstractmethod
    def read(self, path: str, body: Mapping[str, Any]) -> Asked | None:
        """What is asked for; None where the path is not one of this provider."""

    def restore(self, asked: Asked, ledger: Ledger) -> Asked | Verdict:
        """The request with what the provider stored for it; a verdict where it did not."""
        return asked

    @abstractmethod
    def verdicts(self, asked: Asked, ledger: Ledger) -> Iterator[Verdict]:
        """What is wrong with the request, what is certain first."""

    @abstractmethod
    def thinks(self, asked: Asked) -> bool:
        """Whether the request lets the model think."""

    def allowed(self, acts: Sequence[Act], asked: Asked) -> list[Act]:
        """What of an answer the request lets the model do."""
        thinks = self.thinks(asked)
        return [act for act in acts if thinks or not isinstance(act, Think)]

    @abstractmethod
    def write(self, acts: Sequence[Act], asked: Asked, ledger: Ledger) -> Written:
        """The answer, of what is allowed, with fresh ids and carriers."""

    @abstractmethod
    def error(self, verdict: Verdict) -> tuple[int, Mapping[str, Any]]:
        """The status and body of a refusal."""

    @abstractmethod
    def carriers(self, body: Mapping[str, Any]) -> list[str]:
        """The reasoning that a request brings back, in order."""

    def count(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The document for a client that asks how long its request is."""
        return None

    def look(self, method: str, path: str, ledger: Ledger) -> Mapping[str, Any] | None:
        """The document for a client that only looks or deletes; None where there is none."""
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
    """The text in three pieces or fewer, as deltas bring it."""
    size = max(1, -(-len(text) // 3))
    return [text[at : at + size] for at in range(0, len(text), size)]


def render(
    dialect: Dialect, message: Message, about: About, events: Iterable[Event] | None = None
) -> tuple[dict[str, Any], list[bytes]]:
    """The answer in both forms: one document, and the pieces of a stream."""
    document: dict[str, Any] = msgspec.json.decode(write_answer(message, dialect, about).body)
    writer = answer_writer(dialect, about)
    told = in_pieces(tell(message)) if events is None else events
    return document, [frame for event in told if (frame := writer.feed(event))]


def in_pieces(events: Iterable[Event]) -> Iterator[Event]:
    """The same answer with its texts cut; the signature of a text comes after it."""
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
    """What an answer would have cost, about."""
    given, thought = tokens(asked), sum(map(tokens, thoughts))
    output = tokens(msgspec.to_builtins(said)) + thought
    return Usage(given, output, thought, given + output)


def tokens(*given: Any) -> int:
    """About as many tokens as these values have; thoughts count by their text."""
    texts = (one.text if isinstance(one, Think) else one for one in given)
    return sum(-(-len(msgspec.json.encode(text)) // 4) for text in texts)
