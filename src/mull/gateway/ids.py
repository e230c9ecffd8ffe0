"""Ids of the gateway's own, for calls and answers.

Many providers' ids repeat (`functions.read:0` in every conversation), are missing, are long, or
hold characters that clients rewrite. In their place a client sees one that is minted here: short,
unique, and of letters and digits, so that whatever it does to it leaves it recognisable. An id
that is all this already is kept, so that it is right even where nothing is remembered.
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
    """Whether an id can be shown to any client: short, safe, and random enough to be the only
    one."""
    return _SOUND.fullmatch(call_id) is not None and any(
        any(map(str.isdigit, run)) for run in _RUN.findall(call_id)
    )


def _random() -> str:
    return token_bytes(_LENGTH).translate(_SPELL).decode()


def mint(dialect: Dialect) -> str:
    """A new id for a call, as clients of this dialect know them."""
    return TRAITS[dialect].call_ids + _random()


def mint_answer_id(dialect: Dialect) -> str:
    """A new id for an answer."""
    return TRAITS[dialect].answer_ids + _random()


def normalised(call_id: str) -> str:
    """The id as it is whatever a client replaced in it, and however it changed case."""
    return _STRANGE.sub("_", call_id).strip("_").lower()
