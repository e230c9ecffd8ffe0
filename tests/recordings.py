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
CHAT = ("alibaba", "deepseek", "groq", "mistral", "moonshotai", "openai-compatible", "xai")
RESPONSES = ("openai", "azure", "xai", "open-responses")


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


def _exchanged(ending: str) -> dict[str, bytes]:
    return {
        f"{one.name}/{number}": one.body
        for talk in exchanges()
        for number, one in enumerate(talk)
        if ending in one.path and one.body
    }


def anthropic_answers() -> dict[str, bytes]:
    patterns = ("vercel-ai/anthropic/*.json", "llama.cpp/*anthropic*", "vllm/*anthropic*.sse")
    return {**chunk_streams("anthropic"), **bodies(*patterns), **_exchanged("/v1/messages")}


def chat_answers() -> dict[str, bytes]:
    patterns = ["llama.cpp/*chat*", "vllm/chat*", "vercel-ai/azure/azure-deepseek*.json"]
    patterns += [f"vercel-ai/{provider}/*.json" for provider in CHAT]
    found = {**chunk_streams(*CHAT), **bodies(*patterns), **_exchanged("/chat/completions")}
    return {name: body for name, body in found.items() if b'"choices"' in body}


def gemini_answers() -> dict[str, bytes]:
    found = {**chunk_streams("google"), **bodies("vercel-ai/google/*.json")}
    return {**found, **_exchanged("enerateContent")}


def responses_streams() -> dict[str, bytes]:
    """Streams of one response each; some files hold several in a row."""
    found = bodies("*/*responses*.sse")
    found |= {name: data for name, data in chunk_streams(*RESPONSES).items() if _ends(data)}
    for name, body in _exchanged("/responses").items():
        if _ends(body) and not body.lstrip().startswith(b"{"):
            found[name] = body
    single = {}
    for name, data in found.items():
        frames = [frame for frame in data.replace(b"\r\n", b"\n").split(b"\n\n") if frame.strip()]
        starts = [n for n, frame in enumerate(frames) if b'"response.created"' in frame] or [0]
        for number, start in enumerate(starts):
            end = starts[number + 1] if number + 1 < len(starts) else len(frames)
            single[f"{name} #{number}"] = b"\n\n".join(frames[start:end]) + b"\n\n"
    return single


def _ends(data: bytes) -> bool:
    return b'"response.completed"' in data or b'"response.failed"' in data


def responses_wholes() -> dict[str, bytes]:
    patterns = [f"vercel-ai/{name}/*.json" for name in RESPONSES]
    found = {**bodies(*patterns), **_exchanged("/responses")}
    return {
        name: data
        for name, data in found.items()
        if data.lstrip().startswith(b"{") and isinstance(json.loads(data).get("output"), list)
    }


def recorded_answers() -> dict[str, dict[str, bytes]]:
    """Every recorded answer, by dialect and name; none where there is no folder."""
    if not FOLDER.is_dir():
        return {}
    return {
        "anthropic": anthropic_answers(),
        "openai-chat": chat_answers(),
        "openai-responses": {**responses_streams(), **responses_wholes()},
        "gemini": gemini_answers(),
        "bedrock-converse": {},
    }
