"""Whether an answer is right, as far as its task says."""

from __future__ import annotations

import re
from typing import Any

from mull.policy.sweep.tasks import Task

__all__ = ["grade"]

_MARKUP = re.compile(r"[*_`$\\]+")
_GROUPED = re.compile(r"(?<=\d)[,  '](?=\d{3}(?!\d))")
_SPACE = re.compile(r"\s+")


def grade(task: Task, text: str, value: Any = None) -> bool | None:
    """Whether the answer is right; None if the task does not say what a right one is.

    The `value` of a task with a schema has been checked against it.
    """
    checks = []
    if task.schema is not None:
        checks.append(task.expect is None or value == task.expect)
    elif task.expect is not None:
        expected = task.expect if isinstance(task.expect, list) else [task.expect]
        checks.append(any(_contains(text, _words(one)) for one in expected))
    if task.exact is not None:
        checks.append(text.strip() == task.exact.strip())
    if task.matches is not None:
        checks.append(re.search(task.matches, text) is not None)
    return all(checks) if checks else None


def _words(expected: Any) -> str:
    if isinstance(expected, bool) or expected is None:
        return str(expected)
    return f"{expected:g}" if isinstance(expected, float) else str(expected)


def _contains(text: str, expected: str) -> bool:
    """Whether the text contains these words, whatever their case, spacing and markup; a number is
    not contained in a longer one.
    """
    found, wanted = _plain(text), _plain(expected)
    if not wanted:  # it is nothing but marks
        return bool(expected.strip()) and expected.strip() in text
    before = ""
    if wanted[0].isdigit():
        before = r"(?<![\w.])(?<!\d,)(?<!-)"
    elif wanted[0].isalpha():
        before = r"(?<!\w)"
    after = r"(?!\w)(?!\.\d)" if wanted[-1].isalnum() else ""
    return re.search(before + re.escape(wanted) + after, found) is not None


def _plain(text: str) -> str:
    return _SPACE.sub(" ", _GROUPED.sub("", _MARKUP.sub("", text))).strip().casefold()
