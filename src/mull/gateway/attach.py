"""Restores what a client dropped from a conversation, altered, or never received.

A client sends answers whose calls have the gateway's ids, possibly with thinking, possibly with
envelopes. Each answer is restored as the provider sent it, from the store or from its envelopes.

Never with the thinking of another: what the client sends back and proves comes before anything that
is only alike. A record that was found by what was said is used only if nothing that the client sent
contradicts it, and if it is the only one. One record restores one answer.

The client's text and calls take precedence; carriers are added only if its calls are the stored
ones. What becomes of an answer that is not found depends on who may have made it (`Unknown`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import is_
from typing import Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from mull.dialects.extras import joined_extras
from mull.dialects.traits import TRAITS
from mull.gateway.anchors import (
    NOBODY,
    Identity,
    Past,
    answer_key,
    call_key,
    carrier_key,
    carriers_of,
    has_thoughts,
    is_carrier,
    is_place,
    is_proof,
    is_said,
    same_calls,
    same_text,
    same_thoughts,
    strength,
    thought_keys,
)
from mull.gateway.envelope import Sealed, is_envelope
from mull.gateway.ids import provider_id
from mull.gateway.record import Kept
from mull.neutral.blocks import (
    Block,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.neutral.messages import Dialect, Message
from mull.neutral.request import Note

__all__ = [
    "REATTACHED",
    "Attached",
    "Keys",
    "Records",
    "Unknown",
    "Unseal",
    "Wanted",
    "attach",
    "keys_of",
    "past_of",
    "without_carriers",
]

REATTACHED = "reattached"
"""The subject of notes about answers that were not restored."""

Unknown: TypeAlias = Literal["bare", "readable", "trusted"]
"""What to send of an answer that is not found: none of its thinking ("bare"), only the readable
thinking, or the answer as received ("trusted")."""
Unseal: TypeAlias = Callable[[str], Sealed | None]
"""Opens an envelope of this client; None for any other carrier."""
Records: TypeAlias = Mapping[str, Kept | None]
"""The records found by key; None where a key has several."""


class Attached(NamedTuple):
    """The restored conversation, with notes about answers that were not restored. `records` are the
    stored records that were used, each by one of its keys."""

    messages: tuple[Message, ...]
    notes: tuple[Note, ...]
    records: Mapping[str, Kept] = {}


class Wanted(NamedTuple):
    """The keys that the record of a message may have; none if it is not an answer. `row` has those
    of it and the answers directly before it as one, of which it may be the last piece."""

    own: tuple[str, ...] = ()
    row: tuple[str, ...] = ()


class Keys(NamedTuple):
    """For each message of a conversation, the keys that its record may have, and the digest of the
    conversation before the next answer."""

    of_each: Sequence[Wanted]
    past: Past


def keys_of(messages: Sequence[Message], unseal: Unseal, identity: Identity = NOBODY) -> Keys:
    """The keys of each message of a conversation with this identity."""
    past = Past(identity)
    keys: list[Wanted] = []
    for is_answer, run in groupby(messages, _is_answer):
        row = list(run)
        is_row = is_answer and len(row) > 1
        whole = tuple(past.keys(_one(row))) if is_row else ()  # before `past` includes them
        for message in row:
            keys.append(Wanted(tuple(_keys(message, past, unseal))) if is_answer else Wanted())
            past.add(message)
        keys[-1] = keys[-1]._replace(row=whole)
    return Keys(keys, past)


def _is_answer(message: Message) -> bool:
    return message.role == "assistant"


def _one(pieces: Sequence[Message]) -> Message:
    """The pieces joined into one message."""
    if len(pieces) == 1:
        return pieces[0]
    blocks = tuple(block for piece in pieces for block in piece.blocks)
    return replace(pieces[0], blocks=blocks, wire=joined_extras(pieces))


def past_of(messages: Iterable[Message]) -> Past:
    """The digest of the messages before the next answer."""
    past = Past()
    for message in messages:
        past.add(message)
    return past


def _keys(message: Message, past: Past, unseal: Unseal) -> Iterator[str]:
    for block in message.blocks:
        for carrier in carriers_of(block):
            if not is_envelope(carrier):
                yield carrier_key(carrier)
            elif sealed := unseal(carrier):
                yield answer_key(sealed.answer)
    for call in message.tool_calls:
        yield call_key(call.id)
    yield from thought_keys(message)
    yield from past.keys(message)


def attach(
    messages: Sequence[Message],
    keys: Sequence[Wanted],
    found: Records,
    unseal: Unseal,
    unknown: Unknown = "bare",
) -> Attached:
    """Restore the answers that the client sent, from stored records and envelopes."""
    keys = [*_after_known(messages, keys, found)]
    if not _alternates(messages):
        messages, keys = _with_own_results(*_joined(*_results_first(messages, keys), found))
    made: list[Message] = []
    ids: dict[str, str] = {}
    counts = {"found": 0, "given": 0, "unknown": 0, "altered": 0, "reworded": 0, "several": 0}
    records: dict[str, Kept] = {}
    claims = [
        [*_claims(message, wanted, found)] for message, wanted in zip(messages, keys, strict=True)
    ]
    opened: set[str] = set()

    def unseal_once(carrier: str) -> Sealed | None:
        """Opens an envelope, unless another answer has what it holds."""
        sealed = None if carrier in opened else unseal(carrier)
        if sealed is None or found.get(answer_key(sealed.answer)) is not None:
            return None
        opened.add(carrier)
        return sealed

    for message, wanted, by in zip(messages, keys, _chosen(claims), strict=True):
        if message.role != "assistant":
            made.append(_with_own_ids(message, ids))
            continue
        if by is not None and not by.is_again:
            records[by.key] = by.kept
            answer, how = _from_record(message, by.kept)
        else:
            answer, how = _from_envelopes(message, unseal_once, unknown)
            if by is not None:
                blocks = tuple(_renamed(block, by.kept.ids) for block in answer.blocks)
                answer = replace(answer, blocks=blocks)
            elif how == "unknown" and _has_several(wanted.own, found):
                how = "several"
        ids |= _ids_of(message, answer)
        counts[how] += 1
        made.append(answer)
    return Attached(tuple(made), tuple(_notes(counts)), records)


def _after_known(
    messages: Sequence[Message], keys: Sequence[Wanted], found: Records
) -> Iterator[Wanted]:
    """The keys, without those that go by the id of a call which is not on record: such ids are the
    client's own, and the calls of other conversations may have the same."""
    is_known = False
    for message, wanted in zip(messages, keys, strict=True):
        if is_known or message.role != "assistant":
            yield wanted
        else:
            yield Wanted(*(tuple(key for key in some if not is_place(key)) for some in wanted))
        if calls := message.tool_calls:
            is_known = found.get(call_key(calls[-1].id)) is not None


