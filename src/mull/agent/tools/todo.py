"""`todo`: the model's plan of a task, kept where it and the user can see it."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from mull.agent.tools.builtin import BuiltinTool, Plan, in_thread
from mull.agent.tools.shown import one_line
from mull.agent.tools.tool import Outcome, Preview
from mull.policy.approval import Subject

__all__ = ["Todo", "TodoItem"]

State: TypeAlias = Literal["pending", "in_progress", "done"]
_MARKS: dict[State, str] = {"pending": "[ ]", "in_progress": "[~]", "done": "[x]"}
_MOST = 100


class TodoItem(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One step."""

    text: Annotated[str, Meta(min_length=1, description="what to do")]
    status: Annotated[State, Meta(description="its status")] = "pending"


class TodoArguments(Struct, kw_only=True, forbid_unknown_fields=True):
    """All steps."""

    items: Annotated[
        list[TodoItem],
        Meta(max_length=_MOST, description="all steps in order, including finished ones"),
    ]


class Todo(BuiltinTool[TodoArguments]):
    """Keeps the plan."""

    name = "todo"
    description = (
        "Keep a list of the steps of a larger task. Give the whole list each time: "
        "before you start, and whenever you start or finish a step. Not for tasks of "
        "one or two steps."
    )
    arguments = TodoArguments
    items: tuple[TodoItem, ...] = ()

    def plan(self, given: TodoArguments) -> Plan:
        """The new list."""
        items = tuple(given.items)
        shown = "\n".join(f"{_MARKS[item.status]} {one_line(item.text)}" for item in items)
        counts = Counter(item.status for item in items)
        title = f"todo: {counts['done']} of {len(items)} done" if items else "todo: nothing"

        def keep() -> Outcome:
            self.items = items
            return Outcome(shown or "the list is empty")

        work = in_thread(lambda left, tokens: keep())
        return Plan(Subject("text", ""), Preview(title, shown), work)
