"""Servers used from another event loop than the one they run on.

A conversation may be used on several loops in turn: the blocking functions have their own. Its
servers stay on the loop that started them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from mull.agent.tools.around import ToolAround
from mull.agent.tools.tool import Outcome, RunnableTool, ToolContext, Work
from mull.neutral.errors import LocalError

__all__ = ["at", "at_now", "from_here"]

_T = TypeVar("_T")
_PATIENCE = 30.0
"""Seconds in which another loop should respond."""


async def at(loop: asyncio.AbstractEventLoop, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """The result of work on that loop.

    Raises:
        LocalError: that loop has ended, or does nothing.
    """
    if loop is asyncio.get_running_loop():
        return await work()
    if not loop.is_running():
        raise LocalError(
            "the event loop that started the MCP servers has ended: close the conversation on that "
            "loop, and they start again with the next question"
        )
    try:
        async with asyncio.timeout(_PATIENCE):
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop))
    except TimeoutError:
        raise LocalError(
            "the event loop that started the MCP servers is blocked: use the asynchronous "
            "functions on it, such as ask_async"
        ) from None
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), loop))


def at_now(
    loop: asyncio.AbstractEventLoop, work: Callable[[], Coroutine[Any, Any, None]]
) -> asyncio.Task[None] | None:
    """Do work on that loop and wait for it. On that loop itself, which cannot wait for itself, it
    is done as soon as the loop continues: by the task that is returned.
    """
    if loop is _running_loop():
        return loop.create_task(work())
    if loop.is_running():
        asyncio.run_coroutine_threadsafe(work(), loop).result()
    else:
        loop.run_until_complete(work())
    return None


def from_here(
    tools: Mapping[str, RunnableTool], home: asyncio.AbstractEventLoop | None
) -> Mapping[str, RunnableTool]:
    """The tools of servers that run on that loop, for use on the running one."""
    here = _running_loop()
    if home is None or here is None or here is home:
        return tools

    async def over_there(work: Work, context: ToolContext) -> Outcome:
        async def there() -> Outcome:
            return await work(context)

        return await at(home, there)

    return {name: ToolAround(tool, over_there) for name, tool in tools.items()}


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
