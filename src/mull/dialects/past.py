"""An answer in a foreign history, read by the same interpreter as live answers.

So it has the blocks that it would have had if mull itself had requested it: reasoning in whatever
field, signatures, calls, order. What the interpreter cannot read is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from mull.neutral.assemble import assemble
from mull.neutral.blocks import Block, OpaqueBlock, TextBlock, ThinkingBlock, ToolCallBlock
from mull.neutral.errors import ConfigError
from mull.neutral.events import BlockEnded, Event, Failed
from mull.neutral.messages import Dialect, Message
from mull.neutral.recent import Recent
from mull.neutral.target import Compat, ModelFacts, Target

if TYPE_CHECKING:
    from mull.dialects.decoder import Interpreter

__all__ = ["AnswerReader"]

_encode = msgspec.msgpack.Encoder().encode
_READ: Recent[tuple[Dialect, bytes], Message] = Recent(32 << 20)
"""A client sends all of a conversation each time, so most of its answers have been read before."""
_BLOCK_SIZE = 400
"""Approximate bytes that a block takes in addition to its content."""


class AnswerReader:
    """Reads answers of one dialect; with `written_by` they carry its origin.

    Their author may speak another dialect, as long as they contain nothing that only an endpoint of
    this one understands.
    """

    def __init__(
        self,
        dialect: Dialect,
        interpreter: Callable[[Target], Interpreter],
        written_by: Target | None,
    ) -> None:
        self._interpreter = interpreter
        self._target = _somebody(dialect)
        self._writer = written_by
        if written_by is not None and written_by.dialect == dialect:
            self._target = written_by

    def read(self, response: dict[str, Any], where: str) -> Message:
        """The message in a response that contains it.

        Raises:
            ConfigError: it cannot be read; `where` says which it is.
        """
        key = None
        if self._writer is None:
            key = self._target.dialect, _content_key(response)
            if (known := _READ.get(key)) is not None:
                return known
        message = self._message(self._interpreter(self._target).whole(response), where)
        if key is not None:
            # the content is in the key and the message, and a call has its arguments as text too
            _READ.put(key, message, 3 * len(key[1]) + _BLOCK_SIZE * (len(message.blocks) or 1))
        return message

    def read_pieces(self, pieces: Iterable[dict[str, Any]], where: str) -> Message:
        """The message in responses that contain one block each; adjacent ones are not joined.

        Raises:
            ConfigError: it cannot be read; `where` says which it is.
        """
        interpreter = self._interpreter(self._target)
        events: list[Event] = []
        for piece in pieces:
            events += [*interpreter.take(None, piece), BlockEnded()]
        return self._message([*events, *interpreter.end(True)], where)

    def _marked(self, block: Block) -> Block:
        """No origin says whose an unknown block is, so the block itself does."""
        if isinstance(block, OpaqueBlock):
            return replace(block, dialect=self._target.dialect)
        return block

    def _message(self, events: list[Event], where: str) -> Message:
        for event in events:
            if isinstance(event, Failed):
                raise ConfigError(f"{where} cannot be read: {event.text}")
        message = assemble(events, self._writer.origin if self._writer else None)
        if self._writer is None:
            message = replace(message, blocks=tuple(map(self._marked, message.blocks)))
        if self._writer and self._writer is not self._target and _is_bound(message):
            raise ConfigError(
                f"{where} contains data that only {self._target.dialect} endpoints "
                f"understand, but {self._writer.name} speaks {self._writer.dialect}: "
                "give the model that wrote it, or none"
            )
        return message


def _content_key(response: dict[str, Any]) -> bytes:
    """The response as bytes, equal where the response is.

    msgpack is four times as fast as JSON, but its numbers end at 64 bits; a client's need not.
    """
    try:
        return _encode(response)
    except OverflowError:
        return msgspec.json.encode(response)


@cache
def _somebody(dialect: Dialect) -> Target:
    """A target of which nothing is known but its dialect."""
    return Target(
        provider="",
        provider_name="",
        model="",
        dialect=dialect,
        facts=ModelFacts(),
        compat=Compat(),
    )


def _is_bound(message: Message) -> bool:
    """Whether something in it is worthless, or rejected, at another endpoint."""
    for block in message.blocks:
        match block:
            case ThinkingBlock(has_carrier=True) | OpaqueBlock():
                return True
            case TextBlock() | ToolCallBlock() if block.signature or block.wire:
                return True
    return False
