"""Validates what callers pass in, so that mistakes are reported before it is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from mull.neutral.errors import LocalError
from mull.neutral.messages import Message, user

__all__ = ["Said", "as_message", "check_message", "check_reach", "sayable"]

Said: TypeAlias = str | Message
"""What can be asked: text, or a message with attachments."""


def as_message(said: Said) -> Message:
    """The question as a message.

    Raises:
        LocalError: it is neither text nor a message, is an assistant message, or is empty.
    """
    if isinstance(said, Message):
        if said.role == "assistant":
            raise LocalError(
                "cannot ask an assistant message: pass it to a conversation in `messages`"
            )
        if not said.blocks:
            raise LocalError("cannot ask an empty message")
        return said
    if not isinstance(said, str):
        raise LocalError(f"a question must be text or a message, not {type(said).__name__}")
    if not said.strip():
        raise LocalError("cannot ask an empty question")
    return user(sayable(said))


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
