"""Looks up what the words of a command lead to: files, folders, programs, a git repository."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from mull.agent.tools.builtin import path_subject
from mull.agent.tools.tool import ToolFailure
from mull.agent.tools.workspace import Located, Workspace
from mull.neutral.patterns import pattern
from mull.policy.approval import Asked, Rule, Subject, decide
from mull.policy.commands import Word
from mull.policy.globs import has_wildcard, text_matches
from mull.policy.harmless import judge
from mull.policy.protected import folded, is_protected
from mull.store.git import find_repository, reading

__all__ = ["FolderLook", "command_subject"]

_MOST = 50_000
"""Maximum entries of folders that are looked at for one word."""
_BRACKETS = pattern(r"(\\.)|\[[!^]?\]?[^\]/]*\]")
_HARD = pattern(r"[\[\]\\{}]")
_CLASS = pattern(r"\[[:.=]")
_PLAIN_START = pattern(r"[\w./*?\[]")
_MAGIC = pattern(r":(?:\([^)]*\)|[!^/])*")
_IGNORE_FILES = (".gitignore", ".ignore", ".rgignore", ".git/info/exclude")
_SHIMS = frozenset(("shims", ".volta"))
"""Where version managers keep programs that read in the folder which one to run."""
_Tools: TypeAlias = tuple[str, ...]
_READING: _Tools = ("read",)
_WRITING: _Tools = ("read", "edit", "write")


def command_subject(command: str, workspace: Workspace, rules: Sequence[Rule]) -> Subject:
    """What rules are matched against for a command in the workspace."""
    return Subject("command", command, judged=judge(command, FolderLook(workspace, rules)))


class FolderLook:
    """Looks things up in a workspace, where `rules` may deny what commands are to read. A base is
    an absolute path; empty for the working folder.
    """

    def __init__(self, workspace: Workspace, rules: Sequence[Rule]) -> None:
        self._workspace = workspace
        self._rules = [rule for rule in rules if rule.effect == "deny"]
        self._ends = {tools: _ends(self._rules, tools) for tools in (_READING, _WRITING)}
        """How paths end that are denied to these tools, or contain what is."""

    def program(self, name: str) -> str:
        """A program in the folder, or one that is looked for there, may be anything."""
        places = os.environ.get("PATH", os.defpath).split(os.pathsep)
        if not all(os.path.isabs(place) for place in places):
            return "PATH has folders that are not absolute"
        found = shutil.which(name)
        if found and not _SHIMS.isdisjoint(Path(found).parts):
            return f"which {name} it is depends on the folder"
        roots = (self._workspace.root, *self._workspace.extra_roots)
        ways = (Path(found), Path(os.path.realpath(found))) if found else ()
        inside = any(way.is_relative_to(root) for way in ways for root in roots)
        return f"{name} is a program in the folder" if inside else ""

    def folder(self, base: str, text: str) -> str | None:
        """The folder. What is behind a link is not one: for a shell, `..` leads back from there to
        where the link is. Where it cannot go, the rest would run where it was.
        """
        place = self._located(base, text)
        there = os.path.normpath(os.path.join(base or self._workspace.root, text))
        if place is None or str(place.path) != there:
            return None
        return there if place.path.is_dir() and os.access(there, os.X_OK) else None

    def path(self, base: str, word: Word, kind: str) -> str:
        """Outside, denied, protected, or too much to tell."""
        try:
            texts = list(self._expanded(base, word.glob)) if word.glob else [word.text]
        except OverflowError:
            return f"{word.raw} is too much to look at"
        strange = next((text for text in texts if not _PLAIN_START.match(text)), "")
        if word.glob and strange:
            return f"{word.raw} becomes {strange}"
        if kind in "gk" and not word.glob:
            bare = _MAGIC.sub("", word.text, count=1) if word.text.startswith(":") else word.text
            texts = [bare]
            if after := bare.partition(":")[2]:  # from the top of the repository, or from here
                texts += [after, os.path.join(self._workspace.root, after)]
        return next((why for text in texts if (why := self._why_not(base, text, kind))), "")

    def git(self, base: str, *, shows: bool) -> str:
        """A repository that is not an ordinary one of this folder, or has files that are denied."""
        found = find_repository(Path(base or self._workspace.root))
        if found is None:
            return "git has no repository here"
        doubt = found.doubt
        if doubt or not shows:
            return doubt
        if not found.top.is_relative_to(self._workspace.root):
            return "its repository is larger than the working folder"
        return self.tracked(base)

    def tracked(self, base: str) -> str:
        """Files that are denied, in the repository."""
        if not self._ends[_READING]:
            return ""
        found = find_repository(Path(base or self._workspace.root))
        if found is None:
            return "git has no repository here"
        with reading(found._replace(folder=found.top)) as git:
            listed = git("ls-files", "-z")
        if listed is None:
            return "git does not say what it has"
        names = os.fsdecode(listed).split("\0")
        near = (name for name in names if any(map(self._may_be_denied, name.split("/"))))
        denied = (name for name in near if self._is_denied(found.top / name, _READING))
        return next((f"{name} is denied" for name in denied), "")

    def _why_not(self, base: str, text: str, kind: str) -> str:
        place = self._located(base, text)
        if place is None:
            return f"{text} leads out of the folder"
        if why := _unfit(place, text, kind):
            return why
        tools = {"r": _WRITING, "e": _WRITING, "p": ("list",), "k": ("list",)}.get(kind, _READING)
        if self._is_denied(place.path, tools):
            return f"{text} is denied"
        top = self._workspace.root if kind == "m" else place.path
        looks_below = kind in "lm" or (kind in "vare" and self._ends[tools])
        if not looks_below or not top.is_dir():
            return ""
        try:
            below = (top, *self._below(top, is_visible=kind == "v"))
            return next(
                (why for path in below if (why := self._why_not_below(path, text, kind, tools))), ""
            )
        except OverflowError:
            return f"{text} is too much to look at"

    def _why_not_below(self, path: Path, text: str, kind: str, tools: _Tools) -> str:
        if self._may_be_denied(path.name, tools) and self._is_denied(path / "x", tools):
            return f"{text} has {path.name}, which is denied"
        if kind in "lm" and path.is_symlink() and (path.is_file() or kind == "m"):
            return self._why_not("", str(path), "f")
        return ""

    def _located(self, base: str, text: str) -> Located | None:
        try:
            return self._workspace.locate(os.path.join(base or ".", text), to_read=True)
        except ToolFailure:
            return None

    def _is_denied(self, path: Path, tools: Sequence[str]) -> bool:
        name = self._workspace.name(path)
        subject = path_subject(Located(self._workspace.root, path, name))
        asked = (Asked(tool, False, subject) for tool in tools)
        return any(decide(one, "ask", self._rules).verdict == "refuse" for one in asked)

    def _may_be_denied(self, name: str, tools: _Tools = _READING) -> bool:
        """A quick look: folders may have very many files."""
        plain = name if name.isascii() else folded(name)
        return any(text_matches(end, plain, ignore_case=True) for end in self._ends[tools])

    def _below(self, top: Path, *, is_visible: bool) -> Iterator[Path]:
        """All below a folder, without following links; the `is_visible` part of it is what is not
        hidden, or what an ignore file takes in again (`!.env`). Raises OverflowError if that is
        too much.
        """
        seen = 0
        shown = {name for place in (top, *top.parents) for name in _taken_in(str(place))}
        for above, folders, files in os.walk(top):
            if is_visible:
                shown |= _taken_in(above)
                folders[:] = [name for name in folders if _is_shown(name, shown)]
                files = [name for name in files if _is_shown(name, shown)]
            seen += len(folders) + len(files)
            if seen > _MOST:
                raise OverflowError
            yield from (Path(above, name) for name in (*folders, *files))

    def _expanded(self, base: str, glob: str) -> Iterator[str]:
        """The paths that the shell puts in the place of a pattern, and the pattern itself; rather
        too many than too few. Raises OverflowError if that is too much.
        """
        if _CLASS.search(glob):
            raise OverflowError
        found = ["/" if glob.startswith("/") else ""]
        seen = 0
        wide = _BRACKETS.sub(lambda part: part[1] or "?", glob)
        for part in wide.strip("/").split("/"):
            now = []
            for above in found:
                names = [part.replace("\\", "")]
                if has_wildcard(part):
                    listed = _listed(os.path.join(base or self._workspace.root, above))
                    seen += len(listed)
                    # some versions of bash add these two
                    listed = [".", "..", *listed]
                    shown = [name for name in listed if part[0] == "." or name[0] != "."]
                    names = [name for name in shown if text_matches(part, name)]
                now += [f"{above}{name}/" for name in names]
            found = now
            if seen + len(found) > _MOST:
                raise OverflowError
        yield from (path[:-1] for path in found)
        yield glob.replace("\\", "")


def _unfit(place: Located, text: str, kind: str) -> str:
    """Why a path in the folder is not one of this kind."""
    if kind == "o" and place.path.is_dir():
        return f"{text} is a folder"
    if kind in "re" and is_protected(place.name):
        return f"{text} is protected"
    is_there = os.path.lexists(place.path)
    if kind == "n" and is_there:
        return f"{text} is a path here"
    if kind == "e" and not (is_there or text.startswith(("./", "/"))):
        return f"{text} is no path here"
    return ""


def _ends(rules: Sequence[Rule], tools: _Tools) -> list[str]:
    denying = [rule for rule in rules if any(text_matches(rule.tool, tool) for tool in tools)]
    patterns = [(rule.argument or "**").removesuffix("/").removesuffix("/**") for rule in denying]
    return [folded(each).rpartition("/")[2] for each in patterns]


def _taken_in(folder: str) -> set[str]:
    """The names in patterns by which ignore files in a folder show what is hidden."""
    found: set[str] = set()
    for name in _IGNORE_FILES:
        with (
            suppress(OSError),
            open(os.path.join(folder, name), encoding="utf-8-sig", errors="replace") as file,
        ):
            lines = (line.strip() for line in file if line.startswith("!"))
            parts = (part for line in lines for part in line[1:].split("/"))
            found.update("*" if _HARD.search(part) else part for part in parts)
    return found


def _is_shown(name: str, shown: set[str]) -> bool:
    """Whether a program that leaves out hidden files looks at it."""
    return not name.startswith(".") or any(text_matches(one, name) for one in shown)


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
