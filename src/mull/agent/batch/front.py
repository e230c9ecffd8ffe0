"""`batch` and `batch_async`: many questions, answered as fast as the endpoint allows."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, Self, TextIO, Unpack

from mull.agent import shared
from mull.agent.batch.items import BatchItem
from mull.agent.batch.progress import display_for, html_of
from mull.agent.batch.values import BatchProgress, BatchResult
from mull.agent.batch.work import Work
from mull.agent.options import ConversationOptions
from mull.agent.streams import begin_to_end, end_task
from mull.client.connection import running_loop
from mull.neutral.errors import LocalError

__all__ = ["AsyncBatch", "Batch", "batch", "batch_async"]

CONCURRENCY = 20


def batch(
    items: Iterable[BatchItem],
    model: str | None = None,
    *,
    concurrency: int = CONCURRENCY,
    file: str | PathLike[str] | None = None,
    provider_batch: bool = False,
    wait: bool = True,
    progress: bool | TextIO | None = None,
    **options: Unpack[ConversationOptions],
) -> Batch:
    """Ask many questions; iterate over what this returns for the results as they come.

    At most `concurrency` requests are under way at once, and fewer if the provider says that they
    are too many. With `file`, each answer is stored as soon as it is there, and a batch that runs
    again with the same file asks only what has no answer yet. With `provider_batch`, all requests
    are handed to the provider's own batch API, which is cheaper and may take a day; without `wait`,
    it is then left alone: run it again with the same file to collect what is there. The `progress`
    is shown on terminals and in notebooks unless it is False, or on a stream of your own. The
    options are those of a `Conversation`, for all items.

    Raises:
        LocalError: the model or an option is not possible.
    """
    work = _work(items, model, concurrency, file, options, provider_batch, wait)
    return Batch(work, progress)


def batch_async(
    items: Iterable[BatchItem],
    model: str | None = None,
    *,
    concurrency: int = CONCURRENCY,
    file: str | PathLike[str] | None = None,
    provider_batch: bool = False,
    wait: bool = True,
    progress: bool | TextIO | None = None,
    **options: Unpack[ConversationOptions],
) -> AsyncBatch:
    """`batch` on the caller's event loop: iterate with `async for`, or `await` all results."""
    work = _work(items, model, concurrency, file, options, provider_batch, wait)
    return AsyncBatch(work, progress)


def _work(
    items: Iterable[BatchItem],
    model: str | None,
    concurrency: int,
    file: str | PathLike[str] | None,
    options: ConversationOptions,
    by_provider: bool,
    wait: bool,
) -> Work:
    path = None if file is None else Path(file)
    if by_provider:
        from mull.agent.batch.provider import ProviderWork

        given = {**options}
        return ProviderWork(items, model, given, concurrency=concurrency, file=path, wait=wait)
    if not wait:
        raise LocalError("wait=False needs provider_batch=True: only a provider answers later")
    return Work(items, model, {**options}, concurrency=concurrency, file=path)


class _Front:
    """What every batch tells about itself while it runs."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._given: list[BatchResult] = []

    @property
    def progress(self) -> BatchProgress:
        """How far it has come; also its usage and cost."""
        return self._work.progress

    @property
    def notes(self) -> tuple[str, ...]:
        """What was noticed: a changed item, a damaged line of the file."""
        return tuple(self._work.notes)

    def _repr_html_(self) -> str:
        return html_of(self.progress)

    def _in_order(self) -> list[BatchResult]:
        """The results so far, in the order of the items."""
        return sorted(self._given, key=lambda one: one.index)


class Batch(_Front):
    """A batch, and an iterator over its results as they come. Leaving it stops what is under way;
    answers that are stored in its file stay.
    """

    def __init__(self, work: Work, progress: bool | TextIO | None = None) -> None:
        super().__init__(work)
        display = display_for(progress)
        self._results: Generator[BatchResult, None, None] = shared.loop().stream(
            lambda put: work.run(put, display)
        )

    def __iter__(self) -> Iterator[BatchResult]:
        return self

    def __next__(self) -> BatchResult:
        self._given.append(next(self._results))
        return self._given[-1]

    def results(self) -> list[BatchResult]:
        """Wait for the rest, and give all results in the order of the items."""
        for _ in self:
            pass
        return self._in_order()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop what is under way."""
        self._results.close()

    def cancel(self) -> None:
        """Have the provider end a `provider_batch`, instead of waiting for it. What it has answered
        until then can be collected by running the batch again.

        Raises:
            LocalError: it is not one, or it has no file that says what was submitted.
            RemoteError: the provider refuses, or cannot be reached.
        """
        shared.loop().run(self._work.cancel)


class AsyncBatch(_Front):
    """A batch on the caller's event loop: `async for` gives its results as they come, `await` all
    of them in the order of the items.
    """

    def __init__(self, work: Work, progress: bool | TextIO | None = None) -> None:
        super().__init__(work)
        self._display = display_for(progress)
        self._come: asyncio.Queue[BatchResult | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._is_over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> BatchResult:
        if self._is_over:
            raise StopAsyncIteration
        if self._task is None:
            running_loop()
            put = self._come.put_nowait  # the task does not refer to this, so dropping it ends it
            self._task = asyncio.ensure_future(self._work.run(put, self._display))
            self._task.add_done_callback(lambda _: put(None))
        try:
            one = await self._come.get()
        except BaseException:
            await self.aclose()
            raise
        if one is None:
            self._is_over = True
            self._task.result()
            raise StopAsyncIteration
        self._given.append(one)
        return one

    async def results(self) -> list[BatchResult]:
        """Wait for the rest, and give all results in the order of the items."""
        async for _ in self:
            pass
        return self._in_order()

    def __await__(self) -> Generator[Any, None, list[BatchResult]]:
        return self.results().__await__()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop what is under way."""
        self._is_over = True
        if self._task is not None:
            await end_task(self._task)

    def __del__(self) -> None:
        if self._task is not None:
            begin_to_end(self._task)

    async def cancel(self) -> None:
        """Have the provider end a `provider_batch`, as `Batch.cancel` does."""
        await self._work.cancel()
