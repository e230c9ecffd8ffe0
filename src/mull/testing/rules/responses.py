"""What the Responses API refuses when nothing is stored: items alone, twice, or not its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mull.testing.ledger import Ledger, Trace

__all__ = ["check_responses", "check_responses_replay"]

Body = Mapping[str, Any]

_PREFIXES = {"function_call": "fc", "message": "msg", "reasoning": "rs"}
_KEYS_OF_REASONING = frozenset({"type", "id", "summary", "encrypted_content"})


def check_responses(body: Body) -> str | None:
    """The Responses API without storage: items in pairs, reasoning with its encrypted content."""
    items = _items(body)
    called = {item["call_id"] for item in items if item["type"] == "function_call"}
    answered = {item["call_id"] for item in items if item["type"] == "function_call_output"}
    ids: set[str] = set()
    for index, item in enumerate(items):
        kind, name = item["type"], item.get("id")
        if name in ids:
            return (
                f"Duplicate item found with id {name}. Remove duplicate items from your input and"
                " try again."
            )
        ids |= {name} if name else set()
        if kind == "function_call_output" and item["call_id"] not in called:
            return f"No tool call found for function call output with call_id {item['call_id']}."
        if kind == "function_call" and item["call_id"] not in answered:
            return f"No tool output found for function call {item['call_id']}."
        if kind == "reasoning" and (problem := _reasoning_item(index, items)):
            return problem
    return None


def _items(body: Body) -> list[Body]:
    given = body["input"]
    return [] if isinstance(given, str) else [{"type": "message", **item} for item in given]


def _reasoning_item(index: int, items: Sequence[Body]) -> str | None:
    item = items[index]
    name = item.get("id", "")
    if "summary" not in item:
        return f"Missing required parameter: 'input[{index}].summary'."
    if not item.get("encrypted_content"):
        return (
            f"Item with id '{name}' not found. Items are not persisted when `store` is set to"
            " false. Try again with `store` set to true, or remove this item from your input."
        )
    follower = items[index + 1] if index + 1 < len(items) else {"type": "none"}
    if follower["type"] in ("none", "function_call_output") or follower.get("role") == "user":
        return _unfollowed(name)
    return None


def _unfollowed(name: str) -> str:
    return f"Item '{name}' of type 'reasoning' was provided without its required following item."


def check_responses_replay(body: Body, model: str, ledger: Ledger) -> str | None:
    """Does each reasoning item come back whole, before the item that it was issued before?"""
    items = _items(body)
    for index, item in enumerate(items):
        problem = _misnamed(index, item)
        if problem is None and item["type"] == "reasoning":
            problem = _forged(index, item, model, ledger) or _torn_off(index, items, ledger)
        elif problem is None:
            problem = _bereft(index, items, ledger)
        if problem:
            return problem
    return None


def _misnamed(index: int, item: Body) -> str | None:
    name, prefix = item.get("id"), _PREFIXES.get(item["type"], "")
    if name is None or name.startswith(prefix) or item.get("role", "assistant") != "assistant":
        return None
    return f"Invalid 'input[{index}].id': '{name}'. Expected an ID that begins with '{prefix}'."


def _forged(index: int, item: Body, model: str, ledger: Ledger) -> str | None:
    for key, value in item.items():
        if key not in _KEYS_OF_REASONING and value is not None:
            return f"Unknown parameter: 'input[{index}].{key}'."
    place = ledger.find(item["encrypted_content"])
    if (
        place is None
        or place.issued.model != model
        or item.get("id") not in (None, place.piece["id"])
        or item["summary"] != place.piece["summary"]
    ):
        return f"The encrypted content for item {item.get('id')} could not be verified."
    return None


def _torn_off(index: int, items: Sequence[Body], ledger: Ledger) -> str | None:
    """Whether a reasoning item is followed by another item than it was."""
    place = ledger.find(items[index]["encrypted_content"])
    assert place is not None
    following = place.issued.pieces[place.at + 1 : place.at + 2]
    if following and _is_same(items[index + 1], following[0]):
        return None
    return _unfollowed(place.piece["id"])


def _is_same(item: Body, issued: Body) -> bool:
    if item["type"] != issued["type"]:
        return False
    if item["type"] == "message" and item.get("id") is None:
        return item.get("role") == "assistant" and _text(item) == _text(issued)
    keys = {"function_call": "call_id", "reasoning": "encrypted_content"}
    key = keys.get(item["type"], "id")
    return bool(item[key] == issued[key])


def _text(message: Body) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _bereft(index: int, items: Sequence[Body], ledger: Ledger) -> str | None:
    """Whether an item comes by its id but without the reasoning that produced it."""
    item = items[index]
    place = ledger.find(item.get("id"))
    reasoning = _reasoning_of(place) if place else None
    if reasoning is None:
        return None
    sent = {before.get("encrypted_content") for before in items[:index]}
    if reasoning["encrypted_content"] in sent:
        return None
    return (
        f"Item '{item['id']}' of type '{item['type']}' was provided without its required"
        f" 'reasoning' item: '{reasoning['id']}'."
    )


def _reasoning_of(place: Trace) -> Body | None:
    before = place.issued.pieces[: place.at]
    return next((piece for piece in reversed(before) if piece["type"] == "reasoning"), None)
