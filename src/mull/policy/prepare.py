"""The one view of a log that an encoder, the meter and the compressor look at.

Strip, include, handoff, repair, thinking plan, count: in that order, once. The count is taken
from the very blocks that are sent, so it cannot drift from them. The log is never changed.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from mull.history.log import Log
from mull.neutral.blocks import ThinkingBlock, Value
from mull.neutral.messages import Dialect, Message
from mull.neutral.request import Note, Request, RequestOptions
from mull.neutral.target import Target
from mull.neutral.thinking import WriterName
from mull.policy.logview import LogView, Memory
from mull.policy.parameters import Parameters, forced_tools_stop_thinking, settle_parameters
from mull.policy.thinking import Planned, plan_thinking, plan_without_thinking, window_of
from mull.policy.tokens import CHARACTERS, MESSAGE_OVERHEAD, Counter, SafeCounter, count_tools
from mull.policy.view import Rules, Tally, is_open_chain
from mull.settings.layers import Snapshot

__all__ = ["Prepared", "prepare"]

OFF_FORBIDS_THOUGHTS: frozenset[Dialect] = frozenset({"anthropic"})
"""Dialects that refuse thinking in the history of a request that does not think."""
NEEDS_CARRIERS_ONLY: frozenset[Dialect] = frozenset({"anthropic", "openai-responses", "gemini"})
"""Dialects that verify or decrypt reasoning, and need nothing that is only readable."""
CHAIN_STARTS_WITH_THOUGHT: frozenset[WriterName] = frozenset({"anthropic-budget"})
"""Writers whose endpoints refuse to think on in a tool chain that began without a thought."""


class Prepared(Value, frozen=True):
    """A request with nothing left to decide, and what became of the user's wishes.

    `tokens` is the effective count: what the request holds. `raw_tokens` is what the log holds.
    """

    request: Request
    target: Target
    tokens: int
    raw_tokens: int
    window: int | None
    counter: str
    exact: bool
    thinking: str
    notes: tuple[Note, ...] = ()

    @property
    def meter(self) -> str:
        """`123000/212000`; an unknown window is a question mark."""
        return f"{self.tokens}/{self.window or '?'}"


_memories: WeakKeyDictionary[Log, Memory] = WeakKeyDictionary()
_PLAIN = RequestOptions()


def prepare(
    log: Log,
    snapshot: Snapshot,
    target: Target,
    conversation: RequestOptions = _PLAIN,
    *,
    counter: Counter = CHARACTERS,
) -> Prepared:
    """Make the request that would be sent now, and count it.

    Raises:
        BudgetError: numbers that the user gave cannot hold.
    """
    memory = _memories.setdefault(log, Memory())
    asked, fixed = conversation.max_tokens, _count_fixed(conversation, counter)
    planned = plan_thinking(target, snapshot, max_tokens=asked)
    view = memory.view(log, _rules(snapshot, target, planned), counter)
    planned = plan_thinking(target, snapshot, max_tokens=asked, used=fixed + view.tokens)
    reason = _chain_lacks_thought(view.last_turn, target, planned)
    reason = reason or forced_tools_stop_thinking(conversation, target, planned)
    if reason:
        used = fixed + view.tokens
        planned = plan_without_thinking(target, snapshot, reason, max_tokens=asked, used=used)
    view = memory.view(log, _rules(snapshot, target, planned), counter)
    parameters = settle_parameters(conversation, target, planned)
    return Prepared(
        request=_request(view, snapshot, conversation, planned, parameters),
        target=target,
        tokens=fixed + view.tokens,
        raw_tokens=fixed + view.raw_tokens,
        window=window_of(target, snapshot),
        counter=counter.name,
        exact=counter.exact,
        thinking=planned.summary,
        notes=(
            *planned.notes,
            *parameters.notes,
            *_view_notes(view.tally),
            *_cache_notes(snapshot),
            *_counter_notes(counter),
        ),
    )


def _rules(snapshot: Snapshot, target: Target, planned: Planned) -> Rules:
    return Rules(
        origin=target.origin,
        include=snapshot["reasoning.includeInContext"],
        strip=snapshot["reasoning.stripFromContext"],
        handoff=snapshot["reasoning.handoff"],
        required=planned.thinks and target.compat.requires_reasoning != "no",
        forbidden=not planned.thinks and target.dialect in OFF_FORBIDS_THOUGHTS,
        carried_only=target.dialect in NEEDS_CARRIERS_ONLY,
    )


def _chain_lacks_thought(turn: tuple[Message, ...], target: Target, planned: Planned) -> str | None:
    if planned.plan.writer not in CHAIN_STARTS_WITH_THOUGHT or planned.plan.state != "on":
        return None
    if not target.facts.can_stop_thinking or not is_open_chain(turn):
        return None
    latest = next(message for message in reversed(turn) if message.role == "assistant")
    first = latest.blocks[0]
    if isinstance(first, ThinkingBlock) and (first.signature is not None or first.redacted):
        return None
    return (
        "Thinking is off for this request: its tool chain began without a thought"
        f" that {target.name} can verify"
    )


def _count_fixed(conversation: RequestOptions, counter: Counter) -> int:
    system = conversation.system
    spoken = counter.count(system) + MESSAGE_OVERHEAD if system else 0
    return spoken + count_tools(conversation.tools, counter)


def _request(
    view: LogView,
    snapshot: Snapshot,
    conversation: RequestOptions,
    planned: Planned,
    parameters: Parameters,
) -> Request:
    strips = snapshot["reasoning.stripFromContext"] != "none"
    return Request(
        messages=view.sent(),
        thinking=planned.plan,
        system=conversation.system,
        tools=conversation.tools,
        tool_choice=parameters.tool_choice,
        temperature=parameters.temperature,
        max_tokens=planned.max_tokens,
        stream=conversation.stream,
        keep_thinking=snapshot["reasoning.includeInContext"] and not strips,
        reasoning_field=snapshot["reasoning.fieldName"],
    )


_SAID_OF = (
    ("stripped", "reasoning.includeInContext", "{n} stored {thoughts} not sent, as set", False),
    (
        "required",
        "reasoning.includeInContext",
        "{n} {thoughts} of the open tool chain sent all the same: the endpoint needs them;"
        " once the chain is closed they go, and the prompt cache with them",
        False,
    ),
    ("foreign", "reasoning.handoff", "{n} {thoughts} of another model left out", False),
    ("opaque", "history", "{n} {pieces} that only another model understands left out", False),
    ("handed_over", "reasoning.handoff", "{n} {thoughts} of another model sent as text", False),
    (
        "forbidden",
        "reasoning.enabled",
        "{n} {thoughts} left out: the endpoint takes none while thinking is off",
        False,
    ),
    ("unfinished", "history", "{n} unfinished {answers} not sent", False),
    ("empty", "history", "{n} {answers} of thinking alone not sent", False),
    ("closed_calls", "history", "{n} tool {calls} without a result closed", True),
    ("orphans", "history", "{n} tool {results} without a call not sent", True),
)


_NOUNS = ("thoughts", "pieces", "answers", "calls", "results")
_MANY = {noun: noun for noun in _NOUNS}
_ONE = {noun: noun.removesuffix("s") for noun in _NOUNS}


def _view_notes(tally: Tally) -> list[Note]:
    notes = []
    for field, about, text, warning in _SAID_OF:
        if n := getattr(tally, field):
            said = text.format(n=n, **(_ONE if n == 1 else _MANY))
            notes.append(Note(about=about, text=said, warning=warning))
    return notes


def _cache_notes(snapshot: Snapshot) -> list[Note]:
    keeps_last = snapshot["reasoning.stripFromContext"] == "allButLast"
    if not keeps_last or not snapshot["reasoning.includeInContext"]:
        return []
    text = "every turn takes the thinking of the one before out again: prompt caches end there"
    return [Note(about="reasoning.stripFromContext", text=text)]


def _counter_notes(counter: Counter) -> list[Note]:
    warning = counter.take_warning() if isinstance(counter, SafeCounter) else None
    return [Note(about="tokens", text=warning, warning=True)] if warning else []
