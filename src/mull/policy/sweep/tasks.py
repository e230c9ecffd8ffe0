"""The tasks of a sweep: prompts, and what a right answer is.

A file of tasks has one JSON object per line, or is a JSON list of them:

    {"prompt": "What is 17 * 24?", "expect": "408"}

`expect` is what the answer must contain: a text or a number, or a list of them of which one is
enough. `exact` is the whole answer, `matches` a regular expression that must be found in it. With
`schema`, the answer must be JSON that matches; together with `expect` it must be that value. A task
with none of them is right if a checker says so, and otherwise not graded.
"""

from __future__ import annotations

import hashlib
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Any

import msgspec

from mull.neutral.blocks import Value
from mull.neutral.errors import ConfigError

__all__ = ["Task", "read_tasks"]


class Task(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One task; its `id` is made from what is asked unless one is given."""

    prompt: str
    id: str = ""
    system: str | None = None
    expect: Any = None
    exact: str | None = None
    matches: str | None = None
    schema: dict[str, Any] | None = None


def read_tasks(data: bytes) -> dict[str, Task]:
    """The tasks in a file, each by its place: `line 3`, or `task 3` of a list.

    Raises:
        ConfigError: it is not a file of tasks; says where and why.
    """
    tasks = {place: _task(one, place) for place, one in _places(data.removeprefix(BOM_UTF8))}
    if not tasks:
        raise ConfigError("there are no tasks in the file")
    seen: dict[str, str] = {}
    for place, task in tasks.items():
        if task.id in seen:
            raise ConfigError(
                f"{seen[task.id]} and {place} are the same task, or have the same id: give each an"
                " id of its own"
            )
        seen[task.id] = place
    return tasks


def _places(text: bytes) -> Iterator[tuple[str, bytes | msgspec.Raw]]:
    if text.lstrip().startswith(b"["):
        yield from ((f"task {number}", one) for number, one in enumerate(_list(text), 1))
        return
    for number, line in enumerate(text.split(b"\n"), 1):
        if line.strip():
            yield f"line {number}", line


def _list(text: bytes) -> list[msgspec.Raw]:
    try:
        return msgspec.json.decode(text, type=list[msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"not a JSON list: {error}") from None


def _task(data: bytes | msgspec.Raw, place: str) -> Task:
    try:
        task = msgspec.json.decode(data, type=Task)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{place}: not a task: {error}") from None
    try:
        re.compile(task.matches or "")
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigError(f"{place}: matches is not a regular expression: {error}") from None
    if not task.prompt.strip():
        raise ConfigError(f"{place}: the prompt is empty")
    if task.schema is None and not _can_be_found(task.expect):
        raise ConfigError(f"{place}: expect must be a text or a number, or a list of them")
    return task if task.id else msgspec.structs.replace(task, id=_name(task))


def _can_be_found(expect: Any) -> bool:
    """Whether a text can contain this."""
    if isinstance(expect, list):
        return bool(expect) and all(one is not None and _can_be_found(one) for one in expect)
    if isinstance(expect, str):
        return bool(expect.strip())
    return expect is None or isinstance(expect, bool | int | float)


def _name(task: Task) -> str:
    """A short name that the same question always gets, whatever its right answer is."""
    asked = Task(prompt=task.prompt, system=task.system, schema=task.schema)
    return hashlib.sha256(msgspec.json.encode(asked)).hexdigest()[:12]
