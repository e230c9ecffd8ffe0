"""What the Responses API rejects: items alone, duplicated, not stored, or not its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mull.testing.ledger import Ledger, Trace

__all__ = [
    "carrier_of",
    "check_responses",
    "check_responses_model",
    "check_responses_order",
    "check_responses_replay",
    "items_of",
]

Body = Mapping[str, Any]

_PREFIXES = {"function_call": "fc", "message": "msg", "reasoning": "rs"}
_KEYS_OF_REASONING = frozenset({"type", "id", "summary", "encrypted_content"})


def check_responses(body: Body, ledger: Ledger | None = None) -> str | None:
    """The Responses API: items in pairs, reasoning encrypted, or stored according to the ledger."""
    items = items_of(body)
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
        if kind == "reasoning" and (problem := _reasoning_item(index, items, ledger)):
            return problem
    return None


def items_of(body: Body) -> list[Body]:
    """The items of a request; a plain text is a user message."""
    given = body["input"] if "previous_response_id" not in body else body.get("input", ())
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return [{"type": "message", **item} for item in given]


def carrier_of(item: Body) -> str | None:
    """The carrier of a reasoning item: its encrypted content, otherwise its id."""
    if item["type"] != "reasoning":
        return None
    carrier: str | None = item.get("encrypted_content") or item.get("id")
    return carrier


def _reasoning_item(index: int, items: Sequence[Body], ledger: Ledger | None) -> str | None:
    item = items[index]
    name = item.get("id", "")
    if "summary" not in item:
        return f"Missing required parameter: 'input[{index}].summary'."
    if not item.get("encrypted_content") and not _is_stored(name, ledger):
        return (
            f"Item with id '{name}' not found. Items are not persisted when `store` is set to"
            " false. Try again with `store` set to true, or remove this item from your input."
        )
    follower = items[index + 1] if index + 1 < len(items) else {"type": "none"}
    if follower["type"] in ("none", "function_call_output") or follower.get("role") == "user":
        return _unfollowed(name)
    return None


def _is_stored(name: str, ledger: Ledger | None) -> bool:
    place = ledger.find(name) if ledger is not None else None
    return ledger is not None and place is not None and ledger.is_stored(place)


def _unfollowed(name: str) -> str:
    return f"Item '{name}' of type 'reasoning' was provided without its required following item."


def check_responses_replay(body: Body, ledger: Ledger) -> str | None:
    """Whether each reasoning item comes back, and the item that it was issued before after it."""
    items = items_of(body)
    for index, item in enumerate(items):
        problem = _misnamed(index, item)
        if problem is None and item["type"] == "reasoning":
            problem = _forged(item, ledger) or _abandoned(index, items, ledger)
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


def check_responses_model(body: Body, model: str, ledger: Ledger) -> str | None:
    """Whether the encrypted reasoning is this model's own. It is not known which models read each
    other's.
    """
    for item in items_of(body):
        place = ledger.find(item.get("encrypted_content"))
        if place is not None and place.issued.model != model:
            return _unverified(item)
    return None


def check_responses_order(body: Body, ledger: Ledger) -> str | None:
    """Whether reasoning items come back with their summary and nothing more, right before the item
    that they were issued before. It is not known whether the API is that strict.
    """
    items = items_of(body)
    for index, item in enumerate(items):
        place = ledger.find(carrier_of(item))
        if place is None:
            continue
        for key, value in item.items():
            if key not in _KEYS_OF_REASONING and value not in (None, []):  # no content is accepted
                return f"Unknown parameter: 'input[{index}].{key}'."
        if _told(item) not in ("", _told(place.piece)):
            return _unverified(item)
        if not _is_same(items[index + 1], _follower(place)):
            return _unfollowed(place.piece["id"])
    return None


def _forged(item: Body, ledger: Ledger) -> str | None:
    place = ledger.find(carrier_of(item))
    if place is None or item.get("id") not in (None, place.piece["id"]):
        return _unverified(item)
    return None


def _told(item: Body) -> str:
    """The text of a summary. It may be left out: the reasoning itself is what is encrypted."""
    return "".join(part["text"] for part in item["summary"])


def _unverified(item: Body) -> str:
    return f"The encrypted content for item {item.get('id')} could not be verified."


def _abandoned(index: int, items: Sequence[Body], ledger: Ledger) -> str | None:
    """Whether the item that a reasoning item was issued before no longer comes after it."""
    place = ledger.find(carrier_of(items[index]))
    assert place is not None
    following = _follower(place)
    if any(_is_same(item, following) for item in items[index + 1 :]):
        return None
    return _unfollowed(place.piece["id"])


def _follower(place: Trace) -> Body:
    """The item that was issued after a reasoning item; one of no type if there was none."""
    return next(iter(place.issued.pieces[place.at + 1 :]), {"type": "none"})


def _is_same(item: Body, issued: Body) -> bool:
    if item["type"] != issued["type"]:
        return False
    if item["type"] == "message" and item.get("id") is None:
        return item.get("role") == "assistant" and _text(item) == _text(issued)
    if item["type"] == "reasoning":
        return carrier_of(item) in {issued["id"], issued.get("encrypted_content")} - {None}
    key = "call_id" if item["type"] == "function_call" else "id"
    return bool(item[key] == issued[key])


def _text(message: Body) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(p.get("text", "") for p in content)


def _bereft(index: int, items: Sequence[Body], ledger: Ledger) -> str | None:
    """Whether an item is referred to by its id but without the reasoning that produced it."""
    item = items[index]
    place = ledger.find(item.get("id"))
    reasoning = _reasoning_of(place) if place else None
    if reasoning is None:
        return None
    sent = {carrier_of(before) for before in items[:index]} - {None}
    if sent & {reasoning["id"], reasoning.get("encrypted_content")}:
        return None
    return (
        f"Item '{item['id']}' of type '{item['type']}' was provided without its required"
        f" 'reasoning' item: '{reasoning['id']}'."
    )


def _reasoning_of(place: Trace) -> Body | None:
    before = place.issued.pieces[: place.at]
    return next((piece for piece in reversed(before) if piece["type"] == "reasoning"), None)
