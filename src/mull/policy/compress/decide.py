"""When a conversation is compressed, which summaries are accepted, and the record they become.

Compression starts when the effective count exceeds its share of the usable window. A summary that
is empty, cut, or not a summary is rejected with the reason, and nothing changes (G02).
`mull.policy.compress.plan` chooses what it replaces.
"""

from __future__ import annotations

from mull.history.log import Summary
from mull.neutral.blocks import Value
from mull.neutral.messages import Message, Origin
from mull.neutral.usage import Usage
from mull.policy.compress.plan import CompressionPlan
from mull.policy.prepare import Prepared
from mull.settings.layers import Snapshot

__all__ = [
    "Rejected",
    "accept",
    "decide",
    "left_out_text",
    "summary_limit",
    "summary_record",
    "summary_text",
]

LEAST_SUMMARY, MOST_SUMMARY = 512, 8192
"""Bounds on the tokens of a summary; between them it is a sixteenth of the usable window. In a
window that is too small for that, it is a quarter.
"""
DECLINED = ("refusal", "content_filter")
"""Why an answer ended that is none: its text is the provider's, or half of one."""
UNKNOWN_SUMMARY = 4096
"""The same if the window is unknown."""


class Rejected(Value, frozen=True):
    """Why a message is not the requested text; `again`: a higher limit may help. If it was
    `declined`, other material may."""

    reason: str
    again: bool = False
    declined: bool = False


def decide(prepared: Prepared, snapshot: Snapshot) -> str | None:
    """Why this request should be compressed before it is sent, or None."""
    usable, share = prepared.usable, snapshot["compression.threshold"]
    if usable is None or prepared.estimate <= share * usable:
        return None
    return f"the request holds {prepared.estimate:,} of {usable:,} usable tokens, over {share:.0%}"


def summary_limit(usable: int | None) -> int:
    """The tokens a summary may have in a window of this size."""
    if usable is None:
        return UNKNOWN_SUMMARY
    return min(max(usable // 16, LEAST_SUMMARY), usable // 4, MOST_SUMMARY)


def accept(message: Message) -> str | Rejected:
    """The visible text of an answer, if it contains nothing else and is complete."""
    text = message.text.strip()
    thought = ", only thoughts" if message.thinking else ""
    if message.tool_calls:
        return Rejected("it called a tool instead of answering")
    if message.stop_reason in DECLINED:
        return Rejected("it declined to answer", declined=True)
    match message.status:
        case "interrupted" | "error":
            return Rejected("the answer broke off")
        case "truncated" if text:
            return Rejected("it was truncated at its length limit", again=True)
        case "truncated" | "truncated_in_reasoning":
            return Rejected(f"it reached its length limit without any text{thought}", again=True)
    return text or Rejected(f"it was empty{thought}", again=True)


def summary_text(plan: CompressionPlan, body: str) -> str:
    """What replaces the messages: the summary, and verbatim quotes."""
    are = "message is" if plan.messages == 1 else "messages are"
    head = f"[{plan.messages:,} earlier {are} summarised here.]"
    return "\n\n".join((head, body, *plan.quotes))


def left_out_text(plan: CompressionPlan) -> str:
    """The same without a summary; an earlier one written by a model stays."""
    were = "message was" if plan.messages == 1 else "messages were"
    head = f"[{plan.messages:,} earlier {were} left out here to save space.]"
    return "\n\n".join((head, *plan.summaries, *plan.quotes))


def summary_record(
    plan: CompressionPlan,
    text: str,
    *,
    by: Origin | None = None,
    usage: Usage | None = None,
    at: float | None = None,
) -> Summary:
    """The record that replaces what the plan covers with the text."""
    return Summary(plan.start, plan.end, text, plan.role, plan.strategy, by, usage, at)
