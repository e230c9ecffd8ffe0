"""What the hot paths cost, counted in bytecode instructions: a measure that is no clock.

Each path is run twice, the second time with twice the work, and the difference is its cost for one
piece of work: a chunk, a turn, a delta. What a start takes is for the most part importing: the
modules of mull are counted. The same code costs the same on every run, whatever else the machine
does; only another version of Python counts differently. The budgets are recorded in budgets.json by
`python -m bench.budgets --write`; a test compares them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from bench.decode import MODELS
from bench.draw import EVERY, WIDTH, pieces
from bench.history import turn
from bench.streams import events, stream
from mull import Log, Settings, prepare, resolve
from mull.dialects.registry import DIALECTS, decoder, encode_request
from mull.dialects.serving import answer_writer, decode_request
from mull.history.log import Entry
from mull.neutral.assemble import Assembler
from mull.neutral.events import TextDelta
from mull.neutral.messages import Dialect
from mull.store.sessions.records import decode_record, encode_record
from mull.testing.server import Reply, ScriptedServer
from mull.tui.conversation.view import ConversationView
from mull.tui.screen.colour import Rgb
from mull.tui.screen.theme import theme_for
from mull.tui.text.sgr import encode

__all__ = ["PATHS", "STARTS", "budgets", "cost"]

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
_FILE = Path(__file__).with_name("budgets.json")
_READ = 4096
_Step = Callable[[], object]


def instructions(step: _Step) -> int:
    """The bytecode instructions that the step executes."""
    count = 0

    def traced(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        count += event == "opcode"
        return traced

    sys.settrace(traced)
    try:
        step()
    finally:
        sys.settrace(None)
    return count


def decoding(dialect: Dialect, chunks: int) -> _Step:
    """An answer decoded and folded into a message, from reads of 4 kB."""
    body, target = stream(dialect, chunks), resolve(MODELS[dialect])

    def step() -> None:
        reading, folding = decoder(target), Assembler()
        for at in range(0, len(body), _READ):
            folding.add_all(reading.feed(body[at : at + _READ]))
        folding.add_all(reading.close())
        folding.message()

    return step


def writing(dialect: Dialect, chunks: int) -> _Step:
    """An answer written in a dialect."""
    told = list(events(dialect, chunks))

    def step() -> None:
        writer = answer_writer(dialect)
        for event in told:
            writer.feed(event)

    return step


def preparing(dialect: Dialect, turns: int) -> _Step:
    """The first request of a long conversation, prepared and encoded."""
    messages = [message for seed in range(turns) for message in turn(seed)]
    target, snapshot = resolve(MODELS[dialect]), Settings().snapshot()

    def step() -> None:
        prepared = prepare(Log(messages), snapshot, target)
        encode_request(prepared.request, prepared.target)

    return step


class _Words:
    """Counts as a tokenizer does, without one."""

    name, exact = "words", False

    def count(self, text: str) -> int:
        """The words of a text."""
        return len(text.split())


def counting(turns: int) -> _Step:
    """The first request of a long conversation, prepared and counted with a tokenizer."""
    messages = [message for seed in range(turns) for message in turn(seed)]
    target, snapshot = resolve(MODELS["openai-chat"]), Settings().snapshot()
    return lambda: prepare(Log(messages), snapshot, target, counter=_Words())


def resuming(turns: int) -> _Step:
    """The records of a stored session, decoded to a log."""
    entries = [Entry(message) for seed in range(turns) for message in turn(seed)]
    stored = [*enumerate(map(encode_record, entries))]
    return lambda: Log(records=[decode_record(data, "", at) for at, data in stored])


def receiving(dialect: Dialect, turns: int) -> _Step:
    """A client's request with a long conversation, decoded."""
    messages = [message for seed in range(turns) for message in turn(seed)]
    target = resolve(MODELS[dialect])
    prepared = prepare(Log(messages), Settings().snapshot(), target)
    wire = encode_request(prepared.request, prepared.target)
    return lambda: decode_request(dialect, wire.body, wire.path)


def going_on(turns: int) -> _Step:
    """One turn more after another, each prepared."""
    log = Log(message for seed in range(50) for message in turn(seed))
    more = [turn(seed) for seed in range(50, 50 + turns)]
    target, snapshot = resolve(MODELS["openai-chat"]), Settings().snapshot()
    prepare(log, snapshot, target)

    def step() -> None:
        for added in more:
            for message in added:
                log.append(message)
            prepare(log, snapshot, target)

    return step


