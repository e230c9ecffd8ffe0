"""The form of a figure, and whether it meets its target."""

from __future__ import annotations

import math
import os
import re
import statistics
from typing import NamedTuple

import msgspec

QUICK = bool(os.environ.get("QUICK"))
"""A look in three minutes for all sections together: fewer rounds, smaller loads, fewer peers."""

_TARGET = re.compile(r"(≤|≥) ?(\d[\d,]*(?:\.\d+)?) ?(×|[^\W\d]+|/s)?")
_SCALES = ({"s": 1.0, "ms": 1e-3, "µs": 1e-6}, {"GB": 1e9, "MB": 1e6, "kB": 1e3})


class Target(NamedTuple):
    """The most (≤) or the least (≥) that a figure may be; a plain number or × is about its ratio
    if it has one, and a unit about its value.
    """

    sign: str
    bound: float
    unit: str

    def share(self, measured: float) -> float:
        """How much of the bound is used: more than 1 misses the target."""
        if self.sign == "≤":
            return measured / self.bound
        return self.bound / measured if measured > 0 else math.inf


def target_of(text: str) -> Target:
    """A target as it is written at a figure.

    Raises:
        ValueError: it cannot be read.
    """
    found = _TARGET.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no target: write '≤ 3', '≥ 1.7×' or '≤ 2 s'")
    sign, number, unit = found.groups()
    return Target(sign, float(number.replace(",", "")), unit or "")


class Figure(msgspec.Struct, frozen=True, omit_defaults=True):
    """One measured value beside what it is compared with, and the target for their ratio."""

    name: str
    value: float
    unit: str
    against: str = ""
    ratio: float | None = None
    target: str = ""

    @property
    def share(self) -> float | None:
        """How much of its target it uses; none without a target.

        Raises:
            ValueError: the target cannot be read, or is in a unit that the value has not.
        """
        if not self.target:
            return None
        target = target_of(self.target)
        if target.unit == "×" or not target.unit:
            if self.ratio is None and target.unit:
                raise ValueError(f"{self.name!r} has a target for a ratio, and no ratio")
            return target.share(self.value if self.ratio is None else self.ratio)
        return target.share(self.value * self._in(target.unit))

    def _in(self, unit: str) -> float:
        """What turns the value into this unit."""
        own = self.unit.partition(" ")[0]
        if own == unit:
            return 1.0
        for scale in _SCALES:
            if own in scale and unit in scale:
                return scale[own] / scale[unit]
        raise ValueError(f"{self.name!r} is measured in {own!r}, its target is in {unit!r}")

    @property
    def met(self) -> bool | None:
        """Whether it meets its target; none without a target."""
        return None if self.share is None else self.share <= 1

    @property
    def measured(self) -> str:
        """What the target is about, to read."""
        unit = target_of(self.target).unit if self.target else ""
        if unit not in ("", "×"):
            return f"{number(self.value * self._in(unit))} {unit}"
        if self.ratio is None:
            return self.written
        return f"{number(self.ratio)}×"

    @property
    def written(self) -> str:
        """The value with its unit, to read."""
        return f"{number(self.value)} {self.unit}".rstrip()


def number(value: float) -> str:
    """A number to about three digits."""
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 1 else f"{value:.2g}"


def median_ratio(values: list[float], base: list[float]) -> float:
    """The median of ratios taken inside each round."""
    return statistics.median(a / b for a, b in zip(values, base, strict=True))
