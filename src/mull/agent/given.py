"""Validates what callers pass in, so that mistakes are reported before it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard

from mull.neutral.blocks import MediaBlock, TextBlock
from mull.neutral.errors import LocalError
from mull.neutral.messages import Message, user

__all__ = ["Said", "as_message", "check_message", "check_reach", "is_said", "sayable"]

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
        return said
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
    elif not isinstance(part, TextBlock):
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
    """The message, if it is one."""
    if not isinstance(message, Message):
        raise LocalError(f"`messages` must contain Message values, not {type(message).__name__}")
    return message


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
