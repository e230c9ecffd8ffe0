"""`python -m bench [NAME…]` measures everything, or the named sections, and writes the page."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from bench.report import page

SECTIONS = {
    "startup": "Cold start",
    "decode": "Decoding a stream of 20,000 chunks, per chunk",
    "catalog": "Catalog",
    "history": "A turn costs what is new",
    "client": "Over loopback HTTP: 20,000 chunks, per chunk, and the start of a question",
}


def main(names: list[str]) -> None:
    """Measure and print; write RESULTS.md only when everything was measured."""
    results = {}
    for name in names or SECTIONS:
        print(f"measuring {name} ...", file=sys.stderr)
        results[SECTIONS[name]] = import_module(f"bench.{name}").run()
    text = page(results)
    print(text)
    if not names:
        Path(__file__).with_name("RESULTS.md").write_text(text)


main(sys.argv[1:])
