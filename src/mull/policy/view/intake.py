"""What of an answer's thinking its endpoint takes back, and in which form.

Decided here, before anything is counted: an encoder writes every thought it is given. A thought
comes out as it is sent, without the carriers that its dialect has no place for, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Literal, TypeAlias

from msgspec.structs import replace

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
from mull.neutral.messages import Dialect
from mull.neutral.places import (
    CONTENT_LIST,
    DETAILS,
    TAGS,
    chat_place,
    has_lost_signature,
    is_opaque,
    is_same_item,
    text_of,
)
from mull.neutral.target import Target
from mull.neutral.thinking import UNSIGNED_CALL
from mull.neutral.traits import TRAITS
from mull.policy.heal.amendment import thought_name
from mull.policy.heal.lessons import call_seals, fingerprints, with_seal

__all__ = ["Intake", "Left", "intake_of", "taken"]

Left: TypeAlias = Literal["untaken", "unsigned", "unreadable", "unfollowed", "refused"]
"""Why a thought is not sent: no place for it, no signature, nothing that the endpoint could read,
nothing after it in its answer, or the endpoint refuses it."""
_COPILOT = "reasoning_text"
_GEMINI = "thought"


class Intake(Value, frozen=True):
    """What decides it: the dialect, what its row says, and the request's own wishes.

    `refused` are fingerprints of carriers that the endpoint would not take back before, `left_out`
    names of thoughts that it does not take back this once.
    """

    dialect: Dialect
    out: str = "same"
    first: str = "reasoning_content"
    only: str | None = None
    signed_only: bool = False
    thinks: bool = True
    refused: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()

    def leaves_out(self, thought: ThinkingBlock) -> bool:
        """Whether the thought in this form does not go this once."""
        return bool(self.left_out) and thought_name(thought) in self.left_out


def intake_of(
    target: Target, *, thinks: bool, only: str | None, left_out: frozenset[str] = frozenset()
) -> Intake:
    """The intake of a target for a request that thinks or not."""
    compat = target.compat
    return Intake(
        dialect=target.dialect,
        out=compat.reasoning_out,
        first=next(iter(compat.reasoning_in), "reasoning_content"),
        only=only,
        signed_only=compat.signed_only and compat.requires_reasoning != "all",
        thinks=thinks,
        refused=frozenset(target.refused),
        left_out=left_out,
    )


_Form: TypeAlias = ThinkingBlock | Left
_Taken: TypeAlias = tuple[Block, Block | Left]


def taken(blocks: Sequence[Block], intake: Intake, *, paused: bool = False) -> list[_Taken]:
    """Each block of an answer with its form in a request, or why it has none.

    An answer that `paused` goes on in the next one: nothing at its end is the last of it.
    """
    out: list[_Taken] = []
    for thinks, run in groupby(blocks, key=_is_thought):
        if thinks:
            thoughts = [block for block in run if isinstance(block, ThinkingBlock)]
            forms = _FORMS[intake.dialect](thoughts, intake)
            out += [(b, _lean(b, form)) for b, form in zip(thoughts, forms, strict=True)]
        else:
            out += [(block, block) for block in run]
    if intake.dialect == "openai-chat":
        _keep_one_seal(out)
    if intake.refused or intake.left_out:
        out = [(block, _unrefused(block, form, intake)) for block, form in out]
    if not paused and TRAITS[intake.dialect].needs_follower:
        _leave_trailing(out, intake.dialect)
    return out


def _keep_one_seal(out: list[_Taken]) -> None:
    """A Chat message has one place for a signature: the last one stands for the whole of it."""
    sealed = False
    for at in range(len(out) - 1, -1, -1):
        block, form = out[at]
        if not isinstance(form, ThinkingBlock) or not form.signature:
            continue
        if form.source_field == _COPILOT and sealed:
            rest = replace(form, signature=None)
            out[at] = block, "untaken" if _is_void(rest) else rest
        sealed = sealed or form.source_field == _COPILOT


def _is_thought(block: Block) -> bool:
    return isinstance(block, ThinkingBlock)


def _lean(block: ThinkingBlock, form: _Form) -> _Form:
    """The same object where nothing changed; a form that says nothing is none."""
    if not isinstance(form, ThinkingBlock) or form == block:
        return block if isinstance(form, ThinkingBlock) else form
    return "untaken" if _is_void(form) else form


def _unrefused(block: Block, form: Block | Left, intake: Intake) -> Block | Left:
    if isinstance(form, ThinkingBlock) and intake.leaves_out(form):
        return "refused"
    if intake.refused.isdisjoint(fingerprints(block)):
        return form
    match block:
        case TextBlock():
            return replace(block, signature=None)
        case ToolCallBlock():
            for vendor in call_seals(block):
                block = with_seal(block, vendor, UNSIGNED_CALL)
            return replace(block, signature=None)
        case _:
            return "refused"


def _leave_trailing(out: list[_Taken], dialect: Dialect) -> None:
    """Take the thoughts out that nothing follows which is sent."""
    for at in range(len(out) - 1, -1, -1):
        block, form = out[at]
        if isinstance(form, ThinkingBlock):
            out[at] = (block, form) if _is_void(form) else (block, "unfollowed")
        elif not isinstance(form, str) and _is_sent(form, out[:at], dialect):
            return


def _is_sent(form: Block, before: list[_Taken], dialect: Dialect) -> bool:
    """Whether something is left in a request of what is no thought."""
    match form:
        case TextBlock():
            return bool(form.text) or (form.extra is not None and dialect != "anthropic")
        case MediaBlock() | ToolResultBlock():  # not for an answer
            return False
        case OpaqueBlock() if dialect == "openai-responses":
            return _has_its_thought(before)
    return True


def _has_its_thought(before: list[_Taken]) -> bool:
    """A hosted tool's item goes only with the reasoning that stands before it."""
    thoughts = [(block, form) for block, form in before if isinstance(block, ThinkingBlock)]
    if not thoughts:
        return True
    (block, form), earlier = thoughts[-1], thoughts[:-1]
    if isinstance(form, ThinkingBlock) and not _is_void(form):
        return True
    if not earlier or not is_same_item(earlier[-1][0], block):
        return False
    return isinstance(earlier[-1][1], ThinkingBlock)


