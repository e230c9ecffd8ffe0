"""The gateway's own ids for tool calls and answers.

Many ids of providers repeat (`functions.read:0` in every conversation), are missing, are long, or
contain characters that clients rewrite. The gateway replaces them with its own: short, unique, and
made of letters and digits, so that they remain recognisable whatever a client does to them. A
provider's id that already has these properties is kept, so that it is valid even without a stored
record.
"""

from __future__ import annotations

import re
from secrets import token_bytes

from mull.dialects.traits import TRAITS
from mull.neutral.messages import Dialect

__all__ = ["is_sound", "mint", "mint_answer_id", "normalised"]

_LETTERS = b"abcdefghijklmnopqrstuvwxyz234567"
_LENGTH = 24
_SPELL = bytes(_LETTERS[byte % len(_LETTERS)] for byte in range(256))
_SOUND = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_RUN = re.compile(r"[A-Za-z0-9]{16,}", re.ASCII)
_STRANGE = re.compile(r"[^A-Za-z0-9]+")


def is_sound(call_id: str) -> bool:
    """Whether an id can be sent to any client unchanged: short, of safe characters, and random
    enough to be unique."""
    return _SOUND.fullmatch(call_id) is not None and any(
        any(map(str.isdigit, run)) for run in _RUN.findall(call_id)
    )


def _random() -> str:
    return token_bytes(_LENGTH).translate(_SPELL).decode()


def mint(dialect: Dialect) -> str:
    """A new id for a tool call, in the form that clients of this dialect expect."""
    return TRAITS[dialect].call_ids + _random()


def mint_answer_id(dialect: Dialect) -> str:
    """A new id for an answer, in the form that clients of this dialect expect."""
    return TRAITS[dialect].answer_ids + _random()


def normalised(call_id: str) -> str:
    """The id in a form that does not depend on the characters a client replaced, or on case."""
    return _STRANGE.sub("_", call_id).strip("_").lower()
