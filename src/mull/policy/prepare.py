"""The single view of a log that encoders, the context meter and compression share.

Its steps run once, in this order: strip, include, handoff, repair, thinking plan, count. Tokens are
counted in the very blocks that are sent, so count and request cannot differ. The log is never
changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mull.dialects.extras import extra_names
from mull.dialects.traits import TRAITS
from mull.history.log import Log
from mull.neutral.blocks import Value
from mull.neutral.messages import Message, Origin
from mull.neutral.parameters import said_in
from mull.neutral.recent import RecentOf
from mull.neutral.request import NamedTool, Note, Request, RequestOptions
from mull.neutral.target import Target
from mull.neutral.thinking import WRITERS
from mull.policy.answer_format import ask_in_format, format_notes
from mull.policy.heal.amendment import UNAMENDED, Amendment, amend_messages, amend_options
from mull.policy.parts import Parts, count_parts
from mull.policy.reported import corrected, last_report
from mull.policy.thinking.budget import ANSWER_ROOM, is_full, least_answer
from mull.policy.thinking.parameters import (
    forced_tools_stop_thinking,
    foreign_notes,
    settle_parameters,
    without_foreign,
)
from mull.policy.thinking.plan import (
    DEFAULT_BUDGET,
    Planned,
    plan_least,
    plan_thinking,
    window_of,
    wish_of,
)
from mull.policy.tokens import (
    CHARACTERS,
    MESSAGE_OVERHEAD,
    Counter,
    SafeCounter,
    count_block,
    count_tools,
)
from mull.policy.view.calls import names_on_wire, wire_name
from mull.policy.view.intake import intake_of
from mull.policy.view.log import LogView, Memory
from mull.policy.view.media import check_question
from mull.policy.view.notes import view_notes
from mull.policy.view.turn import Rules, chain_lacks_thought, check_beginning, is_open_chain
from mull.settings.layers import Snapshot
from mull.settings.presets import includes_sealed, preset_values

__all__ = ["LongThought", "Prepared", "prepare", "too_long_text", "uncondensed"]

UNSURE, UNSURE_BY_CHARACTERS = 0.8, 0.5
"""The fraction of an unconfirmed estimate that is trusted; the second is for estimates from
characters alone."""


class Made(Struct, frozen=True):
    """The inputs that a request was prepared from, so that it can be prepared again when more is
    known about the target."""

    log: Log
    snapshot: Snapshot
    options: RequestOptions
    counter: Counter
    home: Origin
    amendment: Amendment = UNAMENDED

    @property
    def field(self) -> str | None:
        """The field chosen by the user for sending reasoning back."""
        chosen: str | None = self.snapshot["reasoning.fieldName"]
        return None if "reasoning_field" in self.amendment.without else chosen


class Prepared(Value, frozen=True):
    """A request with nothing left to decide, and notes about how the user's settings were applied.
    All counts are tokens.
    """

    made: Made
    """What it was prepared from, so that it can be prepared again."""
    request: Request
    """What is to be encoded."""
    target: Target
    """Where it goes."""
    parts: Parts
    """mull's own count of what the request holds, by purpose."""
    stored: Parts
    """What it would hold if nothing in the log were left out."""
    estimate: int
    """The best estimate of what it holds: mull's count, corrected by the provider's count of the
    last request.
    """
    characters: int
    """What it holds as estimated from characters alone."""
    window: int | None
    """The context window; None if unknown."""
    usable: int | None
    """The window without the room that the answer needs; None if unknown."""
    counter: str
    """The name of the counter that counted `parts`."""
    exact: bool
    """Whether that counter uses the model's own vocabulary."""
    thinking: str
    """What becomes of thinking, in words for the user, such as `on` or `10,000 tokens`."""
    notes: tuple[Note, ...] = ()
    """What was changed or left out, and why."""
    prefix: str | None = None
    """A hash of what the answer's thinking will be bound to, for models that bind it to the prompt;
    None for others.
    """
    reported: int | None = None
    """The input that the provider counted for the last request; None if it did not report it."""

    @property
    def tokens(self) -> int:
        """The tokens in the request by our own count; `estimate` is the one that is shown."""
        return self.parts.total

    @property
    def raw_tokens(self) -> int:
        """The tokens it would have if nothing in the log were left out."""
        return self.stored.total

    @property
    def meter(self) -> str:
        """Estimate and window, as in `123000/212000`; an unknown window is a question mark."""
        return f"{self.estimate}/{self.window or '?'}"

    @property
    def too_long(self) -> bool:
        """Whether it is known not to fit. An unconfirmed estimate may be too high, and a report of
        more tokens than the window, for a request that was answered, confirms nothing."""
        if self.window is None:
            return False
        refused, rough = self.made.amendment.counted, self.counter == CHARACTERS.name
        if refused or (self.reported is not None and self.reported <= self.window):
            held = self.estimate
        else:
            sure = 1.0 if self.exact else UNSURE_BY_CHARACTERS if rough else UNSURE
            held = round(self.tokens * sure)
        return held + least_answer(self.window) // 2 > self.window

    def anew(self, target: Target, amendment: Amendment = UNAMENDED) -> Prepared:
        """The request from the same log and options, for a target about which more is known now,
        and with an amendment for this request only.

        Raises:
            BudgetError: the user's budget or limits are impossible for this target.
        """
        made = self.made
        return prepare(
            made.log,
            made.snapshot.with_preset(preset_values(target.facts)),
            target,
            made.options,
            counter=made.counter,
            home=made.home,
            amendment=amendment,
        )


