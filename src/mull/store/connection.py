"""The table `[connection]` of config.toml: what carries requests, in the library's words."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from mull.neutral.errors import ConfigError
from mull.store.tables import check_keys, refused

__all__ = ["CONNECTION_KEYS", "read_connection"]

CONNECTION_KEYS = ("http_client", "proxy", "verify", "cert")


def read_connection(table: Mapping[str, Any], file: str) -> Mapping[str, Any]:
    """Check the table; whether its files exist is found out when they are needed.

    Raises:
        ConfigError: it holds what is unknown or cannot be; says where.
    """
    where = f"{file}: connection"
    check_keys(table, CONNECTION_KEYS, where)
    read: dict[str, Any] = {}
    for key, value in table.items():
        match key, value:
            case "http_client", str():
                read[key] = value
            case "proxy", False:
                read[key] = value
            case "proxy", str():
                read[key] = _without_password(value, where)
            case "verify", bool():
                read[key] = value
            case "verify" | "cert", str():
                read[key] = os.path.expanduser(value)
            case "cert", [str(), str()]:
                read[key] = tuple(map(os.path.expanduser, value))
            case _:
                raise refused(where, key, value, _ALLOWED[key])
    return read


_ALLOWED = {
    "http_client": "the name that a package has installed it under",
    "proxy": "an address such as http://host:3128, or false",
    "verify": "a file or folder of certificates, true or false",
    "cert": "a file, or a list of certificate and key",
}


def _without_password(proxy: str, where: str) -> str:
    if "@" in proxy:
        raise ConfigError(
            f"{where}: proxy contains a user name or password before the @, which do not belong in"
            " this file: set HTTPS_PROXY instead"
        )
    return proxy
