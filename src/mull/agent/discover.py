"""Model servers on this machine, found by asking the ports they usually have."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import msgspec

from mull.agent.engine import Engine
from mull.client.http import HttpRequest, Transport
from mull.neutral.errors import RemoteError

__all__ = ["LOCAL_PROVIDERS", "Found", "discover"]

LOCAL_PROVIDERS = ("ollama", "llama.cpp", "lmstudio", "vllm", "sglang")
"""Providers whose addresses in the catalog are on this machine."""
_PATIENCE = 0.7
_MOST_BYTES = 1 << 20


class Found(NamedTuple):
    """A server that answered, and the models it has."""

    provider: str
    base_url: str
    models: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The models as `-m` takes them."""
        return tuple(f"{self.provider}/{model}" for model in self.models)


async def discover(engine: Engine) -> list[Found]:
    """Every local server that answers at its usual address, or where config.toml says it is."""
    transport = Transport()
    try:
        asked = [_ask(engine, provider, transport) for provider in LOCAL_PROVIDERS]
        return [found for found in await asyncio.gather(*asked) if found is not None]
    finally:
        await transport.close()


async def _ask(engine: Engine, provider: str, transport: Transport) -> Found | None:
    said = engine.setup.config.providers.get(provider)
    entry = engine.setup.catalog().providers.get(provider)
    url = (said.base_url if said else None) or (entry.api if entry else None)
    if url is None:
        return None
    request = HttpRequest("GET", f"{url.rstrip('/')}/models", {"accept": "application/json"})
    try:
        async with transport.send(request, idle=_PATIENCE, total=_PATIENCE) as answer:
            if answer.status != 200:
                return None
            body = await answer.read(_MOST_BYTES)
    except RemoteError:
        return None
    models = _models(body)
    return None if models is None else Found(provider, url.rstrip("/"), models)


def _models(body: bytes) -> tuple[str, ...] | None:
    """The ids of an OpenAI-shaped list of models; None if it is something else."""
    try:
        data: Any = msgspec.json.decode(body)
        return tuple(str(model["id"]) for model in data["data"])
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError, KeyError):
        return None
