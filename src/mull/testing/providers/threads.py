"""Anthropic's message threads: the server keeps a conversation, the client sends what is new.

    {"thread": {"type": "create"}, "messages": [...]}
    {"thread": {"type": "continue", "previous_message_id": "msg_1"}, "messages": [...]}

Each answer can be continued once, with the fields that the thread was created with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from mull.testing.ledger import Issued, Kept, Ledger, Piece
from mull.testing.providers.provider import Asked
from mull.testing.verdict import Verdict

__all__ = ["continued", "kept_of"]

_FIXED = ("model", "system", "tools", "thinking")


def continued(asked: Asked, ledger: Ledger) -> Asked | Verdict:
    """The request with the messages of the thread that it continues."""
    thread = asked.body.get("thread") or {}
    if thread.get("type") != "continue":
        return asked
    name = thread.get("previous_message_id")
    before = ledger.stored(name)
    if before is None or before.kept is None:
        return _lost(name)
    if any(_continues(issued, before.kept) for issued in ledger.answers):
        return Verdict(
            f"The response {name} has already been continued.", code="thread_already_continued"
        )
    fixed = {key: before.kept.fixed[key] for key in _FIXED if key in before.kept.fixed}
    changed = [key for key in _FIXED if asked.body.get(key, fixed.get(key)) != fixed.get(key)]
    if changed:
        return Verdict(
            f"thread: fields differ from the thread's: {', '.join(changed)}",
            code="thread_fingerprint_mismatch",
        )
    messages = [*_told(before.kept, before.pieces), *asked.body["messages"]]
    return replace(asked, body={**fixed, **asked.body, "messages": messages})


def _lost(name: object) -> Verdict:
    return Verdict(f"No thread was found for previous_message_id {name}.", code="thread_not_found")


def _told(kept: Kept, pieces: Sequence[Piece]) -> list[Piece]:
    return [*kept.given, {"role": "assistant", "content": pieces}]


def _continues(issued: Issued, kept: Kept) -> bool:
    """Whether an answer was given to a request that continued this one."""
    after = issued.kept
    return after is not None and after.fixed.get(_PREVIOUS) == kept.id


_PREVIOUS = "previous_message_id"


def kept_of(asked: Asked, document: Mapping[str, Any]) -> Kept | None:
    """What is stored of an exchange: all of it in a thread, else nothing."""
    thread = asked.body.get("thread")
    if not thread:
        return None
    fixed = {key: asked.body[key] for key in _FIXED if key in asked.body}
    fixed[_PREVIOUS] = thread.get(_PREVIOUS)
    return Kept(document["id"], asked.body["messages"], document, fixed)
