"""What a task is, and whether an answer to it is right."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

__all__ = ["Check", "Problem", "is_right"]

Check = Literal["number", "begins", "holds", "exact"]
"""How an answer is compared: by its last number, its first word, a part, or as a whole."""

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


class Problem(NamedTuple):
    """A question, the thought that solves it, and the answer.

    `hint` is the thought of somebody in a hurry. `expected` is what the answer is compared with.
    """

    question: str
    thought: str
    hint: str
    answer: str
    expected: str
    check: Check = "number"


def is_right(answer: str, expected: str, check: Check) -> bool:
    """Whether an answer says what was expected of it."""
    said = " ".join(answer.split())
    if check == "number":
        numbers = _NUMBER.findall(said.replace(",", ""))
        return bool(numbers) and float(numbers[-1]) == float(expected)
    if check == "exact":
        return said == expected
    pattern = rf"(?<!\w){re.escape(expected)}(?!\w)"
    found = re.search(pattern, said, re.IGNORECASE)
    return found is not None and (check == "holds" or found.start() == 0)
