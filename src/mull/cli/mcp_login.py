"""`mull mcp login`, `logout` and `trust`: the user's decisions about a server."""

from __future__ import annotations

import asyncio
import os
import sys
import webbrowser
from contextlib import suppress

from mull.agent.mcp.connection import connect, load_sdk
from mull.agent.mcp.log import ServerLog
from mull.agent.mcp.memory import Listing, Memory
from mull.agent.mcp.oauth import Login, key_name, listening
from mull.agent.mcp.servers import McpServers, log_folder
from mull.agent.mcp.settled import settle
from mull.agent.tools.shown import visible
from mull.client.secrets import scrub
from mull.neutral.errors import ConfigError, LocalError, RemoteError
from mull.store.keys import Keys
from mull.store.mcp import McpConfig
from mull.store.paths import data_dir

__all__ = ["forget", "log_in", "log_out", "trust"]

_LONGEST_LOGIN = 10 * 60.0


async def log_in(name: str, config: McpConfig, *, port: int, browser: bool) -> None:
    """Log in to a server: show a page, and store its tokens with the keys.

    Raises:
        LocalError: the server has no login, or the tokens cannot be stored.
        RemoteError: the server rejected the login.
    """
    await load_sdk()
    settled = settle(name, config, os.environ)
    if settled.url is None:
        raise ConfigError(f"{name} is a command: only servers with a URL have a login")
    if settled.has_key:
        raise ConfigError(f"{name} sends its own Authorization header: remove it to log in")
    login = Login(name, settled.url, Keys(data_dir(), os.environ))
    login.forget_client()
    deadline = asyncio.get_running_loop().time() + _LONGEST_LOGIN
    log = ServerLog(log_folder() / f"{name}.log", settled.secrets)

    def show(url: str) -> None:
        print("Log in here; mull waits until the browser returns:\n", flush=True)
        print(f"  {visible(url)}\n", flush=True)
        if browser:
            with suppress(webbrowser.Error):
                webbrowser.open(url)

    try:
        async with listening(port) as (redirect, answer):
            auth = login.provider(redirect, show, answer)
            async with connect(settled, log, _nothing, deadline, auth) as connection:
                listing = await connection.list_all()
    except TimeoutError:
        raise RemoteError(f"nobody logged in within {_LONGEST_LOGIN / 60:.0f} minutes") from None
    except RemoteError as error:
        said = scrub(str(error), (*settled.secrets, *login.secrets))
        raise RemoteError(visible(" ".join(said.split()))) from None
    _learn(name, config, listing)
    if not login.is_there:
        print(f"{name} needs no login: {len(listing.tools)} tools.")
        return
    print(f"Logged in to {name}: {len(listing.tools)} tools. The tokens are stored with your keys.")


def _nothing() -> None:
    """The list is read once here; later changes do not matter."""


def _learn(name: str, config: McpConfig, listing: Listing) -> None:
    Memory(log_folder() / f"{name}.json", config).learn(listing)


def log_out(name: str) -> None:
    """Delete the tokens of a server.

    Raises:
        ConfigError: there are none, or they cannot be deleted.
    """
    keys = Keys(data_dir(), os.environ)
    if key_name(name) not in keys.stored():
        raise ConfigError(f"no login is stored for {name}: `mull mcp login {name}` creates one")
    keys.delete(key_name(name))
    print(f"Deleted the login for {name}. The server may still accept it: revoke it there as well.")


def forget(name: str, config: McpConfig) -> None:
    """Delete everything stored about a server that is removed from the file."""
    Memory(log_folder() / f"{name}.json", config).forget()
    keys = Keys(data_dir(), os.environ)
    with suppress(LocalError):
        if key_name(name) in keys.stored():
            keys.delete(key_name(name))


async def trust(name: str, config: McpConfig) -> int:
    """Accept a server's tools as they are now: its changes are shown and accepted."""
    async with McpServers({name: config}) as running:
        (status,) = running.statuses
        if status.state == "failed":
            print(f"mull: {name} did not start: {status.reason}", file=sys.stderr)
            return 1
        tools = running.tools.values()
        for tool in tools:
            if tool.altered or tool.is_new:
                what = f"its {tool.altered} changed" if tool.altered else "new"
                about = visible(" ".join(tool.definition.description.split()))
                print(f"{tool.definition.name}: {what}\n    {about}")
        running.server(name).memory.trust()
    print(f"Accepted the {len(status.tools)} tools of {name} as they are now.")
    return 0
