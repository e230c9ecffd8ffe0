"""How one turn of the log looks in a request.

Thinking is kept by preference (strip, then include) or because the protocol requires it in an open
tool chain. Carriers are sent only to the origin that made them, and to models that are known to
read them; thinking of any other model is dropped or sent as plain text, never in tags. Long
unsigned thinking is sent condensed if the log has a condensed version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import add, is_, sub
from typing import Literal, TypeAlias, assert_never

import msgspec
from msgspec import Struct

from mull.dialects.registry import is_sealed
from mull.neutral.blocks import (
    Block,
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Value,
)
from mull.neutral.errors import LocalError
from mull.neutral.messages import Message, Origin
from mull.policy.globs import text_matches
from mull.policy.heal.lessons import fingerprints
from mull.policy.reasoning import StripPolicy, turn_start
from mull.policy.view.calls import sendable_calls
from mull.policy.view.intake import Intake, taken
from mull.policy.view.media import without_untaken
from mull.policy.view.repair import Repair

__all__ = [
    "UNCHANGED",
    "Condensing",
    "Keep",
    "Rules",
    "Standing",
    "Tally",
    "Unwanted",
    "View",
    "chain_lacks_thought",
    "check_beginning",
    "is_open_chain",
    "is_paused",
    "is_plain",
    "keep_for",
    "view_repaired",
]


class Rules(Value, frozen=True):
    """Everything that decides a view: the user's preferences and the endpoint's requirements."""

    origin: Origin
    """The origin of what the target itself writes."""
    home: Origin
    """The origin of messages that have none."""
    intake: Intake
    """The form in which the endpoint accepts thinking back."""
    reads: tuple[str, ...] = ()
    """Patterns of models whose messages count as the target's own at the same endpoint."""
    include: bool = False
    """Whether the user wants earlier thinking sent (`reasoning.includeInContext`)."""
    sealed: bool = False
    """Whether answers whose thinking is signed or encrypted are sent with it although nothing is
    included.
    """
    strip: StripPolicy = "none"
    """Which earlier thinking the user wants left out (`reasoning.stripFromContext`)."""
    handoff: Literal["drop", "text"] = "drop"
    """Whether thinking of other models is left out or sent as plain text."""
    off: bool = False
    """Whether thinking is off: earlier thinking is not sent either."""
    required: bool = False
    """Whether the endpoint rejects an open tool chain without its thinking."""
    returned: bool = False
    """Whether thinking of an open tool chain goes back to the server that sent it, whatever the
    user prefers.
    """
    forbidden: bool = False
    """Whether the endpoint accepts no thinking in this request."""
    carried_only: bool = False
    """Whether `required` and `returned` apply only to thinking with a carrier."""
    condense_over: int | None = None
    """The size in tokens above which unsigned thinking is sent condensed; None sends all of it in
    full.
    """
    input: tuple[str, ...] = ()
    """The kinds of input that the model accepts, such as `image`; empty is unknown."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Pairs of a tool's name and the name under which it is sent, for names that the API does not
    accept.
    """

    def is_own(self, origin: Origin) -> bool:
        """Whether the target reads what this origin wrote as its own."""
        if origin == self.origin or not self.reads:
            return origin == self.origin
        model = origin.model.lower()
        if not any(text_matches(pattern, model) for pattern in self.reads):
            return False
        return msgspec.structs.replace(origin, model=self.origin.model) == self.origin


class Standing(Value, frozen=True):
    """The place of a turn: whether it is the last, and the last that has thinking."""

    last: bool = False
    last_thinking: bool = False


Unwanted: TypeAlias = Literal["off", "stripped", "excluded"]
"""Which setting leaves out a turn's thinking: thinking off, the strip policy, or
`reasoning.includeInContext`. The first that applies is reported (BR-005).
"""


class Keep(Value, frozen=True):
    """What happens to a turn's thinking: whether it is unwanted, and whether it is part of an open
    chain.
    """

    unwanted: Unwanted | None
    in_chain: bool


