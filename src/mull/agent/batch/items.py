"""What a batch is given: questions in any form, each with an identity that outlives the process.

An item is known again by the id that it was given, or by its content: its messages and its own
options. The options of the whole batch are described once, so that a change of them is noticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import Struct

from mull.agent.given import sayable
from mull.agent.options import TurnParameters
from mull.neutral.errors import LocalError
from mull.neutral.messages import Message
from mull.settings.words import join_or

if TYPE_CHECKING:
    from mull.agent.complete import History

__all__ = ["BatchItem", "Item", "described", "read_items"]

BatchItem: TypeAlias = "str | Message | Iterable[Message | Mapping[str, Any]] | Mapping[str, Any]"
"""A question, a history, or a dictionary: `prompt` or `messages`, and any of `id`, `model`,
`system`, `tools`, `settings` and the parameters of a request. How endpoints are reached is said for
the whole batch."""

_OWN = frozenset({"id", "prompt", "messages", "model"})
_OPTIONS = TurnParameters.__optional_keys__ | {"system", "tools", "settings"}
_SHAPING = _OPTIONS - {"timeout", "extra_headers", "extra_query"}
"""Options that answers depend on; the others say how an endpoint is reached."""
_SHOWN = 80
_ID = 20


class Item(Struct, frozen=True):
    """One question of a batch."""

    index: int
    """Its position among the items, from 0."""
    id: str
    """The caller's id, or the beginning of `hash`; unique within the batch."""
    hash: str
    """A hash of its content, by which its answer is found again in a file."""
    given: Any
    """What the caller passed, unchanged."""
    messages: History
    """What is asked: a text, a message or a list of messages."""
    model: str | None = None
    """The model to ask; None is that of the batch."""
    options: dict[str, Any] = {}
    """The item's own options, which go before those of the batch."""
    error: LocalError | None = None
    """Why it cannot be asked; None if it can."""


def read_items(given: Iterable[Any]) -> Iterator[Item]:
    """The items as they are asked for; one that cannot be read says why.

    Raises:
        LocalError: the iterable that the items come from failed; says after how many.
    """
    seen: dict[str, int] = {}
    for index, one in enumerate(_each(given)):
        try:
            item = _read(index, one)
        except LocalError as error:
            item = Item(index, f"#{index}", "", one, "", error=error)
        count = seen[item.id] = seen.get(item.id, 0) + 1
        if count > 1:
            if item.id != item.hash[:_ID]:
                twice = LocalError(f"two items have the id {item.id!r}: make the ids unique")
                item = Item(index, f"#{index}", "", one, "", error=twice)
            else:
                item = msgspec.structs.replace(item, id=f"{item.id}-{count}")
        yield item


def _each(given: Iterable[Any]) -> Iterator[Any]:
    """What the caller's iterable gives; its own errors say where they happened."""
    index = 0
    try:
        for index, one in enumerate(given, 1):  # noqa: B007 - an error names the next
            yield one
    except Exception as error:
        what = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise LocalError(
            f"item {index} of the batch could not be read ({what}): the items before it are"
            " answered; fix it and run the batch again, with the same file if it has one"
        ) from error


def _read(index: int, given: Any) -> Item:
    if not isinstance(given, Mapping):
        name = _hash({"messages": _listed(given)})
        return Item(index, name[:_ID], name, given, given)
    unknown = given.keys() - _OPTIONS - _OWN
    if unknown:
        raise LocalError(
            f"item {index} has {join_or(sorted(map(repr, unknown)))}, which an item cannot have: it"
            " takes prompt or messages, id, model, and what shapes a request"
        )
    if ("prompt" in given) == ("messages" in given):
        raise LocalError(f"item {index} needs either a prompt or messages")
    messages = given["prompt"] if "prompt" in given else given["messages"]
    options = {name: value for name, value in given.items() if name not in _OWN}
    content = {"messages": _listed(messages), "model": given.get("model")}
    name = _hash({**content, "options": described(options)})
    return Item(index, _id(index, given, name), name, given, messages, given.get("model"), options)


def _listed(messages: Any) -> Any:
    """The messages as they are hashed; a question is the same as a list of it."""
    if isinstance(messages, str):
        return [sayable(messages)]
    if isinstance(messages, Message):
        return [messages]
    if isinstance(messages, bytes) or not isinstance(messages, list | tuple):
        raise LocalError(
            f"an item must be text, a message, a list of messages or a dictionary, not"
            f" {type(messages).__name__}"
        )
    return list(messages)


def _id(index: int, given: Mapping[str, Any], name: str) -> str:
    chosen = given.get("id")
    if chosen is None:
        return name[:_ID]
    if isinstance(chosen, bool) or not isinstance(chosen, str | int) or chosen == "":
        raise LocalError(f"the id of item {index} must be text or a number, not {chosen!r}")
    return str(chosen)


def described(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that answers depend on, as a file can hold them: what is long, or may be secret,
    as a hash.

    Raises:
        LocalError: a tool or a schema is not one.
    """
    return {
        name: _shown(name, _plain(name, options[name]))
        for name in sorted(_SHAPING & options.keys())
        if options[name] is not None
    }


def _plain(name: str, value: Any) -> Any:
    if name == "tools":
        from mull.agent.complete import described_tools

        return described_tools(value)
    if name == "schema":
        from mull.agent.structured import shape_of

        return shape_of(value).format.schema
    return value


def _shown(name: str, value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str) and name != "system" and len(value) <= _SHOWN:
        return value
    return _hash(value)[:_ID]


def _hash(value: Any) -> str:
    try:
        return sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise LocalError(f"an item of the batch cannot be written as JSON: {error}") from None
