"""Which figures are drawn: end to end, cold start, long conversations, the gateway."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from bench.plots import Dot, Group, dots
from bench.record import Result
from bench.report import Figure

__all__ = ["PLOTS", "Plot", "by_system", "drawn"]

Results = Mapping[str, Result]
_LIMITS = ("limit", "python", "import msgspec", "pass-through")


class Measured(NamedTuple):
    """A figure whose name is `{dialect}: {system}, {mode}`."""

    dialect: str
    system: str
    mode: str
    figure: Figure


def by_system(figures: Iterable[Figure]) -> Iterator[Measured]:
    """The figures of the section `road` that are the CPU of one system in one dialect, whose
    stream comes as fast as it is read.
    """
    for figure in figures:
        dialect, found, rest = figure.name.partition(": ")
        system, comma, mode = rest.rpartition(", ")
        if found and comma and mode in ("sync", "async") and "," not in dialect:
            yield Measured(dialect, system, mode, figure)


def _road(results: Results) -> Iterator[Group]:
    """The limit and mull on an event loop; of each peer the cheaper way."""
    found: dict[str, dict[str, Measured]] = {}
    for one in by_system(results["road"].figures):
        systems = found.setdefault(one.dialect, {})
        best = systems.get(one.system)
        own = one.system in ("limit", "mull")
        if (own and one.mode == "async") or not (
            own or (best and best.figure.value <= one.figure.value)
        ):
            systems[one.system] = one
    for dialect, systems in found.items():
        yield Group(
            dialect,
            [
                Dot(f"{name}, {one.mode}", one.figure.value, _kind(name))
                for name, one in systems.items()
            ],
        )


def _startup(results: Results) -> Iterator[Group]:
    """Imports, then commands to their end, then prompts."""
    found: dict[str, list[Dot]] = {"Imports": [], "Commands": [], "Until the prompt is usable": []}
    for one in results["startup"].figures:
        name, _, unit = one.name.rpartition(", ")
        if unit == "ms CPU":
            is_command = name.startswith(("mull ", "llm "))
            title = "Imports" if not is_command else "Commands"
            if name.startswith("prompt: "):
                title, name = "Until the prompt is usable", name.removeprefix("prompt: ")
            found[title].append(Dot(name.rpartition(": ")[2], one.value, _kind(name)))
    yield from (Group(title, ones) for title, ones in found.items())


def _history(results: Results) -> Iterator[Group]:
    """What one turn more takes to prepare, and the whole request by the length of the rest."""
    figures = results["history"].figures
    more = [
        Dot(f"after {found[1]} turns", one.value, "mull")
        for one in figures
        if (found := re.fullmatch(r"one turn more than ([\d,]+)", one.name))
    ]
    yield Group("One turn more, prepared and counted", more)
    lengths: dict[str, list[Dot]] = {}
    for one in figures:
        if found := re.match(r"(.+): next request of ([\d,]+) turns", one.name):
            lengths.setdefault(found[2], []).append(Dot(found[1], one.value, _kind(found[1])))
    for length, ones in lengths.items():
        yield Group(f"The whole request of {length} turns, as bytes", ones)


def _gateway(results: Results) -> Iterator[Group]:
    found: dict[str, list[Dot]] = {}
    for one in results["gateway"].figures:
        what, _, system = one.name.partition(": ")
        if what.startswith("CPU of a "):
            found.setdefault(what, []).append(Dot(system, one.value, _kind(system)))
    yield from (Group(what, ones) for what, ones in found.items() if len(ones) > 1)


def _kind(name: str) -> str:
    if "mull" in name:
        return "mull"
    return "limit" if name.startswith(_LIMITS) else "peer"


class Plot(NamedTuple):
    """A picture in docs/images, and what it is drawn from."""

    title: str
    unit: str
    section: str
    groups: Callable[[Results], Iterator[Group]]


PLOTS = {
    "speed-end-to-end": Plot(
        "CPU of the client's process per chunk of a streamed response", "µs", "road", _road
    ),
    "speed-start": Plot("CPU of a cold start", "ms", "startup", _startup),
    "speed-turns": Plot(
        "The next request of a conversation, by its length", "ms", "history", _history
    ),
    "speed-gateway": Plot("CPU of the gateway's process", "µs", "gateway", _gateway),
}


def drawn(name: str, results: Results) -> str:
    """A plot as SVG; nothing if there is nothing to draw."""
    plot = PLOTS[name]
    groups = [*plot.groups(results)] if plot.section in results else []
    return dots(plot.title, plot.unit, groups)
