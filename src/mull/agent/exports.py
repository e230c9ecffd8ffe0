"""A session as a file: its transcript with prices, and its bytes in every format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mull.neutral.errors import CatalogError, ConfigError
from mull.settings.words import join_or

if TYPE_CHECKING:
    from mull.agent.setup import Setup
    from mull.history.log import Record
    from mull.neutral.messages import Message
    from mull.store.sessions.values import SessionInfo
    from mull.transcripts.transcript import Price, Transcript

__all__ = ["FORMATS", "ONLY_SHOWN", "exported", "format_of", "pricing", "transcript_of"]

FORMATS: Mapping[str, tuple[str, ...]] = {
    "md": (".md", ".markdown"),
    "json": (".json",),
    "jsonl": (".jsonl",),
    "html": (".html", ".htm"),
}
"""The export formats, with their file extensions."""
ONLY_SHOWN = ("md", "html")
"""Formats for people, which may leave out thinking; the others contain the whole session."""


def format_of(path: Path) -> str:
    """The format of a file extension.

    Raises:
        ConfigError: the extension is unknown.
    """
    for name, endings in FORMATS.items():
        if path.suffix.lower() in endings:
            return name
    known = join_or([endings[0] for endings in FORMATS.values()])
    raise ConfigError(f"unknown file extension in {path.name}: use {known}")


def exported(transcript: Transcript, form: str, *, thinking: bool = True) -> bytes:
    """The transcript in a format of FORMATS."""
    if form == "html":
        from mull.transcripts.page import to_html

        return to_html(transcript, thinking=thinking).encode()
    if form == "md":
        from mull.transcripts.markdown import to_markdown

        return to_markdown(transcript, thinking=thinking).encode()
    from mull.transcripts.formats import to_json, to_jsonl

    return to_json(transcript) if form == "json" else to_jsonl(transcript)


def transcript_of(info: SessionInfo, records: Sequence[Record], price: Price) -> Transcript:
    """The session with the usage of each turn."""
    from mull.transcripts.transcript import Transcript, turn_rows

    return Transcript(
        title=info.title,
        id=info.id,
        name=info.name,
        folder=info.folder,
        created=info.created,
        model=info.model,
        system=info.system,
        records=tuple(records),
        rows=turn_rows(records, price),
    )


def pricing(setup: Setup) -> Price:
    """The cost of an answer by the catalog; None for an unknown model or price."""
    from mull.policy.cost import cost_of

    known: dict[str, Mapping[str, Any] | None] = {}

    def price(message: Message) -> float | None:
        if message.origin is None:
            return None
        name = f"{message.origin.provider}/{message.origin.model}"
        if name not in known:
            known[name] = _prices(setup, name)
        return cost_of(message.usage, known[name])

    return price


def _prices(setup: Setup, name: str) -> Mapping[str, Any] | None:
    try:
        return setup.resolve(name).facts.cost
    except CatalogError:
        return None
