"""Writes the cases and their schema: `python -m fidelity.build`, `--check` only compares."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import msgspec

from fidelity.crossing import all_pairs
from fidelity.table import all_cases
from fidelity.wire import Json, compact
from mull.testing.fidelity.case import Case

__all__ = ["main", "rendered"]

HERE = Path(__file__).parent


def rendered() -> Mapping[Path, str]:
    """Every generated file and what it must hold: cases by their first endpoint, pairs by the API
    of their client.
    """
    files: dict[str, list[Json]] = defaultdict(list)
    for case in all_cases():
        files[f"cases/{case['id'].partition('/')[0]}"].append(case)
    for pair in all_pairs():
        files[f"pairs/{pair['id'].partition('-to-')[0]}"].append(pair)
    found = {
        HERE / f"{name}.json": "[\n" + ",\n".join(map(compact, cases)) + "\n]\n"
        for name, cases in files.items()
    }
    schema = msgspec.json.encode(msgspec.json.schema(list[Case]))
    found[HERE / "schema.json"] = msgspec.json.format(schema, indent=2).decode() + "\n"
    return found


def main() -> int:
    """Write or compare."""
    stale = [
        path
        for path, text in rendered().items()
        if not path.exists() or path.read_text("utf-8") != text
    ]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(HERE.parent)} is stale: run `python -m fidelity.build`")
        return bool(stale)
    for path in stale:
        path.parent.mkdir(exist_ok=True)
        path.write_text(rendered()[path], "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
