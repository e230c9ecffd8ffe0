"""Hundreds of rows in one test: all are tried, and each that fails is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def for_each(rows: Iterable[object], check: Callable[..., None]) -> None:
    """Check every row; what fails is raised together, each with the row that it failed for."""
    tried, failed = 0, list[Exception]()
    for row in rows:
        tried += 1
        try:
            check(row)
        except Exception as error:
            error.add_note(f"row: {row!r}")
            failed.append(error)
    assert tried, "there are no rows"
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {tried} rows fail", failed)
