"""The lifecycle of one server: started, listed, called, restarted when it dies, ended.

One task enters and exits every connection, as the SDK demands; others use `call` and only signal to
it. A server whose list of tools is stored from an earlier run is idle until first use. Tools stay
offered while a server is down, so that the list in the request, and with it the prompt cache, does
not change with every failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from mull.agent.mcp.connection import Closed, Connection, connect, load_sdk
from mull.agent.mcp.log import ServerLog
from mull.agent.mcp.memory import Listing, Memory, is_same_tool
from mull.agent.mcp.oauth import Login
from mull.agent.mcp.settled import Settled, settle
from mull.client.secrets import scrub
from mull.neutral.errors import MullError, RemoteError
from mull.store.keys import Keys
from mull.store.mcp import McpConfig

if TYPE_CHECKING:
    import httpx2

__all__ = ["Restarts", "Server", "State"]

_T = TypeVar("_T")

State: TypeAlias = Literal["off", "idle", "starting", "ready", "restarting", "failed", "stopped"]

_SETTLED = frozenset({"off", "idle", "ready", "failed", "stopped"})
PAUSES = (0.25, 1.0, 4.0)
"""Seconds before each restart in a row; after the last there is none."""
STEADY = 60.0
"""After this many seconds a server counts as healthy, and its restarts are forgotten."""
_BETWEEN_LISTS = 0.1
"""Seconds between two listings: a server that keeps reporting changes must not keep us busy."""


class Server:
    """A configured server. `on_change` is called whenever its state or its tools change."""

    def __init__(
        self,
        name: str,
        config: McpConfig,
        *,
        environ: Mapping[str, str],
        logs: Path,
        on_change: Callable[[Server], None],
        keys: Keys | None = None,
    ) -> None:
        self.name = name
        self.config = config
        self.state: State = "idle" if config.enabled else "off"
        self.reason: str = ""
        self.seconds: float | None = None
        self.listing: Listing = Listing()
        self.memory: Memory = Memory(logs / f"{name}.json", config)
        self._keys = keys
        self._own_secrets: tuple[str, ...] = ()
        self._login: Login | None = None
        self._environ = environ
        self._log_path = logs / f"{name}.log"
        self._on_change = on_change
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._relist = False
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown: values of the configuration, and of a login, whose tokens
        change.
        """
        return (*self._own_secrets, *(self._login.secrets if self._login else ()))

    def start(self, *, lazily: bool = False) -> None:
        """Start its task; `settled` tells when it is up or has failed.

        With `lazily`, a server whose list is stored is not started before its first use.
        """
        if not self.config.enabled or self._task is not None:
            return
        if lazily and self.memory.listing is not None:
            self.listing = self.memory.listing
            return self._become("idle")
        self.state = "starting"
        self._task = asyncio.create_task(self._live())

    async def settled(self) -> None:
        """Wait until it is up, or has failed."""
        while self.state not in _SETTLED:
            await self._changed.wait()

    async def close(self) -> None:
        """End it and everything that belongs to it; a start in progress is abandoned."""
        self._stop.set()
        self._wake.set()
        if self._task is None:
            if self.state == "idle":  # nobody may restart it
                self._become("stopped", "it was stopped")
            return
        if self._connection is None:
            self._task.cancel()
        try:
            await asyncio.wait([self._task])
        except asyncio.CancelledError:
            self._task.cancel()
            raise

    async def restart(self) -> None:
        """End and restart it, also after mull has given up on it."""
        await self.close()
        self._task, self.seconds = None, None
        self._stop.clear()
        self.start()
        if self.config.enabled:
            self._become("starting")
        await self.settled()

    async def call(
        self, tool: Mapping[str, Any], arguments: dict[str, Any], emit: Callable[[str], None]
    ) -> dict[str, Any]:
        """The result of a call, as the protocol's JSON without secrets.

        `tool` is the tool as listed when the call was approved.

        Raises:
            RemoteError: there is no result; says why and what to do.
        """
        name: str = tool["name"]

        async def ask(connection: Connection) -> dict[str, Any]:
            self._check_unchanged(tool)
            return await connection.call(name, arguments, emit)

        return await self._asked(name, ask)

    async def list_resources(self) -> list[dict[str, Any]]:
        """The server's resources and resource templates, as the protocol's JSON without secrets.

        Raises:
            RemoteError: it did not respond; says why.
        """
        return await self._asked("the list of resources", Connection.list_resources)

    async def read_resource(self, uri: str) -> dict[str, Any]:
        """The content of a resource, as the protocol's JSON without secrets.

        Raises:
            RemoteError: it cannot be read; says why.
        """
        return await self._asked(uri, lambda connection: connection.read_resource(uri))

    async def get_prompt(self, name: str, arguments: dict[str, str]) -> dict[str, Any]:
        """The messages of a prompt, as the protocol's JSON without secrets.

        Raises:
            RemoteError: there are none; says why.
        """
        return await self._asked(name, lambda connection: connection.get_prompt(name, arguments))

    def _check_unchanged(self, tool: Mapping[str, Any]) -> None:
        """Make sure that what is called is what was approved: the list may have changed since."""
        name = tool["name"]
        now = next((one for one in self.listing.tools if one["name"] == name), None)
        if now is None:
            raise RemoteError(f"the server {self.name} no longer has a tool {name}")
        if not is_same_tool(now, tool):
            raise RemoteError(
                f"not run: the server {self.name} has changed {name} since; read its "
                "description again and repeat the call"
            )

    async def _asked(self, what: str, ask: Callable[[Connection], Awaitable[_T]]) -> _T:
        """The server's response; it is started if it is idle."""
        if self.state == "idle":
            self.start()
            self._become("starting")
        await self.settled()
        connection = self._connection
        if connection is None:
            raise RemoteError(f"the server {self.name} is not running: {self.reason or self.state}")
        limit = self.config.timeout
        try:
            async with asyncio.timeout(limit):
                result = await ask(connection)
        except TimeoutError:
            raise RemoteError(
                f"{what} of {self.name} did not finish within {limit:g} seconds and was cancelled"
            ) from None
        except RemoteError as error:
            if isinstance(error, Closed) or connection is not self._connection:
                raise RemoteError(await self._after_loss(connection)) from None
            raise RemoteError(scrub(str(error), self.secrets)) from None
        scrubbed: _T = scrub(result, self.secrets) if self.secrets else result
        return scrubbed

    async def _after_loss(self, connection: Connection) -> str:
        """The error for a call whose connection ended, once it is known what happens next.

        The call is not repeated here, because its effects up to the end are unknown.
        """
        self._lose(connection)
        await self.settled()
        if self.state == "ready":
            return f"the server {self.name} ended and was restarted: try again"
        return f"the server {self.name} ended and is no longer running: {self.reason}"

    async def _live(self) -> None:
        loop = asyncio.get_running_loop()
        restarts = Restarts()
        try:
            while not self._stop.is_set():
                began = loop.time()
                reason = _one_line(scrub(await self._run_once(), self.secrets))
                if self._stop.is_set():
                    break
                was_ever_up = self.seconds is not None
                pause = restarts.next_pause(loop.time() - began) if was_ever_up else None
                if pause is None:
                    return self._become("failed", reason)
                self._become("restarting", reason)
                await asyncio.sleep(pause)
        finally:
            if self.state != "failed":
                self._become("stopped", "it was stopped")

    async def _run_once(self) -> str:
        """Start it and serve until it ends; returns why it ended."""
        loop = asyncio.get_running_loop()
        connection: Connection | None = None
        log: ServerLog | None = None
        try:
            await load_sdk()
            began = loop.time()
            deadline = began + self.config.start_timeout
            settled = settle(self.name, self.config, self._environ)
            self._own_secrets = settled.secrets
            log = ServerLog(self._log_path, settled.secrets)
            auth = self._signed(settled)
            async with connect(settled, log, self._tools_changed, deadline, auth) as connection:
                async with asyncio.timeout_at(deadline):
                    self._learn(await connection.list_all())
                self.seconds = loop.time() - began
                self._connection = connection
                self._become("ready")
                await self._stay(connection)
                self._lose(connection)  # pending calls are ended by us, not by the server
        except TimeoutError:
            return f"it did not answer within {self.config.start_timeout:g} seconds"
        except MullError as error:
            return str(error)
        finally:
            if connection is not None:
                self._lose(connection)
            if log is not None:
                log.close()
        return connection.how_it_ended()

    def _signed(self, settled: Settled) -> httpx2.Auth | None:
        """The object that signs requests, if the user logged in at this URL."""
        if settled.url is None or settled.has_key or self._keys is None:
            return None
        login = Login(self.name, settled.url, self._keys)
        if not login.is_there:
            return None
        self._login = login
        return login.provider()

    async def _stay(self, connection: Connection) -> None:
        """Keep the list of tools fresh until the connection is lost or no longer wanted."""
        watching = [
            asyncio.create_task(connection.listen(self._tools_changed)),
            asyncio.create_task(self._notice_end(connection)),
        ]
        try:
            while not self._stop.is_set() and self._connection is connection:
                if self._relist:
                    await self._list_again(connection)
                await self._wake.wait()
                self._wake.clear()
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)

    async def _list_again(self, connection: Connection) -> None:
        self._relist = False
        with suppress(RemoteError, TimeoutError):  # then the old list stays valid
            async with asyncio.timeout(self.config.timeout):
                self._learn(await connection.list_all())
            self._on_change(self)
        await asyncio.sleep(_BETWEEN_LISTS)

    def _learn(self, listing: Listing) -> None:
        if self.secrets:
            tools = scrub(listing.tools, self.secrets)
            listing = Listing(tools, scrub(listing.prompts, self.secrets), listing.has_resources)
        self.listing = listing
        self.memory.learn(listing)

    async def _notice_end(self, connection: Connection) -> None:
        await connection.ended.wait()
        self._lose(connection)

    def _tools_changed(self) -> None:
        self._relist = True
        self._wake.set()

    def _lose(self, connection: Connection) -> None:
        """The connection is lost; calls wait for what `_live` does next."""
        if connection is self._connection:
            self._connection = None
            self.state = "restarting"
            self._wake.set()

    def _become(self, state: State, reason: str = "") -> None:
        self.state, self.reason = state, reason
        self._changed.set()
        self._changed = asyncio.Event()
        self._on_change(self)


def _one_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


class Restarts:
    """The restarts of one server since it last was healthy: arithmetic on times, no clock."""

    def __init__(self) -> None:
        self._made = 0

    def next_pause(self, ran: float) -> float | None:
        """Seconds to wait after it ended after `ran` seconds; None to give up."""
        if ran >= STEADY:
            self._made = 0
        if self._made == len(PAUSES):
            return None
        self._made += 1
        return PAUSES[self._made - 1]
