"""Streams an answer to the client.

The response starts with the first event of the upstream, so that a rejection before it can still be
sent with its own status. If the upstream sends nothing for a while, the response starts anyway, and
keep-alives follow. If the client disconnects, the request to the upstream is cancelled.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from mull.gateway.http import JSON, Gone, Receive, Send, WhileThere, note_headers, start
from mull.gateway.job import Job
from mull.neutral.errors import MullError
from mull.neutral.events import Failed, Finished

__all__ = ["SILENCE", "Streaming"]

SILENCE = 10.0
"""Seconds without data after which a keep-alive is sent."""
STUCK = 300.0
"""Seconds after which a client that reads nothing counts as disconnected."""


class Streaming:
    """Streams one answer; `run` returns at its end."""

    def __init__(self, job: Job, receive: Receive, send: Send, *, as_list: bool) -> None:
        self._job, self._as_list = job, as_list
        self._writer, self._prepared = job.writer(as_list=as_list), job.prepared
        self._media = JSON if as_list else self._writer.MEDIA_TYPE
        self._alive = b"\n" if as_list else self._writer.ALIVE
        self._there, self._send = WhileThere(receive), send
        self._begun = self._sending = False
        self._keeping_alive: asyncio.Task[None] | None = None
        self._last = time.monotonic()

    async def run(self) -> None:
        """Send the answer.

        Raises:
            MullError: there is no answer, and the response has not started.
        """
        loop = asyncio.get_running_loop()
        timer = loop.call_later(SILENCE, self._start_keep_alive)
        try:
            with self._there:
                await self._pump()
        except Gone:
            pass
        except MullError as error:
            if not self._begun:
                raise
            await self._put(self._writer.feed(Failed(str(error))), more=False)
        finally:
            timer.cancel()
            if self._keeping_alive is not None:
                self._keeping_alive.cancel()

    async def _pump(self) -> None:
        feed, end = None, b""
        async for events in self._job.events():
            if feed is None:
                if self._job.prepared is not self._prepared:  # perhaps for another target
                    self._writer = self._job.writer(as_list=self._as_list)
                feed = self._writer.feed
            data = b"".join([feed(event) for event in events]) + self._writer.flush()
            if isinstance(events[-1], Finished):
                await self._job.settle(self._writer)
                end = data  # nothing follows but what closes the response: sent together
            elif data:
                await self._put(data)
        await self._put(end + self._writer.close(), more=False)

    async def _put(self, data: bytes, *, more: bool = True) -> None:
        self._sending = True
        try:
            if not self._begun:
                self._begun = True
                headers = [("cache-control", "no-cache"), *note_headers(self._job.notes)]
                await start(self._send, 200, self._media, headers)
            await self._send({"type": "http.response.body", "body": data, "more_body": more})
        finally:
            self._sending = False
            self._last = time.monotonic()

    def _start_keep_alive(self) -> None:
        self._keeping_alive = asyncio.get_running_loop().create_task(self._keep_alive())

    async def _keep_alive(self) -> None:
        """Send keep-alives until the client has read nothing for a while; then cancel the work."""
        with suppress(TimeoutError):
            while not self._sending or time.monotonic() - self._last < STUCK:
                left = self._last + SILENCE - time.monotonic()
                if left > 0:
                    await asyncio.sleep(left)
                elif self._sending:
                    await asyncio.sleep(SILENCE)
                else:
                    async with asyncio.timeout(STUCK):
                        await self._put(self._alive)
        self._there.give_up()
