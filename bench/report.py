"""The form of a figure and of the page of figures."""

from __future__ import annotations

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


def page(sections: dict[str, list[Figure]]) -> str:
    """The results as Markdown."""
    lines = [
        "# Measurements",
        "",
        "Written by `make bench`. Medians of interleaved rounds in one run on one machine"
        f" ({platform.machine()}, {platform.python_implementation()} {platform.python_version()});"
        " read the ratios, not the times.",
    ]
    for title, figures in sections.items():
        lines += ["", f"## {title}", "", "| what | median | against | ratio | target |"]
        lines += ["|---|---|---|---|---|", *(figure.row() for figure in figures)]
    return "\n".join(lines) + "\n"


def median_ratio(values: list[float], base: list[float]) -> float:
    """The median of ratios taken inside each round."""
    return statistics.median(a / b for a, b in zip(values, base, strict=True))