def too_long_text(prepared: Prepared) -> str:
    """Why a request that is too long is not sent, and what to do about it."""
    parts, window = prepared.parts, prepared.window or 0
    last = prepared.request.messages[-1:]
    own = count_parts(last, lambda block: count_block(block, CHARACTERS)).total
    if parts.tools + parts.system > window // 2:
        advice = "offer fewer tools, shorten the instructions"
    elif last and last[0].role == "user" and own > window // 2:
        advice = "send a shorter message or fewer attachments"
    else:
        advice = "compress the conversation, start a new one"
    return (
        f"the request holds about {prepared.estimate:,} tokens, and {prepared.target.name} can read"
        f" {window:,}: it was not sent.\nEither {advice}, or choose a model with a larger window"
        " (context.limit says how large it is, where that is wrong)."
    )


_memories: WeakKeyDictionary[Log, Memory] = WeakKeyDictionary()
_PLAIN = RequestOptions()
_MOST_RULES = 200


def prepare(
    log: Log,
    snapshot: Snapshot,
    target: Target,
    conversation: RequestOptions = _PLAIN,
    *,
    counter: Counter = CHARACTERS,
    home: Origin | None = None,
    amendment: Amendment = UNAMENDED,
) -> Prepared:
    """Make the request that would be sent now, and count it.

    `home` is the origin of messages that have none; by default, the target. `amendment` holds
    changes for this request only, made after a rejection.

    Raises:
        BudgetError: the user's budget or limits are impossible for this target.
        LocalError: the question contains nothing that the model accepts, a tool is forced that
            cannot be, or the model cannot read what stands for the beginning of the conversation.
    """
    if log.active:
        check_question(log.active[-1], target)
        check_beginning(log.active, target.origin, home or target.origin)
    made = Made(log, snapshot, conversation, counter, home or target.origin, amendment)
    asked = _asked(made, target)
    conversation = _with_wire_names(asked, target)
    settled = _settle(made, target, asked)
    view, planned = settled.view, settled.planned
    parameters = settle_parameters(conversation, target, planned)
    window = window_of(target, snapshot)
    history = _history(made, view, target)
    gone = view.parts.total - history.parts.total
    return Prepared(
        made=made,
        request=_request(history.messages, made, parameters.options, planned),
        target=target,
        parts=settled.fixed + history.parts,
        stored=settled.fixed + view.stored,
        estimate=settled.held.without(gone, (settled.fixed + view.parts).total),
        characters=settled.held.characters - gone,
        reported=settled.held.reported,
        window=window,
        usable=_usable(window, target, snapshot, conversation, planned),
        counter=counter.name,
        exact=counter.exact,
        thinking=planned.summary,
        notes=(
            *planned.notes,
            *parameters.notes,
            *foreign_notes(made.options, target),
            *_refused_notes(made, view, target),
            *view_notes(view.tally, view.news, target.name),
            *_handoff_notes(view, snapshot, target),
            *history.notes,
            *format_notes(amend_options(made.options, amendment), target),
            *_name_notes(asked, conversation),
            *(Note("model", text) for text in target.notes),
            *_cache_notes(snapshot),
            *_counter_notes(counter),
        ),
        prefix=history.prefix,
    )


