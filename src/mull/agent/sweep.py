"""Runs a sweep: every task with every model and level, as one batch, and grades the answers."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, TextIO

import msgspec
from msgspec import Struct

from mull.agent.batch.front import batch_async
from mull.agent.batch.items import read_items
from mull.agent.batch.values import BatchResult
from mull.agent.library import Conversation
from mull.agent.results import Result
from mull.neutral.errors import ConfigError, MisfitError
from mull.policy.reasoning import estimate_thinking_tokens
from mull.policy.sweep.cells import Outcome
from mull.policy.sweep.grading import grade
from mull.policy.sweep.tasks import Task
from mull.policy.thinking.plan import plan_thinking

__all__ = ["Sweep", "run_sweep"]


class Sweep(Struct, frozen=True):
    """What is asked: each task of each model at each level, `samples` times.

    The tasks stand by their places in the file, for errors. A `level` None leaves the thinking to
    the settings. The `checker` is a command that gets the task and the answer as JSON on standard
    input; an answer is right if it ends with 0.
    """

    tasks: Mapping[str, Task]
    models: tuple[str, ...]
    levels: tuple[str | None, ...] = (None,)
    samples: int = 1
    checker: tuple[str, ...] = ()

    @property
    def cells(self) -> list[str]:
        """The models and levels, as one writes them, in order."""
        return [_name(model, level) for model in self.models for level in self.levels]

    @property
    def size(self) -> int:
        """How many answers there will be."""
        return len(self.tasks) * len(self.cells) * self.samples

    def runs(self) -> list[tuple[Task, str, str | None, int]]:
        """What is asked, one after another: each task of all models first, so that a sweep that is
        stopped can be compared.
        """
        return [
            (task, model, level, sample)
            for sample in range(self.samples)
            for task in self.tasks.values()
            for model in self.models
            for level in self.levels
        ]


async def run_sweep(
    sweep: Sweep,
    *,
    file: Path | None = None,
    concurrency: int = 8,
    progress: bool | TextIO = False,
    **options: Any,
) -> AsyncIterator[Outcome]:
    """The outcomes as they come. With `file`, what it holds already is not asked again; `progress`
    is where a bar is drawn.

    Raises:
        LocalError: a model, a level, a task or an option is not possible; nothing was asked.
    """
    runs = sweep.runs()
    items = [_item(*run) for run in runs]
    _check_tasks(sweep.tasks, items, [task for task, *_ in runs])
    _check_checker(sweep.checker)
    thinks = {cell: _may_think(cell, options) for cell in sweep.cells}
    batch = batch_async(
        items, sweep.models[0], concurrency=concurrency, file=file, progress=progress, **options
    )
    async with aclosing(batch):
        async for one in batch:
            task, model, level, sample = runs[one.index]
            base = Outcome(task=task.id, model=model, level=level, sample=sample)
            outcome = _outcome(one, base, thinks=thinks[base.cell])
            if one.error is None and one.result is not None:
                right = await _graded(sweep.checker, task, one.result)
                outcome = msgspec.structs.replace(outcome, right=right)
            yield outcome


def _name(model: str, level: str | None) -> str:
    return model if level is None else f"{model}/{level}"


def _check_tasks(
    tasks: Mapping[str, Task], items: Sequence[Mapping[str, Any]], asked: Sequence[Task]
) -> None:
    """Raise what is wrong with a task, such as its schema, before any other costs something."""
    places = {task.id: place for place, task in tasks.items()}
    for item, task in zip(read_items(items), asked, strict=True):
        if item.error is not None:
            raise ConfigError(f"{places[task.id]}: {item.error}")


def _check_checker(command: Sequence[str]) -> None:
    if command and shutil.which(command[0]) is None:
        raise ConfigError(f"cannot run the checker {command[0]}: there is no such command")


def _may_think(cell: str, options: Mapping[str, Any]) -> bool:
    """Whether a model may think at a level.

    Raises:
        LocalError: there is no such model or level, or its key is missing.
    """
    talk = Conversation(cell, **options)
    talk.way()
    return plan_thinking(talk.target, talk.snapshot(), max_tokens=options.get("max_tokens")).thinks


def _item(task: Task, model: str, level: str | None, sample: int) -> Mapping[str, Any]:
    name = _name(model, level)
    given = {"id": f"{task.id} {name} {sample}", "model": name, "prompt": task.prompt}
    extra = {"system": task.system, "schema": task.schema}
    return {**given, **{key: value for key, value in extra.items() if value is not None}}


def _outcome(one: BatchResult, base: Outcome, *, thinks: bool) -> Outcome:
    result = one.result
    if isinstance(one.error, MisfitError):  # it has answered, and that was wrong
        return msgspec.structs.replace(base, right=False, answer=str(one.error))
    if one.error is not None or result is None:
        return msgspec.structs.replace(base, error=str(one.error).partition("\n")[0])
    usage = result.usage
    counted = usage.reasoning if usage is not None else None
    return msgspec.structs.replace(
        base,
        answer=result.text,
        thinking_tokens=_estimated(result, thinks=thinks) if counted is None else counted,
        estimated=counted is None and bool(result.thinking),
        tokens=_total(result),
        cost=result.cost,
        first=result.first_seconds,
        seconds=result.seconds,
    )


def _estimated(result: Result, *, thinks: bool) -> int | None:
    """The tokens of the thinking that was shown. Without any, unknown if the model may have
    thought, since a provider may hide it.
    """
    if result.thinking:
        return estimate_thinking_tokens(result.message)
    return None if thinks else 0


def _total(result: Result) -> int | None:
    usage = result.usage
    if usage is None or usage.input is None or usage.output is None:
        return None
    return usage.input + usage.output


async def _graded(checker: Sequence[str], task: Task, result: Result) -> bool | None:
    """Whether the answer is right by the task and by the checker."""
    right = grade(task, result.text, result.value)
    if not checker or right is False:
        return right
    given = {"task": task, "answer": result.text, "thinking": result.thinking}
    return await _checked(checker, msgspec.json.encode(given))


async def _checked(command: Sequence[str], given: bytes) -> bool:
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        raise ConfigError(f"cannot run the checker {command[0]}: {error.strerror}") from None
    try:
        await process.communicate(given)
    except BaseException:
        with suppress(ProcessLookupError):
            process.kill()
        raise
    return process.returncode == 0
