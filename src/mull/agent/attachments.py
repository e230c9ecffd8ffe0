"""Files attached to a message: `@path` in typed text, `-f`, standard input.

The type of a file is determined by its content, not its name: text goes into a fence under its
name; pictures, PDFs and audio are sent in their own formats. A mention names a file inside the
working folder; any other word that starts with @ stays as it is. Nothing is left out silently.
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
from mull.neutral.patterns import pattern
from mull.policy.approval import Asked, Rule, Subject, decide
from mull.policy.view.media import LARGEST, takes
from mull.settings.words import quote

__all__ = [
    "ANY_IMAGE",
    "LARGEST_IMAGE",
    "LARGEST_TEXT",
    "MENTION",
    "TRAILING",
    "Expanded",
    "attach",
    "attach_file",
    "check_allowed",
    "expand_mentions",
    "fenced",
    "media_type",
    "mentioned",
    "read_file",
    "read_picture",
    "text_of",
]

LARGEST_TEXT = 64 << 10
"""Maximum bytes of a mentioned text; the rest is cut off."""
LARGEST_IMAGE = 4 << 20
ANY_IMAGE = "image/*"
MENTION = pattern(r'(?<!\S)@(?:"(?P<quoted>[^"\n]+)"|(?P<plain>\S+))')
TRAILING = ".,;:!?)]}'"
_LIKE_A_FILE = pattern(r"[^/]\.[A-Za-z]\w{0,4}$")
_MEDIA = (
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
    (b"\xff\xf1", "audio/aac"),
    (b"\xff\xf9", "audio/aac"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"\x1aE\xdf\xa3", "video/webm"),
)
"""The first bytes of a file, and the type they indicate."""
_RIFF = {b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_ISO = {b"M4A ": "audio/mp4", b"M4B ": "audio/mp4", b"qt  ": "video/quicktime"}
"""Brands of the ISO file format that are not MP4 videos."""
_ISO_IMAGES = (b"heic", b"heix", b"mif1", b"avif", b"avis")


class Expanded(NamedTuple):
    """The message for the typed text, and remarks about it."""

    said: str | Message
    notes: tuple[str, ...] = ()


class Mentioned(NamedTuple):
    """A mentioned file, and why it cannot be attached. A mention of a missing file may mean
    something else: it has no path.
    """

    name: str
    path: Path | None
    trouble: str = ""


def expand_mentions(
    text: str,
    folder: str | os.PathLike[str],
    attached: Sequence[Block] = (),
    *,
    inputs: Iterable[str] = (),
    rules: Sequence[Rule] = (),
) -> Expanded:
    """The message with the files that it mentions, each once, and with its attachments.

    `inputs` are the kinds that the model accepts, according to the catalog; empty means unknown.
    What it does not accept, what `rules` deny to `read` and what cannot be read is left out and
    reported; a long text is cut and reported.
    """
    blocks: list[Block] = []
    notes: list[str] = []
    for found in mentioned(text, folder, rules):
        if found.path is None or found.trouble:
            notes.append(f"{found.name} is not attached: {found.trouble}")
            continue
        try:
            data, size = _head(found.path, LARGEST_TEXT), found.path.stat().st_size
            if media_type(data[:HEAD]) is not None:
                data = read_file(found.path, found.name)
            block, note = _attached(data, size, found.name, inputs)
        except (OSError, LocalError) as error:
            notes.append(f"{found.name} is not attached: {_why(error)}")
            continue
        blocks.append(block)
        notes += [f"{found.name}: {note}"] if note else []
    if not blocks and not attached:
        return Expanded(text, tuple(notes))
    message = Message(role="user", blocks=(TextBlock(text), *blocks, *attached))
    return Expanded(message, tuple(notes))


def attach_file(path: Path, name: str, inputs: Iterable[str] = ()) -> Block:
    """The whole file as a block of a message.

    Raises:
        LocalError: it cannot be read, is too large, or the model does not accept it.
    """
    return attach(read_file(path, name), name, inputs)


def attach(data: bytes, name: str, inputs: Iterable[str] = (), model: str = "this model") -> Block:
    """The content of a file or pipe as a block of a message: text in a fence, media unchanged.

    `model` is the name of the model that accepts these `inputs`.

    Raises:
        LocalError: it is too large, or the model does not accept it.
    """
    return _attached(data, len(data), name, inputs, model)[0]


def read_file(path: Path, name: str, *, waits: bool = False) -> bytes:
    """The content of a file. A pipe is read only with `waits`, which waits for its writer.

    Raises:
        LocalError: it cannot be read, or is larger than any model accepts.
    """
    try:
        data = _head(path, LARGEST + 1, waits=waits)
    except (OSError, ValueError) as error:
        raise LocalError(f"cannot read {quote(name)}: {_why(error)}") from None
    if len(data) > LARGEST:
        raise LocalError(f"{name} is larger than {LARGEST >> 20} MB: use a smaller file")
    return data


def read_picture(path: Path, name: str) -> MediaBlock:
    """A picture.

    Raises:
        LocalError: the file cannot be read, is too large, or is not in a picture format that models
            accept.
    """
    data = read_file(path, name)
    if not (media_type(data[:HEAD]) or "").startswith("image/"):
        raise LocalError(
            f"{name} is not a picture format that models accept: use PNG, JPEG, GIF or WebP"
        )
    block = attach(data, name)
    assert isinstance(block, MediaBlock)
    return block


def media_type(head: bytes) -> str | None:
    """The media type of a picture, PDF, audio file or video, by its first bytes; None for anything
    else.
    """
    brand = head[8:12]
    if head[:4] == b"RIFF" and brand in _RIFF:
        return _RIFF[brand]
    if head[4:8] == b"ftyp" and brand not in _ISO_IMAGES:
        return _ISO.get(brand, "video/mp4")
    known = (kind for magic, kind in _MEDIA if head.startswith(magic))
    return image_type(head) or next(known, None)


def text_of(data: bytes) -> str | None:
    """The bytes as text; None if they are not text."""
    return _text(data, is_cut=False)


def mentioned(
    text: str, folder: str | os.PathLike[str], rules: Sequence[Rule] = ()
) -> Iterator[Mentioned]:
    """The mentioned files with their names as typed; each once."""
    inside, seen = Path(os.path.realpath(folder)), set[Path | str]()
    for found in MENTION.finditer(text):
        name = found["quoted"] or found["plain"]
        written = (name, name.rstrip(TRAILING))
        one = next(filter(None, (_located(each, inside, rules) for each in written)), None)
        if one is None and _LIKE_A_FILE.search(written[1]) and "://" not in name:
            one = Mentioned(written[1], None, "no such file")
        if one is not None and (one.path or one.name) not in seen:
            seen.add(one.path or one.name)
            yield one


def _located(name: str, folder: Path, rules: Sequence[Rule]) -> Mentioned | None:
    """The file of this name, following links; None if it does not exist."""
    try:
        real = Path(os.path.realpath(folder / Path(name).expanduser()))
        if not name or not real.exists():
            return None
        if not real.is_relative_to(folder):
            return Mentioned(name, real, "it is outside this folder")
        if real.is_dir():
            return Mentioned(name, real, "it is a folder: name the files in it")
        if not real.is_file():
            return Mentioned(name, real, "it is not a file")
        check_allowed(real, folder, rules)
    except LocalError as error:
        return Mentioned(name, real, str(error))
    except (OSError, ValueError, RuntimeError):  # `~user` of an unknown user
        return None
    return Mentioned(name, real)


def check_allowed(path: Path, folder: Path, rules: Sequence[Rule]) -> None:
    """Apply the rules on reading.

    Raises:
        LocalError: a rule denies reading the file.
    """
    subject = Subject("path", shown_name(path.relative_to(folder)), shown_name(path))
    decision = decide(Asked("read", False, subject), "ask", rules)
    if decision.verdict == "refuse":
        raise LocalError(decision.reason)


def _head(path: Path, most: int, *, waits: bool = False) -> bytes:
    if path.is_dir():
        raise IsADirectoryError(None, "it is a folder")
    if not path.exists() or not (waits or path.is_file()):  # a pipe could block forever
        raise FileNotFoundError(None, "no such file")
    with path.open("rb") as file:
        return file.read(most)


def _attached(
    data: bytes, size: int, name: str, inputs: Iterable[str], model: str = "this model"
) -> tuple[Block, str]:
    """The block, and remarks about it; the file may be larger than the data."""
    kind = media_type(data[:HEAD])
    if kind is not None:
        if not takes(inputs, kind):
            raise LocalError(f"according to the catalog {model} does not accept {_words(kind)}")
        most = LARGEST_IMAGE if kind.startswith("image/") else LARGEST
        if size > most:
            raise LocalError(f"{name} is larger than {most >> 20} MB: use a smaller file")
        return MediaBlock(media_type=kind, data=base64.b64encode(data).decode(), name=name), ""
    is_cut = size > len(data)
    text = _text(data, is_cut=is_cut)
    if text is None:
        raise LocalError(f"it is {describe(data, size)}, which no model accepts")
    note = f"cut after {len(data):,} of {size:,} bytes" if is_cut else ""
    return TextBlock(fenced(name, text, note)), note


def _words(kind: str) -> str:
    first = kind.partition("/")[0]
    return "PDFs" if kind == "application/pdf" else "images" if first == "image" else first


def _text(data: bytes, *, is_cut: bool) -> str | None:
    encoding = encoding_of(data, is_cut=is_cut)
    return encoding and data[len(encoding.mark) :].decode(encoding.codec, "replace")


def _why(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


def fenced(name: str, text: str, note: str = "", *, kind: str | None = None) -> str:
    """The text under its name, in a fence that nothing inside it can close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    kind = Path(name).suffix.lstrip(".") if kind is None else kind
    end = "" if text.endswith("\n") or not text else "\n"
    more = f"\n[{note}]" if note else ""
    return f"\n\n{name}:\n{fence}{kind}\n{text}{end}{fence}{more}"