class LongThought(Struct, frozen=True):
    """The position of a thinking block: block `block` of the message at `entry` of the log."""

    entry: int
    block: int


def uncondensed(
    log: Log,
    snapshot: Snapshot,
    target: Target,
    conversation: RequestOptions = _PLAIN,
    *,
    counter: Counter = CHARACTERS,
) -> list[LongThought]:
    """The thinking blocks that the next request would send in full although they exceed
    `reasoning.condenseOver`, because the log has no condensed form of them yet.

    Raises:
        BudgetError: the user's budget or limits are impossible for this target.
    """
    if snapshot["reasoning.condenseOver"] is None:
        return []
    made = Made(log, snapshot, conversation, counter, target.origin)
    view = _settle(made, target, _asked(made, target)).view
    wanted = set(map(id, view.long_thoughts()))
    return [
        LongThought(position, at)
        for position, message in zip(log.positions, log.active, strict=True)
        for at, block in enumerate(message.blocks)
        if id(block) in wanted
    ]


class _Count(Struct, frozen=True):
    """The tokens in a request: estimated from characters, and by the best estimate."""

    characters: int
    estimate: int
    reported: int | None

    def without(self, gone: int, tokens: int) -> int:
        """The estimate without `gone` of the `tokens` in the request. Where the provider counts
        less than we do, that is less than `gone`."""
        if not gone:
            return self.estimate
        return self.estimate - round(gone * min(self.estimate / tokens, 1))


class _Settled(Struct, frozen=True):
    view: LogView
    planned: Planned
    fixed: Parts
    held: _Count


def _settle(made: Made, target: Target, options: RequestOptions) -> _Settled:
    """The view and the thinking plan, which depend on each other, and their token count."""
    log, snapshot, counter = made.log, made.snapshot, made.counter
    memory = _memories.setdefault(log, Memory())
    limits: dict[str, Any] = {"max_tokens": options.max_tokens, "amendment": made.amendment}
    plan = plan_least if options.least_thinking else plan_thinking
    fixed = _count_fixed(options, target, counter)
    planned = plan(target, snapshot, **limits)
    rules = _rules(made, target, planned)
    view = memory.view(log, rules, counter)
    count = _count(made, target, view, fixed)
    thought = planned.thinks
    if planned.minds_size or is_full(window_of(target, snapshot), count.estimate):
        planned = plan(target, snapshot, **limits, used=count.estimate)
    reason = _chain_lacks_thought(view, rules, target, planned)
    reason = reason or forced_tools_stop_thinking(options, target, planned)
    if reason:
        planned = plan_least(target, snapshot, **limits, used=count.estimate)
        note = Note("reasoning.enabled", reason, warning=True, effective=planned.summary)
        planned = replace(planned, notes=(note, *planned.notes))
    if planned.thinks != thought:
        rules = _rules(made, target, planned)
        view = memory.view(log, rules, counter)
        count = _count(made, target, view, fixed)
    return _Settled(view, planned, fixed, count)


def _count(made: Made, target: Target, view: LogView, fixed: Parts) -> _Count:
    """The count of a view, corrected by the provider's count of the last request."""
    tokens, rough = (fixed + view.parts).total, fixed
    if made.counter.name != CHARACTERS.name:
        rough = _count_fixed(_asked(made, target), target, CHARACTERS)
    characters = rough.total + view.characters
    last = made.amendment.counted or last_report(made.log, target.origin, characters)
    if last is None:
        return _Count(characters, tokens, None)
    estimate = corrected(tokens, characters, last, view.parts.thinking)
    return _Count(characters, estimate, last.input)


