"""Custom commands: Markdown files whose text is sent to the model, with arguments.

`review.md` is `/review`, `git/tidy.md` is `/git:tidy`. They are read from `commands` in the config
folder, and from a project's `.mull/commands` and `.claude/commands`. A project may come from
anywhere, so mull shows the text of its commands and asks once for each version, unless the folder
is trusted. Links in a project are not followed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mull.agent.trust import TRUST_WORDS
from mull.neutral.errors import LocalError, MullError
from mull.settings.words import quote
from mull.store.approvals import load_policy
from mull.store.paths import config_dir, data_dir
from mull.store.trust import Trust
from mull.tui.commands.host import Command, Host, page
from mull.tui.commands.known import Known
from mull.tui.screen.front import Choice, Question
from mull.tui.text.safe import one_line

__all__ = ["OwnCommand", "filled", "find_own", "own_commands", "parse_own"]

PROJECT_FOLDERS = (".mull/commands", ".claude/commands")
_LARGEST = 64 << 10
_MOST = 500
_DEEPEST = 4
_FRESH = 2.0
"""Seconds for which a list of completions is reused."""
_NAME = re.compile(r"[\w][\w.-]*")
_FRONT = re.compile(r"\A---[ \t]*\n(?P<head>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"^(description|argument-hint)[ \t]*:[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_PLACE = re.compile(r"\$(ARGUMENTS\b|[1-9]\d?)")


class OwnCommand(NamedTuple):
    """One file: the command's name, its text, and its description."""

    name: str
    path: Path
    text: str
    description: str = ""
    hint: str = ""
    is_project: bool = False


def own_commands(host: Host | Known) -> list[Command]:
    """The user's commands and those of the project; none before there is a session."""
    try:
        folder = Path(host.session.info.folder)
    except MullError:
        return []
    # completions are requested at every key; a command that runs is read again
    found = _lately(folder) if isinstance(host, Known) else find_own(config_dir(), folder)
    return [_command(one) for one in found]


_seen: dict[Path, tuple[float, list[OwnCommand]]] = {}


def _lately(folder: Path) -> list[OwnCommand]:
    now = time.monotonic()
    when, found = _seen.get(folder, (-_FRESH, []))
    if now - when >= _FRESH:
        found = find_own(config_dir(), folder)
        _seen.clear()
        _seen[folder] = (now, found)
    return found


def find_own(config: Path, folder: Path) -> list[OwnCommand]:
    """All custom commands; a project's command takes precedence over the user's of the same
    name.
    """
    places = [*((folder / name, True) for name in PROJECT_FOLDERS), (config / "commands", False)]
    found: dict[str, OwnCommand] = {}
    for place, is_project in places:
        for path in _files(place):
            if is_project and not _is_of(folder, path):
                continue
            name = ":".join(path.relative_to(place).with_suffix("").parts)
            if name.lower() not in found and all(map(_NAME.fullmatch, name.split(":"))):
                text = _read(path)
                if text is not None:
                    found[name.lower()] = parse_own(name, path, text, is_project=is_project)
    return sorted(found.values(), key=lambda one: one.name.lower())


def _files(place: Path) -> Iterator[Path]:
    seen = 0
    for above, folders, files in os.walk(place):
        depth = len(Path(above).relative_to(place).parts)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if depth >= _DEEPEST:
            folders.clear()
        for name in sorted(files):
            seen += 1
            if seen > _MOST:
                return
            if name.endswith(".md"):
                yield Path(above, name)


def _is_of(folder: Path, path: Path) -> bool:
    """Whether no link leads to it: one in a project may lead to any file."""
    return _real(path) == _real(folder) / path.relative_to(folder)


def _read(path: Path) -> str | None:
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None


def parse_own(name: str, path: Path, text: str, *, is_project: bool = False) -> OwnCommand:
    """A command from its file: YAML-like front matter, then the text."""
    front = _FRONT.match(text)
    fields = {
        key: value.strip("\"'") for key, value in _FIELD.findall(front["head"] if front else "")
    }
    body = (text[front.end() :] if front else text).strip()
    first = next((line.strip("# ") for line in body.split("\n") if line.strip("# ")), "")
    return OwnCommand(
        name,
        path,
        body,
        one_line(fields.get("description") or first, 80),
        one_line(fields.get("argument-hint", ""), 40),
        is_project,
    )


def filled(text: str, arguments: str) -> str:
    """The text with its arguments: `$ARGUMENTS` is all of them, `$1` the first. Without a
    placeholder they are appended.
    """
    try:
        words = shlex.split(arguments)
    except ValueError:
        words = arguments.split()

    def place(found: re.Match[str]) -> str:
        if found[1] == "ARGUMENTS":
            return arguments
        number = int(found[1])
        return words[number - 1] if number <= len(words) else ""

    if _PLACE.search(text):
        return _PLACE.sub(place, text)
    return f"{text}\n\n{arguments}" if arguments else text


def _command(own: OwnCommand) -> Command:
    async def run(host: Host, text: str) -> None:
        if not own.text:
            raise LocalError(f"{own.path} is empty: write the prompt into it")
        if own.is_project and not await _is_trusted(host, own):
            raise LocalError(f"/{own.name} was not run: you have not approved {own.path}")
        host.send(filled(own.text, text))

    where = "project" if own.is_project else "your own"
    line = f"{own.description} ({where})" if own.description else f"({where})"
    return Command(own.name, own.hint, line, run, while_busy=False)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


async def _is_trusted(host: Host, own: OwnCommand) -> bool:
    """Whether the user has approved this text; asks if nobody has decided yet."""
    folder = Path(host.session.info.folder)
    if _real(folder) in load_policy(config_dir(), folder).trusted:
        return True
    trust, path = Trust(data_dir()), str(_real(own.path))
    digest = hashlib.sha256(own.text.encode()).hexdigest()
    known = trust.standing(path, digest)
    if known or not (host.front.has_keys or host.front.echoes):
        return bool(known)
    shown = page(host)
    shown.title(f"{own.path} would send this to the model:")
    for line in own.text.split("\n"):
        shown.text(line, shown.theme.code, indent=2)
    host.show(shown.lines)
    question = Question(
        f"Use this command from the project {quote(folder.name)}?",
        tuple(Choice(key, word, refuses=key == "no") for key, word in TRUST_WORDS.items()),
    )
    key, _ = await host.front.ask(question)
    if key == "always":
        trust.remember(path, digest, trusted=True)
    return key in ("always", "once")
