"""Asks the items of a batch: as many at once as the endpoint takes, each until it is answered.

Every request waits for the limiter of its endpoint, so that all pause together when one is told to.
What no other item could do better (a rejected key, an account without credit) ends the batch, or
its part with that model: the items that were not asked get the same error, and are asked by the
next run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sized
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mull.agent.batch.file import BatchFile
from mull.agent.batch.items import Item, described, read_items
from mull.agent.batch.values import BatchProgress, BatchResult
from mull.agent.complete import turn_over
from mull.agent.library import Conversation
from mull.agent.results import Result, result_of
from mull.agent.structured import shape_of
from mull.client.clock import say_seconds
from mull.client.exchange import ExchangeOptions
from mull.client.limiter import LONGEST_ASKED, Gate
from mull.client.retry import RetryRules
from mull.neutral.errors import (
    AuthenticationError,
    LocalError,
    MisfitError,
    MullError,
    QuotaError,
    RateLimitError,
)
from mull.neutral.request import HostedTool, Tool
from mull.settings.layers import agreeing, said_by_name, with_own
from mull.settings.registry import REGISTRY, parse_all

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mull.agent.batch.progress import Display
    from mull.agent.run import Turn

__all__ = ["PATIENCE", "Work", "all_of"]

PATIENCE = RetryRules(attempts=10, longest_wait=LONGEST_ASKED)
"""Nobody waits in front of a batch: it asks again for longer, and waits as long as it is told."""
ATTEMPTS = 3
"""How often an item is asked from the beginning, beside the attempts of each request."""
_SHAPING = ("reasoning", "context", "model")
"""The groups of settings that answers depend on."""


class Work:
    """One batch under way. With `keeps_misfits`, a stored answer that does not match its schema is
    not asked for again.

    Raises:
        LocalError: the model or an option is not possible, for whatever item.
    """

    def __init__(
        self,
        items: Iterable[Any],
        model: str | None,
        options: Mapping[str, Any],
        *,
        concurrency: int,
        file: Path | None,
        keeps_misfits: bool = False,
    ) -> None:
        if isinstance(items, str | bytes | Mapping):
            raise LocalError(f"a batch needs a list of items, not {type(items).__name__}")
        if type(concurrency) is not int or concurrency < 1:
            raise LocalError(
                f"concurrency must be a whole number of at least 1, not {concurrency!r}"
            )
        if "messages" in options:
            raise LocalError("the messages of a batch belong to its items")
        self._gate = Gate()
        limits: ExchangeOptions | None = options.get("limits")
        self._attempts = ATTEMPTS if limits is None or limits.retry.attempts > 1 else 1
        given = limits or ExchangeOptions(retry=PATIENCE)
        self.options: dict[str, Any] = {**options, "limits": replace(given, gate=self._gate)}
        if "tools" in options:
            self.options["tools"] = tuple(options["tools"] or ())  # they are read more than once
        self.base: Conversation = Conversation(model, **_runnable(self.options))
        self.described: dict[str, Any] = {**_shaping(self.base), **described(self.options)}
        self.base.way()  # a missing key is reported before anything is sent
        self.model = model
        self.progress: BatchProgress = BatchProgress(
            len(items) if isinstance(items, Sized) else None
        )
        self.notes: list[str] = []
        self.path = file
        self.file: BatchFile | None = None
        self.concurrency = concurrency
        self._keeps_misfits = keeps_misfits
        self._items = read_items(items)
        self._fatal: dict[str | None, MullError] = {}
        self._broken: LocalError | None = None

    async def run(self, put: Callable[[BatchResult], None], display: Display | None) -> None:
        """Ask everything; `put` gets each result as it comes.

        Raises:
            LocalError: the file cannot be used; or the caller's items failed, once those before
                are answered.
        """
        async with self.opened(display):
            await all_of(self._worker(put) for _ in range(self.concurrency))
        if self._broken is not None:
            raise self._broken

    @asynccontextmanager
    async def opened(self, display: Display | None) -> AsyncIterator[None]:
        """The file and the display, while the batch runs."""
        async with AsyncExitStack() as stack:
            if self.path is not None:
                model = self.model or self.base.snapshot().model or self.base.target.name
                self.file = BatchFile(self.path, model, self.described, misfits=self._keeps_misfits)
                stack.callback(self._close)
                self.notes += self.file.notes
                self.file.notes = self.notes
            if display is not None:
                await stack.enter_async_context(display.shown(self.progress, self.waiting))
            yield

    def _close(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None

    def waiting(self) -> str:
        """Why nothing is sent at the moment, if that is so."""
        pause = self._gate.pause
        return f"paused for {say_seconds(pause)}" if pause > 0 else ""

    async def _worker(self, put: Callable[[BatchResult], None]) -> None:
        for item in self._taken():
            one = self.known(item)
            if one is None:
                one = await self._asked(item)
            else:
                await asyncio.sleep(0)  # there may be thousands of them
            self.progress.add(one)
            put(one)

    def _taken(self) -> Iterator[Item]:
        """The items that no other worker took."""
        try:
            yield from self._items
        except LocalError as error:
            self._broken = error

    async def cancel(self) -> None:
        """End what runs elsewhere.

        Raises:
            LocalError: nothing does.
        """
        raise LocalError("only a provider_batch can be cancelled: close this one to stop it")

    def items(self) -> Iterator[Item]:
        """The items that were not taken yet."""
        return self._items

    def known(self, item: Item) -> BatchResult | None:
        """What is known of an item without asking: why it cannot be asked, or a stored answer."""
        place = (item.index, item.id, item.given)
        if item.error is not None:
            return BatchResult(*place, error=item.error)
        stored = self._stored(item)
        if stored is not None:
            return BatchResult(*place, stored, stored.error, stored=True)
        fatal = self._fatal.get(item.model)
        return BatchResult(*place, error=fatal) if fatal is not None else None

    def _stored(self, item: Item) -> Result | None:
        """The stored answer to an item; its value has its type again."""
        stored = self.file.find(item) if self.file is not None else None
        schema = {**self.options, **item.options}.get("schema")
        if stored is None or schema is None:
            return stored
        try:
            return replace(stored, value=shape_of(schema).read(stored.message))
        except MisfitError as misfit:  # a type may check more than its schema says
            if self._keeps_misfits:
                return replace(stored, error=misfit)
            self.notes.append(f"the stored answer to {item.id!r} does not match: it is asked again")
            return None

    async def _asked(self, item: Item) -> BatchResult:
        result: Result | None = None
        error: MullError | None = None
        value = None
        try:
            result, value = await self._answered(item)
            error = result.error
        except MullError as raised:
            error = raised
        if error is not None and _is_fatal(error):
            self._fatal[item.model] = error
        return self.keep(item, result, error, value)

    def keep(
        self, item: Item, result: Result | None, error: MullError | None, value: Any
    ) -> BatchResult:
        """Store what came of an item."""
        if self.file is not None:
            self.file.add(item, result, error, value)
        return BatchResult(item.index, item.id, item.given, result, error)

    def started(self, item: Item) -> tuple[Conversation, Turn]:
        """A conversation that ends with the item, and the turn that answers it.

        Functions are run; if a tool is only described, calls are left to the caller.
        """
        options = {**self.options, **item.options}
        if item.model is None and not item.options:
            talk = self.base.fork()
        else:
            talk = Conversation(**self._own(item, _runnable(options)))
        offered = () if talk.tools else tuple(options.get("tools") or ())
        return talk, turn_over(talk, item.messages, offered)

    def _own(self, item: Item, options: dict[str, Any]) -> dict[str, Any]:
        """The options of an item: its own level or settings go before those of all items."""
        if item.model is not None and "settings" not in item.options:
            before = parse_all(options.get("settings") or {})
            kept = agreeing(before, said_by_name(item.model))
            return {**options, "model": item.model, "settings": kept}
        if item.model is None and "settings" in item.options:
            model, settings = with_own(self.model, {}, item.options["settings"] or {})
            return {**options, "model": model, "settings": settings}
        return {**options, "model": item.model or self.model}

    async def _answered(self, item: Item) -> tuple[Result, Any]:
        """The answer to an item; one that breaks off, or is crowded out by others, is asked for
        again, unless functions were run for it.
        """
        attempt = 0
        while True:
            attempt += 1
            talk, turn = self.started(item)
            try:
                await talk._run(turn, None)
            except RateLimitError as error:
                again = error.retryable and not _is_fatal(error) and not turn.messages
                if not again or attempt == self._attempts:
                    raise
                continue
            except MisfitError as misfit:
                return replace(result_of(turn), error=misfit), None
            result = result_of(turn)
            if result.usage is not None and result.usage.output is not None:
                self._gate.used(turn.target, result.usage.output)
            ran = any(message.role == "tool" for message in result.messages)
            broke = result.error is not None and result.error.retryable
            if ran or not broke or attempt == self._attempts:
                return result, None if turn.shape is None else turn.shape.plain(result.value)


def _shaping(talk: Conversation) -> dict[str, Any]:
    """The settings that the user chose, wherever, and that answers depend on."""
    return {
        key: value
        for key, value in talk.snapshot().chosen().items()
        if value is not None and REGISTRY[key].namespace in _SHAPING
    }


def _is_fatal(error: MullError) -> bool:
    """Whether all other items with that model would meet the same error."""
    if isinstance(error, RateLimitError):
        return error.retry_after is not None and error.retry_after > LONGEST_ASKED
    return isinstance(error, AuthenticationError | QuotaError)


def _runnable(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, without tools that are only described."""
    given = dict(options)
    tools = tuple(given.get("tools") or ())
    if not tools or any(isinstance(tool, Tool | HostedTool | Mapping) for tool in tools):
        given.pop("tools", None)
    return given


async def all_of(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run all of it to its end; what one of them raises ends the others."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
