"""Runs a Python function as a tool: blocking or asynchronous, a generator or not.

A blocking function gets a thread of its own: all calls of an answer run at once, however many, and
one that never ends blocks neither the others nor the end of the program. What a generator yields is
progress; its result is what it returns, or else all that it yielded. Any other iterator is a list.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from itertools import takewhile
from typing import Any, TypeVar

from mull.agent.function_results import outcome_of, text_of_value, yielded
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
    if isinstance(value, AsyncIterator):
        return await _iterated_async(value, context)
    if isinstance(value, Iterator):
        return await in_thread(lambda: _iterated(value, context))
    return value


def _iterated(value: Any, context: ToolContext) -> Any:
    """The result of an iterator, in the thread that it runs in; any other value as it is."""
    if not isinstance(value, Iterator):
        return value
    if not inspect.isgenerator(value):
        return list(takewhile(lambda _: not context.cancelled.is_set(), value))
    came: list[Any] = []
    with contextlib.closing(value):
        while not context.cancelled.is_set():
            try:
                came.append(next(value))
            except StopIteration as end:
                return yielded(came) if end.value is None else end.value
            _show(came[-1], context)
    return yielded(came)


async def _iterated_async(steps: AsyncIterator[Any], context: ToolContext) -> Any:
    if not inspect.isasyncgen(steps):
        return [one async for one in steps]
    came: list[Any] = []
    async with contextlib.aclosing(steps):
        async for one in steps:
            came.append(one)
            _show(one, context)
    return yielded(came)


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
