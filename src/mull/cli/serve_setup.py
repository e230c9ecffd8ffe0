"""The gateway's configuration, with the options of `mull serve` applied."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from mull.neutral.errors import ConfigError, MullError
from mull.store.serve import ServeConfig, read_listen, socket_path

if TYPE_CHECKING:
    from mull.agent.engine import Engine
    from mull.gateway.ledger import Ledger
    from mull.gateway.memory import Memory

__all__ = ["load_gateway", "on_ledger", "on_memory", "serve_config"]

_T = TypeVar("_T")
_S = TypeVar("_S", "Ledger", "Memory")


def load_gateway(options: Namespace) -> tuple[Engine, ServeConfig]:
    """The engine and the configuration for `mull serve` and its subcommands.

    Raises:
        ConfigError: the configuration cannot be read, or the address is invalid.
    """
    from mull.agent.engine import Engine
    from mull.agent.setup import load_setup

    engine = Engine(load_setup(config=options.config))
    config = engine.setup.config.serve or ServeConfig()
    if options.listen is not None:
        if socket_path(options.listen) is None:
            read_listen(options.listen)
        config = replace(config, listen=options.listen)
    workers = getattr(options, "workers", None)  # subcommands do not have this option
    return engine, config if workers is None else replace(config, workers=workers)


def serve_config(options: Namespace) -> ServeConfig:
    """The configuration of the gateway for its subcommands.

    Raises:
        ConfigError: it cannot be read.
    """
    from mull.agent.setup import load_setup

    return load_setup(config=options.config).config.serve or ServeConfig()


def on_ledger(options: Namespace, work: Callable[[Ledger], Awaitable[_T]]) -> _T:
    """Run a function on the gateway's ledger. Returns its result.

    Raises:
        ConfigError: the configuration cannot be read, or the store cannot be used.
    """
    from mull.gateway.stores import open_ledger

    return _on(options, open_ledger, work)


def on_memory(options: Namespace, work: Callable[[Memory], Awaitable[_T]]) -> _T:
    """Run a function on the gateway's store of records. Returns its result.

    Raises:
        ConfigError: the configuration cannot be read, or the store cannot be used.
    """
    from mull.gateway.stores import open_memory

    return _on(options, open_memory, work)


def _on(
    options: Namespace, opened: Callable[[ServeConfig], _S], work: Callable[[_S], Awaitable[_T]]
) -> _T:
    import asyncio

    config = serve_config(options)

    async def run_work() -> _T:
        store = opened(config)
        try:
            return await work(store)
        except MullError:
            raise
        except Exception as error:
            raise ConfigError(f"the gateway's store cannot be used: {error}") from None
        finally:
            await store.close()

    return asyncio.run(run_work())
