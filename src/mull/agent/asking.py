"""One question, one answer: for code that needs no conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from mull.agent.given import Said
from mull.agent.library import Conversation
from mull.agent.options import ConversationOptions

if TYPE_CHECKING:
    from mull.agent.results import Result
    from mull.agent.streams import AsyncStream, Stream

__all__ = ["ask", "ask_async", "stream", "stream_async"]


def ask(prompt: Said, model: str | None = None, **more: Unpack[ConversationOptions]) -> Result:
    """Ask once and wait for the answer. Takes what `Conversation` takes."""
    return _single(model, more).ask(prompt)


async def ask_async(
    prompt: Said, model: str | None = None, **more: Unpack[ConversationOptions]
) -> Result:
    """`ask` on the caller's event loop."""
    return await _single(model, more).ask_async(prompt)


def stream(prompt: Said, model: str | None = None, **more: Unpack[ConversationOptions]) -> Stream:
    """Ask once and get the answer's events as they arrive. Takes what `Conversation` takes."""
    return _single(model, more).stream(prompt)


def stream_async(
    prompt: Said, model: str | None = None, **more: Unpack[ConversationOptions]
) -> AsyncStream:
    """`stream` on the caller's event loop."""
    return _single(model, more).stream_async(prompt)


def _single(model: str | None, options: ConversationOptions) -> Conversation:
    """A conversation that is closed at the end of its turn."""
    talk = Conversation(model, **options)
    talk._is_single = True
    return talk
