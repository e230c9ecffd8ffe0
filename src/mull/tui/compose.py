"""The message for what was typed: with the files and resources it mentions, and attachments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mull.neutral.messages import user

if TYPE_CHECKING:
    from mull.agent.session import Session
    from mull.neutral.blocks import MediaBlock, TextBlock
    from mull.neutral.messages import Message
    from mull.policy.approval import Rule

__all__ = ["compose"]


async def compose(
    text: str,
    session: Session,
    ran: Sequence[TextBlock],
    attached: Sequence[MediaBlock],
    warn: Callable[[str], None],
) -> Message:
    """The message; `ran` precedes what the text mentions, `attached` follows it."""
    from mull.agent.attachments import expand_mentions
    from mull.tui.commands.prompts import attach_resources

    resources, missing = await attach_resources(text, session) if "@" in text else ((), ())
    said, notes = expand_mentions(
        text,
        session.info.folder,
        (*ran, *resources, *attached),
        inputs=session.target.facts.input,
        rules=_reading_rules(session) if "@" in text else (),
    )
    for note in (*missing, *notes):
        warn(note)
    return user(said) if isinstance(said, str) else said


def _reading_rules(session: Session) -> tuple[Rule, ...]:
    """What may not be read, also if no tools are in use."""
    from mull.store.approvals import own_rules

    toolbox = session.toolbox
    return toolbox.gate.rules if toolbox else own_rules(session.info.folder)
