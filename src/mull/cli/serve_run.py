"""`mull serve run CLIENT`: starts a client that uses the gateway, and returns its exit status.

If a gateway that serves the model responds at the configured address, the client uses it. Otherwise
a gateway is started in this process and stops with the client. The user's configuration of the
client is not changed: environment variables, arguments or files in mull's data folder point the
client at the gateway. The client gets no keys of providers.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mull.cli.serve_reach import reach_of, served_model
from mull.cli.serve_setup import load_gateway
from mull.gateway.setups import HOME, SETUPS, TOKEN_VARIABLE, Reach, Wiring
from mull.neutral.errors import ConfigError
from mull.store.approvals import load_policy
from mull.store.files import write_atomic
from mull.store.paths import config_dir, data_dir
from mull.store.serve import LOOPBACK, read_listen, socket_path

if TYPE_CHECKING:
    from mull.agent.engine import Engine
    from mull.gateway.app import GatewayApp
    from mull.store.serve import ServeConfig

__all__ = ["arguments", "run"]

_EXAMPLES = """\
examples:
  mull serve run claude-code
  mull serve -m moonshotai/kimi-k2.5 run codex exec "What does this project do?"

Put options of mull serve before run. Everything after CLIENT is passed to the client.
Variables with keys and passwords are withheld from it, as from the commands that mull
runs for a model: environment in tools.toml names those that it may have.
"""
_RUNNABLE = [name for name, setup in SETUPS.items() if setup.program is not None]
_FORWARDED = ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_ANY_PORT = "127.0.0.1:0"
_SIGNALLED = 128
_ANSWER_SECONDS = 10
"""How long the client may take to tell about itself."""


def arguments(parser: ArgumentParser) -> None:
    """Add the client's name and arguments."""
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "client", metavar="CLIENT", choices=_RUNNABLE, help=f"one of {', '.join(_RUNNABLE)}"
    )
    parser.add_argument("words", metavar="ARG", nargs=REMAINDER, help="arguments for the client")


def run(options: Namespace) -> int:
    """Run the client. Returns its exit status.

    Raises:
        LocalError: the client is not installed, or the gateway's configuration cannot be used.
    """
    setup = SETUPS[options.client]
    assert setup.program is not None
    assert setup.wire is not None
    program = shutil.which(setup.program)
    if program is None:
        raise ConfigError(
            f"{setup.program} is not on the PATH: install {setup.title} with `{setup.install}`"
        )
    engine, config = load_gateway(options)
    wire, home = setup.wire, data_dir() / "clients" / options.client
    environ = _environ(engine)

    async def work() -> int:
        async with _gateway(engine, config, options.model) as reach:
            if setup.asks:
                reach = reach._replace(told=await _told([program, *setup.asks], environ))
            wiring = wire(reach)
            arguments = [word.replace(HOME, str(home)) for word in wiring.arguments]
            command = [program, *arguments, *options.words]
            return await _client(command, _wired(wiring, home, environ))

    return asyncio.run(work())


@asynccontextmanager
async def _gateway(engine: Engine, config: ServeConfig, only: str | None) -> AsyncIterator[Reach]:
    """How to reach a gateway that serves the model: a running one, or one that is started here.

    Raises:
        LocalError: a token is missing, or the gateway's configuration cannot be used.
    """
    from mull.cli.serve_find import find_gateway, needs_token
    from mull.gateway.routes import Routes
    from mull.gateway.serve import build_app, has_tokens

    token = os.environ.get(TOKEN_VARIABLE) or None
    found = await asyncio.to_thread(find_gateway, config, only, token)
    if found is not None:
        yield found
        return
    model = await served_model(engine, config, only)
    if not await has_tokens(config):
        token = None
    elif token is None:
        raise needs_token("the gateway")
    Routes(engine, config, only).find(model)  # raises if an API key is missing
    with _listening(config) as (opened, own):
        own = replace(own, default=config.default or (model if config.models else None))
        async with _serving(build_app(engine, own, only=only), opened, own):
            yield await reach_of(engine, own, model, only, token)


