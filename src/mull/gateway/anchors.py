"""What an answer is found by when it comes back: the keys under which the store keeps it.

An answer with calls has their ids. One without has what was said before it and what it said: texts
are compared without regard to line ends and outer blanks, because clients normalise them. As some
clients move or renew what they add to the words of their user, such as today's date, it has its
place after the last call as well.
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

__all__ = ["Past", "call_key", "carrier_key", "carriers_of", "same_calls", "same_text"]

_encode = msgspec.json.Encoder(order="sorted").encode


def call_key(call_id: str) -> str:
    """The key of an answer by the id of one of its calls."""
    return f"call:{normalised(call_id)}"


def carrier_key(carrier: str) -> str:
    """The key of an answer by a carrier that its provider gave it."""
    return f"carrier:{blake2b(carrier.encode(), digest_size=20).hexdigest()}"


def carriers_of(block: Block) -> tuple[str, ...]:
    """What of a block only its origin can read."""
    if isinstance(block, ThinkingBlock):
        held = (block.signature, block.encrypted, block.redacted)
    elif isinstance(block, TextBlock | ToolCallBlock):
        held = (block.signature, None, None)
    else:
        return ()
    plain = tuple(one for one in held if one)
    return plain if block.wire is None else (*plain, *(seal for _, seal in seals(block)))


def same_text(one: Message, other: Message) -> bool:
    """Whether both say the same, as a whole or piece by piece, outer blanks aside."""
    return _plain(one.text) == _plain(other.text) or _pieces(one) == _pieces(other)


def _pieces(message: Message) -> list[str]:
    said = (_plain(block.text) for block in message.blocks if isinstance(block, TextBlock))
    return [text for text in said if text]


def same_calls(one: Message, other: Message) -> bool:
    """Whether both call the same, in the same order, however the arguments are spaced."""
    return [(c.name, c.input) for c in one.tool_calls] == [
        (c.name, c.input) for c in other.tool_calls
    ]


class Past:
    """What came before an answer, folded message by message."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=20)
        self._call = ""
        self._answers = 0
        """How many there were since that call; those in a row are one."""
        self._is_row = False

    def add(self, message: Message) -> None:
        """Take in a message; of answers only their calls, because answers are what is looked
        for."""
        if message.role in ("user", "tool"):
            for piece in _given(message.blocks):
                self._hash.update(b"%d:" % len(piece))
                self._hash.update(piece)
        elif calls := message.tool_calls:
            self._call, self._answers = normalised(calls[-1].id), 1
        elif not self._is_row:
            self._answers += message.role == "assistant"
        self._is_row = message.role == "assistant"

    def key(self, answer: Message) -> str:
        """The key of an answer that follows, by all that was said before it."""
        hashed = self._hash.copy()
        hashed.update(_said(answer))
        return f"said:{hashed.hexdigest()}"

    def keys(self, answer: Message) -> Iterator[str]:
        """All keys of an answer that follows, best first."""
        yield self.key(answer)
        if self._call and not answer.tool_calls:
            place = f"{self._call}:{self._answers}".encode()
            yield f"after:{blake2b(place + _said(answer), digest_size=20).hexdigest()}"


def _said(answer: Message) -> bytes:
    calls = [(call.name, call.input) for call in answer.tool_calls]
    said = "".join(answer.text.split())  # some clients trim each of several pieces
    return b"|" + said.encode("utf-8", "replace") + _encode(calls)


def _given(blocks: Sequence[Block]) -> Iterator[bytes]:
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
