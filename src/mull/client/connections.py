"""Which client carries requests: mull's own, with what was given for it, or somebody else's.

mull's own clients are shared between those that were given the same, so that connections are kept
from one call to the next. What was given outright goes before what the engine was given, that
before the config file, and that before the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from mull.neutral.errors import ConfigError

if TYPE_CHECKING:
    from mull.client.answer import Client
    from mull.client.certificates import Cert, Verify
    from mull.client.foreign import SomeClient
    from mull.client.http import HttpClient

__all__ = ["ConnectionOptions", "Connections"]

_SHARED_MOST = 16
"""Clients of mull's own that are held for the next who is given the same; beyond that the oldest go
first, for somebody may give a new context with each call."""
_USUAL = (None, None, None)
"""What the client is known by for which nothing was given."""


class ConnectionOptions(TypedDict, total=False):
    """How connections are made. None is the same as not given.

    `http_client` carries the requests instead of mull's own client: an `httpx.AsyncClient`, an
    `httpx2.AsyncClient`, an `aiohttp.ClientSession`, a `mull.Transport`, or the name of an
    installed one. mull does not close it. `proxy` is the address of an HTTP or HTTPS proxy for all
    requests, or False for none. `verify` is False to trust any server, a file or folder of
    certificate authorities, or an `ssl.SSLContext`. `cert` is a client certificate: a file, or a
    tuple of certificate, key and possibly password.
    """

    http_client: SomeClient | str | None
    proxy: str | Literal[False] | None
    verify: Verify | None
    cert: Cert | None


class Connections:
    """The clients of an engine, by what was given for them. `configured` is what the config file
    says, which is looked at when the first request needs it.

    Raises:
        ConfigError: what was given cannot be used.
    """

    def __init__(
        self, options: ConnectionOptions, configured: Mapping[str, Any] | None = None
    ) -> None:
        given = _said(options)
        self._given = _merged(configured or {}, given)
        self._own: dict[object, HttpClient] = {}
        self._installed: dict[str, tuple[object, Client]] = {}
        if given:
            self.client()

    def client(self, options: Mapping[str, Any] | None = None) -> Client:
        """The client for what was given here, over what the engine was given.

        Raises:
            ConfigError: it cannot be used; says why.
        """
        given = _said(_merged(self._given, _said(options or {})))
        if "http_client" in given:
            return self._foreign(given["http_client"])
        return self._shared(given)

    async def close(self) -> None:
        """Close the connections of mull's own clients, and what mull created from plugins."""
        while self._own:
            await self._own.popitem()[1].close()
        while self._installed:
            made, _ = self._installed.popitem()[1]
            close = getattr(made, "aclose", None) or getattr(made, "close", None)
            if close is not None and isawaitable(closing := close()):
                await closing

    def _shared(self, given: Mapping[str, Any]) -> HttpClient:
        from mull.client.http import HttpClient

        key = tuple(_path(given.get(name)) for name in ("proxy", "verify", "cert"))
        try:
            found = self._own.get(key)
        except TypeError:  # it cannot be looked up, so it is nothing that can be used
            return HttpClient(**given)
        if found is None:
            found = self._own.setdefault(key, HttpClient(**given))  # threads may meet here
            others = [one for one in tuple(self._own) if one not in (key, _USUAL)]
            for one in others[: max(len(others) - _SHARED_MOST, 0)]:
                self._own.pop(one, None)  # its connections close when nobody holds it any more
        return found

    def _foreign(self, given: object) -> Client:
        from mull.client.foreign import client_over

        if not isinstance(given, str):
            return client_over(given)
        if given not in self._installed:
            made = _create(given)
            self._installed[given] = made, client_over(made)
        return self._installed[given][1]


def _said(options: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, and fits together."""
    names = ConnectionOptions.__optional_keys__
    said = {name: options[name] for name in names if options.get(name) is not None}
    others = sorted(said.keys() - {"http_client"})
    if "http_client" in said and others:
        raise ConfigError(
            f"{others[0]} has no effect on an http_client: configure the client itself"
        )
    proxy = said.get("proxy")
    if proxy is not None and proxy is not False and not isinstance(proxy, str):
        raise ConfigError(f"proxy must be an address or False, not {type(proxy).__name__}")
    return said


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    if "http_client" in above:
        return dict(above)
    kept = below if not above else {n: v for n, v in below.items() if n != "http_client"}
    return {**kept, **above}


def _path(value: object) -> object:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _create(name: str) -> object:
    """The transport that a package has installed under this name.

    Raises:
        ConfigError: there is none, or it cannot be created.
    """
    from mull.plugins import create

    return create("mull.transports", name)
