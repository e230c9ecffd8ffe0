"""The gateway's listening socket, HTTP and TLS on it, and graceful shutdown.

The HTTP server is granian. Only this module imports it, and only when the gateway serves. mull
opens the socket itself and passes it to granian, so that several processes can share it and a port
in use is reported at once. granian sets no limit for connections that never send anything; this
module does.
"""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from mull.gateway.http import Receive, Scope, Send
from mull.gateway.silent import close_silent
from mull.logs import log_warning
from mull.neutral.errors import ConfigError
from mull.neutral.extras import is_installed, missing
from mull.store.serve import ServeConfig, read_listen, socket_path

__all__ = ["Listener", "open_sockets", "raise_file_limit", "run_fast"]

MOST_HEAD = 64 << 10
"""Bytes of a request's headers at most."""
HEAD_SECONDS = 30
"""How long a client may take to send the headers of a request, and how long an idle connection is
kept open."""
SILENT_SECONDS, CROWDED_SECONDS = 15.0, 2.0
"""How long a new connection may send nothing: normally, and while more than half of the allowed
connections are open."""
_BACKLOG = 1_024
_STREAMS = 128
_LAST_SECONDS = 5.0
_SPARE_FILES = 100
_GIVE_WAY = 0.0005
"""Seconds after which a thread lets another one run."""
_OWN_ONLY = 0o600

App = Callable[[Scope, Receive, Send], Awaitable[None]]


