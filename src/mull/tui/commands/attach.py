"""Files that go with a message: `/image PATH`, and `@path` in what is typed.

A mention attaches what a file holds as it is now: text in a fence, a picture as a picture. Only
files inside the working folder count; anything else that begins with @ stays what it is. What is
too large is cut, and said to be.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mull.agent.tools.shown import shown_name
from mull.agent.tools.text import HEAD, describe, encoding_of, image_type
from mull.neutral.blocks import Block, MediaBlock, TextBlock
from mull.neutral.errors import LocalError
from mull.neutral.messages import Message
from mull.policy.approval import Asked, Rule, Subject, decide
from mull.policy.view.media import takes
from mull.settings.words import quote
from mull.transcripts.words import describe_media
from mull.tui.commands.host import Host, path_of
from mull.tui.commands.known import Known
from mull.tui.screen.front import Item

__all__ = [
    "ANY_IMAGE",
    "MENTION",
    "TRAILING",
    "Expanded",
    "attach_image",
    "expand_mentions",
    "fenced",
    "image_offers",
]

LARGEST_TEXT = 64 << 10
LARGEST_IMAGE = 4 << 20
ANY_IMAGE = "image/*"
MENTION = re.compile(r'(?<!\S)@(?:"(?P<quoted>[^"\n]+)"|(?P<plain>\S+))')
TRAILING = ".,;:!?)]}'"


class Expanded(NamedTuple):
    """What is sent for what was typed, and what to tell of it."""

    said: str | Message
    notes: tuple[str, ...] = ()


async def attach_image(host: Host, text: str) -> None:
    """Let a picture go with the next message; without a path, show what is attached.

    Raises:
        LocalError: the model takes no images, or the file is none.
    """
    session, name = host.session, text.strip().strip("\"'")
    if not name:
        return _tell_attached(host)
    if name == "clear":
        host.attached.clear()
        return _tell_attached(host)
    if not takes(session.target.facts.input, ANY_IMAGE):
        raise LocalError(
            f"{session.target.name} takes no images as far as the catalog knows:"
            " /model chooses another"
        )
    path = path_of(host, name)
    host.attached.append(_picture(path, shown_name(path.name)))
    _tell_attached(host)


def _tell_attached(host: Host) -> None:
    if not host.attached:
        host.tell("No picture is attached: /image PATH attaches one to your next message.")
        return
    told = "; ".join(describe_media(block) for block in host.attached)
    host.tell(f"With your next message: {told}")


def _picture(path: Path, name: str) -> MediaBlock:
    try:
        data = _head_and_rest(path, LARGEST_IMAGE + 1)
    except OSError as error:
        raise LocalError(f"cannot read {quote(str(path))}: {error.strerror or error}") from None
    kind = image_type(data[:HEAD])
    if kind is None:
        raise LocalError(f"{name} is no picture that models take: use PNG, JPEG, GIF or WebP")
    if len(data) > LARGEST_IMAGE:
        raise LocalError(f"{name} is larger than {LARGEST_IMAGE >> 20} MB: make it smaller first")
    return MediaBlock(media_type=kind, data=base64.b64encode(data).decode(), name=name)


def _head_and_rest(path: Path, most: int) -> bytes:
    if not path.is_file():  # a FIFO would hold us for ever
        raise FileNotFoundError(None, "there is no such file")
    with path.open("rb") as file:
        return file.read(most)


def expand_mentions(
    text: str,
    folder: str | os.PathLike[str],
    attached: Sequence[Block] = (),
    *,
    pictures: bool = True,
    rules: Sequence[Rule] = (),
) -> Expanded:
    """The message with the files that it mentions, each once, and with what is attached.

    `pictures` is whether the model takes them; where it does not, they are left out and told. What
    `rules` deny to `read` is left out as well.
    """
    blocks: list[Block] = []
    notes: list[str] = []
    for name, path in _mentioned(text, Path(os.path.realpath(folder))):
        try:
            _check_allowed(path, Path(os.path.realpath(folder)), rules)
            block, note = _block(name, path, pictures=pictures)
        except (OSError, LocalError) as error:
            block, note = None, f"{name} is not attached: {error}"
        blocks += [block] if block else []
        notes += [note] if note else []
    notes += _passed_over(text, Path(os.path.realpath(folder)))
    if not blocks and not attached:
        return Expanded(text, tuple(notes))
    message = Message(role="user", blocks=(TextBlock(text), *blocks, *attached))
    return Expanded(message, tuple(notes))


def _check_allowed(path: Path, folder: Path, rules: Sequence[Rule]) -> None:
    """Raises LocalError if a rule denies to read the file."""
    subject = Subject("path", shown_name(path.relative_to(folder)), shown_name(path))
    decision = decide(Asked("read", False, subject), "ask", rules)
    if decision.verdict == "refuse":
        raise LocalError(decision.reason)


def _mentioned(text: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """The files that are named, with the names they were given; each once."""
    seen: set[Path] = set()
    for found in MENTION.finditer(text):
        name = found["quoted"] or found["plain"]
        for written in (name, name.rstrip(TRAILING)):
            path = _inside(written, folder)
            if path is not None:
                if path not in seen:
                    seen.add(path)
                    yield written, path
                break


def _passed_over(text: str, folder: Path) -> Iterator[str]:
    """Why what is named and there is not attached: it is a folder, or it lies elsewhere."""
    told: set[str] = set()
    for found in MENTION.finditer(text):
        name = found["quoted"] or found["plain"].rstrip(TRAILING)
        try:
            real = Path(os.path.realpath(folder / Path(name).expanduser()))
            is_folder, is_there = real.is_dir(), real.exists()
        except (OSError, ValueError, RuntimeError):
            continue
        if not name or name in told or not is_there:
            continue
        told.add(name)
        if not real.is_relative_to(folder):
            yield f"{name} is not attached: it lies outside {shown_name(folder)}"
        elif is_folder:
            yield f"{name} is not attached: it is a folder; name the files in it that you mean"


def _inside(name: str, folder: Path) -> Path | None:
    """The file of this name if it lies in the folder, wherever links lead."""
    try:
        real = Path(os.path.realpath(folder / name))
        return real if real.is_relative_to(folder) and real.is_file() else None
    except (OSError, ValueError):
        return None


def _block(name: str, path: Path, *, pictures: bool) -> tuple[Block | None, str]:
    with path.open("rb") as file:
        head = file.read(LARGEST_TEXT)
    size = path.stat().st_size
    encoding = encoding_of(head, is_cut=size > len(head))
    if encoding is not None:
        text = head[len(encoding.mark) :].decode(encoding.codec, "replace")
        cut = size > len(head)
        note = f"cut after {LARGEST_TEXT:,} of {size:,} bytes" if cut else ""
        return TextBlock(fenced(name, text, note)), f"{name}: {note}" if note else ""
    if image_type(head[:HEAD]) is None:
        return None, f"{name} is not attached: it is {describe(head, size)}"
    if not pictures:
        return (
            None,
            f"{name} is not attached: this model takes no images as far as the catalog knows",
        )
    return _picture(path, name), ""


def fenced(name: str, text: str, note: str, *, kind: str | None = None) -> str:
    """The text in a fence that nothing inside it can end."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    kind = Path(name).suffix.lstrip(".") if kind is None else kind
    end = "" if text.endswith("\n") or not text else "\n"
    more = f"\n[{note}]" if note else ""
    return f"\n\n{name}:\n{fence}{kind}\n{text}{end}{fence}{more}"


def image_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    """Files and folders."""
    return known.files(words[-1])
