"""What is kept of a server between runs: what it offered last, and how its tools were approved.

The kept list lets a request go out before the server is up. It counts for one configuration, one
version of mull and a week; a server that runs always replaces it.

How each tool was described when it was first listed, or last approved, is kept as well. A server
could otherwise change a tool after it was approved, or take back the hint that it changes things:
a tool that is not as it was is asked about again, and one that was guarded once stays so.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from mull._version import __version__
from mull.neutral.errors import ConfigError
from mull.store.files import read_bytes, write_atomic
from mull.store.mcp import McpConfig

__all__ = ["Hints", "Listing", "Memory", "Standing", "is_same_tool"]

_VERSION = 1
_KEPT_FOR = 7 * 24 * 60 * 60
_LARGEST = 8 * 1024 * 1024
_UNSETTLED = ("enabled", "tools", "read_only", "timeout", "start_timeout")
"""Keys of a server's table that say nothing of which server it is."""


class Listing(Struct, frozen=True):
    """What a server offers, as the protocol's JSON."""

    tools: list[dict[str, Any]] = []
    prompts: list[dict[str, Any]] = []
    has_resources: bool = False


class Hints(Struct, frozen=True):
    """What a server says of a tool; what it does not say is taken for the worse."""

    changes: bool
    reaches_out: bool
    destroys: bool

    @classmethod
    def of(cls, listed: Mapping[str, Any]) -> Hints:
        """The hints of a tool that was listed. Only a plain yes or no counts."""
        said = listed.get("annotations") or {}
        destroys = said.get("destructiveHint") is True
        changes = destroys or said.get("readOnlyHint") is not True
        return cls(changes, said.get("openWorldHint") is not False, destroys)


class _Seen(Struct, frozen=True):
    description: str
    arguments: str
    hints: Hints
    guarded: Hints
    """Whatever it once said: a hint that is taken back does not count."""


class Standing(Struct, frozen=True):
    """How a tool stands to what is known of it: `altered` names what is not as it was approved."""

    guarded: Hints
    is_new: bool = False
    altered: tuple[str, ...] = ()


class _File(Struct, frozen=True):
    version: int
    config: str
    mull: str
    listed_at: float
    listing: Listing
    seen: dict[str, _Seen]


class Memory:
    """What is kept of one server, in one file. That it cannot be written stops nobody."""

    def __init__(self, path: Path, config: McpConfig) -> None:
        self._path = path
        self._config = _digest(
            {
                name: getattr(config, name)
                for name in config.__struct_fields__
                if name not in _UNSETTLED
            }
        )
        self.listing: Listing | None = None
        self._listed_at = 0.0
        self._seen: dict[str, _Seen] = {}
        kept = self._read()
        if kept is None or kept.config != self._config:
            return
        self._seen = kept.seen
        if kept.mull == __version__ and 0 <= time.time() - kept.listed_at < _KEPT_FOR:
            self.listing, self._listed_at = kept.listing, kept.listed_at

    def learn(self, listing: Listing) -> None:
        """Keep what the server offers now. The first list counts as it is."""
        if not self._seen:
            self._seen = {tool["name"]: _seen(tool, None) for tool in reversed(listing.tools)}
        self.listing, self._listed_at = listing, time.time()
        self._write()

    def approve(self, tools: Iterable[Mapping[str, Any]]) -> None:
        """Take these tools for what they are now; what was guarded stays guarded."""
        for tool in tools:
            self._seen[tool["name"]] = _seen(tool, self._seen.get(tool["name"]))
        self._write()

    def trust(self) -> None:
        """Take all tools for what they are now, with the hints that they have now."""
        self._seen = {}
        if self.listing is not None:
            self.learn(self.listing)

    def forget(self) -> None:
        """Delete the file."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def standing(self, tool: Mapping[str, Any]) -> Standing:
        """How the tool stands to what was seen or approved before."""
        before = self._seen.get(tool["name"])
        now = _seen(tool, before)
        if before is None:
            return Standing(now.guarded, is_new=bool(self._seen))
        parts = ("description", "arguments", "hints")
        altered = tuple(part for part in parts if getattr(now, part) != getattr(before, part))
        return Standing(now.guarded, altered=altered)

    def _read(self) -> _File | None:
        try:
            data = read_bytes(self._path)
            kept = msgspec.json.decode(data, type=_File) if data else None
        except (ConfigError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return kept if kept is not None and kept.version == _VERSION else None

    def _write(self) -> None:
        listing = self.listing or Listing()
        kept = _File(_VERSION, self._config, __version__, self._listed_at, listing, self._seen)
        with suppress(ConfigError):
            data = msgspec.json.encode(kept)
            if len(data) > _LARGEST:  # then it is asked for every time
                kept = msgspec.structs.replace(kept, listing=Listing(), listed_at=0.0)
                data = msgspec.json.encode(kept)
            write_atomic(self._path, data)


def is_same_tool(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two listings of a tool mean the same: what else they hold is not for people."""
    return _seen(one, None) == _seen(other, None)


def _seen(tool: Mapping[str, Any], before: _Seen | None) -> _Seen:
    hints = Hints.of(tool)
    said = before.guarded if before else hints
    return _Seen(
        _digest([tool.get("description"), (tool.get("annotations") or {}).get("title")]),
        _digest(tool.get("inputSchema")),
        hints,
        Hints(
            hints.changes or said.changes,
            hints.reaches_out or said.reaches_out,
            hints.destroys or said.destroys,
        ),
    )


def _digest(value: object) -> str:
    return sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:32]
