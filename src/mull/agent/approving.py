"""A function that approves tool calls, as `approve=` of a conversation."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from mull.agent.function_runs import in_thread
from mull.agent.tools.approve import ApprovalAnswer, ApprovalRequest, Approver, Gate
from mull.neutral.errors import LocalError

if TYPE_CHECKING:
    from mull.agent.calls import Approve
    from mull.policy.approval import Rule

__all__ = ["ApproveFunction", "approval", "approver_of"]

_Said: TypeAlias = ApprovalAnswer | bool | str
ApproveFunction: TypeAlias = Callable[[ApprovalRequest], _Said | Awaitable[_Said]]
"""Decides on a call: True or "yes" allows it, "session" and "always" also what the rules of the
request match, False or "no" refuses it, and any other text refuses it with this reason.
"""


def approver_of(given: Approver | ApproveFunction | None) -> Approver | None:
    """A function as an approver.

    Raises:
        LocalError: it is neither.
    """
    if given is None or hasattr(given, "ask"):
        return given
    if not callable(given):
        raise LocalError(f"approve must be a function, not {type(given).__name__}")
    return _FunctionApprover(given)


def approval(approve: ApproveFunction) -> Callable[[], Approve]:
    """What asks the function before calls that change something, one at a time; anew for each turn,
    because turns may run on different event loops. What it allows for the session holds for all of
    them.

    Raises:
        LocalError: it is not a function.
    """
    approver = approver_of(approve)
    session: list[Rule] = []

    def admission() -> Approve:
        gate = Gate("ask", approver=approver)
        gate.session = session
        return gate.admit

    return admission


class _FunctionApprover:
    def __init__(self, approve: ApproveFunction) -> None:
        self._approve = approve

    async def ask(self, request: ApprovalRequest) -> _Said:
        """The function's decision."""
        approve = self._approve
        if inspect.iscoroutinefunction(approve):
            said: _Said = await approve(request)
            return said
        answer = await in_thread(lambda: approve(request))  # it may wait for a person
        return await answer if inspect.isawaitable(answer) else answer
