"""Requests beside the session: for a summary, condensed thinking, or a title.

A side call has its own settings: thinking off, or the least the model supports, whatever the
session uses (G03). It has no tools, its own answer limit, and its own log. If a model always
thinks, the limit leaves room for that (G05).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mull.agent.engine import Engine
from mull.agent.run import prepare_quickly
from mull.history.log import Log
from mull.neutral.assemble import Assembler
from mull.neutral.blocks import Value
from mull.neutral.errors import LocalError, MullError
from mull.neutral.events import Event, Failed
from mull.neutral.messages import Message, Origin, user
from mull.neutral.request import RequestOptions, WireRequest
from mull.neutral.target import Target
from mull.neutral.usage import Usage, add_usage
from mull.policy.compress.decide import Rejected, accept
from mull.policy.compress.material import shorten
from mull.policy.prepare import Prepared, too_long_text
from mull.policy.reasoning import starts_turn
from mull.policy.thinking.plan import plan_least, window_of
from mull.policy.tokens import CHARACTERS
from mull.settings.layers import Settings, Snapshot
from mull.settings.presets import preset_values

if TYPE_CHECKING:
    from mull.agent.run import Send

__all__ = [
    "MORE_ROOM",
    "Side",
    "SideText",
    "make_title",
    "output_limit",
    "side_call",
    "side_text",
    "silent",
]

THINKING_ROOM = 4096
"""Additional tokens for a model that thinks anyway."""
MORE_ROOM = 4
"""The factor by which a second attempt raises the limit."""
_TITLE_TOKENS, _TITLE_LENGTH, _TITLE_SOURCE = 64, 80, 1000
_TITLE = """\
Above is the beginning of a conversation; do not answer it. Give it a title: at most six words in
its own language, no quotation marks, no full stop. Answer with the title and nothing else."""


def silent(event: Event) -> None:
    """Reports nothing."""


@dataclass(frozen=True)
class Side:
    """The model for side calls, and how to reach it.

    `context_limit` is the user's number for its window, if it is the session's model.
    """

    engine: Engine
    target: Target
    send: Send
    context_limit: int | None = None

    @classmethod
    def to(cls, engine: Engine, model: str | None, base_url: str | None = None) -> Side:
        """A side for a given model rather than a session's.

        Raises:
            LocalError: there is no such model, or no key for it.
        """
        target = engine.target(model, base_url=base_url)
        return cls(engine, target, engine.sender(engine.way_to(target, base_url=base_url)))

    def snapshot(self, settings: Mapping[str, object] | None = None) -> Snapshot:
        """The settings of a side call: what the model needs, and nothing from the session."""
        own = {"context.limit": self.context_limit, **(settings or {})}
        return Settings().snapshot(preset=preset_values(self.target.facts), request=own)

    @property
    def window(self) -> int | None:
        """The tokens that a request to it may contain."""
        return window_of(self.target, self.snapshot())


def output_limit(side: Side, wanted: int) -> int:
    """The limit for an answer of `wanted` tokens: with room for thinking that cannot be turned
    off.
    """
    planned = plan_least(side.target, side.snapshot())
    may_think = planned.thinks or not side.target.known
    room = max(planned.plan.budget or 0, THINKING_ROOM) if may_think else 0
    caps = (side.target.facts.limit.output, (side.window or 0) // 2)
    return min([wanted + room, *(cap for cap in caps if cap)])


async def side_call(
    side: Side,
    messages: Sequence[Message],
    *,
    system: str = "",
    max_tokens: int,
    settings: Mapping[str, object] | None = None,
    say: Callable[[Event], None] = silent,
) -> Message:
    """Send a request beside the session and wait for the answer; `say` gets its events.

    Raises:
        RemoteError: the endpoint rejected the request or could not be reached.
        LocalError: the request cannot be made.
    """
    target = side.engine.learnt(side.target)
    limit = output_limit(side, max_tokens)
    options = RequestOptions(system=system, max_tokens=limit, least_thinking=True)
    counter, snapshot = side.engine.counter_for(target), side.snapshot(settings)
    prepared = prepare_quickly(Log(messages), snapshot, target, options, counter=counter)
    if prepared.too_long:
        raise LocalError(too_long_text(prepared))
    answer = _Answer(prepared, say)
    async with aclosing(side.send(prepared, sending=answer.sending)) as batches:
        async for events in batches:
            answer.take(events)
    return answer.message()


class _Answer:
    """Assembles the answer, and passes its events on."""

    def __init__(self, prepared: Prepared, say: Callable[[Event], None]) -> None:
        self._say = say
        self._asked = prepared
        self._folding = Assembler(prepared.target.origin)

    def sending(self, prepared: Prepared, wire: WireRequest) -> None:
        """A request is sent: after a rejection another one, to which nothing has arrived yet."""
        if prepared is not self._asked:
            self._asked = prepared
            self._folding = Assembler(prepared.target.origin)

    def take(self, events: Sequence[Event]) -> None:
        """Process events."""
        self._folding.add_all(events)
        for event in events:
            self._say(event)

    def message(self) -> Message:
        """The complete answer."""
        return self._folding.message()


class SideText(Value, frozen=True):
    """The text of a side call, its author, and the cost of all attempts."""

    text: str
    by: Origin | None = None
    usage: Usage | None = None


async def side_text(
    side: Side,
    request: Message,
    *,
    system: str,
    max_tokens: int,
    say: Callable[[Event], None] = silent,
    again: Callable[[str], None] | None = None,
) -> SideText | Rejected:
    """The text of a side call's answer, or why there is none. Never raises for that.

    With `again`, an answer that was empty or cut is requested once more with a higher limit, and
    `again` gets the reason (G02).
    """
    first, usage = await _try(side, request, system, max_tokens, say)
    if again is None or isinstance(first, SideText) or not first.again:
        return first
    again(first.reason)
    second, more = await _try(side, request, system, MORE_ROOM * max_tokens, say)
    if isinstance(second, Rejected):
        return second
    return replace(second, usage=add_usage(usage, more))


async def _try(
    side: Side, request: Message, system: str, limit: int, say: Callable[[Event], None]
) -> tuple[SideText | Rejected, Usage | None]:
    failure = _Failure(say)
    try:
        answer = await side_call(side, [request], system=system, max_tokens=limit, say=failure)
    except MullError as error:
        return Rejected(str(error)), None
    text = accept(answer)
    if isinstance(text, str):
        return SideText(text, answer.origin, answer.usage), answer.usage
    return replace(text, reason=failure.text or text.reason), answer.usage


class _Failure:
    """Passes events on and remembers the failure."""

    def __init__(self, say: Callable[[Event], None]) -> None:
        self._say = say
        self.text = ""

    def __call__(self, event: Event) -> None:
        if isinstance(event, Failed):
            self.text = event.text
        self._say(event)


async def make_title(side: Side, log: Log) -> str | None:
    """A short title for a conversation, or None: no title is better than a piece of thinking
    (G05).
    """
    first = next((message.text for message in log.messages if starts_turn(message)), "")
    if not first.strip():
        return None
    request = user(f"{shorten(first, _TITLE_SOURCE, CHARACTERS)}\n\n{_TITLE}")
    answer = await side_text(side, request, system="", max_tokens=_TITLE_TOKENS)
    if isinstance(answer, Rejected):
        return None
    title = answer.text.removeprefix("Title:").strip().strip("\"'“”„«»`*#").strip()
    is_title = "\n" not in title and 0 < len(title) <= _TITLE_LENGTH
    return title.removesuffix(".") if is_title else None
