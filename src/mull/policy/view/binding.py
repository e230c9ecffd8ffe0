"""Thinking that is valid only after the exact conversation it was produced in.

Some models sign thinking together with the system prompt, the tools and all messages before it, and
reject it after anything else. For each answer of such a model, the log keeps a hash of its context.
Thinking is sent back if the request starts with the same; otherwise it is left out, and then it is
missing for all later blocks too. So each hash follows from the one before it, and a conversation
that only grows costs only what is new.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from mull.neutral.blocks import ThinkingBlock
from mull.neutral.messages import Message
from mull.neutral.request import Note, RequestOptions

if TYPE_CHECKING:
    from mull.policy.prepare import Prepared

__all__ = ["BindingChange", "Bound", "binding_warning", "hash_opening"]

BindingChange: TypeAlias = Literal["compression", "system", "tools", "strip"]
"""User actions that change what precedes thinking."""

_WORDS: Mapping[BindingChange, str] = {
    "compression": "after compression",
    "system": "with another system prompt",
    "tools": "with other tools",
    "strip": "under another strip policy",
}
_encode = msgspec.json.Encoder(order="deterministic").encode


class _Step(Struct, frozen=True):
    """One message: as in the view, as sent, and the hash of everything up to its end.

    `fits` says whether its thinking was produced after what precedes it; None is unknown.
    """

    viewed: Message
    sent: Message
    prefix: str
    fits: bool | None = None


class Bound:
    """The messages of a view without thinking that is no longer valid.

    `prefixes` are the log's hashes by the `id` of the blocks they apply to.
    """

    def __init__(self, opening: str, prefixes: Mapping[int, str]) -> None:
        self.opening = opening
        self._prefixes = prefixes
        self._steps: list[_Step] = []

    @property
    def prefix(self) -> str:
        """The hash of everything that is sent: what the next answer is bound to."""
        return self._steps[-1].prefix if self._steps else self.opening

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages as they are sent."""
        return tuple(step.sent for step in self._steps)

    def left_out(self) -> Iterator[ThinkingBlock]:
        """The thinking that is not sent."""
        for step in self._steps:
            if step.fits is False:
                yield from filter(_is_bound, step.viewed.thinking)

    def follow(self, messages: Sequence[Message]) -> None:
        """Update to these messages; only changed ones are processed."""
        same = 0
        for step, message in zip(self._steps, messages, strict=False):
            if step.viewed is not message:
                break
            same += 1
        del self._steps[same:]
        for message in islice(messages, same, None):
            self._steps.append(self._step(message))

    def notes(self) -> list[Note]:
        """How much was left out. It is news until later thinking was produced without it."""
        number = sum(1 for _ in self.left_out())
        if not number:
            return []
        latest = next(step.fits for step in reversed(self._steps) if step.fits is not None)
        text = f"{_thoughts(number)} left out: bound to a conversation that has changed since"
        return [Note("history", text, warning=not latest, kind="bound")]

    def _step(self, message: Message) -> _Step:
        before = self.prefix
        held = [self._prefixes.get(id(block)) for block in message.thinking if _is_bound(block)]
        known = {prefix for prefix in held if prefix is not None}
        fits = known == {before} if known else None
        sent = message if fits is not False else _without_bound(message)
        return _Step(message, sent, _hash([before, sent.role, sent.blocks]), fits)


def hash_opening(conversation: RequestOptions) -> str:
    """The hash of what precedes all messages."""
    return _hash([conversation.system, conversation.tools])


def binding_warning(prepared: Prepared, change: BindingChange) -> str | None:
    """The warning before such a change: thinking that the model will not get back."""
    if not prepared.target.compat.binds_thinking:
        return None
    thoughts = (block for message in prepared.request.messages for block in message.thinking)
    number = sum(map(_is_bound, thoughts))
    if not number:
        return None
    return (
        f"{prepared.target.name} accepts thinking back only after the same messages as "
        f"before: {_thoughts(number)} may be left out {_WORDS[change]}"
    )


def _is_bound(block: ThinkingBlock) -> bool:
    return block.has_carrier


def _without_bound(message: Message) -> Message:
    kept = (b for b in message.blocks if not (isinstance(b, ThinkingBlock) and _is_bound(b)))
    return msgspec.structs.replace(message, blocks=tuple(kept))


def _thoughts(number: int) -> str:
    return f"{number} thought{'' if number == 1 else 's'}"


def _hash(told: Any) -> str:
    # sessions contain hashes from when empty thinking was not written; no text and no dictionary,
    # whose keys are sorted, can look like one
    data = _encode(told).replace(b'"type":"thinking","thought":""', b'"type":"thinking"')
    from hashlib import blake2b

    return blake2b(data, digest_size=16).hexdigest()