class _Claim(NamedTuple):
    """A record that may be the one of an answer, and the key by which it was found. If another
    answer has the record, only the ids of its calls are used again."""

    key: str
    kept: Kept
    is_again: bool = False


def _claims(message: Message, wanted: Wanted, found: Records) -> Iterator[_Claim]:
    """The records that a message may be restored from, best first."""
    proves = any(key.startswith("answer:") for key in wanted.own)
    for key in wanted.own:
        kept = found.get(key)
        if kept is None or (is_carrier(key) and _thinks_otherwise(message, kept)):
            continue
        if is_proof(key) or not (proves or _contradicts(message, kept)):
            yield _Claim(key, kept)


def _has_several(keys: Iterable[str], found: Records) -> bool:
    """Whether one of the keys has several records."""
    return any(key in found and found[key] is None for key in keys)


def _thinks_otherwise(message: Message, kept: Kept) -> bool:
    """Whether the message, which may be a piece of an answer, has thinking that the record has not.
    Some servers give all answers the same carrier, which then proves nothing."""
    return not has_thoughts(Message(role="assistant", blocks=kept.blocks), message)


def _contradicts(message: Message, kept: Kept) -> bool:
    """Whether the client sends back thinking or carriers that are not those of the record. Of an
    envelope that does not open, only the thinking beside it can tell."""
    given = Message(role="assistant", blocks=kept.blocks)
    thinks = any(block.thought for block in message.thinking)
    if thinks and not same_thoughts(message, given):
        return True
    held = {carrier for block in kept.blocks for carrier in carriers_of(block)}
    sent = (one for block in message.blocks if not _is_earlier(block) for one in carriers_of(block))
    return any(one not in held and not (thinks and is_envelope(one)) for one in sent)


