"""Runs a sweep: every task with every model and level, as one batch, and grades the answers."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from pathlib import Path
from typing import Any, TextIO

import msgspec
from msgspec import Struct

from mull.agent.batch.front import AsyncBatch
from mull.agent.batch.items import read_items
from mull.agent.batch.values import BatchResult
from mull.agent.batch.work import Work
from mull.agent.checker import check
from mull.agent.library import Conversation
from mull.agent.results import Result
from mull.agent.streams import end_task
from mull.catalog.names import either
from mull.logs import log_warning
from mull.neutral.errors import ConfigError, MisfitError
from mull.neutral.target import split_level
from mull.neutral.thinking import LADDER
from mull.policy.sweep.cells import Outcome
from mull.policy.sweep.grading import grade
from mull.policy.sweep.tasks import Task
from mull.policy.thinking.plan import Planned, plan_thinking

__all__ = ["Sweep", "run_sweep"]

_NOTES_TOLD = 3


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
    tell: Callable[[str], None] = log_warning,
    **options: Any,
) -> AsyncIterator[Outcome]:
    """The outcomes as they come. With `file`, what it holds already is not asked again; `progress`
    is where a bar is drawn. `tell` gets what was noticed: a level that a model does not have, a
    task that has changed since the file was written.

    Raises:
        LocalError: a model, a level, a task or an option is not possible; nothing was asked.
    """
    runs = sweep.runs()
    items = [_item(*run) for run in runs]
    _check_tasks(sweep.tasks, items, [task for task, *_ in runs])
    _check_checker(sweep.checker)
    plans = {cell: _plan(cell, options) for cell in sweep.cells}
    _check_levels(sweep)
    if sweep.levels != (None,):
        for warning in _warnings(plans):
            tell(warning)
    work = Work(
        items,
        sweep.models[0],
        options,
        concurrency=concurrency,
        file=file,
        keeps_misfits=True,
    )
    batch = AsyncBatch(work, progress)

    async def judged(one: BatchResult) -> Outcome:
        task, model, level, sample = runs[one.index]
        base = Outcome(task=task.id, model=model, level=level, sample=sample)
        outcome = _outcome(one, base, thinks=plans[base.cell].thinks)
        if one.error is not None or one.result is None:
            return outcome
        return await _graded(outcome, sweep.checker, task, one.result)

    async with aclosing(batch), aclosing(_each(batch, judged, concurrency)) as outcomes:
        async for outcome in outcomes:
            yield outcome
    for note in batch.notes[:_NOTES_TOLD]:
        tell(note)
    if len(batch.notes) > _NOTES_TOLD:
        tell(f"and {len(batch.notes) - _NOTES_TOLD} more such notes")


async def _each(
    given: AsyncBatch,
    judge: Callable[[BatchResult], Coroutine[Any, Any, Outcome]],
    most: int,
) -> AsyncGenerator[Outcome, None]:
    """What is judged of each result, as it comes; at most so many are judged at once."""
    coming: asyncio.Task[BatchResult | None] | None = None
    judging: set[asyncio.Task[Outcome]] = set()
    is_over = False
    try:
        while judging or not is_over:
            if coming is None and not is_over and len(judging) < most:
                coming = asyncio.ensure_future(_next(given))
            under_way = {*judging, *([coming] if coming is not None else [])}
            done, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            if coming is not None and coming in done:
                one, coming = coming.result(), None
                is_over = one is None
                judging |= {asyncio.ensure_future(judge(one))} if one is not None else set()
            for task in judging & done:
                judging.discard(task)
                yield task.result()
    finally:
        for rest in (*judging, *([coming] if coming is not None else [])):
            await end_task(rest)


async def _next(given: AsyncBatch) -> BatchResult | None:
    return await anext(given, None)


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
    if not command or shutil.which(command[0]) is not None:
        return
    why = "it is not executable" if Path(command[0]).exists() else "there is no such command"
    raise ConfigError(f"cannot run the checker {command[0]}: {why}")


def _check_levels(sweep: Sweep) -> None:
    """Raise what a server of any model would take for a part of the model's name."""
    for model in sweep.models if sweep.levels != (None,) else ():
        plain, level = split_level(model)
        if level is not None:
            raise ConfigError(f"{model} has a level already: leave out --levels, or use {plain}")
        for word in sweep.levels:
            if split_level(f"{model}/{word}")[1] is None:
                words = either(LADDER)
                raise ConfigError(f"{word!r} is not a level: use {words}, or a number of tokens")


def _plan(cell: str, options: Mapping[str, Any]) -> Planned:
    """How a model thinks at a level.

    Raises:
        LocalError: there is no such model or level, or its key is missing.
    """
    talk = Conversation(cell, **options)
    talk.way()
    return plan_thinking(talk.target, talk.snapshot(), max_tokens=options.get("max_tokens"))


def _warnings(plans: Mapping[str, Planned]) -> Iterator[str]:
    """What is not as the levels say."""
    for cell, plan in plans.items():
        yield from (f"{cell}: {note.text}" for note in plan.notes if note.warning)


def _item(task: Task, model: str, level: str | None, sample: int) -> Mapping[str, Any]:
    name = _name(model, level)
    given = {"id": f"{task.id} {name} {sample}", "model": name, "prompt": task.prompt}
    extra = {"system": task.system, "schema": task.schema}
    return {**given, **{key: value for key, value in extra.items() if value is not None}}


def _outcome(one: BatchResult, base: Outcome, *, thinks: bool) -> Outcome:
    result = one.result
    is_misfit = isinstance(one.error, MisfitError)  # it has answered, and that was wrong
    if result is None or (one.error is not None and not is_misfit):
        return msgspec.structs.replace(base, error=str(one.error).partition("\n")[0])
    usage = result.usage
    counted = usage.reasoning if usage is not None else None
    return msgspec.structs.replace(
        base,
        right=False if is_misfit else None,
        answer=result.text or str(one.error or ""),
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
    from mull.tokenizers import estimate_thinking_tokens

    if result.thinking:
        return estimate_thinking_tokens(result.message)
    return None if thinks else 0


def _total(result: Result) -> int | None:
    usage = result.usage
    if usage is None or usage.input is None or usage.output is None:
        return None
    return usage.input + usage.output


async def _graded(outcome: Outcome, checker: Sequence[str], task: Task, result: Result) -> Outcome:
    """The outcome, with whether the answer is right by the task and by the checker."""
    right = grade(task, result.text, result.value)
    if not checker or right is False:
        return msgspec.structs.replace(outcome, right=right)
    given = {"task": task, "answer": result.text, "thinking": result.thinking}
    verdict = await check(checker, msgspec.json.encode(given))
    said = verdict.said if verdict.right is not True else ""
    return msgspec.structs.replace(outcome, right=verdict.right, checker=said)
