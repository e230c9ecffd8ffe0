"""The result of a turn."""

from __future__ import annotations

from mull.agent.run import Turn
from mull.neutral.blocks import Value
from mull.neutral.messages import Message, Status
from mull.neutral.request import Note
from mull.neutral.usage import Usage, add_usage
from mull.policy.reasoning import thinking_to_reasoning_field

__all__ = ["Result", "result_of"]


class Result(Value, frozen=True):
    """An answer: its text and thinking, how it ended, and what it cost.

    `message` is the last answer, `messages` everything the turn added (including tool rounds).
    `usage` sums all requests of the turn; a count is unknown if one of them did not report it.
    """

    text: str
    thinking: str
    status: Status
    usage: Usage | None
    notes: tuple[Note, ...]
    message: Message
    messages: tuple[Message, ...]
    model: str

    def __str__(self) -> str:
        return self.text


def result_of(turn: Turn) -> Result:
    """The result of a turn so far."""
    answers = [message for message in turn.messages if message.role == "assistant"]
    last = answers[-1] if answers else Message(role="assistant", status="interrupted")
    usage: Usage | None = None
    for at, answer in enumerate(answers):
        usage = answer.usage if at == 0 else add_usage(usage, answer.usage)
    return Result(
        text=last.text,
        thinking="\n\n".join(
            thought
            for answer in answers
            if (thought := thinking_to_reasoning_field(answer.thinking))
        ),
        status=last.status or "complete",
        usage=usage,
        notes=tuple(turn.notes),
        message=last,
        messages=tuple(turn.messages),
        model=turn.target.name,
    )