def _chosen(claims: Sequence[Sequence[_Claim]]) -> Sequence[_Claim | None]:
    """For each message, the record that it is. One record restores one answer: the one that proves
    more, or else the last. Of several answers to the same words nobody knows which one is meant."""
    claimed: dict[str, list[tuple[int, _Claim]]] = {}
    for at, some in enumerate(claims):
        for claim in some:
            claimed.setdefault(claim.key, []).append((at, claim))
    chosen: list[_Claim | None] = [None] * len(claims)
    taken: set[int] = set()
    for key in sorted(claimed, key=strength):
        left = [(at, claim) for at, claim in claimed[key] if chosen[at] is None]
        if not left or (len(left) > 1 and is_said(key)):
            continue
        at, claim = left[-1]
        chosen[at] = claim._replace(is_again=id(claim.kept) in taken)
        taken.add(id(claim.kept))
    return chosen


def _alternates(messages: Sequence[Message]) -> bool:
    """Whether there are no tool results, and no two answers in a row: nothing to put in order."""
    before = None
    for message in messages:
        role = message.role
        if role == "tool" or (role == "assistant" and before == "assistant"):
            return False
        before = role
    return True


def _results_first(
    messages: Sequence[Message], keys: Sequence[Wanted]
) -> tuple[Sequence[Message], Sequence[Wanted]]:
    """The conversation with tool results directly after their calls. What some clients put between
    them follows."""
    ordered: list[tuple[Message, Wanted]] = []
    between: list[tuple[Message, Wanted]] = []  # what stands between the last calls and results
    calls: set[str] = set()
    is_row = False
    for pair in zip(messages, keys, strict=True):
        message, _ = pair
        if message.role == "assistant":
            calls = calls if is_row else set()
            calls.update(call.id for call in message.tool_calls)
            ordered += between
            between = []
            ordered.append(pair)
        elif message.role == "tool" and not calls.isdisjoint(_answered(message)):
            ordered.append(pair)
        else:
            between.append(pair)
        is_row = message.role == "assistant"
    ordered += between
    return [message for message, _ in ordered], [wanted for _, wanted in ordered]


def _answered(message: Message) -> list[str]:
    return [block.call_id for block in message.blocks if isinstance(block, ToolResultBlock)]


def _joined(
    messages: Sequence[Message], keys: Sequence[Wanted], found: Records
) -> tuple[Sequence[Message], Sequence[Wanted]]:
    """The conversation with each answer in one message. Some clients send each block as a separate
    answer, and some alternate calls and results."""
    joined: list[list[Message]] = []
    joined_keys: list[list[Wanted]] = []
    last: int | None = None
    record: Kept | None = None
    called = 0
    for message, wanted in zip(*_rows(messages, keys, found), strict=True):
        if message.role == "assistant":
            kept = next((claim.kept for claim in _claims(message, wanted, found)), None)
            calls = len(message.tool_calls)
            if last is not None and _belongs(message, joined[-1][-1], record, kept, called + calls):
                joined[last].append(message)
                joined_keys[last].append(wanted)
                record, called = kept or record, called + calls
                continue
            last, record, called = len(joined), kept, calls
        elif message.role == "tool" and joined and joined[-1][-1].role == "tool":
            joined[-1].append(message)
            continue
        elif message.role != "tool":
            last = None
        joined.append([message])
        joined_keys.append([wanted])
    return [_one(pieces) for pieces in joined], [_together(some) for some in joined_keys]


def _with_own_results(
    messages: Sequence[Message], keys: Sequence[Wanted]
) -> tuple[Sequence[Message], Sequence[Wanted]]:
    """The conversation with the results that follow several answers in a row each after its own
    answer: after another they would be results without a call."""
    ordered: list[tuple[Message, Wanted]] = []
    row: list[tuple[Message, Wanted]] = []
    for pair in zip(messages, keys, strict=True):
        if _is_answer(pair[0]):
            row.append(pair)
        elif pair[0].role == "tool" and len(row) > 1:
            ordered += _each_with_results(row, pair)
            row = []
        else:
            ordered += (*row, pair)
            row = []
    ordered += row
    return [message for message, _ in ordered], [wanted for _, wanted in ordered]