class Condensing(Struct, frozen=True):
    """What is needed to send long thinking condensed: the limit, the condensed versions by the `id`
    of their block, and a counter.
    """

    over: int
    short: Mapping[int, ThinkingBlock]
    count: Callable[[Block], int]


class Tally(Value, frozen=True):
    """How much of a view differs from the log; turns add up. Notes for the user follow from it."""

    off: int = 0
    """Thinking blocks left out because thinking is off."""
    stripped: int = 0
    """Thinking blocks left out by the strip policy."""
    excluded: int = 0
    """Thinking blocks left out because the user wants no earlier thinking sent."""
    required: int = 0
    """Unwanted thinking blocks of the open tool chain that are sent because the endpoint requires
    them.
    """
    returned: int = 0
    """Unwanted thinking blocks of the open tool chain that go back to the server that sent them."""
    untaken: int = 0
    """Thinking blocks left out because the endpoint accepts none back."""
    unsigned: int = 0
    """Thinking blocks left out, whole or in part, because they lack a signature."""
    unreadable: int = 0
    """Thinking blocks left out because the endpoint could not read them."""
    unfollowed: int = 0
    """Thinking blocks left out because nothing that the API accepts follows them."""
    refused: int = 0
    """Thinking blocks left out because the endpoint rejected them before."""
    unaccepted: int = 0
    """Opaque blocks left out because the endpoint rejected them before."""
    foreign: int = 0
    """Thinking blocks of other models that are left out."""
    opaque: int = 0
    """Opaque blocks left out because only another model understands them."""
    strange: int = 0
    """Blocks left out because only another API supports their kind."""
    earlier: int = 0
    """Blocks left out that replace earlier messages, such as a provider's own compaction, because
    only another provider can read them.
    """
    broken: int = 0
    """Blocks left out because they are not what they claim to be, such as a call without a name."""
    handed_over: int = 0
    """Thinking blocks of other models that are sent as plain text."""
    condensed: int = 0
    """Thinking blocks that are sent as their stored short version."""
    forbidden: int = 0
    """Thinking blocks left out because the endpoint accepts none while thinking is off."""
    unfinished: int = 0
    """Answers left out because they broke off and the question was asked again."""
    interrupted: int = 0
    """Answers that broke off and are sent as far as they came."""
    unmade_calls: int = 0
    """Calls of such answers that never ran, and are not sent."""
    unanswered: int = 0
    """Questions left out because no answer to them ever came."""
    empty: int = 0
    """Answers left out because they contain nothing but thinking."""
    closed_calls: int = 0
    """Calls without a result, which got one that says so."""
    orphans: int = 0
    """Tool results left out because no call has their id."""
    cut_calls: int = 0
    """Calls left out because the token limit cut them off."""
    renamed: int = 0
    """Calls sent under another name, because the API does not accept theirs."""
    malformed: int = 0
    """Calls sent with their arguments as text, because they are not a JSON object."""
    images: int = 0
    """Images left out because the model accepts none."""
    audio_files: int = 0
    """Audio files left out because the model accepts none."""
    videos: int = 0
    """Videos left out because the model accepts none."""
    pdfs: int = 0
    """PDFs left out because the model accepts none."""

    def __add__(self, more: Tally) -> Tally:
        if self is UNCHANGED or more is UNCHANGED:
            return more if self is UNCHANGED else self
        return Tally(*map(add, msgspec.structs.astuple(self), msgspec.structs.astuple(more)))

    def __sub__(self, less: Tally) -> Tally:
        if less is UNCHANGED:
            return self
        return Tally(*map(sub, msgspec.structs.astuple(self), msgspec.structs.astuple(less)))


UNCHANGED = Tally()
"""The tally of most rounds."""
_WORDS: frozenset[type[Block]] = frozenset({TextBlock})


class View(Value, frozen=True):
    """Messages as sent. `long` are thinking blocks above the limit without a condensed version."""

    messages: tuple[Message, ...]
    tally: Tally
    long: tuple[ThinkingBlock, ...] = ()


def is_open_chain(messages: Sequence[Message]) -> bool:
    """Whether the turn waits for the model to continue: after its own tool calls, whose results the
    user may have sent a message beside, or after an answer that paused.
    """
    last = _last_heard(messages)
    return last is not None and (last.carries_results or last.is_paused)