def run_fast(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end, on uvloop if that is installed. Threads give way to the loop
    soon: one that works on a large request would delay every step of the others by 5 ms."""
    sys.setswitchinterval(_GIVE_WAY)
    try:
        from uvloop import run
    except ImportError:
        asyncio.run(work)
    else:
        run(work)


def open_sockets(config: ServeConfig) -> list[socket.socket]:
    """The listening sockets. On Linux there is one for each worker, and the system distributes
    connections among them; elsewhere all workers share one socket.

    Raises:
        ConfigError: the address is in use or cannot be opened, or the HTTP server is not installed.
    """
    if not is_installed("serve"):
        raise ConfigError(missing("serve"))
    path = socket_path(config.listen)
    if path is not None:
        return [_open_unix(path)]
    first = _open_address(config.listen)
    if config.workers == 1 or sys.platform != "linux":
        return [first]
    host, port = first.getsockname()[:2]
    first.close()  # the port is free: open it again, now with sockets that share it
    at = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return [_open_address(at, shared=True) for _ in range(config.workers)]


def _open_address(listen: str, *, shared: bool = False) -> socket.socket:
    host, port = read_listen(listen)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":  # where it would let two servers use one port
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        # Connections inherit this. Without it, Nagle's algorithm delays the chunks of a stream.
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened.bind((host, port))
        opened.listen(_BACKLOG)
    except OSError as error:
        opened.close()
        raise ConfigError(
            f"cannot listen on {listen} ({error.strerror or error}): choose another address with"
            " --listen"
        ) from None
    opened.setblocking(False)
    return opened


def _open_unix(path: Path) -> socket.socket:
    if not hasattr(socket, "AF_UNIX"):
        raise ConfigError("this system has no Unix sockets: use HOST:PORT with --listen")
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_stale(path)
        before = os.umask(0o177)
        try:
            opened.bind(str(path))
        finally:
            os.umask(before)
        path.chmod(_OWN_ONLY)
        opened.listen(_BACKLOG)
    except OSError as error:
        opened.close()
        raise ConfigError(
            f"cannot listen on {path} ({error.strerror or error}): choose another path"
        ) from None
    opened.setblocking(False)
    return opened


def _remove_stale(path: Path) -> None:
    """Remove the socket of a server that no longer runs.

    Raises:
        OSError: a server listens on it, or the file is not a socket.
    """
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise FileExistsError(17, "a file with this name exists")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise OSError(98, "another server listens on it")


def raise_file_limit(connections: int) -> int:
    """Raise the limit of open files to two for each connection, as far as the system allows.
    Returns how many connections that makes possible."""
    try:
        import resource
    except ImportError:
        return connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * connections + _SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return connections
    possible = max(1, (soft - _SPARE_FILES) // 2)
    log_warning(
        f"the limit of {soft} open files allows only {possible} connections at a time: raise it"
        " with `ulimit -n` for more"
    )
    return possible


class Listener:
    """Serves an application on a socket until it is stopped."""

    def __init__(self, app: App, opened: socket.socket, config: ServeConfig) -> None:
        self._app = app
        self._socket = opened
        self._config = config
        self._requests: dict[asyncio.Task[Any], Scope] = {}
        self._server = _server(self._tracked, opened, config)

    async def run(self, stop: asyncio.Event, at_once: asyncio.Event) -> None:
        """Serve until `stop`. Then let requests in progress finish, until the grace period of the
        configuration ends or `at_once` is set."""
        serving = asyncio.create_task(self._server.serve())
        sweeping = asyncio.create_task(self._sweep())
        try:
            await _wait_for_either(serving, stop.wait())
            if not stop.is_set():
                raise serving.exception() or ConfigError("the HTTP server stopped unexpectedly")
            self._socket.close()
            self._server.stop()
            self._cancel("GET")  # live pages would never end by themselves
            await _wait_for_either(serving, at_once.wait(), seconds=self._config.grace)
            self._cancel()
            await _wait_for_either(serving, seconds=_LAST_SECONDS)
        finally:
            sweeping.cancel()
        if serving.done():
            serving.result()

    def _cancel(self, method: str | None = None) -> None:
        for task, scope in list(self._requests.items()):
            if method is None or scope.get("method") == method:
                task.cancel()

    async def _tracked(self, scope: Scope, receive: Receive, send: Send) -> None:
        task = asyncio.current_task()
        if task is None or scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        self._requests[task] = scope
        try:
            await self._app(scope, receive, send)
        finally:
            self._requests.pop(task, None)

    async def _sweep(self) -> None:
        """Close connections that send nothing, since they count against the connection limit."""
        if socket_path(self._config.listen) is not None:
            return
        port, half = self._socket.getsockname()[1], self._config.connections // 2
        crowded = False
        while True:
            seconds = CROWDED_SECONDS if crowded else SILENT_SECONDS
            await asyncio.sleep(seconds / 3)
            crowded = await asyncio.to_thread(close_silent, port, seconds) > half


async def _wait_for_either(
    task: asyncio.Task[None], other: Awaitable[object] | None = None, seconds: float | None = None
) -> None:
    """Wait until one of the two is done, or the time is over."""
    others = [asyncio.ensure_future(other)] if other is not None else []
    await asyncio.wait([task, *others], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for one in others:
        one.cancel()


def _server(app: App, opened: socket.socket, config: ServeConfig) -> Any:
    try:
        from granian import _granian
        from granian.constants import Interfaces, SSLProtocols
        from granian.http import HTTP1Settings, HTTP2Settings
        from granian.server.embed import Server
    except ImportError as error:
        raise ConfigError(missing("serve", error)) from None

    hold: Any = _granian.SocketHolder

    class OnSocket(Server):
        """granian on a socket that is already open."""

        _shd: Any

        def _init_shared_socket(self) -> None:
            is_unix = opened.family == getattr(socket, "AF_UNIX", None)
            self._shd = hold(os.dup(opened.fileno()), is_unix, _BACKLOG)

    try:
        return OnSocket(
            app,
            interface=Interfaces.ASGI,
            log_enabled=bool(os.environ.get("DEBUG")),
            backlog=_BACKLOG,
            backpressure=raise_file_limit(config.connections),
            http1_settings=HTTP1Settings(
                header_read_timeout=HEAD_SECONDS * 1_000, max_buffer_size=MOST_HEAD
            ),
            http2_settings=HTTP2Settings(
                max_headers_size=MOST_HEAD,
                max_concurrent_streams=_STREAMS,
                keep_alive_interval=HEAD_SECONDS * 1_000,
            ),
            ssl_cert=config.cert,
            ssl_key=config.key,
            ssl_protocol_min=SSLProtocols.tls12,
        )
    except OSError as error:  # from OpenSSL
        raise ConfigError(
            f"cannot use the certificate and key of [serve] ({error}): check cert and key"
        ) from None
