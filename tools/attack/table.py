"""Runs the attacks and tells what held: a table on the screen, and in docs/reliability.md.

A row is `broke` if one of its trials broke. The page gets its figures from a whole run only.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from tools.attack.ground import ATTACKS, Attack

__all__ = ["PAGE", "Row", "main", "section", "with_section_of", "written_into"]

KINDS = (
    "endpoint",
    "output",
    "tools",
    "approval",
    "commands",
    "mcp",
    "storage",
    "secrets",
    "inputs",
    "resources",
)
PAGE = Path(__file__).resolve().parents[2] / "docs/reliability.md"
_BEGIN = "<!-- attacks: written by `make attack WRITE=1` -->"
_END = "<!-- attacks: end -->"
_SECTION = re.compile(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)
_WORKERS = 2


class Row(NamedTuple):
    """What came of one attack."""

    kind: str
    name: str
    tried: int
    broke: tuple[str, ...]

    @property
    def result(self) -> str:
        """In a word."""
        return "broke" if self.broke else "held"


def all_attacks() -> list[Attack]:
    """The table, in the order of its kinds."""
    for kind in KINDS:
        import_module(f"tools.attack.{kind}")
    order = {kind: place for place, kind in enumerate(KINDS)}
    return sorted(ATTACKS, key=lambda one: order[one.kind.lower()])


def carry_out(attack: Attack) -> Row:
    """Try every form of an attack. One that cannot be tried has not held."""
    tried, broke = 0, []
    try:
        for form, problem in attack.run():
            tried += 1
            if problem:
                broke.append(f"{form}: {problem}")
    except Exception as error:
        broke.append(f"the attack itself failed: {error!r}")
    return Row(attack.kind, attack.name, tried, tuple(broke if tried else broke or ["not tried"]))


def section(rows: Sequence[Row]) -> str:
    """The part of the page that tells of attacks."""
    held = [row for row in rows if not row.broke]
    lines = [
        _BEGIN,
        "",
        "## Attacks",
        "",
        "`make attack` plays hostile endpoints, models, repositories, MCP servers, catalogs and"
        " files against mull as a user runs it, on loopback and in homes of their own. A row has"
        f" broken if one of its trials has. **{len(rows)} attacks, {sum(r.tried for r in rows):,}"
        f" trials: {len(held)} held, {len(rows) - len(held)} broke.**",
        "",
        "| Kind | Attack | Tried | Result |",
        "|---|---|---|---|",
        *(f"| {row.kind} | {row.name} | {row.tried:,} | {row.result} |" for row in rows),
        "",
        _END,
    ]
    return "\n".join(lines)


def with_section_of(before: str, page: str) -> str:
    """The page with the sections that stood at its end, for whoever writes the rest anew."""
    at = before.find(_BEGIN)
    return page if at < 0 else f"{page.rstrip()}\n\n{before[at:]}"


def written_into(page: str, text: str) -> str:
    """The page with this section in the place of the old one, or at its end."""
    old = _SECTION.search(page)
    if old is None:
        return f"{page.rstrip()}\n\n{text}\n"
    return page[: old.start()] + text + page[old.end() :]


def _print(row: Row) -> None:
    print(f"{row.kind:<10} {row.name:<66} {row.tried:>6,}  {row.result}", flush=True)
    for why in row.broke[:5]:
        print(f"           {why[:200]}", flush=True)


def _chosen(attacks: Iterable[Attack], words: Sequence[str]) -> list[Attack]:
    def fits(one: Attack) -> bool:
        return any(word.lower() in f"{one.kind} {one.name}".lower() for word in words)

    return [one for one in attacks if not words or fits(one)]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the attacks; 1 if one of them broke something."""
    parser = argparse.ArgumentParser(prog="python -m tools.attack", description=main.__doc__)
    parser.add_argument("words", nargs="*", help="only attacks with one of these in their row")
    parser.add_argument("--write", action="store_true", help="put the figures on the page")
    options = parser.parse_args(argv)
    chosen = _chosen(all_attacks(), options.words)
    if not chosen:
        parser.error("no attack is called that")
    if options.write and options.words:
        parser.error("--write needs a whole run")
    began, rows = time.monotonic(), []
    with ThreadPoolExecutor(_WORKERS) as pool:
        for row in pool.map(carry_out, chosen):
            rows.append(row)
            _print(row)
    broke = sum(bool(row.broke) for row in rows)
    print(
        f"{len(rows)} attacks, {sum(row.tried for row in rows):,} trials,"
        f" {len(rows) - broke} held, {broke} broke, {time.monotonic() - began:.0f} s"
    )
    if options.write:
        page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else "# Reliability\n"
        PAGE.write_text(written_into(page, section(rows)), encoding="utf-8")
    return 1 if broke else 0