class _History(Struct, frozen=True):
    """The part of the log that is sent, with its token count."""

    messages: Sequence[Message]
    parts: Parts
    prefix: str | None = None
    notes: Sequence[Note] = ()


def _history(made: Made, view: LogView, target: Target) -> _History:
    """The amended view; for a model that binds its thinking to the prompt, without thinking that no
    longer matches."""
    messages, parts = view.sent(), view.parts
    refused = frozenset(target.compat.refused_keys)
    amended = amend_messages(messages, made.amendment, target.dialect, refused)
    if amended is not messages:
        parts = count_parts(amended, view.count)
    if not target.compat.binds_thinking:
        return _History(amended, parts)
    from mull.policy.view.binding import hash_opening

    bound = _memories[made.log].bound(made.log, amended, hash_opening(_asked(made, target)))
    gone = Parts(thinking=sum(map(view.count, bound.left_out())))
    return _History(bound.messages, parts - gone, bound.prefix, bound.notes())


_RULES: RecentOf[Rules] = RecentOf(_MOST_RULES)


def _rules(made: Made, target: Target, planned: Planned) -> Rules:
    if made.amendment is not UNAMENDED:
        return _make_rules(made, target, planned)
    of = target, made.snapshot
    rest = planned.thinks, made.home, tuple(_renamed(made.options, target).items())
    known = _RULES.get(of, rest)
    return _RULES.put(_make_rules(made, target, planned), of, rest) if known is None else known


def _make_rules(made: Made, target: Target, planned: Planned) -> Rules:
    snapshot, left_out = made.snapshot, made.amendment.thoughts
    off = wish_of(snapshot).level == "none" and not target.compat.ignores_off
    # a thought from a server that nobody knows shows that it did not hear off, or not yet
    thinks = planned.thinks or (off and not target.known)
    return Rules(
        origin=target.origin,
        home=made.home,
        intake=intake_of(target, thinks=thinks, only=made.field, left_out=left_out),
        reads=target.compat.reads_thinking_of,
        include=snapshot["reasoning.includeInContext"],
        sealed=includes_sealed(snapshot),
        strip=snapshot["reasoning.stripFromContext"],
        handoff="drop" if target.facts.declines_thoughts else snapshot["reasoning.handoff"],
        off=off,
        required=planned.thinks and target.compat.requires_reasoning != "no",
        returned=thinks,
        forbidden=not thinks and TRAITS[target.dialect].off_forbids_thoughts,
        carried_only=TRAITS[target.dialect].needs_carriers_only,
        condense_over=snapshot["reasoning.condenseOver"],
        input=target.facts.input,
        renamed=tuple(_renamed(made.options, target).items()),
    )


def _asked(made: Made, target: Target) -> RequestOptions:
    """The options for this target: amended, and with whatever the answer format needs."""
    options = amend_options(made.options, made.amendment)
    return ask_in_format(without_foreign(options, target), target)


def _renamed(options: RequestOptions, target: Target) -> dict[str, str]:
    return names_on_wire((tool.name for tool in options.tools), target.dialect)


def _with_wire_names(options: RequestOptions, target: Target) -> RequestOptions:
    """The options with tool names that the target's API accepts."""
    renamed, choice = _renamed(options, target), options.tool_choice
    if isinstance(choice, NamedTool):
        name = renamed.get(choice.name) or wire_name(choice.name, target.dialect)
        options = replace(options, tool_choice=NamedTool(name))
    if not renamed:
        return options
    tools = (replace(tool, name=renamed.get(tool.name, tool.name)) for tool in options.tools)
    return replace(options, tools=tuple(tools))


def _name_notes(asked: RequestOptions, sent: RequestOptions) -> list[Note]:
    pairs = zip(asked.tools, sent.tools, strict=True)
    text = "the tool {!r:.80} is sent as {}: the API does not accept its name"
    return [
        Note("tools", text.format(own.name, wire.name))
        for own, wire in pairs
        if own.name != wire.name
    ]