def is_paused(messages: Sequence[Message]) -> bool:
    """Whether the turn ends with an answer that paused; it was never closed, whatever follows."""
    last = _last_heard(messages)
    return last is not None and last.is_paused


def _last_heard(messages: Sequence[Message]) -> Message | None:
    return next((message for message in reversed(messages) if not message.is_spoken), None)


def chain_lacks_thought(turn: Sequence[Message], rules: Rules) -> bool:
    """Whether the turn is an open tool chain that does not start with thinking that the target can
    read, or has answers it cannot: to an endpoint a chain is one answer, whose later calls need no
    new thinking.
    """
    if not is_open_chain(turn):
        return False
    answers = [message for message in turn[turn_start(turn) :] if message.role == "assistant"]
    if not answers:
        return False
    first = answers[0].blocks[0] if answers[0].blocks else None
    if not isinstance(first, ThinkingBlock) or (first.signature is None and first.redacted is None):
        return True
    return any(answer.origin and not rules.is_own(answer.origin) for answer in answers)


def keep_for(place: Standing, rules: Rules, *, in_chain: bool) -> Keep:
    """What happens to the thinking of a turn in this place, which may be that of an open chain."""
    left = rules.strip == "none" or (rules.strip == "allButLast" and place.last_thinking)
    unwanted: Unwanted | None = None
    if rules.off:
        unwanted = "off"
    elif not left:
        unwanted = "stripped"
    elif not rules.include:
        unwanted = "excluded"
    return Keep(unwanted, in_chain)


def view_repaired(
    repaired: Repair, keep: Keep, rules: Rules, condensing: Condensing | None = None
) -> View:
    """The view of a turn, or of one round of it, that is already repaired."""
    out: list[Message] = []
    shorter = _Shorter(condensing)
    tally = UNCHANGED
    if repaired.is_mended:
        tally = Tally(
            unfinished=repaired.unfinished,
            interrupted=repaired.interrupted,
            unmade_calls=repaired.unmade_calls,
            empty=repaired.empty,
            closed_calls=repaired.closed_calls,
            orphans=repaired.orphans,
            cut_calls=repaired.cut_calls,
        )
    for given in repaired.messages:
        message, strange = _without_strange(given, rules.origin.dialect)
        if strange:
            broken, earlier = sum(map(_is_broken, strange)), sum(map(_is_earlier, strange))
            others = len(strange) - earlier - broken
            tally += Tally(strange=others, earlier=earlier, broken=broken)
        if message.role != "assistant":
            seen, untaken = without_untaken(message, rules.input)
            seen, lost = _with_their_calls(seen, out)
            if untaken or lost:
                tally += Tally(**untaken, opaque=lost)
            if seen.blocks or not (lost or strange or _is_empty(seen, rules.origin.dialect)):
                out.append(seen)
            continue
        seen, more = _view_message(message, keep, rules, shorter, repaired.torn)
        if more is not UNCHANGED:
            tally += more
        if seen.blocks:
            out.append(seen)
    if shorter.used:
        tally += Tally(condensed=shorter.used)
    return View(tuple(out), tally, tuple(shorter.missing))


def _is_empty(message: Message, dialect: str) -> bool:
    """Whether it has only keys of another dialect."""
    return not message.blocks and message.wire is not None and message.wire.dialect != dialect


def is_plain(message: Message) -> bool:
    """Whether every endpoint gets a message as it is: words alone, of somebody who came to the end
    of them. Most messages are such.
    """
    if not message.blocks and message.wire is not None:
        return False
    if message.role == "tool" or not _WORDS.issuperset(map(type, message.blocks)):
        return False
    if message.role != "assistant":
        return True
    if message.status != "complete" or not message.text:
        return False
    for block in message.blocks:
        if isinstance(block, TextBlock) and (block.signature or block.wire):
            return False
    return True


