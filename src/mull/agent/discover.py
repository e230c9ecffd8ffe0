"""Model servers on this machine: their addresses, their models, and what they say about them.

A server is queried at the address from config.toml or the catalog, with the available key. Each
kind of server reports its context window in a different place (`_LOOKS`); what it does not report
stays unknown.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mull.agent.engine import LOCAL_PROVIDERS, Engine
from mull.client.access import Access, request_headers, request_url
from mull.client.http import HttpClient
from mull.client.transport import HttpRequest
from mull.neutral.errors import MullError, RemoteError
from mull.neutral.patterns import pattern
from mull.neutral.request import WireRequest
from mull.neutral.target import Target

if TYPE_CHECKING:
    from mull.client.answer import Client

__all__ = ["Found", "Served", "describe", "discover", "look"]

_PATIENCE = 0.7
_MOST_BYTES = 4 << 20
_MOST_MODELS = 100
"""Maximum number of models that are queried individually."""
_LOCKED = (401, 403)


class Served(Struct, frozen=True):
    """One model of a server, and what the server says about it; None is unknown.

    The window is `settled` unless it may be smaller once the model is loaded. `tokenizes` is the
    form of the request that makes the server count tokens.
    """

    id: str
    window: int | None = None
    tools: bool | None = None
    images: bool | None = None
    thinks: bool | None = None
    settled: bool = True
    tokenizes: str | None = None


class Found(Struct, frozen=True):
    """A server that responded, and its models. If it is `locked` it requires another key."""

    provider: str
    base_url: str
    served: tuple[Served, ...] = ()
    locked: bool = False

    @property
    def models(self) -> tuple[str, ...]:
        """The names of its models."""
        return tuple(one.id for one in self.served)

    @property
    def names(self) -> tuple[str, ...]:
        """The models as `-m` accepts them."""
        return tuple(f"{self.provider}/{model}" for model in self.models)


async def discover(engine: Engine) -> list[Found]:
    """Every local server that responds at its usual address, or at the one in config.toml."""
    transport = HttpClient()
    try:
        asked = [_ask(engine, provider, transport) for provider in LOCAL_PROVIDERS]
        return [found for found in await asyncio.gather(*asked) if found is not None]
    finally:
        await transport.close()


async def look(target: Target, way: Access, transport: Client) -> Served | None:
    """What the server says about one model; None if it says nothing."""
    server = _Server(target, way, transport)
    rows = await server.rows()
    meant = (target.model, f"{target.model}:latest")  # so Ollama lists a model without a tag
    row = next((row for row in rows or () if row["id"] in meant), None)
    if row is None and rows and len(rows) == 1:
        row = rows[0]  # a server with one model accepts any name for it
    if row is None:
        return None
    return replace(await _described(server, row), id=target.model)


def describe(target: Target, served: Served) -> Target:
    """The target as its server describes it."""
    facts = target.facts
    if served.window is not None:
        limit = facts.limit
        output = limit.output if limit.output and limit.output < served.window else None
        facts = replace(facts, limit=replace(limit, context=served.window, output=output))
    if served.tools is not None:
        facts = replace(facts, tool_call=served.tools)
    if served.images is not None and not facts.input:
        facts = replace(facts, input=("text", "image") if served.images else ("text",))
    return replace(target, facts=facts)


async def _ask(engine: Engine, provider: str, transport: Client) -> Found | None:
    try:
        target = engine.setup.resolve(f"{provider}/model")
        way = engine.way_to(target)
    except MullError:
        return None
    server = _Server(target, way, transport)
    rows = await server.rows()
    if rows is None:
        locked = server.status in _LOCKED
        return Found(provider, way.base_url, locked=True) if locked else None
    named = [_described(server, row) for row in rows[:_MOST_MODELS]]
    rest = (Served(row["id"]) for row in rows[_MOST_MODELS:])
    return Found(provider, way.base_url, (*await asyncio.gather(*named), *rest))


class _Server:
    """One server, and how to query it. `status` is that of its last response."""

    def __init__(self, target: Target, way: Access, transport: Client) -> None:
        self._target = target
        self._way = way
        self._transport = transport
        self.provider = target.provider
        self.status: int | None = None
        self.listed: dict[str, dict[str, Any]] = {}

    async def rows(self) -> list[dict[str, Any]] | None:
        """The models of its OpenAI-style list, which `listed` has by id; None if it has none."""
        rows = _rows(await self.get("/models"))
        self.listed = {row["id"]: row for row in rows or ()}
        return rows

    async def get(self, path: str, body: Any = None, *, root: bool = False) -> Any:
        """The response at a path, below its base URL or its root; None if it is not JSON.

        With a `body`, it is posted.
        """
        base = re.sub(r"/v\d+$", "", self._way.base_url) if root else self._way.base_url
        sent = b"" if body is None else msgspec.json.encode(body)
        headers = {"accept": "application/json"}
        if sent:
            headers["content-type"] = "application/json"
        wire = WireRequest(path, sent, headers, "POST" if sent else "GET")
        headers = request_headers(self._way, self._target, wire)
        url = request_url(self._way, path, base)
        request = HttpRequest(wire.method, url, headers, sent)
        try:
            async with self._transport.send(request, idle=_PATIENCE, total=_PATIENCE) as answer:
                self.status = answer.status
                data = await answer.read(_MOST_BYTES) if answer.status == 200 else b""
            return msgspec.json.decode(data)
        except (RemoteError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None


def _rows(data: Any) -> list[dict[str, Any]] | None:
    """The models of an OpenAI-style list; None if it is something else."""
    rows = data.get("data") if isinstance(data, dict) else None
    if not isinstance(rows, list):
        return None
    if not all(isinstance(row, dict) and isinstance(row.get("id"), str) for row in rows):
        return None
    return rows


async def _described(server: _Server, row: dict[str, Any]) -> Served:
    kind = _OWNERS.get(str(row.get("owned_by")), server.provider)
    return await _LOOKS.get(kind, _plain)(server, row)


async def _plain(server: _Server, row: dict[str, Any]) -> Served:
    """vLLM and SGLang report the window in the list; so do others, under other names. An adapter
    has the window of the model that it is for."""
    names = ("max_model_len", "context_length", "context_window", "max_context_length")
    parent = server.listed.get(str(row.get("parent")), {})
    told = (n for held in (row, parent) for name in names if (n := _count(held.get(name))))
    return Served(row["id"], next(told, None))


async def _vllm(server: _Server, row: dict[str, Any]) -> Served:
    return replace(await _plain(server, row), tokenizes="vllm")


async def _llama(server: _Server, row: dict[str, Any]) -> Served:
    """llama.cpp: /props contains the window of one slot, and the chat template."""
    meta = _table(row.get("meta"))
    props = _table(await server.get("/props", root=True))
    settings = _table(props.get("default_generation_settings"))
    template = props.get("chat_template")
    caps, senses = _table(props.get("chat_template_caps")), _table(props.get("modalities"))
    tools = caps.get("supports_tools", caps.get("supports_tool_calls"))
    if tools is None and isinstance(template, str):
        tools = "tools" in template
    thinks = bool(_THINKS.search(template)) if isinstance(template, str) else None
    return Served(
        row["id"],
        _count(settings.get("n_ctx")) or _count(meta.get("n_ctx")),
        tools if isinstance(tools, bool) else None,
        senses.get("vision") if isinstance(senses.get("vision"), bool) else None,
        thinks,
        tokenizes="llama",
    )


async def _ollama(server: _Server, row: dict[str, Any]) -> Served:
    """Ollama: a running model has the window it was loaded with; any other at most that of the
    model.
    """
    model = row["id"]
    running, shown = await asyncio.gather(
        server.get("/api/ps", root=True), server.get("/api/show", {"model": model}, root=True)
    )
    loaded = [one for one in _list(_table(running).get("models")) if model in _names(one)]
    now = next((n for one in loaded if (n := _count(one.get("context_length")))), None)
    info = _table(_table(shown).get("model_info"))
    most = next(
        (n for key in info if key.endswith(".context_length") and (n := _count(info[key]))), None
    )
    chosen = re.search(r"^num_ctx\s+(\d+)", str(_table(shown).get("parameters")), re.MULTILINE)
    own = int(chosen[1]) if chosen else None
    can = _table(shown).get("capabilities")
    has = (lambda word: word in can) if isinstance(can, list) else lambda word: None
    return Served(
        model,
        now or own or _count(most),
        has("tools"),
        has("vision"),
        has("thinking"),
        settled=bool(now or own),
    )


async def _lmstudio(server: _Server, row: dict[str, Any]) -> Served:
    """LM Studio: its own list says how a model is loaded. Version 0.4 has a new form of it."""
    listed = _list(_table(await server.get("/api/v0/models", root=True)).get("data"))
    one = next((one for one in listed if one.get("id") == row["id"]), None)
    if one is None:
        return await _lmstudio_4(server, row)
    now = _count(one.get("loaded_context_length"))
    can = one.get("capabilities")
    return Served(
        row["id"],
        now or _count(one.get("max_context_length")),
        "tool_use" in can if isinstance(can, list) else None,
        one["type"] == "vlm" if "type" in one else None,
        settled=now is not None,
    )


async def _lmstudio_4(server: _Server, row: dict[str, Any]) -> Served:
    listed = _list(_table(await server.get("/api/v1/models", root=True)).get("models"))
    for one in listed:
        loaded = _list(one.get("loaded_instances"))
        here = [each for each in loaded if row["id"] in (each.get("id"), one.get("key"))]
        if not here and row["id"] != one.get("key"):
            continue
        told = (
            n for each in here if (n := _count(_table(each.get("config")).get("context_length")))
        )
        now, can = next(told, None), _table(one.get("capabilities"))
        tools, images = can.get("trained_for_tool_use"), can.get("vision")
        return Served(
            row["id"],
            now or _count(one.get("max_context_length")),
            tools if isinstance(tools, bool) else None,
            images if isinstance(images, bool) else None,
            settled=now is not None,
        )
    return Served(row["id"])


_Look: TypeAlias = Callable[[_Server, dict[str, Any]], Awaitable[Served]]
_LOOKS: Mapping[str, _Look] = {
    "llama.cpp": _llama,
    "ollama": _ollama,
    "lmstudio": _lmstudio,
    "vllm": _vllm,
}
"""Where each kind of server reports more than in the list."""
_OWNERS = {
    "llamacpp": "llama.cpp",
    "library": "ollama",
    "organization_owner": "lmstudio",
    "vllm": "vllm",
    "sglang": "sglang",
}
"""The names by which servers identify themselves in their list of models."""
_THINKS = pattern(r"enable_thinking|<think>|reasoning_content|<\|channel\|>")


def _count(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _names(one: dict[str, Any]) -> set[str]:
    """Ollama's names of a running model; without a tag, `latest` is meant."""
    found = {str(one.get(key)) for key in ("name", "model")}
    return found | {name.removesuffix(":latest") for name in found}
