"""The keys under which an answer is stored and found again when a client sends it back.

Some keys prove that an answer is the one on record: a reference in an envelope that the gateway
sealed, a carrier that only this answer has, the id of one of its calls. An answer with the same
text and readable thinking as the one on record is very probably it. So is one that directly follows
the results of the same call, whatever a client has changed before it, such as today's date.

The rest go by what was said: the content of the answer, and the messages of user and tools in its
turn. Line endings and surrounding whitespace are ignored, because clients normalise them. These
keys also cover the system prompt, and the session and user that a request names: one token may
serve many conversations that look alike. A client that names a session may change its system prompt
in between.
They do not cover earlier turns. Clients drop their oldest turns, delete others and put branches of
a conversation together: what they leave of one may be all of another, with another's answer in it.

However specific, a key may belong to several answers, such as two samples of one request. The store
then finds none of them by it (`mull.gateway.memory.SEVERAL`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from mull.dialects.registry import seals
from mull.gateway.ids import normalised
from mull.gateway.upstream_options import without_billing
from mull.neutral.asked import Asked
from mull.neutral.blocks import (
    Block,
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.neutral.messages import Message, whole_system

__all__ = [
    "NOBODY",
    "Identity",
    "Past",
    "answer_key",
    "call_key",
    "carrier_key",
    "carriers_of",
    "has_thoughts",
    "identify",
    "is_carrier",
    "is_place",
    "is_proof",
    "is_said",
    "same_calls",
    "same_text",
    "same_thoughts",
    "session_in",
    "strength",
    "thought_keys",
]

_KINDS = ("answer", "carrier", "call", "thought", "after", "turn", "session")
"""The kinds of keys, those that prove most first."""
_PROOFS = ("answer", "carrier", "call")
_SAID = ("turn", "session")
_SESSION = re.compile(r"(?:^|[-_])(?:session|conversation|thread|chat|user)[-_]?id$")
_NAMES = (
    "session_id",
    "conversation_id",
    "thread_id",
    "chat_id",
    "prompt_cache_key",
    "user",
    "user_id",
    "safety_identifier",
)
"""Fields that name a session or a user, in a request or in its metadata."""

_encode = msgspec.json.Encoder(order="sorted").encode


class Identity(NamedTuple):
    """What a request says about the conversation that it belongs to: its system prompt, and the
    session and user that it names."""

    system: str = ""
    session: str = ""


NOBODY = Identity()
"""What a request says that says nothing."""


def session_in(headers: Mapping[str, str]) -> str:
    """The session and user that the headers name; empty if they name none."""
    named = {name: value for name, value in headers.items() if _SESSION.search(name)}
    return _encode(named).decode() if named else ""


def identify(asked: Asked, session: str) -> Identity:
    """The identity of a request whose headers name this session."""
    if named := [*_named_in(asked)]:
        session = _encode([session, named]).decode()
    system, _ = whole_system(asked.system, asked.messages)
    return Identity(_plain(without_billing(system)), session)


def _named_in(asked: Asked) -> Iterator[tuple[str, str | int]]:
    """What a request calls its session and its user. Where its API has no such field, it is among
    the rest."""
    inside = asked.rest.get("metadata")
    places: Sequence[Mapping[str, object]] = (
        {"user": asked.user, "prompt_cache_key": asked.cache_key},
        asked.metadata,
        inside if isinstance(inside, dict) else {},
        asked.rest,
        {name: asked.rest.get(f"metadata.{name}") for name in _NAMES},
    )
    for place in places:
        for name in _NAMES:
            if isinstance(value := place.get(name), str | int) and value:
                yield name, value


def _kind(key: str) -> str:
    return key.partition(":")[0]


def strength(key: str) -> int:
    """How much it proves that an answer has this key, less being more."""
    return _KINDS.index(_kind(key))


def is_proof(key: str) -> bool:
    """Whether only the answer on record has this key, whatever was said."""
    return _kind(key) in _PROOFS


def is_carrier(key: str) -> bool:
    """Whether the key goes by a carrier."""
    return _kind(key) == "carrier"


def is_place(key: str) -> bool:
    """Whether the key goes by the id of the call before the answer."""
    return _kind(key) == "after"


def is_said(key: str) -> bool:
    """Whether the key goes by what was said: other answers of the same conversation may have it."""
    return _kind(key) in _SAID


def answer_key(answer_id: str) -> str:
    """The key of the answer that the gateway gave this id."""
    return f"answer:{answer_id}"


def call_key(call_id: str) -> str:
    """The key of an answer that has a call with this id."""
    return f"call:{normalised(call_id)}"


def carrier_key(carrier: str) -> str:
    """The key of an answer that has this carrier."""
    return f"carrier:{blake2b(carrier.encode(), digest_size=20).hexdigest()}"


def carriers_of(block: Block) -> tuple[str, ...]:
    """The opaque values of a block, which only its origin can read."""
    held: tuple[str | None, ...]
    if isinstance(block, ThinkingBlock):
        held = (block.signature, block.encrypted, block.redacted)
    elif isinstance(block, TextBlock | ToolCallBlock):
        if block.signature is None and block.wire is None:
            return ()
        held = (block.signature,)
    elif isinstance(block, OpaqueBlock) and block.stands_for_earlier:
        sealed = (block.data.get(name) for name in ("signature", "encrypted_content"))
        return tuple(one for one in sealed if one and isinstance(one, str))
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


def same_thoughts(one: Message, other: Message) -> bool:
    """Whether the readable thinking is equal, however it is divided into blocks."""
    return _thoughts(one.blocks) == _thoughts(other.blocks)


def has_thoughts(one: Message, other: Message) -> bool:
    """Whether the readable thinking of the other is all or a part of that of the one."""
    return _thoughts(other.blocks) in _thoughts(one.blocks)


def _thoughts(blocks: Iterable[Block]) -> str:
    thoughts = (block.thought for block in blocks if isinstance(block, ThinkingBlock))
    return "".join("".join(thoughts).split())


def thought_keys(answer: Message) -> Iterator[str]:
    """The key of an answer with this content and readable thinking, if it has any."""
    if thoughts := _thoughts(answer.blocks):
        hashed = blake2b(thoughts.encode("utf-8", "replace"), digest_size=20)
        yield f"thought:{_digest(hashed, _content(answer))}"


class Past:
    """What the keys of an answer cover of the messages before it, updated message by message."""

    def __init__(self, identity: Identity = NOBODY) -> None:
        self._who = _encode(identity)
        self._session = _encode(identity.session) if identity.session else b""
        self._turn = blake2b(digest_size=20)
        self._call = ""
        """The id of the last call of the answer before; empty if that called nothing."""
        self._has_result = False

    def add(self, message: Message) -> None:
        """Add a message. Of an answer only its last call counts, because clients may have altered
        the rest. Every message of the user begins a turn, since a summary of what was dropped may
        stand before it."""
        if message.role == "assistant":
            calls = message.tool_calls
            self._call = normalised(calls[-1].id) if calls else ""
            self._has_result = False
        elif message.role != "system":
            self._has_result |= message.role == "tool"
            if message.role == "user":
                self._turn = blake2b(digest_size=20)
            for piece in _input(message.blocks):
                self._turn.update(b"%d:" % len(piece) + piece)

    def turn(self) -> str:
        """A hash of the messages of the turn, whoever sent them."""
        return self._turn.hexdigest()

    def keys(self, answer: Message) -> Iterator[str]:
        """The keys of an answer to these messages, those that prove most first."""
        content = _content(answer)
        if self._has_result and self._call and not answer.tool_calls:
            place = blake2b(self._call.encode(), digest_size=20)
            yield f"after:{_digest(place, content)}"
        yield f"turn:{_digest(self._turn, content, self._who)}"
        if self._session:
            yield f"session:{_digest(self._turn, content, self._session)}"


def _digest(hashed: blake2b, *parts: bytes) -> str:
    whole = hashed.copy()
    for part in parts:
        whole.update(b"|%d:" % len(part))
        whole.update(part)
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