def _without_strange(message: Message, dialect: str) -> tuple[Message, Sequence[Block]]:
    """The message without blocks that nobody can read, or that a client wrote in another dialect;
    and those blocks.
    """
    if OpaqueBlock not in map(type, message.blocks):
        return message, ()
    strange = [block for block in message.blocks if _is_strange(block, dialect)]
    if not strange:
        return message, ()
    blocks = tuple(block for block in message.blocks if not _is_strange(block, dialect))
    return msgspec.structs.replace(message, blocks=blocks), strange


def _is_strange(block: Block, dialect: str) -> bool:
    return _is_broken(block) or (
        isinstance(block, OpaqueBlock) and block.dialect not in (None, dialect)
    )


def _is_broken(block: Block) -> bool:
    return isinstance(block, OpaqueBlock) and block.broken


def _is_earlier(block: Block) -> bool:
    return isinstance(block, OpaqueBlock) and block.stands_for_earlier and not block.broken


def is_same_account(one: Origin, other: Origin) -> bool:
    """Whether two models are those of one provider, under one account: what stands for a
    conversation is encrypted for the account, not for the model.
    """
    return msgspec.structs.replace(one, model="") == msgspec.structs.replace(other, model="")


def check_beginning(messages: Sequence[Message], target: Origin, home: Origin) -> None:
    """Reject a conversation whose beginning only another provider can read.

    Raises:
        LocalError: what stands for the conversation before the first answer would be left out.
    """
    first = next((at for at, message in enumerate(messages) if message.role == "assistant"), None)
    if first is None:
        return
    answer = messages[first]
    held = next((b for b in answer.blocks if isinstance(b, OpaqueBlock) and _is_earlier(b)), None)
    if held is None:
        return
    strange = _is_strange(held, target.dialect)
    begins = first == 0 and answer.blocks[0] is held
    if strange or (begins and not is_same_account(answer.origin or home, target)):
        raise LocalError(
            f"the conversation begins with a {held.data.get('type')} item, which only the provider"
            " that made it can read: everything before it would be missing.\nContinue with that"
            " provider's models, or start a new conversation."
        )


def _with_their_calls(message: Message, sent: Sequence[Message]) -> tuple[Message, int]:
    """A result that only its origin understands is sent with its call, and nowhere else."""
    if message.role != "tool" or not any(isinstance(b, OpaqueBlock) for b in message.blocks):
        return message, 0
    answers = (one for one in sent if one.role == "assistant")
    made = {b.data.get("call_id") for m in answers for b in m.blocks if isinstance(b, OpaqueBlock)}
    blocks = tuple(
        b for b in message.blocks if not isinstance(b, OpaqueBlock) or b.data.get("call_id") in made
    )
    lost = len(message.blocks) - len(blocks)
    return (msgspec.structs.replace(message, blocks=blocks) if lost else message), lost


class _Shorter:
    """Returns thinking in the form it is sent in, and remembers what it met."""

    def __init__(self, condensing: Condensing | None) -> None:
        self._condensing = condensing
        self.used = 0
        self.missing: list[ThinkingBlock] = []

    def form(self, block: ThinkingBlock) -> ThinkingBlock:
        """The block, or its condensed version; signed blocks stay unchanged."""
        with_ = self._condensing
        if with_ is None or block.has_carrier or with_.count(block) <= with_.over:
            return block
        short = with_.short.get(id(block))
        if short is None:
            self.missing.append(block)
            return block
        self.used += 1
        return short


def _view_message(
    message: Message, keep: Keep, rules: Rules, shorter: _Shorter, torn: frozenset[int]
) -> tuple[Message, Tally]:
    blocks: Sequence[Block]
    if rules.is_own(message.origin or rules.home):
        blocks, tally = _own_blocks(message, keep, rules, shorter, torn)
    else:
        blocks, tally = _foreign_blocks(message, keep, rules, shorter)
    if message.tool_calls:
        renamed = dict(rules.renamed)
        blocks, named, wrapped = sendable_calls(blocks, rules.intake.dialect, renamed)
        if named or wrapped:
            tally += Tally(renamed=named, malformed=wrapped)
    if blocks is message.blocks:
        return message, tally
    if len(blocks) == len(message.blocks) and all(map(is_, blocks, message.blocks)):
        return message, tally
    return msgspec.structs.replace(message, blocks=tuple(blocks)), tally


