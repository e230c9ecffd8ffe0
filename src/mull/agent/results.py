"""The result of a turn."""

from __future__ import annotations

from typing import Any

from mull.agent.run import Turn
from mull.neutral.blocks import ToolCallBlock, Value
from mull.neutral.errors import RemoteError
from mull.neutral.messages import Message, Status
from mull.neutral.rate_limit import RateLimit
from mull.neutral.request import Note
from mull.neutral.usage import Usage, add_usage
from mull.policy.cost import add_costs
from mull.policy.reasoning import thinking_to_reasoning_field

__all__ = ["Result", "result_of"]


class Result(Value, frozen=True):
    """An answer: its text and thinking, how it ended, and what it cost."""

    text: str
    """The text of the last answer."""
    thinking: str
    """The readable thinking of all answers of the turn; empty if there was none."""
    status: Status
    """How the last answer ended: "complete", or why it did not end as it should."""
    usage: Usage | None
    """The sum of all requests of the turn; a count is unknown (None) if one of them did not report
    it.
    """
    notes: tuple[Note, ...]
    """What mull changed or left out of requests, and why."""
    message: Message
    """The last answer. If the value came through a tool call, that call is JSON text in it."""
    messages: tuple[Message, ...]
    """Everything that the turn added, including tool rounds."""
    model: str
    """The model that answered, as `provider/model`."""
    value: Any = None
    """The answer to a question with a `schema`; None without one."""
    cost: float | None = None
    """The price of all requests in dollars, by the catalog; None if any part of it is unknown."""
    request_id: str | None = None
    """The provider's id of the last request."""
    seconds: float | None = None
    """How long the turn took."""
    first_seconds: float | None = None
    """The seconds until the first piece of the first answer."""
    rate_limit: RateLimit | None = None
    """What the last response said is left of the account's limits."""
    error: RemoteError | None = None
    """The failure that ended the answer, as it would have been raised before the answer began; None
    if none did.
    """

    @property
    def tool_calls(self) -> tuple[ToolCallBlock, ...]:
        """The calls in the last answer."""
        return self.message.tool_calls

    def __str__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        """In a notebook: the thinking folded, then the answer; a value as JSON."""
        from mull.transcripts.contain import contain, fence

        is_json = self.value is not None and self.text.lstrip().startswith(("{", "["))
        answer = fence(self.text.strip(), "json") if is_json else contain(self.text)
        if not self.thinking:
            return answer
        folded = f"<details><summary>Thinking</summary>\n\n{contain(self.thinking)}\n\n</details>"
        return f"{folded}\n\n{answer}".rstrip()


def result_of(turn: Turn) -> Result:
    """The result of a turn so far."""
    arriving = turn.answer.arriving if turn.answer is not None else None
    messages = (*turn.messages, *((arriving,) if arriving is not None else ()))
    answers = [message for message in messages if message.role == "assistant"]
    last = answers[-1] if answers else Message(role="assistant", status="interrupted")
    if turn.shape is not None and not turn.now.options.tools:
        last = turn.shape.as_text(last)
    usage: Usage | None = None
    for at, answer in enumerate(answers):
        usage = answer.usage if at == 0 else add_usage(usage, answer.usage)
    cost = add_costs(turn.costs)
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
        messages=messages,
        model=turn.target.name,
        value=turn.value,
        cost=None if cost.unknown or not cost.of else cost.known,
        request_id=turn.started.request_id if turn.started is not None else None,
        seconds=turn.seconds,
        first_seconds=turn.waits[0] if turn.waits else None,
        rate_limit=turn.started.rate_limit if turn.started is not None else None,
        error=_error(turn),
    )


def _error(turn: Turn) -> RemoteError | None:
    if turn.failed is None:
        return None
    from mull.client.refusal import error_of

    return error_of(turn.failed)
