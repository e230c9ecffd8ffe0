"""The next request of a conversation of 10, 1,000 and 10,000 turns, each with a thought of 4 kB.

Times are of the processor, not of the clock, so that what else the machine does counts little.
Conversations of different lengths are measured in turns of each other. The first preparation counts
every token with the model's tokenizer; one turn more is prepared from what is known, and a request
is always encoded whole. Beside it, the conversion of the same conversation by other libraries, each
in a process of its own: their messages to a request's body as JSON, without what their SDKs do
with it afterwards. They do not count tokens. Memory is the peak beyond the conversation itself.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from bench.history_peer import thought
from bench.peers import ROOT, leave_out, peer_python
from bench.report import QUICK, Figure, median_ratio
from mull import (
    Log,
    Message,
    Settings,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    assistant,
    counter_for,
    prepare,
    resolve,
    user,
)
from mull.neutral.usage import Usage

SIZES = (10, 1000, 10_000)
ROUNDS = (10, 1500)
MORE_TURNS = 15 if QUICK else 51
FIRST_TIMES = 1 if QUICK else 3
PEERS = {
    "litellm": "mull-anthropic",
    "pydantic-ai": "mull-anthropic",
    "langchain": "mull-anthropic",
    "openai-agents": "mull-chat",
}
"""Each peer, and mull in the dialect that it is measured in."""
_SHOWN = ("litellm",) if QUICK else tuple(PEERS)
_PEER_SIZE, _PEER_ROUNDS = (1000, 3) if QUICK else (10_000, 5)
_TARGET = resolve("moonshotai/kimi-k2-thinking")


def _kept(seed: int) -> ThinkingBlock:
    return ThinkingBlock(thought(seed), source_field="reasoning_content")


def turn(seed: int) -> list[Message]:
    """A question, a thought and an answer."""
    return [user(f"question {seed}"), assistant(_kept(seed), TextBlock(f"answer {seed}"))]


def reported_turn(seed: int) -> list[Message]:
    """A turn with what a provider reports of it."""
    question, answer = turn(seed)
    usage = Usage(input=1500 * (seed + 1), output=1500)
    return [question, replace(answer, origin=_TARGET.origin, usage=usage)]


def tool_round(seed: int) -> list[Message]:
    """A thought with a call, and its result."""
    call = ToolCallBlock(f"call_{seed}", "look", {"at": seed})
    result = Message(role="tool", blocks=(ToolResultBlock(call.id, f"seen {seed}"),))
    return [assistant(_kept(seed), call), result]


def _timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1e3


class Growing:
    """A log that is prepared after each step, and the milliseconds that each of them took."""

    def __init__(self, log: Log, step: Callable[[int], list[Message]]) -> None:
        self.log = log
        self._step = step
        settings = Settings()
        settings.set("reasoning.includeInContext", True)
        self._snapshot, self._counter = settings.snapshot(), counter_for(_TARGET)
        self._counter.count("warm")
        gc.collect()
        self.first = _timed(self._look)
        self.looks: list[float] = []

    def grow(self, seed: int) -> None:
        """One step more."""
        for message in self._step(seed):
            self.log.append(message)
        self.looks.append(_timed(self._look))

    def _look(self) -> None:
        prepare(self.log, self._snapshot, _TARGET, counter=self._counter)


def _turns(messages: list[Message]) -> Growing:
    return Growing(Log(messages), reported_turn)


def _chain(count: int) -> Growing:
    rounds = (message for seed in range(count) for message in tool_round(seed))
    return Growing(Log([user("look at everything"), *rounds]), tool_round)


def _against(base: list[float], values: list[float], name: str, than: str, target: str) -> Figure:
    ratio = median_ratio(values, base)
    return Figure(name, statistics.median(values), "ms", than, ratio, target)


def views() -> list[Figure]:
    """First view and one more turn for each size; the last against the smallest."""
    said = [message for seed in range(SIZES[-1]) for message in reported_turn(seed)]
    firsts, growing = {}, {}
    for size in SIZES:
        again = [_turns(said[: 2 * size]) for _ in range(FIRST_TIMES)]
        firsts[size], growing[size] = statistics.median(one.first for one in again), again[0]
    gc.collect()
    for more in range(MORE_TURNS):
        for size, one in growing.items():
            one.grow(size + more)
    figures = []
    base = growing[SIZES[0]].looks
    for size, one in growing.items():
        is_last = size == SIZES[-1]
        name = f"prepare and count {size:,} turns, first time"
        most = "≤ 2 s" if is_last else ""
        figures.append(Figure(name, firsts[size], "ms", target=most))
        than, target = f"one turn more than {SIZES[0]}", "≤ 1.2" if is_last else ""
        figures.append(_against(base, one.looks, f"one turn more than {size:,}", than, target))
    return figures


def chains() -> list[Figure]:
    """One more round of a tool chain, short and long."""
    short, long = map(_chain, ROUNDS)
    for more in range(MORE_TURNS):
        short.grow(ROUNDS[0] + more)
        long.grow(ROUNDS[1] + more)
    names = [f"one tool round more than {count:,} in one turn" for count in ROUNDS]
    return [
        Figure(names[0], statistics.median(short.looks), "ms"),
        _against(short.looks, long.looks, names[1], names[0], "≤ 1.2"),
    ]


def _measured(python: str, who: str, size: int, rounds: int) -> dict[str, Any] | None:
    words = [python, str(ROOT / "bench" / "history_peer.py"), who, str(size), str(rounds)]
    plain = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(words, capture_output=True, text=True, env=plain, cwd="/", check=False)
    if done.returncode:
        leave_out(who, (done.stderr.strip().splitlines() or ["no reason given"])[-1])
        return None
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert measured["thoughts"] == size, f"{who} sends {measured['thoughts']} of {size} thoughts"
    return measured


def beside() -> list[Figure]:
    """The next request in mull, and in other libraries."""
    figures = []
    own: dict[str, dict[str, Any]] = {}
    for who in dict.fromkeys(PEERS.values()):
        for size in (size for size in SIZES if size <= _PEER_SIZE):
            found = _measured(sys.executable, who, size, _PEER_ROUNDS)
            if found is not None:
                own[who] = found
                figures += _request_figures(who, size, found)
    for peer, mine in ((peer, PEERS[peer]) for peer in _SHOWN):
        python = peer_python(peer)
        found = python and _measured(python, peer, _PEER_SIZE, _PEER_ROUNDS)
        if found and mine in own:
            figures += _peer_figures(peer, found, mine, own[mine])
    return figures


def _seconds(found: dict[str, Any]) -> float:
    return statistics.median(found["seconds"])


def _request_figures(who: str, size: int, found: dict[str, Any]) -> list[Figure]:
    name = f"{who}: next request of {size:,} turns, prepared and encoded"
    return [
        Figure(name, _seconds(found) * 1e3, "ms"),
        Figure(f"{who}: peak memory of the first request of {size:,} turns", found["peak"], "MiB"),
    ]


def _peer_figures(peer: str, found: dict[str, Any], who: str, own: dict[str, Any]) -> list[Figure]:
    name = f"{peer}: next request of {_PEER_SIZE:,} turns, converted"
    ratio = _seconds(found) / _seconds(own)
    memory = f"{peer}: peak memory of a request of {_PEER_SIZE:,} turns"
    return [
        Figure(name, _seconds(found) * 1e3, "ms", who, ratio),
        Figure(memory, found["peak"], "MiB", who, found["peak"] / own["peak"]),
    ]


def run() -> list[Figure]:
    """Views, tool chains, and whole requests beside others."""
    parts: list[Callable[[], list[Figure]]] = [views, chains, beside]
    return [figure for part in parts for figure in part()]
