"""End to end over loopback HTTP: CPU per chunk beside the peers, and how soon `mull ask` asks.

The peers are no dependencies. What the bench's own environment lacks is installed once into another
one, `$MULL_BENCH_PEERS` or `.venv-peers`; what cannot be installed is left out, and said so.
"""

from __future__ import annotations

import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path

from bench.report import Figure, median_ratio
from bench.runners import RUNNERS
from bench.streams import CHUNKS
from mull.testing.server import Reply, ScriptedServer

ROUNDS = 3
STARTS = 25
ROOT = Path(__file__).parent.parent
MULL = str(Path(sys.executable).with_name("mull"))
_ANSWER = Reply.events(
    {"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {"content": "hello"}, "finish_reason": "stop"}]},
    "[DONE]",
)
PEERS = {"litellm": "litellm", "pydantic-ai": "pydantic-ai-slim[openai]"}


def say(text: str) -> None:
    """Tell the person who waits."""
    print(f"  {text}", file=sys.stderr, flush=True)


def peers_python() -> str | None:
    """The interpreter of the environment with the peers, which is made if there is none."""
    place = Path(os.environ.get("MULL_BENCH_PEERS") or ROOT / ".venv-peers")
    python = place / "bin" / "python"
    ready = place / ".ready"
    if not ready.exists():
        say(f"installing {' and '.join(PEERS)} into {place}, once ...")
        venv.create(place, with_pip=True)
        (place / ".gitignore").write_text("*\n")
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run(
            [*install, *PEERS.values()], capture_output=True, text=True, check=False
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            say(f"left out: they cannot be installed ({last})")
            return None
        ready.touch()
    return str(python)


class Client:
    """A runner that waits for its rounds."""

    def __init__(self, python: str, name: str, url: str) -> None:
        script = str(Path(__file__).with_name("runners.py"))
        self._process = subprocess.Popen(
            [python, "-P", script, name, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        version = self._process.stdout.readline()
        self.broken = "" if version else self._process.communicate()[1].strip()
        self.label = f"{name} {version.strip()}".strip()

    def cpu_us(self) -> float:
        """CPU microseconds per chunk of one round."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline()) / CHUNKS * 1e6

    def close(self) -> None:
        """End it."""
        self._process.communicate()


@contextlib.contextmanager
def upstream(dialect: str = "openai-chat") -> Iterator[str]:
    """The address of the endpoint, which runs meanwhile."""
    command = [sys.executable, "-m", "bench.upstream", dialect]
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
    finally:
        process.communicate()


def start_clients(url: str, stack: contextlib.ExitStack) -> dict[str, Client]:
    """Everyone who takes part, warm."""
    other = peers_python()
    clients = {}
    for name in RUNNERS:
        python = other if name in PEERS else sys.executable
        if python is None:
            continue
        client = Client(python, name, url)
        if client.broken:
            say(f"left out: {name} ({client.broken.splitlines()[-1]})")
            continue
        stack.callback(client.close)
        clients[name] = client
    return clients


def streaming() -> list[Figure]:
    """CPU of the client process per chunk, all clients interleaved."""
    with contextlib.ExitStack() as stack:
        clients = start_clients(stack.enter_context(upstream()), stack)
        times: dict[str, list[float]] = {name: [] for name in clients}
        for _ in range(ROUNDS):
            for name, client in clients.items():
                times[name].append(client.cpu_us())
        labels = {name: client.label for name, client in clients.items()}
    unit, base = "µs CPU", "bytes alone"
    figures = [Figure("bytes alone, mull's transport", statistics.median(times["bytes"]), unit)]
    ours = [name for name in times if name.startswith("mull")]
    for name in ours:
        ratio = median_ratio(times[name], times["bytes"])
        figures.append(Figure(name, statistics.median(times[name]), unit, base, ratio))
    peers = [name for name in times if name not in ("bytes", *ours)]
    for name in peers:
        ratio = median_ratio(times[name], times["mull, async"])
        value = statistics.median(times[name])
        figures.append(Figure(labels[name], value, unit, "mull, async", ratio))
    if peers:
        best = min(peers, key=lambda name: statistics.median(times[name]))
        for name in ours:
            ratio = median_ratio(times[best], times[name])
            value = statistics.median(times[best])
            figures.append(Figure("the best of these", value, unit, name, ratio, "≥ 8"))
    return figures


def until_asked(listening: socket.socket, environment: dict[str, str]) -> tuple[float, float]:
    """Wall and CPU milliseconds of `mull ask` until the first byte of its request is here.

    It is killed at that moment, so that its CPU time ends there too.
    """
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    command = [MULL, "ask", "-m", "openai-compatible/m", "--base-url", url, "hello"]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment)
    client, _ = listening.accept()
    with client:
        client.recv(1)
        wall = time.perf_counter() - began
        process.kill()
        return wall * 1e3, _cpu_ms(process)


def bare(environment: dict[str, str]) -> tuple[float, float]:
    """The same of an interpreter that does nothing, to its end."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", "pass"], env=environment)
    cpu = _cpu_ms(process)
    return (time.perf_counter() - began) * 1e3, cpu


def _cpu_ms(process: subprocess.Popen[bytes]) -> float:
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return (usage.ru_utime + usage.ru_stime) * 1e3


def whole(url: str, environment: dict[str, str]) -> tuple[float, float]:
    """Wall and CPU milliseconds of a whole `mull ask`: asked, answered, stored, ended."""
    command = [MULL, "ask", "-m", "openai-compatible/m", "--base-url", url, "hello"]
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment
    )
    cpu = _cpu_ms(process)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed with status {process.returncode}")
    return (time.perf_counter() - began) * 1e3, cpu


def starting() -> list[Figure]:
    """`mull ask` until it asks, and to its end, beside bare Python."""
    asked, done, nothing = [], [], []
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        ScriptedServer([_ANSWER] * (STARTS + 2)) as server,
        tempfile.TemporaryDirectory() as home,
    ):
        listening.settimeout(30)
        places = dict.fromkeys(("HOME", "MULL_CONFIG_DIR", "MULL_DATA_DIR"), home)
        environment = {**os.environ, **places, "PYTHONPYCACHEPREFIX": f"{home}/compiled"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for _ in range(2):  # the first compiles everything
            until_asked(listening, environment)
            whole(server.url, environment)
        for _ in range(STARTS):
            asked.append(until_asked(listening, environment))
            done.append(whole(server.url, environment))
            nothing.append(bare(environment))
    figures = []
    for at, unit in ((0, "ms"), (1, "ms CPU")):
        base = [one[at] for one in nothing]
        figures.append(Figure(f"python, {unit}", statistics.median(base), unit))
        for what, times, target in (
            ("mull ask until its first byte is on the wire", asked, "≤ 6"),
            ("mull ask, whole", done, "≤ 9"),
        ):
            mine = [one[at] for one in times]
            ratio = median_ratio(mine, base)
            median = statistics.median(mine)
            figures.append(Figure(f"{what}, {unit}", median, unit, "python", ratio, target))
    return figures


def run() -> list[Figure]:
    """Streaming, then starting."""
    return [*streaming(), *starting()]
