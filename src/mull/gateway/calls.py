"""One HTTP request to the gateway, before its body is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mull.dialects.surface import Place, Surface
from mull.gateway.relay import Client

__all__ = ["Call"]


class Call(NamedTuple):
    """The route, client and headers of a request whose body has not been read yet."""

    place: Place
    surface: Surface
    client: Client
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    method: str = "POST"
