"""The form of a figure and of the page of figures."""

from __future__ import annotations

import os
import platform
import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One measured value beside what it is compared with, and the target for their ratio."""

    name: str
    value: float
    unit: str
    against: str = ""
    ratio: float | None = None
    target: str = ""

    def row(self) -> str:
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}×"
        return (
            f"| {self.name} | {self.value:,.1f} {self.unit}"
            f" | {self.against} | {ratio} | {self.target} |"
        )


@dataclass(frozen=True)
class Section:
    """Figures that belong together, and what is measured how."""

    title: str
    about: str
    figures: list[Figure]
    load: tuple[float, float]
    """How busy the machine was, before and afterwards."""

    def lines(self) -> list[str]:
        before, after = self.load
        busy = f"Load while it ran: {before:.1f} to {after:.1f}."
        head = "| what | median | against | ratio | target |"
        rows = [figure.row() for figure in self.figures]
        return [
            f"## {self.title}",
            "",
            self.about,
            "",
            busy,
            "",
            head,
            "|---|---|---|---|---|",
            *rows,
        ]


def page(sections: list[Section]) -> str:
    """The results as Markdown."""
    lines = [
        "# Measurements",
        "",
        "Written by `make bench`. Medians of interleaved rounds in one run on one machine"
        f" ({platform.machine()}, {os.cpu_count()} cores, {platform.python_implementation()}"
        f" {platform.python_version()}); read the ratios, not the times. What else the machine does"
        " is in the load: the more, the less a time on the clock says.",
    ]
    for section in sections:
        lines += ["", *section.lines()]
    return "\n".join(lines) + "\n"


def median_ratio(values: list[float], base: list[float]) -> float:
    """The median of ratios taken inside each round."""
    return statistics.median(a / b for a, b in zip(values, base, strict=True))
