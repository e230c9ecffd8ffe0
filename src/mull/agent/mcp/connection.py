"""One connection to a server: the SDK's client over a process or a URL.

The SDK's scopes must be exited in the task that entered them, so the same task enters and exits a
connection; calls may come from any task. The SDK's own errors do not leave this file.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from mull._version import __version__
from mull.agent.mcp.address import AddressTransport
from mull.agent.mcp.log import ServerLog
from mull.agent.mcp.memory import Listing
from mull.agent.mcp.process import ProcessTransport
from mull.agent.mcp.settled import Settled
from mull.neutral.errors import LocalError, MullError, RemoteError
from mull.neutral.extras import missing

if TYPE_CHECKING:
    import httpx2
    from mcp import Client

__all__ = ["Closed", "Connection", "connect", "load_sdk"]

_MOST_PAGES = 100
_PROMPTS_WITHIN = 5.0
_LISTEN_AGAIN = 5.0
"""Seconds until mull subscribes to changes again, after the server stopped reporting them."""
_LONGEST_REASON = 500


class Closed(RemoteError):
    """The connection ended, or the server no longer knows the session."""


class Connection:
    """What is asked of a server."""

    def __init__(self, client: Client, transport: ProcessTransport | AddressTransport) -> None:
        self._client = client
        self._transport = transport

    @property
    def ended(self) -> asyncio.Event:
        """Set when a process has ended; a URL shows that only when it is used."""
        return self._transport.ended

    def how_it_ended(self) -> str:
        """Why the connection ended, for the user."""
        return self._transport.how_it_ended()

    async def list_all(self) -> Listing:
        """What the server offers: its tools and prompts, and whether it has resources.

        Raises:
            RemoteError: it did not respond.
        """
        has = self._client.server_capabilities
        prompts: list[dict[str, Any]] = []
        try:
            tools = await self._pages(self._client.list_tools, "tools")
        except RemoteError:
            if has.tools is not None:  # some have tools but do not declare them; others have none
                raise
            tools = []
        if has.prompts is not None:
            with suppress(RemoteError, TimeoutError):  # its tools are useful without them
                async with asyncio.timeout(_PROMPTS_WITHIN):
                    prompts = await self._pages(self._client.list_prompts, "prompts")
        return Listing(tools, prompts, has.resources is not None)

    async def list_resources(self) -> list[dict[str, Any]]:
        """The server's resources and resource templates, as the protocol's JSON.

        Raises:
            RemoteError: it did not respond.
        """
        found = await self._pages(self._client.list_resources, "resources")
        with suppress(RemoteError):  # servers need not have templates
            templates = self._client.list_resource_templates
            found += await self._pages(templates, "resource_templates")
        return found

    async def _pages(self, ask: Callable[..., Awaitable[Any]], what: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            with _spoken(self._transport):
                page = await ask(cursor=cursor)
            found += [one.model_dump(mode="json", by_alias=True) for one in getattr(page, what)]
            cursor = page.next_cursor
            if cursor is None:
                break
        return found

    async def read_resource(self, uri: str) -> dict[str, Any]:
        """The content of a resource, as the protocol's JSON.

        Raises:
            RemoteError: it does not exist, or the connection ended.
        """
        with _spoken(self._transport):
            result = await self._client.read_resource(uri)
        return result.model_dump(mode="json", by_alias=True)

    async def get_prompt(self, name: str, arguments: dict[str, str]) -> dict[str, Any]:
        """The messages of a prompt, as the protocol's JSON.

        Raises:
            RemoteError: it does not exist, or the connection ended.
        """
        with _spoken(self._transport):
            result = await self._client.get_prompt(name, arguments)
        return result.model_dump(mode="json", by_alias=True)

    async def call(
        self, tool: str, arguments: dict[str, Any], emit: Callable[[str], None]
    ) -> dict[str, Any]:
        """The result of a call, as the protocol's JSON; `emit` gets its progress.

        Raises:
            Closed: the connection ended before the response arrived.
            RemoteError: the server rejected the call, or its response is invalid.
        """

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            share = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
            emit(f"{(message or share)[:_LONGEST_REASON]}\n")

        with _spoken(self._transport):
            result = await self._client.call_tool(tool, arguments, progress_callback=tell)
        return result.model_dump(mode="json", by_alias=True)

    async def listen(self, on_change: Callable[[], None]) -> None:
        """Subscribe to changes of a server with the newer protocol; older ones report them
        unasked.
        """
        from mcp.client.subscriptions import ListenNotSupportedError

        while True:
            try:
                async with self._client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        on_change()
            except ListenNotSupportedError:
                return
            except Exception:  # whatever the error, the only remedy is to subscribe again
                pass
            await asyncio.sleep(_LISTEN_AGAIN)
            on_change()  # changes in between were not reported


async def load_sdk() -> None:
    """Import the SDK, which takes most of a second, without blocking the terminal.

    Raises:
        LocalError: it is not installed.
    """
    try:
        await asyncio.to_thread(_import)
    except ImportError as error:
        raise LocalError(missing("mcp", error)) from None


@asynccontextmanager
async def connect(
    settled: Settled,
    log: ServerLog,
    on_change: Callable[[], None],
    deadline: float,
    auth: httpx2.Auth | None = None,
) -> AsyncIterator[Connection]:
    """Start or reach the server and negotiate a protocol version, until a time of the loop's clock.

    `auth` signs the requests to a URL.

    Raises:
        TimeoutError: it took too long.
        MullError: it cannot be run or reached, does not speak the protocol, or disconnected.
    """
    from mcp import Client
    from mcp_types import (
        Implementation,
        PromptListChangedNotification,
        ToolListChangedNotification,
    )

    async def look_at(message: object) -> None:
        if isinstance(message, ToolListChangedNotification | PromptListChangedNotification):
            on_change()

    transport = AddressTransport(settled, auth) if settled.url else ProcessTransport(settled, log)
    client = Client(
        transport,
        client_info=Implementation(name="mull", version=__version__),
        message_handler=look_at,
        cache=None,
    )
    try:
        async with AsyncExitStack() as stack:
            async with asyncio.timeout_at(deadline):
                await stack.enter_async_context(client)
            yield Connection(client, transport)
    except Exception as error:
        reason = _innermost(
            error
        )  # the SDK's scopes wrap exceptions that pass through them, ours too
        if isinstance(reason, MullError | TimeoutError):
            raise reason from None
        raise RemoteError(_why(reason, transport)) from None


@contextmanager
def _spoken(transport: ProcessTransport | AddressTransport) -> Iterator[None]:
    """The SDK's errors as ours."""
    from anyio import BrokenResourceError, ClosedResourceError
    from mcp import MCPError

    try:
        yield
    except (BrokenResourceError, ClosedResourceError):
        raise Closed(transport.how_it_ended()) from None
    except MCPError as error:
        kind = Closed if transport.is_lost(error) else RemoteError
        raise kind(_why(error, transport)) from None
    except (RuntimeError, ValueError) as error:  # a response that does not match its declaration
        raise RemoteError(_why(error, transport)) from None


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _why(error: BaseException, transport: ProcessTransport | AddressTransport) -> str:
    """The reason of a failure, for the user."""
    from pydantic import ValidationError

    said = (str(error) or type(error).__name__)[:_LONGEST_REASON]
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        return f"its response does not follow the protocol: {place}: {first['msg']}"[
            :_LONGEST_REASON
        ]
    if isinstance(transport, AddressTransport):
        return transport.explain(error, said)
    return transport.how_it_ended() if transport.ended_itself else said


def _import() -> None:
    from mcp import Client  # noqa: F401

    for name in ("mcp", "client"):  # the SDK's loggers; without a handler Python would print
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
