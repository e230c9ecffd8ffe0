"""What generateContent of Gemini 3 rejects: calls of the current turn without their signature."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mull.neutral.thinking import UNSIGNED_CALL
from mull.testing.ledger import Ledger, Trace

__all__ = [
    "canonical",
    "check_gemini",
    "check_gemini_calls",
    "check_gemini_model",
    "check_gemini_places",
    "check_gemini_replay",
    "signature_of",
]

Body = Mapping[str, Any]

_DOCUMENTED = (UNSIGNED_CALL, "context_engineering_is_the_way_to_go")
_PLACEHOLDERS = frozenset({*_DOCUMENTED, *(b64encode(w.encode()).decode() for w in _DOCUMENTED)})
"""Signatures that Google documents for calls of other models; they are accepted anywhere, as they
are or in base64, in which its own SDK sends them.
"""


def check_gemini(body: Body) -> str | None:
    """generateContent of Gemini 3: one way to control thinking, signed calls, answered calls."""
    body = canonical(body)
    config = (body.get("generationConfig") or {}).get("thinkingConfig") or {}
    if "thinkingLevel" in config and "thinkingBudget" in config:
        return "You can only set only one of thinking budget and thinking level."
    contents = body["contents"]
    for index, content in enumerate(contents):
        before = contents[index - 1] if index else {"role": "none", "parts": ()}
        after = contents[index + 1] if index + 1 < len(contents) else {"parts": ()}
        problem = _bad_turns(content, before, after)
        if problem:
            return problem
        calls = _with(content, "functionCall")
        if calls and index > _last_question(contents) and not calls[0].get("thoughtSignature"):
            return _unsigned(calls[0], index)
    return None


def _unsigned(part: Body, index: int) -> str:
    name = part["functionCall"]["name"]
    return (
        "Function call is missing a thought_signature in functionCall parts. This is required for"
        " tools to work correctly, and missing thought_signature may lead to degraded model"
        f" performance. Additional data, function call `{name}`, position {index}."
    )


def _bad_turns(content: Body, before: Body, after: Body) -> str | None:
    calls = _with(content, "functionCall")
    if calls and len(calls) != len(_with(after, "functionResponse")):
        return (
            "Please ensure that the number of function response parts is equal to the number"
            " of function call parts of the function call turn."
        )
    if calls and before["role"] != "user":
        return (
            "Please ensure that function call turn comes immediately after a user turn or after"
            " a function response turn."
        )
    if _with(content, "functionResponse") and not _with(before, "functionCall"):
        return (
            "Please ensure that function response turn comes immediately after a function call"
            " turn."
        )
    return None


def _with(content: Body, key: str) -> list[Body]:
    return [part for part in content["parts"] if key in part]


def _last_question(contents: Sequence[Body]) -> int:
    """Where the current turn started: the last content with a user message."""
    for index in range(len(contents) - 1, -1, -1):
        content = contents[index]
        if content["role"] == "user" and not all("functionResponse" in p for p in content["parts"]):
            return index
    return -1


def check_gemini_replay(body: Body, ledger: Ledger) -> str | None:
    """Whether every signature that the current turn needs comes back, and each is one of ours."""
    contents = body["contents"]
    started = _last_question(contents)
    for index, content in enumerate(contents):
        for part in content["parts"]:
            signature = signature_of(part)
            if signature is not None and ledger.find(signature) is None:
                return "Corrupted thought signature."
            if index > started and _lost(part, ledger):
                return _unsigned(part, index)
    return None


def check_gemini_places(body: Body, ledger: Ledger) -> str | None:
    """Whether every signature is on the part that was signed. It is not known whether the API
    rejects one that is on another.
    """
    for part in _parts(body):
        place = ledger.find(signature_of(part))
        if place is not None and not _is_place(part, place, ledger):
            return "Invalid thought signature."
    return None


def check_gemini_model(body: Body, model: str, ledger: Ledger) -> str | None:
    """Whether the signatures are this model's own. It is not known which models read each
    other's.
    """
    for place in _signed(body, ledger):
        if place.issued.model != model:
            return "Invalid thought signature."
    return None


def check_gemini_calls(body: Body, ledger: Ledger) -> str | None:
    """Whether a call is still what was signed. The signature may not cover it."""
    for part in _parts(body):
        place = ledger.find(signature_of(part))
        if place is not None and _call(part) and _call(part) != _call(place.piece):
            return (
                f"the signed functionCall {part['functionCall'].get('name')!r} is not "
                "what was sent; it is not known whether the API accepts this"
            )
    return None


def signature_of(part: Body) -> str | None:
    """The signature on a part, unless it is a placeholder.

    It is bytes in base64, in either alphabet: Google's own SDK uses the URL-safe one.
    """
    signature: str | None = part.get("thoughtSignature")
    if signature is None or signature in _PLACEHOLDERS:
        return None
    return signature.replace("-", "+").replace("_", "/")


def _parts(body: Body) -> Iterator[Body]:
    return (part for content in body["contents"] for part in content["parts"])


def _signed(body: Body, ledger: Ledger) -> Iterator[Trace]:
    found = (ledger.find(signature_of(part)) for part in _parts(body))
    return (place for place in found if place is not None)


def _call(part: Body) -> tuple[str, Any] | None:
    """The content of a call. Its id is optional, and so are empty arguments."""
    call = part.get("functionCall")
    return (call.get("name"), call.get("args") or {}) if call is not None else None


def _is_place(part: Body, place: Trace, ledger: Ledger) -> bool:
    """Whether a part is the one that was signed.

    A call is identified by its id if it has one of ours, otherwise by its content: it is another
    one if its content is that of another call.
    """
    given, signed = _call(part), _call(place.piece)
    if given is None or signed is None:
        return given == signed
    named = ledger.find(part["functionCall"].get("id"))
    if named is not None:
        return named.piece is place.piece
    others = (piece for issued in ledger.answers for piece in issued.pieces)
    return given == signed or given not in map(_call, others)


def _lost(part: Body, ledger: Ledger) -> bool:
    """Whether this call was issued with a signature that is missing now."""
    place = ledger.find(part.get("functionCall", {}).get("id"))
    issued = place.piece.get("thoughtSignature") if place else None
    return issued is not None and not part.get("thoughtSignature")


_OPAQUE = frozenset(
    {"args", "response", "parameters", "parametersJsonSchema", "responseSchema", "labels"}
    | {"responseJsonSchema", "responseFormat"}
)
"""Fields whose value belongs to the client and is not canonicalised."""
_LISTS = ("contents", "parts")
"""Fields that may contain one value instead of a list of one."""


def canonical(body: Body) -> Body:
    """A request with Google's JSON names, however a client wrote them.

    The API also accepts the names of its protocol buffers (`function_call`), one value for a list
    of one, and contents without a role, which are the user's.
    """
    plain: Body = _renamed(body)
    contents = (
        [
            {"role": "user", "parts": (), **content, **_as_user(content)}
            for content in plain["contents"]
        ]
        if "contents" in plain
        else None
    )
    return plain if contents is None else {**plain, "contents": contents}


def _as_user(content: Body) -> Body:
    return {"role": "user"} if content.get("role") in ("function", "", None) else {}


def _renamed(value: Any) -> Any:
    if isinstance(value, list):
        return [_renamed(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    renamed = {}
    for name, inner in value.items():
        key = _camel(name)
        read = inner if key in _OPAQUE else _renamed(inner)
        renamed[key] = [read] if key in _LISTS and isinstance(read, Mapping) else read
    return renamed


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
