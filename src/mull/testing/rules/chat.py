"""What Chat Completions servers reject: Kimi, DeepSeek, and OpenRouter for a Claude."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from mull.testing.ledger import Ledger, Trace
from mull.testing.rules.anthropic import expected_thought

__all__ = [
    "check_chat",
    "check_deepseek",
    "check_details_replay",
    "check_details_whole",
    "check_field_replay",
    "check_kimi",
    "check_kimi_empty",
    "check_pairs",
    "effort_of",
]

Body = Mapping[str, Any]


def check_chat(body: Body) -> str | None:
    """Chat Completions as Kimi may enforce it: every call with reasoning that is not empty."""
    return check_kimi(body) or check_kimi_empty(body)


def check_kimi(body: Body) -> str | None:
    """Chat Completions as Kimi enforces it: no call without the field while thinking is on."""
    return check_pairs(body) or _unreasoned_call(body, (None,))


def check_kimi_empty(body: Body) -> str | None:
    """Whether a call comes with an empty `reasoning_content`.

    Moonshot's own client sends one back that was empty; others were refused for it.
    """
    return _unreasoned_call(body, (None, ""))


def _unreasoned_call(body: Body, missing: Container[str | None]) -> str | None:
    for index, message in enumerate(body["messages"]):
        if _is_off(body) or not message.get("tool_calls"):
            continue
        if message.get("reasoning_content") in missing:
            return (
                "thinking is enabled but reasoning_content is missing in assistant tool call"
                f" message at index {index}"
            )
    return None


def check_deepseek(body: Body) -> str | None:
    """Chat Completions as DeepSeek enforces it: in a tool chain every answer has the field.

    An empty string is enough if the model did not think, and earlier turns may omit it.
    """
    if problem := check_pairs(body):
        return problem
    turn = body["messages"][_last_question(body) + 1 :]
    answers = [message for message in turn if message["role"] == "assistant"]
    if not _is_off(body) and any(message.get("reasoning_content") is None for message in answers):
        return "The `reasoning_content` in the thinking mode must be passed back to the API."
    return None


def _last_question(body: Body) -> int:
    """Where the current turn started."""
    asked = [i for i, message in enumerate(body["messages"]) if message["role"] == "user"]
    return asked[-1] if asked else -1


def _is_off(body: Body) -> bool:
    return bool((body.get("thinking") or {}).get("type") == "disabled")


def check_pairs(body: Body) -> str | None:
    """What every Chat Completions server requires: each call is answered immediately, and only
    once.
    """
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return (
                    "Messages with role 'tool' must be a response to a preceding message with"
                    " 'tool_calls'."
                )
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return (
                "An assistant message with 'tool_calls' must be followed by tool messages"
                f" responding to each 'tool_call_id': {', '.join(waiting)}"
            )
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
    return f"tool calls without an answer: {', '.join(waiting)}" if waiting else None


def check_field_replay(body: Body, ledger: Ledger) -> str | None:
    """Whether the `reasoning_content` that comes back with a call is the one that came with it.

    Kimi and DeepSeek do not check that closely, so these words are ours. A blank placeholder is
    accepted for a message that was issued without reasoning.
    """
    for index, message in enumerate(body["messages"]):
        place, given = _issued(message, ledger), message.get("reasoning_content")
        if place is None or given is None:
            continue
        issued = place.piece.get("reasoning_content") or ""
        is_filler = not given.strip() and not issued.strip()
        if given != issued and not is_filler:
            return (
                f"(strict) reasoning_content of the message at index {index} is not what was sent"
                " with its tool calls"
            )
    return None


def _issued(message: Body, ledger: Ledger) -> Trace | None:
    """The issued message whose calls a message contains."""
    found = (ledger.find(call["id"]) for call in message.get("tool_calls") or ())
    return next((place for place in found if place), None)


def check_details_replay(body: Body, ledger: Ledger) -> str | None:
    """Whether the `reasoning_details` of a tool chain come back with their text, in order."""
    asked = _last_question(body)
    for index, given, issued in _details(body, ledger):
        if issued and not given and index > asked and effort_of(body) != "none":
            return expected_thought(index, "tool_use")
        known = all(ledger.find(_carrier(entry)) for entry in given)
        if given and (not known or (issued is not None and _told(given) != _told(issued))):
            return _bad_signature(index)
    return None


def check_details_whole(body: Body, model: str, ledger: Ledger) -> str | None:
    """Whether `reasoning_details` are unmodified to the last key, and this model's own.

    A client that only loses `format` or `index` may get through, and some models read each other's.
    """
    for index, given, issued in _details(body, ledger):
        places = [ledger.find(_carrier(entry)) for entry in given]
        if any(place and place.issued.model != model for place in places):
            return _bad_signature(index)
        for entry, before in zip(given, issued or (), strict=False):
            changed = sorted(k for k in {*entry, *before} if entry.get(k) != before.get(k))
            if changed:
                return (
                    f"(strict) reasoning_details of the message at index {index} were modified:"
                    f" {', '.join(changed)}"
                )
    return None


def _details(body: Body, ledger: Ledger) -> Iterator[tuple[int, list[Body], list[Body] | None]]:
    """The details of each answer as they came back and, if known, as they were."""
    for index, message in enumerate(body["messages"]):
        if message["role"] == "assistant":
            place = _issued(message, ledger)
            issued = place.piece.get("reasoning_details", []) if place else None
            yield index, message.get("reasoning_details") or [], issued


def _bad_signature(index: int) -> str:
    return f"messages.{index}.content.0: Invalid `signature` in `thinking` block"


def _carrier(entry: Body) -> object:
    return entry.get("signature") or entry.get("data")


def _told(details: Sequence[Body]) -> list[tuple[object, object]]:
    return [(_carrier(entry), entry.get("text")) for entry in details]


def effort_of(body: Body) -> str:
    """What OpenRouter is asked for: an effort, "on", or "none"; it has two shorthands."""
    asked = body.get("reasoning") or {}
    if asked.get("enabled") is False:
        return "none"
    effort = asked.get("effort") or body.get("reasoning_effort")
    return effort or ("on" if asked or body.get("include_reasoning") else "none")
