"""`python -m bench [NAME…]` measures everything, or the named sections, and writes the page."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

from bench.report import Section, page

SECTIONS = {
    "startup": "Cold start",
    "decode": "Decoding a stream of 20,000 chunks, per chunk",
    "catalog": "Catalog",
    "history": "A turn costs what is new",
    "draw": "Drawing a stream, with a repaint every 32 deltas",
    "road": "The whole road over loopback, per chunk",
    "client": "Over loopback HTTP: 20,000 chunks, per chunk, and the start of a question",
    "library": "The library beside others",
    "interrupt": "From Esc to the end of an answer",
    "gateway": "The gateway, beside a bare pass-through",
    "memory": "The memory of the gateway",
    "terminal": "At the terminal, beside other assistants",
}


def main(names: list[str]) -> None:
    """Measure and print; write RESULTS.md only when everything was measured."""
    text = page([_measured(name) for name in names or SECTIONS])
    print(text)
    if not names:
        Path(__file__).with_name("RESULTS.md").write_text(text)


def _measured(name: str) -> Section:
    print(f"measuring {name} ...", file=sys.stderr)
    module = import_module(f"bench.{name}")
    before = os.getloadavg()[0]
    figures = module.run()
    return Section(SECTIONS[name], module.__doc__.strip(), figures, (before, os.getloadavg()[0]))


main(sys.argv[1:])
