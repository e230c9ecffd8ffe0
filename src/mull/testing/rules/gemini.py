"""What generateContent of Gemini 3 refuses: calls of the current turn without their signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mull.neutral.thinking import UNSIGNED_CALL
from mull.testing.ledger import Ledger

__all__ = ["check_gemini", "check_gemini_replay", "signature_of"]

Body = Mapping[str, Any]

_PLACEHOLDERS = frozenset({UNSIGNED_CALL, "context_engineering_is_the_way_to_go"})
"""Signatures that Google documents for calls of other models; they are taken anywhere."""


def check_gemini(body: Body) -> str | None:
    """generateContent of Gemini 3: one way of steering, signed calls, answered calls."""
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
    """Where the current turn began: the last content in which a user really speaks."""
    for index in range(len(contents) - 1, -1, -1):
        content = contents[index]
        if content["role"] == "user" and not all("functionResponse" in p for p in content["parts"]):
            return index
    return -1


def check_gemini_replay(body: Body, model: str, ledger: Ledger) -> str | None:
    """Does every signature come back that the current turn needs, each on the part it came on?"""
    contents = body["contents"]
    started = _last_question(contents)
    for index, content in enumerate(contents):
        for part in content["parts"]:
            problem = _misplaced(part, model, ledger)
            if problem is None and index > started and _lost(part, ledger):
                problem = _unsigned(part, index)
            if problem:
                return problem
    return None


def signature_of(part: Body) -> str | None:
    """The signature on a part, unless it is a placeholder.

    It is bytes in base64, in either alphabet: Google's own SDK sends the one for addresses.
    """
    signature: str | None = part.get("thoughtSignature")
    if signature is None or signature in _PLACEHOLDERS:
        return None
    return signature.replace("-", "+").replace("_", "/")


def _misplaced(part: Body, model: str, ledger: Ledger) -> str | None:
    signature = signature_of(part)
    if signature is None:
        return None
    place = ledger.find(signature)
    if place is None:
        return "Corrupted thought signature."
    moved = part.get("functionCall") != place.piece.get("functionCall")
    return "Invalid thought signature." if moved or place.issued.model != model else None


def _lost(part: Body, ledger: Ledger) -> bool:
    """Whether this call was issued with a signature that is not on it."""
    place = ledger.find(part.get("functionCall", {}).get("id"))
    issued = place.piece.get("thoughtSignature") if place else None
    return issued is not None and not part.get("thoughtSignature")
