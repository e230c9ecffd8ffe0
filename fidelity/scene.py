"""The parts of a scene: questions, answers with their carriers, and what must come back."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

from fidelity.endpoints import Spec, returned
from fidelity.wire import Answer, Call, Json, Part, Say, Think, carrier, invoked

__all__ = [
    "AGAIN",
    "ASKED",
    "CLEAR",
    "DONE",
    "SECOND",
    "THOUGHT",
    "Line",
    "ask",
    "call",
    "case",
    "gh",
    "think",
    "unseen",
]

ASKED = "What is behind the door?"

AGAIN = "And behind the window?"

THOUGHT = "The door may hide\n\n  something — look first."

SECOND = "Nothing there, so it is “only” a door."

DONE = "It is a door."

CLEAR = "A garden."


def gh(*names: str) -> list[str]:
    """The addresses of reports: owner/name#number."""
    return [
        f"https://github.com/{name}/issues/{number}"
        for name, _, number in (one.partition("#") for one in names)
    ]


@dataclass
class Line:
    """The conversation of a case with one endpoint, while it is being written.

    Scenes name carriers and calls; on the wire these are values that no other case has, because a
    gateway may remember them.
    """

    spec: Spec
    which: str
    number: int = 0
    """Of the last answer."""
    replies: list[Json] = field(default_factory=list)
    turns: list[list[tuple[Sequence[Part], int]]] = field(default_factory=list)
    checks: list[list[Json]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.number = self._seed * 10

    @property
    def _seed(self) -> int:
        return crc32(self.which.encode()) >> 4

    def carrier(self, name: str) -> str:
        """The value behind the name of a carrier."""
        return carrier(f"{self._seed:07x} {name}")

    def call_id(self, number: int) -> str:
        """The id of a call: nine letters and digits, as Mistral wants them."""
        return f"c{self._seed:07x}{number}"

    def own(self, *parts: Part) -> list[Part]:
        """Parts with the values of this case instead of names."""
        found = [
            replace(part, carrier=part.carrier and self.carrier(part.carrier)) for part in parts
        ]
        return [
            replace(part, id=self.call_id(int(part.id))) if isinstance(part, Call) else part
            for part in found
        ]

    def turn(self) -> None:
        """The user asks."""
        self.turns.append([])

    def answer(self, *parts: Part, checks: Sequence[Json] = (), **options: Any) -> None:
        """The endpoint answers a request that brought back what it must."""
        self.expect(checks)
        self.number += 1
        owned = self.own(*parts)
        answer = self.spec.write(owned, self.number, **options)
        self.turns[-1].append((owned, self.number))
        reply = _reply(answer, owned, self.spec, options.get("tokens"))
        if self.spec.api == "converse":
            other = invoked(self.spec.model, owned, self.number)
            reply["invoke"] = {"document": other.document, **_stream(other.stream)}
        self.replies.append(reply)

    def expect(self, checks: Sequence[Json] = ()) -> None:
        """What the next request must bring back."""
        earlier = [reply for turn in self.turns[:-1] for reply in turn] if self.spec.keeps else []
        replies = [*earlier, *self.turns[-1]]
        self.checks.append([*returned(self.spec, replies), *checks] if replies else [*checks])

    def raw(self, reply: Json, *, checks: Sequence[Json] = ()) -> None:
        """A reply that was written by hand; nothing of it must come back."""
        self.expect(checks)
        self.number += 1
        self.replies.append(reply)


def _reply(answer: Answer, parts: Sequence[Part], spec: Spec, tokens: int | None) -> Json:
    shows: Json = {"text": "".join(part.text for part in parts if isinstance(part, Say))}
    shown = [part.text for part in parts if isinstance(part, Think) and not part.hidden]
    if any(shown) and spec.field != "extra-content":
        shows["thoughts"] = [text for text in shown if text]
    if tokens is not None:
        shows["reasoningTokens"] = tokens
    return {"shows": shows, "document": answer.document, **_stream(answer.stream)}


def _stream(data: bytes) -> Json:
    try:
        return {"stream": data.decode()}
    except UnicodeDecodeError:
        return {"stream64": b64encode(data).decode()}


def think(name: str, text: str = THOUGHT, *, hidden: bool = False) -> Think:
    """A thought and the name of its carrier."""
    return Think(text, name, hidden)


def call(number: int, at: str = "door", *, signed: bool = True) -> Call:
    """A call; Gemini signs the first of a step."""
    return Call(str(number), at, f"call {number}" if signed else "")


def case(  # noqa: PLR0913 - the columns of the table
    name: str,
    kind: str,
    title: str,
    sources: Sequence[str],
    way: str,
    lines: Mapping[str, Line],
    steps: Sequence[Json],
    *,
    captured: bool = False,
) -> Json:
    """One case as it is stored."""
    found: Json = {"id": name, "kind": kind, "title": title, "sources": [*sources]}
    found["call"] = way
    found["endpoints"] = {key: line.spec.data() for key, line in lines.items()}
    found["steps"] = [*steps]
    found["replies"] = {key: line.replies for key, line in lines.items()}
    found["requests"] = {key: line.checks for key, line in lines.items()}
    return {**found, **({"evidence": "captured"} if captured else {})}


def ask(text: str = ASKED, at: str = "a") -> Json:
    """A step: a question."""
    return {"ask": at, "text": text}


def visible(spec: Spec) -> Sequence[str]:
    """Where answers are in a request: as a text, or as the texts of a list."""
    if spec.api == "gemini":
        return ("contents[role=model].parts[thought!=True].text",)
    said = "input[role=assistant]" if spec.api == "responses" else "messages[role=assistant]"
    return (f"{said}.content", f"{said}.content[type!=thinking].text")


def unseen(spec: Spec, text: str) -> list[Json]:
    """No answer in a request contains this."""
    return [{"path": path, "lacks": text} for path in visible(spec)]
