"""The values to choose from in this session: models, levels, profiles, sessions, files.

Everything comes from the registries that the rest of mull uses. Models are indexed once, because
the catalog has thousands of them and they are searched on every keystroke.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from mull.agent.usable import keyed_providers
from mull.catalog.order import ranked
from mull.neutral.errors import MullError
from mull.tui.screen.front import Item

if TYPE_CHECKING:
    from mull.agent.session import Session
    from mull.agent.tools.tool import RunnableTool
    from mull.settings.layers import Snapshot
    from mull.store.sessions.values import SessionInfo
    from mull.tui.commands.complete_files import ProjectFiles
    from mull.tui.commands.host import Host

__all__ = ["Known", "ModelIndex"]

MOST_MODELS = 60
MOST_SESSIONS = 100
_SHORTEST_SPREAD = 3
"""Minimum length of a word that may also match scattered letters."""


class ModelIndex:
    """Model names, `provider/model`, found by a part of the name or by some of its letters."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(dict.fromkeys(names))
        self._lower = tuple(name.lower() for name in self.names)
        self._ids = {name.partition("/")[2] for name in self._lower} | set(self._lower)

    def __contains__(self, name: str) -> bool:
        """Whether a model has this name, with or without its provider."""
        return name.lower() in self._ids

    def find(self, word: str, most: int = MOST_MODELS) -> list[str]:
        """Matches, the best first: prefix of the name, prefix of the id, substring, scattered
        letters.
        """
        wanted = word.lower()
        if not wanted:
            return list(self.names[:most])
        found = [(_rank(name, wanted), at) for at, name in enumerate(self._lower) if wanted in name]
        if len(found) < most and len(wanted) >= _SHORTEST_SPREAD:
            taken = {at for _, at in found}
            spread = re.compile("".join(f"[^{c}]*{c}" for c in map(re.escape, wanted))).match
            found += [
                (9, at) for at, name in enumerate(self._lower) if at not in taken and spread(name)
            ]
        return [self.names[at] for _, at in sorted(found)[:most]]


def _rank(name: str, wanted: str) -> int:
    if name.startswith(wanted):
        return 0
    return 1 if f"/{wanted}" in name else 2


class Known:
    """The source of completions. It follows the conversation from session to session."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._project: ProjectFiles | None = None

    @property
    def session(self) -> Session:
        """The open session."""
        return self._host.session

    @property
    def folder(self) -> str:
        """The folder that relative paths start from."""
        return self.session.info.folder

    @property
    def snapshot(self) -> Snapshot:
        """The current settings."""
        return self.session.snapshot()

    @cached_property
    def models(self) -> ModelIndex:
        """Every model of the catalog: first those of providers with a key, then the newest."""
        engine = self.session.engine
        try:
            keyed = keyed_providers(engine)
        except MullError:  # a damaged list of keys is reported where a key is needed
            keyed = set()
        catalog = engine.setup.catalog()
        others = [name for name in catalog.providers if name not in keyed]
        found = [*ranked(catalog, sorted(keyed)), *ranked(catalog, others)]
        return ModelIndex(one.name for one in found)

    def levels(self, model: str | None = None) -> list[Item]:
        """The levels a model supports, by default those of the current model."""
        from mull.policy.thinking.levels import level_rows

        setup = self.session.engine.setup
        if model is None:
            target = self.session.engine.learnt(self.session.target)
            snapshot = self.snapshot
        else:
            try:
                target = setup.resolve(model)
            except MullError:
                return []
            snapshot = setup.snapshot_for(target, model=model)
        return [Item(row.level, row.text) for row in level_rows(target, snapshot)]

    def profiles(self) -> list[Item]:
        """The saved profiles."""
        from mull.agent.setup import profiles

        return [Item(name, "profile") for name in profiles().list()]

    def sessions(self) -> list[SessionInfo]:
        """The conversations of this folder, without the open one and without empty ones."""
        session = self.session
        found = session.store.list(self.folder, MOST_SESSIONS, "conversation")
        return [info for info in found if info.id != session.info.id and info.records]

    def tools(self) -> Mapping[str, RunnableTool]:
        """All tools."""
        toolbox = self.session.toolbox
        return toolbox.all if toolbox else {}

    def servers(self) -> list[str]:
        """The MCP servers of this session."""
        toolbox = self.session.toolbox
        running = toolbox.mcp if toolbox else None
        return [status.name for status in running.statuses] if running else []

    def files(self, typed: str) -> Iterator[Item]:
        """Files and folders whose paths start with the typed text."""
        from mull.tui.commands.complete_files import file_offers

        return file_offers(self.folder, typed)

    @property
    def project(self) -> ProjectFiles:
        """The files of the session's folder."""
        from mull.tui.commands.complete_files import ProjectFiles

        if self._project is None or self._project.folder != self.folder:
            self._project = ProjectFiles(self.folder)
        return self._project
