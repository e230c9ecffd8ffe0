"""What comes of a batch: one result per item, and sums."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from mull.agent.results import Result
from mull.neutral.errors import MullError
from mull.neutral.usage import Usage, add_usage
from mull.policy.cost import CostSum, format_cost

__all__ = ["BatchProgress", "BatchResult"]


class BatchResult(Struct, frozen=True):
    """What came of one item: a `result`, or an `error`.

    `index` is its position among the items, `id` its given id or one made from its content, `item`
    what was given. An answer that broke off, or does not match its schema, has both: what arrived
    and the reason. A `stored` result is from an earlier run.
    """

    index: int
    id: str
    item: Any
    result: Result | None = None
    error: MullError | None = None
    stored: bool = False

    def unwrap(self) -> Result:
        """The result.

        Raises:
            MullError: there is an error instead.
        """
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result


class BatchProgress(Struct):
    """How far a batch has come. `total` is None while it is unknown.

    `stored` is how many results come from an earlier run; they are part of `done`, of `usage` and
    of `cost`. A count that one result lacks is unknown in the sum; `cost` says how many lack a
    price. `waiting` is why nothing is sent at the moment.
    """

    total: int | None = None
    done: int = 0
    failed: int = 0
    stored: int = 0
    usage: Usage | None = None
    cost: CostSum = field(default_factory=CostSum)
    waiting: str = ""

    def add(self, one: BatchResult) -> None:
        """Count a result."""
        self.done += 1
        self.failed += one.error is not None
        self.stored += one.stored
        if one.result is None:
            return
        used, cost = one.result.usage, one.result.cost
        self.usage = used if not self.cost.of else add_usage(self.usage, used)
        known = self.cost.known + (cost or 0.0)
        self.cost = CostSum(known, self.cost.unknown + (cost is None), self.cost.of + 1)

    def __str__(self) -> str:
        parts = [f"{self.done}/{'?' if self.total is None else self.total}"]
        if self.stored:
            parts.append(f"{self.stored} from the file")
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.cost.of > self.cost.unknown:
            least = "≥ " if self.cost.unknown else ""
            parts.append(f"{least}{format_cost(self.cost.known)}")
        return " · ".join([*parts, *([self.waiting] if self.waiting else [])])
