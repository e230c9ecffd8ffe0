"""One turn of the model, drawn as it arrives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mull.neutral.events import Event, StateChanged, Steered, TextDelta, ThinkingDelta

if TYPE_CHECKING:
    from mull.agent.streams import AsyncStream
    from mull.agent.turn import State
    from mull.tui.screen.painter import Painter

__all__ = ["draw_turn", "in_pieces", "is_answered", "show_working"]

TICK = 0.25
"""Seconds between updates of the clock while the model works."""
_PIECE = 16_384
"""Characters of an answer that are drawn before keys are processed again."""


async def draw_turn(stream: AsyncStream, painter: Painter, steered: Callable[[], None]) -> None:
    """Draw the turn to its end; `steered` is called when a queued message was sent with it."""
    painter.begin()
    clock = asyncio.get_running_loop().create_task(_tick(painter, stream))
    try:
        async for event in stream:
            for piece in in_pieces(event):
                painter.event(piece)
                if piece is not event:
                    await asyncio.sleep(0)  # keys are processed between the pieces
            if isinstance(event, Steered):
                steered()
    finally:
        clock.cancel()
        await stream.aclose()


@asynccontextmanager
async def show_working(painter: Painter, state: State) -> AsyncIterator[None]:
    """Show progress as during a turn."""
    painter.begin()
    painter.event(StateChanged(state, 1, 0))
    clock = asyncio.get_running_loop().create_task(_tick(painter))
    try:
        yield
    finally:
        clock.cancel()
        painter.idle()


async def _tick(painter: Painter, stream: AsyncStream | None = None) -> None:
    while True:
        await asyncio.sleep(TICK)
        painter.tick(stream.silence if stream else 0.0)


def is_answered(stream: AsyncStream) -> bool:
    """Whether the message got any response."""
    return any(message.blocks for message in stream.result.messages)


def in_pieces(event: Event) -> Iterator[Event]:
    """The event, or parts of it if its text is so long that drawing it takes a while."""
    if not isinstance(event, TextDelta | ThinkingDelta) or len(event.text) <= _PIECE:
        yield event
        return
    for at in range(0, len(event.text), _PIECE):
        yield replace(event, text=event.text[at : at + _PIECE])