def _own_blocks(
    message: Message, keep: Keep, rules: Rules, shorter: _Shorter, torn: frozenset[int]
) -> tuple[Sequence[Block], Tally]:
    """What is wanted or required, in the form that the endpoint accepts."""
    sealed = rules.sealed and all(map(is_sealed, message.thinking))
    if sealed and keep.unwanted == "excluded":
        keep = Keep(None, keep.in_chain)
    kept, tally = _kept(message, keep, rules)
    if not rules.intake.refused and ThinkingBlock not in map(type, kept):
        return kept, tally
    out: list[Block] = []
    sent = 0
    for block, form in taken(kept, rules.intake, paused=message.is_paused, torn=torn):
        if isinstance(form, str):
            is_piece = form == "refused" and isinstance(block, OpaqueBlock)
            tally += Tally(unaccepted=1) if is_piece else Tally(**{form: 1})
            continue
        if isinstance(form, ThinkingBlock):
            short = shorter.form(form) if form is block else form
            if short is not form and rules.intake.leaves_out(short):
                shorter.used -= 1
                tally += Tally(refused=1)
                continue
            sent += not form.is_blank
            if isinstance(block, ThinkingBlock) and form.thought != block.thought:
                tally += Tally(unsigned=1)  # a part of it
            form = short
        out.append(form)
    if keep.unwanted is not None and sent:
        tally += Tally(required=sent) if rules.required else Tally(returned=sent)
    return out, tally


def _kept(message: Message, keep: Keep, rules: Rules) -> tuple[Sequence[Block], Tally]:
    thoughts = len(message.thinking)
    if not thoughts:
        return message.blocks, UNCHANGED
    if rules.forbidden:
        return _others(message), Tally(forbidden=thoughts)
    if keep.unwanted is None:
        return message.blocks, UNCHANGED
    if not keep.in_chain or not (rules.required or rules.returned):
        return _others(message), Tally(**{keep.unwanted: thoughts})
    kept = [block for block in message.blocks if _goes_along(block, rules)]
    return kept, Tally(**{keep.unwanted: len(message.blocks) - len(kept)})


def _goes_along(block: Block, rules: Rules) -> bool:
    if not rules.carried_only or not isinstance(block, ThinkingBlock):
        return True
    return block.has_carrier


def _others(message: Message) -> list[Block]:
    return [block for block in message.blocks if not isinstance(block, ThinkingBlock)]


def _foreign_blocks(
    message: Message, keep: Keep, rules: Rules, shorter: _Shorter
) -> tuple[list[Block], Tally]:
    """Text and calls without what only their origin understands."""
    out: list[Block] = []
    opaque: list[Block] = []
    origin = message.origin or rules.home
    dropped = handed = 0
    for block in message.blocks:
        match block:
            case ThinkingBlock():
                if keep.unwanted is None and rules.handoff == "text" and block.thought.strip():
                    handed += 1
                    thought = shorter.form(block).thought
                    out.append(TextBlock(f"(Earlier reasoning) {thought}\n\n"))
                else:
                    dropped += 1
            case OpaqueBlock():
                is_read = _is_earlier(block) and is_same_account(origin, rules.origin)
                is_read = is_read and rules.intake.refused.isdisjoint(fingerprints(block))
                (out if is_read else opaque).append(block)
            case TextBlock():
                own = block.signature or block.wire
                out.append(TextBlock(block.text) if own else block)
            case ToolCallBlock():
                own = block.signature or block.wire
                plain = msgspec.structs.replace(block, signature=None, wire=None)
                out.append(plain if own else block)
            case ToolResultBlock() | MediaBlock():
                out.append(block)
            case _:
                assert_never(block)
    if not (dropped or opaque or handed):
        return out, UNCHANGED
    earlier = sum(map(_is_earlier, opaque))
    pieces = {"opaque": len(opaque) - earlier, "earlier": earlier}
    return out, Tally(foreign=dropped, handed_over=handed, **pieces)
