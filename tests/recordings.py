"""Finds the folder of recorded provider traffic, which is not part of this repository.

The recordings are other projects' test data. Where the folder is missing, the tests that need it
say so and are skipped.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

FOLDER = Path(__file__).parents[2] / "shared" / "recordings"
MISSING = f"no recordings at {FOLDER}"


class Exchange(NamedTuple):
    """One recorded request and its answer."""

    name: str
    host: str
    path: str
    request: dict[str, Any]
    status: int
    body: bytes


def need_recordings() -> None:
    if not FOLDER.is_dir():
        pytest.skip(MISSING)


def exchanges(pattern: str = "*") -> list[list[Exchange]]:
    """The exchanges of each recorded conversation whose file name matches."""
    found = []
    for file in sorted((FOLDER / "pydantic-ai").glob(f"{pattern}.json")):
        rows = json.loads(file.read_text())["exchanges"]
        found.append(
            [
                Exchange(
                    file.stem,
                    row["host"],
                    row["path"],
                    row["request"],
                    row["status"],
                    row["body"].encode() if isinstance(row["body"], str) else b"",
                )
                for row in rows
            ]
        )
    return found


def chunk_streams(*providers: str) -> dict[str, bytes]:
    """Streams kept as one JSON chunk per line, as the server-sent events they were."""
    return {
        f"{file.parent.name}/{file.name}": b"".join(
            b"data: " + line + b"\n\n" for line in file.read_bytes().splitlines() if line.strip()
        )
        for provider in providers
        for file in sorted((FOLDER / "vercel-ai" / provider).glob("*.chunks.txt"))
    }


def bodies(*patterns: str) -> dict[str, bytes]:
    """Raw answers by their path below the folder."""
    return {
        str(file.relative_to(FOLDER)): file.read_bytes()
        for pattern in patterns
        for file in sorted(FOLDER.glob(pattern))
    }
