"""`ask_user`: a question from the model to the user."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeAlias

from msgspec import Meta, Struct, field

from mull.agent.tools.approve import UserQuestion
from mull.agent.tools.builtin import BuiltinTool, Plan
from mull.agent.tools.shown import one_line, visible
from mull.agent.tools.tool import Outcome, Preview, ToolContext
from mull.agent.tools.workspace import Workspace
from mull.policy.approval import Subject

__all__ = ["Ask", "AskUser", "nobody"]

Ask: TypeAlias = Callable[[UserQuestion], Awaitable[str | None]]
"""Returns the user's answer; None if there is nobody, or no answer."""
_MOST_OPTIONS = 9
_NO_ANSWER = (
    "There is nobody to answer. Choose what seems best, continue, and say in your "
    "answer what you assumed."
)


async def nobody(question: UserQuestion) -> str | None:
    """Stands in for the user if there is none."""
    return None


class AskArguments(Struct, kw_only=True, forbid_unknown_fields=True):
    """What to ask."""

    question: Annotated[str, Meta(min_length=1, description="the question, short and complete")]
    options: Annotated[
        list[str], Meta(max_length=_MOST_OPTIONS, description="answers to choose from, if any")
    ] = field(default_factory=list)


class AskUser(BuiltinTool[AskArguments]):
    """Asks the user."""

    name = "ask_user"
    description = (
        "Ask the user a question and wait for the answer. Use it only for what you "
        "cannot find out yourself and what affects your next steps."
    )
    arguments = AskArguments

    def __init__(self, workspace: Workspace, ask: Ask = nobody) -> None:
        super().__init__(workspace)
        self._ask = ask

    def plan(self, given: AskArguments) -> Plan:
        """The question."""
        question = UserQuestion(visible(given.question), tuple(map(visible, given.options)))

        async def work(context: ToolContext) -> Outcome:
            said = await self._ask(question)
            return Outcome(said.strip() if said and said.strip() else _NO_ANSWER)

        return Plan(Subject("text", ""), Preview(f"ask: {one_line(question.text)}"), work)