def drawing(deltas: int) -> _Step:
    """An answer drawn while it streams, with repaints."""
    told = [TextDelta(text) for text in pieces(deltas, 8)]

    def step() -> None:
        view = ConversationView(theme_for("auto", Rgb(30, 30, 46), "truecolor"), WIDTH, "full")
        for number, event in enumerate(told):
            view.event(event)
            if number % EVERY == 0:
                encode(view.commit(), "truecolor")
                encode(view.open_lines(0.0), "truecolor")

    return step


def _of_each(name: str, path: Callable[[Dialect, int], _Step]) -> Iterable[tuple[str, Any]]:
    return ((f"{name}, {dialect}", partial(path, dialect)) for dialect in DIALECTS)


PATHS: dict[str, tuple[Callable[[int], _Step], int]] = {
    **{name: (path, 100) for name, path in _of_each("decode a chunk", decoding)},
    **{name: (path, 100) for name, path in _of_each("write a chunk", writing)},
    **{name: (path, 20) for name, path in _of_each("prepare and encode a turn", preparing)},
    **{name: (path, 20) for name, path in _of_each("receive a turn", receiving)},
    "prepare and count a turn": (counting, 20),
    "prepare after one turn more": (going_on, 10),
    "resume a turn": (resuming, 20),
    "draw a delta": (drawing, 320),
}
"""The paths, each with how many pieces of work it is measured with."""


STARTS = {
    "modules of mull --version": "from mull.cli.main import main; main(['--version'])",
    "modules of mull --help": "from mull.cli.main import parser_of; parser_of(None).print_help()",
    "modules of mull ask": (
        "from mull.cli.main import main; from sys import argv;"
        "main(['ask', '-m', 'openai-compatible/m', '--base-url', argv[1], 'hello'])"
    ),
    "modules of a prompt": (
        "import mull.cli.main, mull.cli.chat, mull.agent.engine, mull.cli.interrupt;"
        "import mull.agent.opening, mull.store.sessions.sqlite, mull.tui.main, mull.tui.screen.app"
    ),
}
"""What is imported: by a command, and before a prompt is drawn."""
_COUNTED = "import sys; print(sum(n.split('.')[0] == 'mull' for n in sys.modules), file=sys.stderr)"
_ANSWER = Reply.events(
    {"choices": [{"index": 0, "delta": {"content": "hello"}, "finish_reason": "stop"}]}, "[DONE]"
)


def modules(script: str) -> int:
    """How many modules of mull the script imports in an interpreter and a home of its own."""
    with TemporaryDirectory() as home, ScriptedServer([_ANSWER]) as server:
        places = dict.fromkeys(("HOME", "MULL_CONFIG_DIR", "MULL_DATA_DIR"), home)
        done = subprocess.run(
            [sys.executable, "-c", f"{script}; {_COUNTED}", server.url],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**os.environ, **places},
            check=True,
        )
    return int(done.stderr)


def cost(name: str) -> float:
    """Instructions for one piece of work of a path; the modules of a start."""
    if name in STARTS:
        return modules(STARTS[name])
    path, pieces_of_work = PATHS[name]
    path(pieces_of_work)()  # what is made once is made now
    few, many = instructions(path(pieces_of_work)), instructions(path(2 * pieces_of_work))
    return round((many - few) / pieces_of_work, 1)


def budgets() -> dict[str, float]:
    """The recorded cost of each path on this version of Python; empty if there are none."""
    recorded: dict[str, dict[str, float]] = json.loads(_FILE.read_text())
    return recorded.get(VERSION, {})


def main(words: list[str]) -> None:
    """Print what each path costs beside its budget; `--write` records it."""
    known, now = budgets(), {name: cost(name) for name in (*PATHS, *STARTS)}
    for name, counted in now.items():
        budget = known.get(name)
        change = "" if not budget else f"{counted / budget - 1:+.1%}"
        print(f"{counted:10,.1f}  {change:>7}  {name}")
    if "--write" in words:
        recorded = {**json.loads(_FILE.read_text()), VERSION: now}
        _FILE.write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
