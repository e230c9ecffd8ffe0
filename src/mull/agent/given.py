"""What callers may hand in, checked at the door: what cannot be meant is told before it is used."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

from mull.neutral.errors import LocalError
from mull.neutral.messages import Message, user

__all__ = ["Said", "as_message", "check_message", "check_numbers", "check_reach", "sayable"]

Said: TypeAlias = str | Message
"""What can be asked: text, or a message with attachments."""


def as_message(said: Said) -> Message:
    """What is said, as a message.

    Raises:
        LocalError: it is neither text nor a message, is one of a model, or is empty.
    """
    if isinstance(said, Message):
        if said.role == "assistant":
            raise LocalError("an answer cannot be asked: give it to a conversation as `messages`")
        if not said.blocks:
            raise LocalError("nothing was asked: the message is empty")
        return said
    if not isinstance(said, str):
        raise LocalError(f"a question is text or a message, not {type(said).__name__}")
    if not said.strip():
        raise LocalError("nothing was asked: the question is empty")
    return user(sayable(said))


def check_message(message: Message) -> Message:
    """The message, if it is one."""
    if not isinstance(message, Message):
        raise LocalError(f"`messages` are Message values, not {type(message).__name__}")
    return message


def check_numbers(max_tokens: object, temperature: object) -> None:
    """Refuse limits and temperatures that no endpoint can mean.

    Raises:
        LocalError: says which.
    """
    if max_tokens is not None and (type(max_tokens) is not int or max_tokens < 1):
        raise LocalError(f"max_tokens is a whole number from 1 on, not {max_tokens!r}")
    if temperature is None:
        return
    is_number = isinstance(temperature, int | float) and not isinstance(temperature, bool)
    if not is_number or not math.isfinite(temperature) or temperature < 0:  # type: ignore[arg-type,operator]
        raise LocalError(f"temperature is a number from 0 on, not {temperature!r}")


def check_reach(base_url: object, headers: object) -> None:
    """Refuse an address or headers of a wrong kind.

    Raises:
        LocalError: says which; the values are not shown, they may be keys.
    """
    if base_url is not None and not isinstance(base_url, str):
        raise LocalError(f"base_url is text, not {type(base_url).__name__}")
    given: Mapping[Any, Any] | None = headers if isinstance(headers, Mapping) else None
    if headers is not None and given is None:
        raise LocalError(f"headers are a mapping of text to text, not {type(headers).__name__}")
    if any(not isinstance(text, str) for pair in (given or {}).items() for text in pair):
        raise LocalError("headers are a mapping of text to text")


def sayable(text: str) -> str:
    """The text with a sign in the place of half characters: nothing can store or send these."""
    if not isinstance(text, str):
        raise LocalError(f"the system prompt is text, not {type(text).__name__}")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
