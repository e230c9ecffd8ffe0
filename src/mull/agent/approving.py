"""A function that approves tool calls, as `approve=` of a conversation."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from mull.agent.function_runs import in_thread
from mull.agent.tools.approve import ApprovalAnswer, ApprovalRequest, Approver, Gate
from mull.agent.tools.tool import ToolFailure, explain
from mull.logs import log_warning
from mull.neutral.errors import LocalError

if TYPE_CHECKING:
    from mull.agent.calls import Approve

__all__ = ["ApproveFunction", "approval", "approver_of"]

ApproveFunction: TypeAlias = Callable[[ApprovalRequest], bool | str | Awaitable[bool | str]]
"""Decides on a call: True allows it, False refuses it, and a text refuses it with this reason."""


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
    because turns may run on different event loops.

    Raises:
        LocalError: it is not a function.
    """
    approver = approver_of(approve)
    return lambda: Gate("ask", approver=approver).admit


class _FunctionApprover:
    def __init__(self, approve: ApproveFunction) -> None:
        self._approve = approve

    async def ask(self, request: ApprovalRequest) -> ApprovalAnswer:
        """The function's decision. If it fails, the call is refused."""
        try:
            said = await self._answer(request)
        except Exception as error:
            why = str(error) if isinstance(error, ToolFailure) else explain(error)
            log_warning(f"approve failed, so {request.tool} was not run: {why}")
            return ApprovalAnswer("no", reason="asking for approval failed")
        if isinstance(said, str):
            return ApprovalAnswer("no", reason=said.strip()) if said.strip() else _REFUSED
        return ApprovalAnswer("once") if said is True else _REFUSED

    async def _answer(self, request: ApprovalRequest) -> bool | str:
        approve = self._approve
        if inspect.iscoroutinefunction(approve):
            said = await approve(request)
        else:  # it may wait for a person
            said = await in_thread(lambda: approve(request))
            said = await said if inspect.isawaitable(said) else said
        if isinstance(said, bool | str):
            return said
        raise TypeError(f"it returned {said!r} instead of True, False or a text")


_REFUSED = ApprovalAnswer("no")
