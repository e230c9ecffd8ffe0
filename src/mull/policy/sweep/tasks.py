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
from typing import Any

import msgspec

from mull.neutral.blocks import Value
from mull.neutral.errors import ConfigError

__all__ = ["Task", "read_tasks"]


class Task(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One task; its `id` is made from its content unless one is given."""

    prompt: str
    id: str = ""
    system: str | None = None
    expect: Any = None
    exact: str | None = None
    matches: str | None = None
    schema: dict[str, Any] | None = None


def read_tasks(data: bytes) -> tuple[Task, ...]:
    """The tasks in a file.

    Raises:
        ConfigError: it is not a file of tasks; says where and why.
    """
    text = data.removeprefix(b"\xef\xbb\xbf").strip()
    if text.startswith(b"["):
        tasks = [_task(one, f"task {number}") for number, one in enumerate(_list(text), 1)]
    else:
        lines = enumerate(text.split(b"\n"), 1)
        tasks = [_task(line, f"line {number}") for number, line in lines if line.strip()]
    if not tasks:
        raise ConfigError("there are no tasks in the file")
    seen: dict[str, int] = {}
    for number, task in enumerate(tasks, 1):
        if task.id in seen:
            raise ConfigError(f"tasks {seen[task.id]} and {number} are the same, or have one id")
        seen[task.id] = number
    return tuple(tasks)


def _list(text: bytes) -> list[msgspec.Raw]:
    try:
        return msgspec.json.decode(text, type=list[msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"not a JSON list: {error}") from None


def _task(data: bytes | msgspec.Raw, where: str) -> Task:
    try:
        task = msgspec.json.decode(data, type=Task)
        if task.matches is not None:
            re.compile(task.matches)
    except (msgspec.DecodeError, UnicodeDecodeError, re.error) as error:
        raise ConfigError(f"{where}: not a task: {error}") from None
    if not task.prompt.strip():
        raise ConfigError(f"{where}: the prompt is empty")
    return task if task.id else msgspec.structs.replace(task, id=_name(task))


def _name(task: Task) -> str:
    """A short name that the same task always gets."""
    return hashlib.sha256(msgspec.json.encode(task)).hexdigest()[:12]
