"""One HTTP request to the gateway, its head read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mull.dialects.surface import Place, Surface
from mull.gateway.relay import Client

__all__ = ["Call"]


class Call(NamedTuple):
    """What is asked for, by whom, and how; the body is still to be read."""

    place: Place
    surface: Surface
    client: Client
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    method: str = "POST"
