"""The question of `mull ask`: words, attached files, and piped input.

Only the words can mention files (`@path`): the content of a file or a pipe is data. Everything is
read before a session is opened, and checked against the model before anything is sent.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from pathlib import Path

from msgspec import Struct

from mull.agent.given import Said
from mull.cli.setup import tell
from mull.neutral.blocks import Block, TextBlock
from mull.neutral.errors import ConfigError, LocalError
from mull.neutral.messages import Message
from mull.neutral.target import Target
from mull.policy.view.media import LARGEST

__all__ = ["Question", "read_question"]

_NO_TEXT = "\ufffd"
PIPED = "standard input"


class File(Struct, frozen=True):
    """A given file and its content."""

    name: str
    data: bytes


class Question(Struct, frozen=True):
    """Everything given to ask."""

    words: str
    files: tuple[File, ...] = ()
    piped: bytes = b""

    def message(self, target: Target) -> Said:
        """The message to send.

        Raises:
            LocalError: something cannot be attached, or the model does not accept it.
        """
        if not self.files and "@" not in self.words and (text := self._plain()) is not None:
            return text
        said, files = self._asked()
        attached = [*_mentioned(said, target)]
        attached += [_attach(file, target) for file in files]
        attached += self._piped(target)
        return Message(role="user", blocks=(*([TextBlock(said)] if said else []), *attached))

    def _plain(self) -> str | None:
        """Words and piped input, if that is text."""
        piped = _readable(self.piped) if self.piped else ""
        if piped is None:
            return None
        return "\n\n".join(part.strip("\n") for part in (self.words, piped) if part.strip())

    def _asked(self) -> tuple[str, tuple[File, ...]]:
        """The question and its files. Without words, a text file is the question."""
        first = _readable(self.files[0].data) if self.files and not self.words.strip() else None
        if first is None:
            return self.words, self.files
        return first.strip("\n"), self.files[1:]

    def _piped(self, target: Target) -> list[Block]:
        if not self.piped.strip():
            return []
        text = _readable(self.piped)
        if text is not None:
            stripped = text.strip("\n")
            return [TextBlock(f"\n\n{stripped}" if self.words or self.files else stripped)]
        return [_attach(File(PIPED, self.piped), target)]


def read_question(options: Namespace) -> Question:
    """The question from the options and standard input.

    Raises:
        ConfigError: there is none, or a file cannot be read.
    """
    words = os.fsencode(" ".join(options.prompt)).decode(errors="replace")
    files = [_read_file(name) for name in options.file]
    piped = b"" if sys.stdin is None or sys.stdin.isatty() else _read_pipe()
    question = Question(words, tuple(files), piped)
    if not words.strip() and not files and not piped.strip():
        raise ConfigError('no question: use mull ask "your question"')
    given = (words, *(_readable(file.data) or "" for file in files), _readable(piped) or "")
    if any(_NO_TEXT in text for text in given):
        tell(f"some input is not valid text: each such place is sent as {_NO_TEXT}")
    return question


def _read_file(name: str) -> File:
    from mull.agent.attachments import read_file

    return File(name, read_file(Path(name), name, waits=True))


def _read_pipe() -> bytes:
    pipe = getattr(sys.stdin, "buffer", None)
    data: bytes = sys.stdin.read().encode() if pipe is None else pipe.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise ConfigError(
            f"more than {LARGEST >> 20} MB on standard input: no model accepts that much"
        )
    return data


def _readable(data: bytes) -> str | None:
    """The bytes as text, None if they are not text."""
    if not data:
        return ""
    from mull.agent.attachments import media_type, text_of

    return None if media_type(data) else text_of(data)


def _mentioned(words: str, target: Target) -> list[Block]:
    """The files that the words mention. A mention that names no file may mean something else, and
    is reported.
    """
    if "@" not in words:
        return []
    from mull.agent.attachments import mentioned, read_file
    from mull.store.approvals import own_rules

    blocks, folder = [], os.getcwd()
    for found in mentioned(words, folder, own_rules(folder)):
        if found.path is None:
            tell(f"@{found.name} is sent as text: {found.trouble}")
        elif found.trouble:
            raise LocalError(
                f"@{found.name} cannot be attached: {found.trouble}. Use -f to attach "
                "a file from anywhere, or a space after @ to send it as text"
            )
        else:
            file = File(found.name, read_file(found.path, found.name))
            blocks.append(_attach(file, target))
    return blocks


def _attach(file: File, target: Target) -> Block:
    from mull.agent.attachments import attach

    try:
        return attach(file.data, file.name, target.facts.input, target.name)
    except LocalError as error:
        raise LocalError(f"{file.name} cannot be sent: {error}") from None
