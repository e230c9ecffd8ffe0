"""Validates what callers pass in, so that mistakes are reported before it is used."""

from __future__ import annotations

import operator
from collections import UserString
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from enum import Enum
from numbers import Integral, Real
from typing import Any, TypeAlias, TypeGuard, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import astuple, replace

from mull.neutral.blocks import MediaBlock, TextBlock
from mull.neutral.errors import LocalError
from mull.neutral.messages import Message, user

__all__ = [
    "Said",
    "as_message",
    "check_message",
    "check_reach",
    "expressed",
    "expressed_fields",
    "is_said",
    "plain",
    "sayable",
]

AnyStruct = TypeVar("AnyStruct", bound=Struct)

Said: TypeAlias = str | Message | Sequence[str | TextBlock | MediaBlock]
"""What can be asked: text, text with attachments (`["What is this?", mull.file("a.png")]`), or a
whole message."""


def is_said(given: object) -> TypeGuard[Said]:
    """Whether it is a single question, rather than a list of messages."""
    if isinstance(given, str | Message | TextBlock | MediaBlock):
        return True
    parts = given if isinstance(given, list | tuple) else ()
    return bool(parts) and all(isinstance(one, str | TextBlock | MediaBlock) for one in parts)


def as_message(said: Said) -> Message:
    """The question as a message.

    Raises:
        LocalError: it is something else, is an assistant message, or is empty.
    """
    if isinstance(said, str):
        if not said.strip():
            raise LocalError("cannot ask an empty question")
        return user(sayable(said))
    if isinstance(said, Message):
        if said.role == "assistant":
            raise LocalError(
                "cannot ask an assistant message: pass it to a conversation in `messages`"
            )
        if not said.blocks:
            raise LocalError("cannot ask an empty message")
        for block in said.blocks:
            if isinstance(block, MediaBlock):
                _check_media(block)
        return check_message(said)
    if isinstance(said, TextBlock | MediaBlock):
        said = [said]
    given: object = said
    if not isinstance(given, Sequence) or isinstance(given, bytes | bytearray | memoryview):
        raise LocalError(
            "a question must be text, a message, or a list of texts and files, not "
            f"{type(said).__name__}"
        )
    blocks = tuple(map(_block, said))
    if all(isinstance(one, TextBlock) and not one.text.strip() for one in blocks):
        raise LocalError("cannot ask an empty question")
    return Message(role="user", blocks=blocks)


def _block(part: str | TextBlock | MediaBlock) -> TextBlock | MediaBlock:
    if isinstance(part, str):
        return TextBlock(sayable(part))
    if isinstance(part, MediaBlock):
        _check_media(part)
    elif isinstance(part, TextBlock):
        return expressed_fields(part, "a question")
    else:
        raise LocalError(
            f"a question consists of texts and files, not {type(part).__name__}: use "
            "mull.file(…) for a path or bytes"
        )
    return part


def _check_media(block: MediaBlock) -> None:
    """Reject an attachment that no request could contain."""
    given: object = block.data
    if given is not None and not isinstance(given, str):
        raise LocalError("the data of a MediaBlock is base64 text: use mull.file(…) for bytes")
    if not block.data and not block.url:
        raise LocalError("a MediaBlock needs data or a URL")


def check_message(message: Message) -> Message:
    """The message, if it is one; its texts and inputs as JSON has them.

    Raises:
        LocalError: it is none, or holds something that JSON cannot express.
    """
    if not isinstance(message, Message):
        raise LocalError(f"`messages` must contain Message values, not {type(message).__name__}")
    blocks = tuple(expressed_fields(block, "a message") for block in message.blocks)
    is_same = all(map(operator.is_, blocks, message.blocks))
    return message if is_same else replace(message, blocks=blocks)


def expressed_fields(given: AnyStruct, what: str) -> AnyStruct:
    """What a user gave as a struct, its fields as JSON has them; the same one if they are so.

    Raises:
        LocalError: JSON cannot express one of them; says which.
    """
    made = {
        name: expressed(value, what, name)
        for name, value in zip(given.__struct_fields__, astuple(given), strict=True)
        if not _is_plain(value)
    }
    return replace(given, **made) if made else given


def _is_plain(value: Any) -> bool:
    if type(value) is not dict:
        return value is None or isinstance(value, Struct) or type(value) in (str, bool, int, tuple)
    try:
        return bool(msgspec.json.encode(value))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False


def expressed(value: Any, what: str, place: str | None = None) -> Any:
    """`plain` for what a user gave.

    Raises:
        LocalError: JSON cannot express it; says where.
    """
    try:
        return plain(value, place or what)
    except TypeError as error:
        raise LocalError(f"{what} must consist of what JSON can express: {error}") from None


def plain(value: Any, place: str) -> Any:
    """The value as JSON has it: text, numbers, mappings and sequences of any class as plain ones.

    Raises:
        TypeError: JSON cannot express something in it; says where, and never the value.
    """
    try:
        return _plain(value, place)
    except RecursionError:
        raise TypeError(f"{place} is nested too deeply") from None


_SCALARS: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (UserString, str),
    (Integral, int),
    (Real, float),
)


def _plain(value: Any, place: str) -> Any:
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, Enum):
        return _plain(value.value, place)
    for kind, made in _SCALARS:
        if isinstance(value, kind):
            return made(value)
    if isinstance(value, Mapping):
        return {_key(key, place): _plain(held, f"{place}.{key}") for key, held in value.items()}
    if isinstance(value, Set):
        value = sorted(value, key=repr)
    if isinstance(value, Sequence | Iterator) and not isinstance(value, bytes | bytearray):
        return [_plain(held, f"{place}[{at}]") for at, held in enumerate(value)]
    try:
        return msgspec.to_builtins(value, str_keys=True)  # dates, UUIDs, dataclasses
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{place} is of type {type(value).__name__}") from None


def _key(key: Any, place: str) -> str:
    found = _plain(key, f"a key of {place}")
    if isinstance(found, str | int) and not isinstance(found, bool):
        return str(found)
    raise TypeError(f"a key of {place} is of type {type(key).__name__}")


def check_reach(base_url: object, headers: object) -> None:
    """Reject an address or headers of the wrong type.

    Raises:
        LocalError: says which; the values are not shown, because they may be keys.
    """
    if base_url is not None and not isinstance(base_url, str):
        raise LocalError(f"base_url must be text, not {type(base_url).__name__}")
    given: Mapping[Any, Any] | None = headers if isinstance(headers, Mapping) else None
    if headers is not None and given is None:
        raise LocalError(f"headers must map text to text, not {type(headers).__name__}")
    if any(not isinstance(text, str) for pair in (given or {}).items() for text in pair):
        raise LocalError("headers must map text to text")


def sayable(text: str) -> str:
    """The text with lone surrogates replaced: they can be neither stored nor sent."""
    if not isinstance(text, str):
        raise LocalError(f"the system prompt must be text, not {type(text).__name__}")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
