"""Runs a Python function as a tool: blocking or asynchronous, a generator or not.

A blocking function gets a thread of its own: all calls of an answer run at once, however many, and
one that never ends blocks neither the others nor the end of the program. What a generator yields is
progress; its result is what it returns, or else the last value that it yielded.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any, TypeVar

from mull.agent.function_results import outcome_of, text_of_value
from mull.agent.tools.tool import Outcome, ToolContext, ToolFailure, explain, unfinished
from mull.neutral.blocks import MediaBlock

__all__ = ["in_thread", "run_function"]

_T = TypeVar("_T")
_GRACE = 1.0
"""Seconds that a cancelled function gets to clean up."""


class _LateError(Exception):
    """The time limit was exceeded."""


async def run_function(
    function: Callable[[], Any], context: ToolContext, seconds: float | None = None
) -> Outcome:
    """The outcome of calling the function.

    Raises:
        ToolFailure: it exceeded the time limit. An asynchronous function was cancelled; a blocking
            one cannot be, so its thread is left behind, and `context.cancelled` is set.
    """
    try:
        return outcome_of(await _within(_called(function, context), seconds))
    except _LateError:
        said = f"cancelled: it exceeded its time limit of {seconds:g} s, and may have done part of"
        raise ToolFailure(unfinished(context, f"{said} its work.")) from None


async def _called(function: Callable[[], Any], context: ToolContext) -> Any:
    """The value of the function; whatever it returns is awaited or iterated to its end."""
    if inspect.iscoroutinefunction(function):
        value = await function()
    elif inspect.isasyncgenfunction(function):
        value = function()
    else:
        value = await in_thread(lambda: _iterated(function(), context))
    if inspect.isawaitable(value):
        value = await value
    if inspect.isasyncgen(value):
        return await _iterated_async(value, context)
    return (
        await in_thread(lambda: _iterated(value, context)) if inspect.isgenerator(value) else value
    )


def _iterated(value: Any, context: ToolContext) -> Any:
    """The result of a generator, in the thread that it runs in; any other value as it is."""
    if not inspect.isgenerator(value):
        return value
    steps: Generator[Any, Any, Any] = value
    last: Any = None
    with contextlib.closing(steps):
        while not context.cancelled.is_set():
            try:
                last = next(steps)
            except StopIteration as end:
                return last if end.value is None else end.value
            _show(last, context)
    return last


async def _iterated_async(steps: AsyncGenerator[Any, Any], context: ToolContext) -> Any:
    last: Any = None
    async with contextlib.aclosing(steps):
        async for last in steps:
            _show(last, context)
    return last


def _show(value: Any, context: ToolContext) -> None:
    """A yielded value as a line of progress."""
    text = f"[{value.media_type}]" if isinstance(value, MediaBlock) else text_of_value(value)
    context.emit(text if text.endswith("\n") else f"{text}\n")


async def _within(work: Coroutine[Any, Any, _T], seconds: float | None) -> _T:
    """The result of the work, if it comes in time.

    Raises:
        _LateError: it does not.
    """
    if seconds is None:
        return await work
    task = asyncio.ensure_future(_attempted(work))
    try:
        await asyncio.wait({task}, timeout=seconds)
        is_late = not task.done()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=_GRACE)
    if is_late:
        raise _LateError
    return task.result()()


async def in_thread(function: Callable[[], _T]) -> _T:
    """Call it in a daemon thread of its own. If the caller is cancelled, the thread is left.

    Raises:
        ToolFailure: whatever it raised, in words.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Callable[[], _T]] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: Callable[[], _T]) -> None:
        if not done.done():
            done.set_result(result)

    def call() -> None:
        result = context.run(_attempt, function)
        with contextlib.suppress(RuntimeError):  # the loop may be closed
            loop.call_soon_threadsafe(settle, result)

    threading.Thread(target=call, name="mull tool", daemon=True).start()
    return (await done)()


def _attempt(function: Callable[[], _T]) -> Callable[[], _T]:
    """The result as a function: event loops do not carry every exception from one task, or one
    thread, to another.
    """
    try:
        value = function()
    except BaseException as error:
        return _failing(error)
    return lambda: value


async def _attempted(work: Coroutine[Any, Any, _T]) -> Callable[[], _T]:
    try:
        value = await work
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return _failing(error)
    return lambda: value


def _failing(error: BaseException) -> Callable[[], Any]:
    failure = error if isinstance(error, ToolFailure) else ToolFailure(explain(error))

    def fail() -> Any:
        raise failure

    return fail