def _each_with_results(
    row: Sequence[tuple[Message, Wanted]], results: tuple[Message, Wanted]
) -> Iterator[tuple[Message, Wanted]]:
    places = {call.id: at for at, (answer, _) in enumerate(row) for call in answer.tool_calls}
    held: dict[int, list[Block]] = {}
    for block in results[0].blocks:
        call_id = block.call_id if isinstance(block, ToolResultBlock) else ""
        held.setdefault(places.get(call_id, len(row) - 1), []).append(block)
    for at, pair in enumerate(row):
        yield pair
        if blocks := held.get(at):
            yield replace(results[0], blocks=tuple(blocks)), results[1]


def _together(pieces: Sequence[Wanted]) -> Wanted:
    """The keys of pieces that are one answer."""
    return Wanted(tuple(key for piece in pieces for key in piece.own))


def _rows(
    messages: Sequence[Message], keys: Sequence[Wanted], found: Records
) -> tuple[Sequence[Message], Sequence[Wanted]]:
    """The conversation with consecutive answers joined if they are stored as one. A piece may also
    be found by itself, as an answer of another conversation with the same beginning."""
    joined: list[Message] = []
    joined_keys: list[Wanted] = []
    pairs = zip(messages, keys, strict=True)
    for is_answer, run in groupby(pairs, lambda pair: _is_answer(pair[0])):
        row, wanted = zip(*run, strict=True)
        if is_answer and any(key in found for key in wanted[-1].row):
            proofs = (key for piece in wanted for key in piece.own if is_proof(key))
            row, wanted = (_one(row),), (Wanted((*proofs, *wanted[-1].row)),)
        joined += row
        joined_keys += wanted
    return joined, joined_keys


def _belongs(
    piece: Message, before: Message, record: Kept | None, kept: Kept | None, called: int
) -> bool:
    """Whether a piece, found in the record `kept`, continues the answer found in `record`. `before`
    is the message directly before the piece. `called` is the number of their calls together: if the
    record has fewer, the same answer was given twice."""
    if record is not None and record == kept:
        return called <= len(record.ids) and (before.role == "assistant" or bool(record.ids))
    if before.role != "assistant" or (record is None) == (kept is None):
        return False
    unknown = before if record is None else piece
    return not unknown.tool_calls


def _from_record(message: Message, kept: Kept) -> tuple[Message, str]:
    """The stored answer, with the client's text if that differs. If the calls differ, the client's
    answer without thinking."""
    blocks = tuple(_with_added(_since(kept.blocks, message), message.blocks))
    given = Message(
        role="assistant", status="complete", origin=kept.origin, blocks=blocks, wire=message.wire
    )
    if same_calls(message, given):
        if same_text(message, given):
            return given, "found"
        changed = tuple(_with_text(given.blocks, message.text, kept.origin.dialect))
        is_whole = given.thinking == replace(given, blocks=changed).thinking
        return replace(given, blocks=changed), "found" if is_whole else "reworded"
    bare = without_carriers(message.blocks, thoughts=False)
    blocks = tuple(_renamed(block, kept.ids) for block in bare)
    # what stands for earlier messages is its maker's, whatever the client made of the rest
    origin = kept.origin if any(map(carriers_of, blocks)) else None
    return replace(message, blocks=blocks, origin=origin), "altered"


def _with_added(blocks: tuple[Block, ...], sent: Sequence[Block]) -> Iterator[Block]:
    """The stored blocks, with those that only the client's provider understands and that it did not
    get from there: before them if they are first, otherwise after them."""
    added = [one for one in sent if isinstance(one, OpaqueBlock) and not _is_earlier(one)]
    stored = [block.data for block in blocks if isinstance(block, OpaqueBlock)]
    added = [one for one in added if one.data not in stored]
    first = [one for one, other in zip(added, sent, strict=False) if one is other]
    yield from first
    yield from blocks
    yield from added[len(first) :]


