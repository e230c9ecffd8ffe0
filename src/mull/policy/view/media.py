"""Which attachments a model accepts: decided before anything is counted or encoded.

What a model is known not to accept is left out of the view; what is unknown is sent. A message of
the history that contained nothing else keeps a line instead, because endpoints reject an empty one.
So does a tool result: a model that asked for an image must know that it gets none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec.structs import replace

from mull.neutral.blocks import Block, MediaBlock, TextBlock, ToolResultBlock
from mull.neutral.errors import LocalError
from mull.neutral.messages import Message
from mull.neutral.target import Target

__all__ = ["LARGEST", "check_question", "takes", "without_untaken"]

LARGEST = 20 << 20
"""Maximum bytes of an attachment: providers accept no more in one request."""

PDF_OR_IMAGE = ("pdf", "image")
"""The catalog names `pdf` for few of the models that read its pages as images."""
_NAMES = {"image": "image", "audio": "audio file", "video": "video", "pdf": "PDF"}
_FIELDS = {"image": "images", "audio": "audio_files", "video": "videos", "pdf": "pdfs"}


def takes(inputs: Iterable[str], media_type: str) -> bool:
    """Whether a model with these kinds of input accepts such an attachment; no kinds is unknown."""
    kind = _kind(media_type)
    known = set(inputs)
    if not known or kind is None:
        return True
    return not known.isdisjoint(PDF_OR_IMAGE if kind == "pdf" else (kind,))


def without_untaken(message: Message, inputs: Iterable[str]) -> tuple[Message, dict[str, int]]:
    """The message without what the model does not accept, and how many of each kind that is, by the
    names of the tally. A message that lacks nothing is the same object.
    """
    gone = [one for one in _media(message) if not takes(inputs, one.media_type)]
    if not gone:
        return message, {}
    blocks = [kept for block in message.blocks if (kept := _without(block, gone)) is not None]
    if all(map(_is_void, blocks)):
        blocks = [TextBlock(_place_of(gone))]
    kinds = Counter(_FIELDS[kind] for one in gone if (kind := _kind(one.media_type)))
    return replace(message, blocks=tuple(blocks)), dict(kinds)


def check_question(message: Message, target: Target) -> None:
    """Reject a question of which nothing would be left.

    Raises:
        LocalError: it contains only what the model does not accept.
    """
    if not message.is_spoken or not message.blocks:
        return
    gone = [one for one in _media(message) if not takes(target.facts.input, one.media_type)]
    left = (_without(block, gone) for block in message.blocks)
    if gone and all(block is None or _is_void(block) for block in left):
        kinds = " or ".join(dict.fromkeys(f"{_word(one)}s" for one in gone))
        raise LocalError(
            f"according to the catalog {target.name} does not accept {kinds}, and the "
            "message contains nothing else: choose another model, or add text"
        )


def _media(message: Message) -> list[MediaBlock]:
    found: list[MediaBlock] = []
    for block in message.blocks:
        match block:
            case MediaBlock():
                found.append(block)
            case ToolResultBlock():
                found += block.media
    return found


def _without(block: Block, gone: list[MediaBlock]) -> Block | None:
    if isinstance(block, MediaBlock):
        return None if block in gone else block
    if not isinstance(block, ToolResultBlock):
        return block
    kept = tuple(one for one in block.media if one not in gone)
    if len(kept) == len(block.media):
        return block
    place = _place_of([one for one in block.media if one in gone])
    output = f"{block.output}\n{place}" if block.output else place
    return replace(block, media=kept, output=output, wire=None)


def _place_of(gone: list[MediaBlock]) -> str:
    named = ", ".join(f"{_word(one)} {one.name}" if one.name else _word(one) for one in gone)
    return f"[left out, because this model does not accept it: {named}]"


def _is_void(block: Block) -> bool:
    return isinstance(block, TextBlock) and not block.text.strip()


def _word(block: MediaBlock) -> str:
    return _NAMES[_kind(block.media_type) or "image"]


def _kind(media_type: str) -> str | None:
    """The catalog's word for it; None if the catalog says nothing about it."""
    whole = media_type.partition(";")[0].strip().lower()
    if whole == "application/pdf":
        return "pdf"
    first = whole.partition("/")[0]
    return first if first in _NAMES else None
