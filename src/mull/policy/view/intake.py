"""Which thinking of an answer its endpoint accepts back.

This is decided before anything is counted; the form is up to the dialect.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import groupby

from mull.dialects.registry import replay
from mull.dialects.replay import Form, Left, Replay, Taken, Way, is_void
from mull.dialects.traits import TRAITS
from mull.neutral.blocks import Block, ThinkingBlock
from mull.neutral.target import Target
from mull.policy.heal.amendment import thought_name
from mull.policy.heal.lessons import fingerprints

__all__ = ["Intake", "Left", "intake_of", "taken"]


class Intake(Way, frozen=True):
    """What decides it, and what the endpoint rejects.

    `refused` are fingerprints of carriers that the endpoint rejected before, `left_out` names of
    thinking blocks that it does not accept this once.
    """

    refused: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()

    def leaves_out(self, thought: ThinkingBlock) -> bool:
        """Whether thinking in this form is left out this once."""
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


def taken(
    blocks: Sequence[Block],
    intake: Intake,
    *,
    paused: bool = False,
    torn: Set[int] = frozenset(),
) -> list[Taken]:
    """Each block of an answer with its form in a request, or why it has none.

    An answer that `paused` continues in the next one: nothing at its end is final. `torn` are the
    ids of thinking blocks whose follower is not sent.
    """
    way, out = replay(intake.dialect), list[Taken]()
    for thinks, run in groupby(blocks, key=_is_thought):
        if thinks:
            thoughts = [block for block in run if isinstance(block, ThinkingBlock)]
            forms = way.forms(thoughts, intake)
            out += [(b, _lean(b, form)) for b, form in zip(thoughts, forms, strict=True)]
        else:
            out += [(block, block) for block in run]
    out = way.settle(out)
    if intake.refused or intake.left_out:
        out = [(block, _unrefused(block, form, intake)) for block, form in out]
    follower = TRAITS[intake.dialect].needs_follower
    if torn and follower == "own":
        out = _without_torn(out, torn)
    if not paused and follower is not None:
        _leave_trailing(out, way)
    return out


def _is_thought(block: Block) -> bool:
    return isinstance(block, ThinkingBlock)


def _lean(block: ThinkingBlock, form: Form) -> Form:
    """The same object if nothing changed; a form without content is none."""
    if form is block:
        return block
    if not isinstance(form, ThinkingBlock) or form == block:
        return block if isinstance(form, ThinkingBlock) else form
    return "untaken" if is_void(form) else form


def _unrefused(block: Block, form: Block | Left, intake: Intake) -> Block | Left:
    if isinstance(form, ThinkingBlock) and intake.leaves_out(form):
        return "refused"
    if intake.refused.isdisjoint(fingerprints(block)):
        return form
    return replay(intake.dialect).unsealed(block)


def _without_torn(out: list[Taken], torn: Set[int]) -> list[Taken]:
    """The forms without thinking that was torn off; what is not encrypted may stand anywhere."""
    thoughts = [b for b, _ in out if isinstance(b, ThinkingBlock) and id(b) in torn]
    if not any(block.encrypted for block in thoughts):
        return out
    gone = {id(block) for block in thoughts if not is_void(block)}
    return [
        (block, "unfollowed" if id(block) in gone and not isinstance(form, str) else form)
        for block, form in out
    ]


def _leave_trailing(out: list[Taken], way: Replay) -> None:
    """Remove thinking that is not followed by anything that is sent."""
    for at in range(len(out) - 1, -1, -1):
        block, form = out[at]
        if isinstance(form, ThinkingBlock):
            out[at] = (block, form) if is_void(form) else (block, "unfollowed")
        elif not isinstance(form, str) and way.is_sent(form, out[:at]):
            return