def _is_void(block: ThinkingBlock) -> bool:
    return not block.thought and not block.has_carrier and block.redacted is None


def _chat(blocks: Iterable[ThinkingBlock], intake: Intake) -> Iterator[_Form]:
    for block in blocks:
        place = chat_place(block, intake.only, intake.out, intake.first)
        if place is None:
            yield "untaken"
        elif intake.signed_only and not intake.only and not block.has_carrier:
            yield "unsigned"
        else:
            yield _chat_form(block, place, intake)


def _chat_form(block: ThinkingBlock, place: str, intake: Intake) -> _Form:
    if place == CONTENT_LIST:
        return replace(block, encrypted=None, redacted=None)
    signed = block.source_field == _COPILOT and intake.only in (None, place)
    signature = block.signature if signed and place not in (TAGS, DETAILS) else None
    form = replace(block, signature=signature, encrypted=None, redacted=None)
    details = block.details or []
    if place == DETAILS:
        return _with_details(form, details) if details else form
    named = intake.out != "same"
    beside = place != TAGS and not intake.only and block.source_field != CONTENT_LIST
    if not beside or (named and not any(map(is_opaque, details))):
        return replace(form, details=None)
    if not named and "".join(map(text_of, details)) == block.thought:
        return _with_details(replace(form, signature=None), details) if details else form
    sound = [entry for entry in details if not has_lost_signature(entry)]
    return replace(form, details=sound or None)


def _with_details(form: ThinkingBlock, details: list[dict[str, object]]) -> _Form:
    """The thought in its entries alone, without those whose signature is lost."""
    sound = [entry for entry in details if not has_lost_signature(entry)]
    if len(sound) == len(details):
        return form
    if not sound:
        return "unsigned"
    return replace(form, details=sound, thought="".join(map(text_of, sound)))


def _anthropic(blocks: Iterable[ThinkingBlock], intake: Intake) -> Iterator[_Form]:
    for block in blocks:
        if intake.out == "never":
            yield "untaken"
        elif block.redacted is not None:
            yield replace(block, thought="", signature=None, encrypted=None, details=None)
        elif block.signature is None and intake.signed_only:
            bare = replace(block, encrypted=None, details=None)
            yield "unsigned" if block.thought else bare
        else:
            details = block.details[:1] if block.details and block.signature is not None else None
            yield replace(block, encrypted=None, details=details)


def _responses(blocks: Sequence[ThinkingBlock], intake: Intake) -> Iterator[_Form]:
    for _, item in groupby(zip(blocks, _items(blocks), strict=True), key=lambda pair: pair[1]):
        members = [block for block, _ in item]
        readable = any(b.encrypted or (b.kind == "raw" and b.thought) for b in members)
        for block in members:
            form = replace(block, signature=None, redacted=None)
            yield form if readable or block.is_blank else "unreadable"


def _items(blocks: Sequence[ThinkingBlock]) -> Iterator[int]:
    """The reasoning item that each block was part of: a summary and its raw text are one."""
    number = 0
    for at, block in enumerate(blocks):
        number += not (at and is_same_item(blocks[at - 1], block))
        yield number


def _gemini(blocks: Iterable[ThinkingBlock], intake: Intake) -> Iterator[_Form]:
    for block in blocks:
        beside = block.details if block.source_field == _GEMINI else None
        if not block.signature and not beside and not intake.thinks and not block.is_blank:
            yield "unreadable"
        else:
            yield replace(block, encrypted=None, redacted=None, details=beside)


_FORMS: Mapping[Dialect, Callable[[Sequence[ThinkingBlock], Intake], Iterator[_Form]]] = (
    MappingProxyType(
        {
            "openai-chat": _chat,
            "openai-responses": _responses,
            "anthropic": _anthropic,
            "gemini": _gemini,
        }
    )
)
