"""Drawing an answer while it streams: CPU per 1,000 deltas, repaints and escape codes included.

The screen is repainted every few deltas, as a bounded rate does. The peer is rich's Markdown inside
its Live display, the usual way to stream Markdown in a Python terminal program.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from io import StringIO

from bench.report import QUICK, Figure, median_ratio
from mull.neutral.events import TextDelta, ThinkingDelta
from mull.tui.conversation.view import ConversationView
from mull.tui.screen.colour import Rgb
from mull.tui.screen.theme import theme_for
from mull.tui.text.sgr import encode

ROUNDS = 1 if QUICK else 3
WIDTH = 100
LONG = 60_000 if QUICK else 200_000
SHORT = 20_000
PEER = 2_000
EVERY = 32
"""Deltas between two repaints: 30 repaints in a second of about 1,000 deltas."""

_SAMPLE = """\
The cache is made **too late**: `load()` runs before `setup()`, and nothing says so. There are two
ways out, and the first is the better one in nearly every respect that was asked about.

## What to change

1. Make it in `setup()`, so that it is there when the first request comes in from outside.
2. Make `load()` tolerant of a missing cache, which is *slower* and hides the next mistake.

```python
def setup(path: str) -> Cache:
    cache = Cache(path, limit=512)  # MB
    return cache if cache.valid else None
```

| File | Lines |
|---|---|
| `cache.py` | 12 |

"""


def pieces(count: int, size: int) -> list[str]:
    """`count` deltas of `size` characters each."""
    text = _SAMPLE * (count * size // len(_SAMPLE) + 1)
    return [text[at : at + size] for at in range(0, count * size, size)]


def mull(deltas: list[str], kind: type[TextDelta] | type[ThinkingDelta] = TextDelta) -> float:
    """CPU milliseconds per 1,000 deltas with mull's own drawing."""
    events = [kind(text) for text in deltas]
    view = ConversationView(theme_for("auto", Rgb(30, 30, 46), "truecolor"), WIDTH, "full")
    written = 0
    gc.collect()
    start = time.process_time()
    for number, event in enumerate(events):
        view.event(event)
        if number % EVERY == 0:
            written += len(encode(view.commit(), "truecolor"))
            written += len(encode(view.open_lines(0.0), "truecolor"))
    view.end("complete")
    written += len(encode(view.commit(), "truecolor"))
    assert written > len(deltas)
    return (time.process_time() - start) * 1e6 / len(deltas)


def rich(deltas: list[str]) -> float:
    """CPU milliseconds per 1,000 deltas with rich, which draws the whole answer each time."""
    from rich.console import Console
    from rich.live import Live
    from rich.markdown import Markdown

    out = StringIO()
    console = Console(file=out, force_terminal=True, width=WIDTH, color_system="truecolor")
    text = ""
    gc.collect()
    start = time.process_time()
    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:
        for number, piece in enumerate(deltas):
            text += piece
            if number % EVERY == 0:
                live.update(Markdown(text), refresh=True)
    assert len(out.getvalue()) > len(deltas)
    return (time.process_time() - start) * 1e6 / len(deltas)


def rounds(*measures: Callable[[], float]) -> list[list[float]]:
    """Each measure in each round, interleaved."""
    taken = [[measure() for measure in measures] for _ in range(ROUNDS)]
    return [list(values) for values in zip(*taken, strict=True)]


def run() -> list[Figure]:
    """Long against short streams, ordinary deltas, a thought, and rich on a short answer."""
    one, few, four, peer = pieces(LONG, 1), pieces(SHORT, 1), pieces(SHORT, 4), pieces(PEER, 4)
    short, long, ordinary, thought, ours, theirs = rounds(
        lambda: mull(few),
        lambda: mull(one),
        lambda: mull(four),
        lambda: mull(one, ThinkingDelta),
        lambda: mull(peer),
        lambda: rich(peer),
    )
    names = (f"{SHORT:,} deltas of one character", f"{LONG:,} deltas of one character")
    middle = statistics.median
    return [
        Figure(names[0], middle(short), "ms CPU per 1,000"),
        Figure(
            names[1], middle(long), "ms CPU per 1,000", names[0], median_ratio(long, short), "≤ 1.5"
        ),
        Figure(f"{SHORT:,} deltas of four characters", middle(ordinary), "ms CPU per 1,000"),
        Figure(f"a thought of {LONG:,} characters", middle(thought), "ms CPU per 1,000"),
        Figure(f"{PEER:,} deltas of four characters: mull", middle(ours), "ms CPU per 1,000"),
        Figure(
            f"{PEER:,} deltas of four characters: rich",
            middle(theirs),
            "ms CPU per 1,000",
            "mull",
            median_ratio(theirs, ours),
            "≥ 10",
        ),
    ]
