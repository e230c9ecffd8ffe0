"""What is stored about a server between runs: what it last offered, and how its tools were
approved.

The stored list lets a request be sent before the server has started. It is valid for one
configuration, one version of mull and a week; a running server always replaces it.

The description of each tool when it was first listed, or last approved, is stored as well.
Otherwise a server could change a tool after it was approved, or withdraw the hint that it changes
something: a changed tool needs approval again, and one that was once guarded stays guarded.
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
_UNSETTLED = ("enabled", "tools", "read_only", "timeout", "start_timeout", "sandbox")
"""Keys of a server's table that do not identify the server."""


class Listing(Struct, frozen=True):
    """What a server offers, as the protocol's JSON."""

    tools: list[dict[str, Any]] = []
    prompts: list[dict[str, Any]] = []
    has_resources: bool = False


class Hints(Struct, frozen=True):
    """A server's hints about a tool; missing ones count as the worst case."""

    changes: bool
    reaches_out: bool
    destroys: bool

    @classmethod
    def of(cls, listed: Mapping[str, Any]) -> Hints:
        """The hints of a listed tool. Only a plain true or false counts."""
        said = listed.get("annotations") or {}
        destroys = said.get("destructiveHint") is True
        changes = destroys or said.get("readOnlyHint") is not True
        return cls(changes, said.get("openWorldHint") is not False, destroys)


class _Seen(Struct, frozen=True):
    description: str
    arguments: str
    hints: Hints
    guarded: Hints
    """Hints it has ever given: withdrawing one has no effect."""


class Standing(Struct, frozen=True):
    """A tool compared with what is known about it: `altered` names what differs from its
    approval.
    """

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
    """What is stored about one server, in one file. That it cannot be written is ignored."""

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
        """Store what the server offers now. The first list is accepted as it is."""
        if not self._seen:
            self._seen = {tool["name"]: _seen(tool, None) for tool in reversed(listing.tools)}
        self.listing, self._listed_at = listing, time.time()
        self._write()

    def approve(self, tools: Iterable[Mapping[str, Any]]) -> None:
        """Accept these tools as they are now; guarded ones stay guarded."""
        for tool in tools:
            self._seen[tool["name"]] = _seen(tool, self._seen.get(tool["name"]))
        self._write()

    def trust(self) -> None:
        """Accept all tools as they are now, with their current hints."""
        self._seen = {}
        if self.listing is not None:
            self.learn(self.listing)

    def forget(self) -> None:
        """Delete the file."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def standing(self, tool: Mapping[str, Any]) -> Standing:
        """The tool compared with what was seen or approved before."""
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
            if len(data) > _LARGEST:  # then it needs approval every time
                kept = msgspec.structs.replace(kept, listing=Listing(), listed_at=0.0)
                data = msgspec.json.encode(kept)
            write_atomic(self._path, data)


def is_same_tool(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two listings of a tool mean the same: other fields are not for people."""
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
