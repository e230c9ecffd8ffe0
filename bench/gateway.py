"""`mull serve` between a fast upstream and fast clients, each in a process of its own, on loopback.

Beside it, in the same run, a pass-through: granian and mull's HTTP client with nothing between
them. CPU is that of the gateway's process alone, so it holds on a busy machine too; requests per
second and core are 1 s over the CPU of one request. The store is on (SQLite), and so is the page.
Small requests have 3 messages, those of an agent 60 kB of instructions and tools and 40 messages.
Other gateways stand before the same upstream in the same run, and are asked in the Chat Completions
API unless the Messages API is named; they are slow, so they get fewer requests.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from bench.peers import leave_out
from bench.report import QUICK, Figure
from bench.serving.load import NUMBER
from bench.serving.peers import Peer, peers
from bench.serving.process import Measured, free_port
from bench.serving.upstream import CHUNKS

_T = TypeVar("_T")

REQUESTS = 500 if QUICK else 4_000
LARGE = 30 if QUICK else 300
STREAMS = 8 if QUICK else 64
CLIENTS = 32
_CHAT, _MESSAGES = "/v1/chat/completions", "/v1/messages"
_BARE, _OURS, _CROSSING = "pass-through", "mull, chat", "mull, Messages to chat"


class Way(NamedTuple):
    """A gateway, a path of it, and how a request to it is written."""

    name: str
    server: Measured
    path: str
    headers: Mapping[str, Mapping[str, str]] = {}
    model: str = "{}"

    def asked(self, model: str, *, stream: bool) -> str:
        """A small request to a model."""
        return body(self.path, self.model.format(model), stream=stream)


class Told(NamedTuple):
    """What a load measured, and the CPU that the gateway spent on it."""

    p50: float
    wall: float
    cpu: float


def body(
    path: str,
    model: str,
    messages: int = 3,
    *,
    large: bool = False,
    stream: bool,
    varied: bool = False,
) -> str:
    """A request; a varied one is of another conversation each time that it is sent."""
    system = "You are helpful. " * (3_500 if large else 3)
    words = "word " * 200 if large else f"{NUMBER} {'word ' * 200}" if varied else ""
    turns = [
        {"role": "assistant" if at % 2 else "user", "content": f"message {at} {words}"}
        for at in range(messages - 1 + messages % 2)
    ]
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    tools = [(f"tool_{at}", "What it does. " * 30, schema) for at in range(12 if large else 0)]
    asked: dict[str, Any] = {"model": model, "stream": stream, "messages": turns}
    if path == _MESSAGES:
        asked |= {"system": system, "max_tokens": 1_000}
        asked["tools"] = [
            {"name": name, "description": text, "input_schema": of} for name, text, of in tools
        ]
    else:
        asked["messages"] = [{"role": "system", "content": system}, *turns]
        functions = [{"name": n, "description": text, "parameters": of} for n, text, of in tools]
        asked["tools"] = [{"type": "function", "function": one} for one in functions]
    if not tools:
        del asked["tools"]
    return json.dumps(asked)


class Load:
    """The clients."""

    def __init__(self) -> None:
        self._process = _started("bench.serving.load")

    def put(self, way: Way, text: str, clients: int, requests: int, *, held: bool = False) -> Told:
        """Send requests, and say what they took."""
        assert self._process.stdin
        assert self._process.stdout
        asked = {
            "port": way.server.port,
            "path": way.path,
            "headers": way.headers.get(json.loads(text)["model"], {}),
            "body": text,
            "clients": clients,
            "requests": requests,
            "held": held,
        }
        before = way.server.cpu
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        told = json.loads(self._process.stdout.readline())
        if "error" in told:
            raise RuntimeError(f"{way.name}: {told['error']}")
        return Told(told["p50"], told["wall"], way.server.cpu - before)

    def end(self) -> None:
        """End them."""
        self._process.kill()
        self._process.wait()


def _started(module: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


class Serving(NamedTuple):
    """What is measured: the ways, the pass-through first, and mull with two workers."""

    bare: Way
    mull: list[Way]
    peers: list[Way]
    pair: Way


@contextlib.contextmanager
def upstream() -> Iterator[str]:
    """The URL of an upstream that runs meanwhile."""
    process = _started("bench.serving.upstream")
    assert process.stdout
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()


def _at_home(home: str) -> dict[str, str]:
    return os.environ | {"HOME": home, "XDG_DATA_HOME": home, "XDG_CONFIG_HOME": home}


def started_gateway(home: Path, url: str) -> Measured:
    """`mull serve` with its files in this folder."""
    return _mull(home, url, _at_home(str(home)))


@contextlib.contextmanager
def serving() -> Iterator[Serving]:
    """All gateways, before the same upstream."""
    with (
        tempfile.TemporaryDirectory() as home,
        upstream() as url,
        contextlib.ExitStack() as ending,
    ):
        env = _at_home(home)
        port = free_port()
        command = [sys.executable, "-m", "bench.serving.passing", str(port), f"{url}/short"]
        bare = Measured(command, port, env)
        ending.callback(bare.end)
        mull = _mull(Path(home), url, env)
        ending.callback(mull.end)
        pair = _mull(Path(home), url, env, workers=2)
        ending.callback(pair.end)
        found = []
        for peer in peers(url, Path(home), env):
            found.append(peer)
            ending.callback(peer.started.server.end)
        yield Serving(
            Way(_BARE, bare, _CHAT),
            [Way(_OURS, mull, _CHAT), Way(_CROSSING, mull, _MESSAGES)],
            [_way(peer) for peer in found],
            Way("mull, chat, 2 workers", pair, _CHAT),
        )


def _way(peer: Peer) -> Way:
    named = f"{peer.name}, Messages to chat" if peer.started.path == _MESSAGES else peer.name
    return Way(
        named, peer.started.server, peer.started.path, peer.started.headers, peer.started.model
    )


def _mull(home: Path, url: str, env: dict[str, str], workers: int = 1) -> Measured:
    port, config = free_port(), home / f"serve-{workers}.toml"
    named = (
        f'[serve.models.{name}]\nmodel = "moonshotai/kimi-k2.5"\nbase_url = "{url}/{name}/v1"\n'
        for name in ("short", "long", "held")
    )
    head = f'[serve]\nlisten = "127.0.0.1:{port}"\nworkers = {workers}\n'
    config.write_text(head + "".join(named))
    command = [sys.executable, "-m", "mull", "serve", "--config", str(config)]
    return Measured(command, port, env)


def run() -> list[Figure]:
    """Measure."""
    load = Load()
    try:
        with serving() as all_of_it:
            bare, mull, others, pair = all_of_it
            for way in (bare, *mull, pair):
                load.put(way, way.asked("short", stream=True), 4, 100)
            few = REQUESTS // 20
            able = _each(others, lambda way: load.put(way, way.asked("short", stream=True), 4, few))
            others = [way for way in others if way.name in able]
            return [
                *_small(load, [bare, *mull, *others]),
                *_workers(load, mull[0], pair),
                *_long(load, mull),
                *_chunks(load, [*mull, *others]),
            ]
    finally:
        load.end()


def _each(ways: Iterable[Way], measure: Callable[[Way], _T]) -> dict[str, _T]:
    """What is measured of each, by its name; another gateway that fails is left out."""
    found = {}
    for way in ways:
        try:
            found[way.name] = measure(way)
        except RuntimeError as error:
            if _is_ours(way):
                raise
            leave_out(way.name, " ".join(str(error).split())[:200])
    return found


def _small(load: Load, ways: list[Way]) -> Iterator[Figure]:
    """Small requests: what one client waits for, and what a request costs with many."""
    for how in ("whole", "streamed"):

        def measure(way: Way, *, stream: bool = how == "streamed") -> tuple[float, float]:
            text = way.asked("short", stream=stream)
            requests = REQUESTS if _is_ours(way) else REQUESTS // 10
            wait = load.put(way, text, 1, requests // 4).p50 * 1e3
            return wait, load.put(way, text, CLIENTS, requests).cpu / requests * 1e6

        found = _each(ways, measure)
        ways = [way for way in ways if way.name in found]
        waits = {name: wait for name, (wait, _) in found.items()}
        costs = {name: cost for name, (_, cost) in found.items()}
        for way in ways:
            yield _beside(f"CPU of a request, {how}", way, costs, "µs CPU")
        for way in ways[1:]:
            added, most = waits[way.name] - waits[_BARE], "≤ 1 ms" if _is_ours(way) else ""
            told = f"{_BARE}: {waits[_BARE]:.2f} ms"
            yield Figure(
                f"wait added for one client, {how}: {way.name}", added, "ms", told, None, most
            )
        for way in filter(_is_ours, ways):
            least = "≥ 3,000" if way.name != _BARE else ""
            name = f"requests per second and core, {how}: {way.name}"
            yield Figure(name, 1e6 / costs[way.name], "/s", "", None, least)


def _is_ours(way: Way) -> bool:
    return way.name.startswith((_BARE, "mull"))


def _beside(what: str, way: Way, costs: dict[str, float], unit: str, target: str = "") -> Figure:
    """mull beside the pass-through, the others beside mull in the same API."""
    own = _CROSSING if way.path == _MESSAGES else _OURS
    base = _BARE if way.name.startswith("mull") else own
    ratio = costs[way.name] / costs[base] if base in costs and way.name != _BARE else None
    against = "" if ratio is None else base
    return Figure(f"{what}: {way.name}", costs[way.name], unit, against, ratio, target)


def _workers(load: Load, one: Way, two: Way) -> Iterator[Figure]:
    text = body(_CHAT, "short", stream=True)
    alone = load.put(one, text, CLIENTS, REQUESTS).wall
    both = load.put(two, text, CLIENTS, REQUESTS).wall
    told = f"one worker {REQUESTS / alone:,.0f}/s"
    yield Figure(f"requests: {two.name}", REQUESTS / both, "/s", told, alone / both, "≥ 1.7×")


def _long(load: Load, ways: list[Way]) -> Iterator[Figure]:
    for way in ways:
        for name, messages, large in (("an agent's", 40, True), ("400 messages'", 400, False)):
            text = body(way.path, "short", messages, large=large, stream=True)
            told = load.put(way, text, 4, LARGE)
            label = f"CPU of {name} request, {len(text) // 1000} kB: {way.name}"
            yield Figure(label, told.cpu / LARGE * 1e6, "µs CPU")


def _chunks(load: Load, ways: list[Way]) -> Iterator[Figure]:
    def measure(way: Way) -> float:
        streams = STREAMS if _is_ours(way) else STREAMS // 8
        told = load.put(way, way.asked("long", stream=True), 4, streams)
        return told.cpu / streams / CHUNKS * 1e6

    costs = _each(ways, measure)
    for way in (way for way in ways if way.name in costs):
        most = "≤ 10 µs" if _is_ours(way) else ""
        yield _beside("CPU of a streamed chunk", way, costs, "µs CPU", most)