def _since(blocks: tuple[Block, ...], message: Message) -> tuple[Block, ...]:
    """The stored blocks, behind what stands for the messages before them if the client put that
    there, and without those that it gave up for one of them that stands for the rest.
    """
    earlier = [at for at, block in enumerate(message.blocks) if _is_earlier(block)]
    if not earlier:
        return blocks
    sealed = carriers_of(message.blocks[earlier[-1]])
    own = next((at for at, block in enumerate(blocks) if carriers_of(block) == sealed), None)
    if own is None:
        return (*message.blocks[: earlier[-1] + 1], *blocks)
    return blocks[own:] if earlier[-1] == 0 else blocks


def _is_earlier(block: Block) -> bool:
    return isinstance(block, OpaqueBlock) and block.stands_for_earlier


def _with_text(blocks: Sequence[Block], text: str, dialect: Dialect) -> Sequence[Block]:
    """The blocks, with this text in place of their own. Where encrypted thinking is rejected before
    anything but what it led to, only its readable part is left before another text."""
    left = [*blocks]
    texts = [at for at, block in enumerate(blocks) if isinstance(block, TextBlock)]
    place = next((at for at, one in enumerate(left) if isinstance(one, ToolCallBlock)), len(left))
    place = _bound_to(place, left, dialect)
    for at in reversed(texts):
        begin = _bound_to(at, left, dialect)
        left[begin : at + 1] = readable = without_carriers(left[begin:at], thoughts=True)
        place = begin + len(readable)
    if text:
        left.insert(place, TextBlock(text))
    return left


def _bound_to(at: int, blocks: Sequence[Block], dialect: Dialect) -> int:
    """Where the encrypted thinking begins that only this block may follow; the place of the block
    if there is none."""
    begin = at
    while begin and isinstance(blocks[begin - 1], ThinkingBlock):
        begin -= 1
    is_bound = TRAITS[dialect].needs_follower == "own"
    thoughts = (block for block in blocks[begin:at] if isinstance(block, ThinkingBlock))
    return begin if is_bound and any(block.encrypted for block in thoughts) else at


def _from_envelopes(message: Message, unseal: Unseal, unknown: Unknown) -> tuple[Message, str]:
    """The answer with the blocks from its envelopes, each in its original position. An envelope
    without blocks only says where they are stored."""
    carriers = [carrier for block in message.blocks for carrier in carriers_of(block)]
    opened = [sealed for carrier in carriers if (sealed := unseal(carrier)) and sealed.blocks]
    opened = [
        one for one in opened if (one.origin, one.answer) == (opened[0].origin, opened[0].answer)
    ]
    if not opened:
        if unknown == "trusted" and not any(map(is_envelope, carriers)):
            blocks = tuple(map(_with_provider_id, message.blocks))
            is_whole = bool(carriers or message.thinking) or _is_opaque(message)
            return replace(message, blocks=blocks, origin=None), "given" if is_whole else "unknown"
        bare = tuple(
            map(_with_provider_id, without_carriers(message.blocks, thoughts=unknown != "bare"))
        )
        is_same = len(bare) == len(message.blocks) and all(map(is_, bare, message.blocks))
        if is_same and message.origin is None:
            return message, "unknown"
        return replace(message, blocks=bare, origin=None), "unknown"
    held = {at: block for sealed in opened for at, block in sealed.blocks.items()}
    calls = {at: count for sealed in opened for at, count in sealed.calls.items()}
    visible = without_carriers(message.blocks, thoughts=False)
    blocks = tuple(_in_place(held, calls, visible))
    return replace(message, blocks=blocks, origin=opened[0].origin), "found"


def _is_opaque(message: Message) -> bool:
    """Whether the message has only what its client's provider understands."""
    return all(isinstance(block, OpaqueBlock) for block in message.blocks)


def _ids_of(before: Message, after: Message) -> dict[str, str]:
    """The ids under which calls are sent, by the keys of the client's. Those of a client that
    counts them itself belong to its latest answer."""
    calls = before.tool_calls
    if not calls:
        return {}
    pairs = zip(calls, after.tool_calls, strict=True)
    return {call_key(one.id): other.id for one, other in pairs}


