"""The keys under which an answer is stored and found again when a client sends it back.

An answer with tool calls is found by their ids. Any answer is also found by its content and the
user's and tools' messages before it. Line endings and surrounding whitespace are ignored, because
clients normalise them.
Some clients move or update what they add to their user's messages, such as today's date. For
them, an answer without calls is also found by its content and its position after the last call.
Others drop their oldest turns. So any answer is also found by its content and the messages of its
own turn, with or without those of the turn before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b

import msgspec

from mull.dialects.registry import seals
from mull.gateway.ids import normalised
from mull.neutral.blocks import (
    Block,
    MediaBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.neutral.messages import Message

__all__ = [
    "Past",
    "call_key",
    "carrier_key",
    "carriers_of",
    "is_of_turn",
    "same_calls",
    "same_text",
]

_OF_TURN = "turn:"

_encode = msgspec.json.Encoder(order="sorted").encode


def call_key(call_id: str) -> str:
    """The key of an answer that has a call with this id."""
    return f"call:{normalised(call_id)}"


def carrier_key(carrier: str) -> str:
    """The key of an answer that has this carrier."""
    return f"carrier:{blake2b(carrier.encode(), digest_size=20).hexdigest()}"


def carriers_of(block: Block) -> tuple[str, ...]:
    """The opaque values of a block, which only its origin can read."""
    if isinstance(block, ThinkingBlock):
        held = (block.signature, block.encrypted, block.redacted)
    elif isinstance(block, TextBlock | ToolCallBlock):
        if block.signature is None and block.wire is None:
            return ()
        held = (block.signature, None, None)
    else:
        return ()
    plain = tuple(one for one in held if one)
    return plain if block.wire is None else (*plain, *(seal for _, seal in seals(block)))


def same_text(one: Message, other: Message) -> bool:
    """Whether the texts are equal, joined or block by block, ignoring surrounding whitespace."""
    return _plain(one.text) == _plain(other.text) or _pieces(one) == _pieces(other)


def _pieces(message: Message) -> list[str]:
    texts = (_plain(block.text) for block in message.blocks if isinstance(block, TextBlock))
    return [text for text in texts if text]


def same_calls(one: Message, other: Message) -> bool:
    """Whether both make the same calls in the same order, however the arguments are formatted."""
    return [(c.name, c.input) for c in one.tool_calls] == [
        (c.name, c.input) for c in other.tool_calls
    ]


class Past:
    """A digest of the messages before an answer, updated message by message."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=20)
        self._call = ""
        self._answers = 0
        """The number of answers since that call; consecutive ones count once."""
        self._is_row = False
        self._turn: blake2b | None = None
        """The messages of the user and the tools since the last question, and of the turn before
        it."""
        self._turn_before = b""

    def add(self, message: Message) -> None:
        """Add a message. Of an answer only its last call counts, because clients may have altered
        the rest."""
        if message.role in ("user", "tool"):
            turn = self._turn_of(message)
            for piece in _input(message.blocks):
                sized = b"%d:" % len(piece)
                self._hash.update(sized + piece)
                turn.update(sized + piece)
        elif calls := message.tool_calls:
            self._call, self._answers = normalised(calls[-1].id), 1
        elif not self._is_row:
            self._answers += message.role == "assistant"
        self._is_row = message.role == "assistant"

    def _turn_of(self, message: Message) -> blake2b:
        """The digest of the turn that the message belongs to; every user message starts anew, since
        a summary of what was dropped may stand before it."""
        if self._turn is None or message.role == "user":
            if self._turn is not None and self._is_row:
                self._turn_before = self._turn.digest()
            self._turn = blake2b(digest_size=20)
        return self._turn

    def key(self, answer: Message) -> str:
        """The key of an answer to these messages."""
        return f"said:{_digest(self._hash, _content(answer))}"

    def keys(self, answer: Message) -> Iterator[str]:
        """All keys of an answer to these messages, most specific first."""
        yield self.key(answer)
        if self._call and not answer.tool_calls:
            place = f"{self._call}:{self._answers}".encode()
            yield f"after:{blake2b(place + _content(answer), digest_size=20).hexdigest()}"
        if self._turn is not None:
            content = _content(answer)
            if self._turn_before:
                yield f"{_OF_TURN}{_digest(self._turn, content + self._turn_before)}"
            yield f"{_OF_TURN}{_digest(self._turn, content)}"


def is_of_turn(key: str) -> bool:
    """Whether the key is made from the last turns alone, so that other answers may have it too."""
    return key.startswith(_OF_TURN)


def _digest(hashed: blake2b, content: bytes) -> str:
    whole = hashed.copy()
    whole.update(content)
    return whole.hexdigest()


def _content(answer: Message) -> bytes:
    calls = [(call.name, call.input) for call in answer.tool_calls]
    text = "".join(answer.text.split())  # some clients trim each of several blocks
    return b"|" + text.encode("utf-8", "replace") + _encode(calls)


def _input(blocks: Sequence[Block]) -> Iterator[bytes]:
    for block in blocks:
        match block:
            case TextBlock():
                yield _plain(block.text).encode("utf-8", "replace")
            case ToolResultBlock():
                yield _plain(block.output).encode("utf-8", "replace")
            case MediaBlock():
                yield (block.data or block.url or "").encode()


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").strip()