def _chain_lacks_thought(
    view: LogView, rules: Rules, target: Target, planned: Planned
) -> str | None:
    if not WRITERS[planned.plan.writer].chain_starts_with_thought or planned.plan.state != "on":
        return None
    if not target.facts.can_stop_thinking:
        return None
    lacks = chain_lacks_thought(view.last_turn, rules)
    if not lacks and not (view.lost_in_last_turn and is_open_chain(view.last_turn)):
        return None
    return (
        "Thinking is off for this request: its tool chain began without a thought"
        f" that {target.name} can verify"
    )


def _count_fixed(conversation: RequestOptions, target: Target, counter: Counter) -> Parts:
    system, tools, facts = conversation.system, conversation.tools, target.facts
    return Parts(
        frame=facts.frame_tokens + (facts.tool_frame_tokens if tools else 0),
        system=counter.count(system) + MESSAGE_OVERHEAD if system else 0,
        tools=count_tools(tools, counter) + _count_format(conversation, counter),
    )


def _count_format(conversation: RequestOptions, counter: Counter) -> int:
    wanted = conversation.format
    return counter.count(msgspec.json.encode(wanted.schema).decode()) if wanted else 0


def _usable(
    window: int | None,
    target: Target,
    snapshot: Snapshot,
    conversation: RequestOptions,
    planned: Planned,
) -> int | None:
    """The window minus the answer's room; at least half of the window."""
    limit = target.facts.limit
    if window is None or (limit.input and not snapshot["context.limit"]):
        return window  # output has a limit of its own
    thought = planned.plan.budget or (DEFAULT_BUDGET if planned.thinks else 0)
    room = conversation.max_tokens or min(ANSWER_ROOM + thought, limit.output or window)
    return max(window - room, window // 2)


def _request(
    messages: Sequence[Message],
    made: Made,
    options: RequestOptions,
    planned: Planned,
) -> Request:
    snapshot = made.snapshot
    strips = snapshot["reasoning.stripFromContext"] != "none"
    return Request(
        messages=messages,
        thinking=planned.plan,
        system=options.system,
        tools=options.tools,
        tool_choice=options.tool_choice,
        max_tokens=planned.max_tokens,
        stream=options.stream,
        keep_thinking=snapshot["reasoning.includeInContext"] and not strips,
        reasoning_field=made.field,
        format=options.format,
        hosted_tools=options.hosted_tools,
        wire=options.wire,
        headers=options.headers,
        extra_body=options.extra_body,
        **said_in(options),
    )


def _refused_notes(made: Made, view: LogView, target: Target) -> list[Note]:
    """What the caller added and the endpoint is known not to accept."""
    refused = target.compat.refused_keys
    if not refused:
        return []
    names = extra_names(made.options, view.sent(), target.dialect)
    gone = [name for name in names if name in refused]
    text = f"not sent: {', '.join(gone)}: {target.name} rejected it before"
    return [Note("parameters", text, warning=True)] if gone else []


def _handoff_notes(view: LogView, snapshot: Snapshot, target: Target) -> list[Note]:
    if snapshot["reasoning.handoff"] != "text" or not target.facts.declines_thoughts:
        return []
    text = f"not sent as text: {target.name} declines requests that contain thinking as text"
    return [Note("reasoning.handoff", text, warning=True)] if view.tally.foreign else []


def _cache_notes(snapshot: Snapshot) -> list[Note]:
    keeps_last = snapshot["reasoning.stripFromContext"] == "allButLast"
    if not keeps_last or not snapshot["reasoning.includeInContext"]:
        return []
    text = "every turn removes the thinking of the previous turn, so prompt caches end there"
    return [Note(about="reasoning.stripFromContext", text=text)]


def _counter_notes(counter: Counter) -> list[Note]:
    note = counter.take_note() if isinstance(counter, SafeCounter) else None
    return [note] if note else []