def _in_place(
    held: Mapping[int, Block], calls: Mapping[int, int], visible: Iterable[Block]
) -> Iterator[Block]:
    """Thinking in its original position among the client's texts and calls. `calls` is the number
    of calls before each block: it fixes the position even if a client joined texts."""
    thoughts = deque(at for at in sorted(held) if isinstance(held[at], ThinkingBlock))
    signed = {
        calls.get(at, 0): block for at, block in held.items() if isinstance(block, ToolCallBlock)
    }
    at = called = 0
    left = [*visible]
    while left:
        block = left[0]
        leads_to_call = False
        while thoughts and calls.get(thoughts[0], called) <= called:
            if not isinstance(block, ToolCallBlock) and thoughts[0] > at:
                break
            leads_to_call = isinstance(held.get(thoughts[0] + 1), ToolCallBlock)
            yield held[thoughts.popleft()]
            at += 1
        if leads_to_call:  # whatever text its client puts before all calls
            block = next((one for one in left if isinstance(one, ToolCallBlock)), block)
        left.remove(block)
        is_call = isinstance(block, ToolCallBlock)
        at += 1
        yield _signed(block, signed.get(called)) if is_call else block
        called += is_call
    yield from (held[one] for one in thoughts)


def _signed(block: Block, sealed: ToolCallBlock | None) -> Block:
    """A call with its original id, signature and extra fields."""
    if isinstance(block, ToolCallBlock) and sealed is not None and sealed.name == block.name:
        return replace(block, id=sealed.id, signature=sealed.signature, wire=sealed.wire)
    return _with_provider_id(block)


def _with_provider_id(block: Block) -> Block:
    """A call under the id that the provider gave it, if the gateway's spells it out."""
    if isinstance(block, ToolCallBlock) and (own := provider_id(block.id)):
        return replace(block, id=own)
    return block


def without_carriers(blocks: Iterable[Block], *, thoughts: bool) -> list[Block]:
    """The readable part of the blocks; `thoughts` says whether to include readable thinking. The
    field that it came in is not named: a client's API may be another than the target's."""
    left: list[Block] = []
    for block in blocks:
        match block:
            case ThinkingBlock():
                if block.thought and thoughts:
                    left.append(ThinkingBlock(block.thought, kind=block.kind))
            case TextBlock():
                left.append(TextBlock(block.text) if block.signature or block.wire else block)
            case ToolCallBlock():
                left.append(replace(block, signature=None, wire=None))
            case _:
                left.append(block)
    return left


def _renamed(block: Block, ids: Mapping[str, str]) -> Block:
    if isinstance(block, ToolCallBlock):
        return replace(block, id=ids.get(call_key(block.id), block.id))
    return block


def _with_own_ids(message: Message, ids: Mapping[str, str]) -> Message:
    """The message, with results under the provider's ids of their calls."""
    if not ids or ToolResultBlock not in map(type, message.blocks):
        return message
    blocks = tuple(
        replace(block, call_id=ids.get(call_key(block.call_id), block.call_id))
        if isinstance(block, ToolResultBlock)
        else block
        for block in message.blocks
    )
    return message if blocks == message.blocks else replace(message, blocks=blocks)


def _notes(counts: Mapping[str, int]) -> Iterator[Note]:
    if counts["altered"]:
        text = f"{_answers(counts['altered'])} sent back with other tool calls: reasoning left out"
        yield Note(REATTACHED, text, warning=True)
    if counts["reworded"]:
        text = f"{_answers(counts['reworded'])} sent back with other text"
        yield Note(REATTACHED, f"{text}: the encrypted reasoning before it left out", warning=True)
    if counts["several"]:
        text = (
            f"{_answers(counts['several'])} like others of this client, with nothing to tell them"
        )
        advice = (
            "apart: reasoning left out. Name the session in prompt_cache_key, user or x-session-id"
        )
        yield Note(REATTACHED, f"{text} {advice}", warning=True)
    if counts["unknown"]:
        text = f"{_answers(counts['unknown'])} not found"
        yield Note(REATTACHED, f"{text}: sent without signatures and encrypted reasoning")


def _answers(count: int) -> str:
    return "1 answer was" if count == 1 else f"{count} answers were"
