"""Google's generateContent as Gemini 3 speaks it: signatures on parts, thoughts in summaries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from mull.testing.ledger import Issued, Ledger
from mull.testing.providers.provider import Asked, Provider, Written, cut, tokens
from mull.testing.rules.gemini import check_gemini, check_gemini_replay, signature_of
from mull.testing.script import Act, Call, Say, Think, thoughts_in

__all__ = ["Gemini"]

Part = dict[str, Any]
_SIGNED = "thoughtSignature"
_PATH = re.compile(r"/models/(?P<model>[^/:]+):(?P<method>generate|streamGenerate)Content$")


class Gemini(Provider):
    """Always thinks and signs; tells its thoughts where the request says `includeThoughts`."""

    name: ClassVar[str] = "gemini"

    def read(self, path: str, body: Mapping[str, Any]) -> Asked | None:
        found = _PATH.search(path)
        return Asked(body, found["model"], found["method"] != "generate") if found else None

    def refusal(self, asked: Asked, ledger: Ledger) -> str | None:
        return check_gemini(asked.body) or check_gemini_replay(asked.body, asked.model, ledger)

    def write(self, acts: Sequence[Act], asked: Asked, ledger: Ledger) -> Written:
        config = (asked.body.get("generationConfig") or {}).get("thinkingConfig") or {}
        shown = bool(config.get("includeThoughts"))
        parts = [part for act in acts for part in _parts(act, ledger, shown=shown)]
        thoughts = thoughts_in(acts)
        signature = ledger.seal(asked.model, "".join(thought.text for thought in thoughts))
        signed = _sign(parts, signature)
        asked_for, said = tokens(asked.body["contents"]), tokens(parts)
        thought = sum(map(tokens, thoughts))
        about = {
            "usageMetadata": {
                "promptTokenCount": asked_for,
                "candidatesTokenCount": said,
                "thoughtsTokenCount": thought,
                "totalTokenCount": asked_for + said + thought,
            },
            "modelVersion": asked.model,
            "responseId": ledger.name(""),
        }
        marks = {
            part["functionCall"]["id"]: at
            for at, part in enumerate(parts)
            if "functionCall" in part
        }
        issued = Issued(asked.model, parts, {**marks, signature: signed}, [signature])
        return Written(issued, _response(parts, about, "STOP"), [*_chunks(parts, about)])

    def error(self, reason: str) -> tuple[int, Mapping[str, Any]]:
        return 400, {"error": {"code": 400, "message": reason, "status": "INVALID_ARGUMENT"}}

    def carriers(self, body: Mapping[str, Any]) -> list[str]:
        parts = (part for content in body["contents"] for part in content["parts"])
        return [signature for part in parts if (signature := signature_of(part))]


def _parts(act: Act, ledger: Ledger, *, shown: bool) -> list[Part]:
    match act:
        case Think(text, hidden):
            return [{"text": text, "thought": True}] if shown and not hidden else []
        case Say(text):
            return [{"text": text}]
        case Call(name, arguments):
            return [{"functionCall": {"id": ledger.name(""), "name": name, "args": arguments}}]


def _sign(parts: list[Part], signature: str) -> int:
    """Put the signature on the first call, else on the last words, else on a part of its own."""
    calls = [at for at, part in enumerate(parts) if "functionCall" in part]
    words = [at for at, part in enumerate(parts) if not part.get("thought")]
    if not words:
        parts.append({"text": ""})
        words = [len(parts) - 1]
    at = calls[0] if calls else words[-1]
    parts[at][_SIGNED] = signature
    return at


def _response(parts: Sequence[Part], about: Mapping[str, Any], ending: str | None) -> Part:
    candidate: Part = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if ending is not None:
        candidate["finishReason"] = ending
    return {"candidates": [candidate], **about}


def _chunks(parts: Sequence[Part], about: Mapping[str, Any]) -> Iterator[Part]:
    pieces = [piece for part in parts for piece in _pieces(part)]
    for piece in pieces[:-1]:
        yield _response([piece], about, None)
    yield _response(pieces[-1:], about, "STOP")


def _pieces(part: Part) -> list[Part]:
    """A call comes whole; words in pieces, and their signature after them on an empty one."""
    if "functionCall" in part:
        return [part]
    rest = {key: value for key, value in part.items() if key not in ("text", _SIGNED)}
    pieces = [{**rest, "text": piece} for piece in cut(part["text"])]
    signed = [{"text": "", _SIGNED: part[_SIGNED]}] if _SIGNED in part else []
    return [*pieces, *signed]