@contextmanager
def _listening(config: ServeConfig) -> Iterator[tuple[socket.socket, ServeConfig]]:
    """A socket on the loopback address, at the configured port if that is free, and the
    configuration of a gateway that listens on it."""
    from mull.gateway.listening import open_sockets

    config = replace(config, workers=1, cert=None, key=None)
    tries = [replace(config, listen=_ANY_PORT)]
    if socket_path(config.listen) is None and read_listen(config.listen)[0] in LOOPBACK:
        tries.insert(0, config)
    for at, wanted in enumerate(tries):
        try:
            (opened,) = open_sockets(wanted)
            break
        except ConfigError:
            if at == len(tries) - 1:
                raise
    with opened:
        host, port = opened.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        yield opened, replace(config, listen=f"{shown}:{port}")


@asynccontextmanager
async def _serving(
    app: GatewayApp, opened: socket.socket, config: ServeConfig
) -> AsyncIterator[None]:
    """Run the gateway in this process."""
    from mull.gateway.listening import Listener

    stop = asyncio.Event()
    serving = asyncio.create_task(Listener(app, opened, config).run(stop, stop))
    try:
        yield
    finally:
        stop.set()
        await serving


def _environ(engine: Engine) -> dict[str, str]:
    """The variables for the client: like the commands that mull runs for a model, it gets no keys
    of providers and nothing that looks like a secret, because the commands that it runs for a
    model would have them too."""
    from mull.agent.toolbox import key_variables
    from mull.agent.tools.run import without_secrets

    passed_on = load_policy(config_dir(), Path.cwd()).environment
    return without_secrets(os.environ, key_variables(engine.setup), passed_on)


def _wired(wiring: Wiring, home: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables with those that point the client at the gateway. Writes the client's files."""
    kept = {name: value for name, value in environ.items() if name not in wiring.removed}
    for name, text in wiring.files.items():
        write_atomic(home / name, text.encode())
    for name, text in wiring.first.items():
        if not (home / name).exists():
            write_atomic(home / name, text.encode())
    for name in ("NO_PROXY", "no_proxy"):  # a proxy cannot reach the loopback address
        kept[name] = ",".join(one for one in (kept.get(name), *LOOPBACK) if one)
    given = {name: value.replace(HOME, str(home)) for name, value in wiring.variables.items()}
    return {**kept, **given}


async def _told(command: Sequence[str], environ: Mapping[str, str]) -> str:
    """What the client prints about itself; nothing if it cannot."""
    quiet = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *command, env=environ, stdin=quiet, stdout=asyncio.subprocess.PIPE, stderr=quiet
        )
    except OSError:
        return ""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            printed, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return ""
    return printed.decode("utf-8", "replace") if process.returncode == 0 else ""


async def _client(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run the client in this terminal. Returns its exit status, as a shell would report it."""
    process: asyncio.subprocess.Process | None = None
    early: list[int] = []

    def forward(number: int) -> None:
        if process is None:
            early.append(number)
        else:
            with suppress(ProcessLookupError):
                process.send_signal(number)

    with _handling_signals(forward):
        try:
            process = await asyncio.create_subprocess_exec(*command, env=environ)
        except OSError as error:
            raise ConfigError(f"cannot start {command[0]}: {error.strerror}") from None
        for number in early:
            forward(number)
        status = await process.wait()
    return _SIGNALLED - status if status < 0 else status


@contextmanager
def _handling_signals(forward: Callable[[int], None]) -> Iterator[None]:
    """Forward signals to the client. Ctrl-C reaches it from the terminal directly."""
    loop = asyncio.get_running_loop()
    names = _FORWARDED if sys.stdin.isatty() else ("SIGINT", *_FORWARDED)
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    handled = []
    with suppress(NotImplementedError):  # on Windows
        loop.add_signal_handler(signal.SIGINT, lambda: None)
        handled.append(signal.SIGINT)
        for number in numbers:
            loop.add_signal_handler(number, forward, number)
            handled.append(number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
