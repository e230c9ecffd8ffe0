"""Ids of the gateway's own, for calls and answers.

A provider's ids repeat (`functions.read:0` in every conversation), are missing, are long, or hold
characters that clients rewrite. What a client sees is minted here: short, unique, and of letters
and digits only, so that whatever it does to an id leaves it recognisable.
"""

from __future__ import annotations

import re
from secrets import choice

from mull.dialects.traits import TRAITS
from mull.neutral.messages import Dialect

__all__ = ["mint", "mint_answer_id", "normalised"]

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_LENGTH = 24
_STRANGE = re.compile(r"[^A-Za-z0-9]+")


def _random() -> str:
    return "".join(choice(_LETTERS) for _ in range(_LENGTH))


def mint(dialect: Dialect) -> str:
    """A new id for a call, as clients of this dialect know them."""
    return TRAITS[dialect].call_ids + _random()


def mint_answer_id(dialect: Dialect) -> str:
    """A new id for an answer."""
    return TRAITS[dialect].answer_ids + _random()


def normalised(call_id: str) -> str:
    """The id as it is whatever a client replaced in it, and however it changed case."""
    return _STRANGE.sub("_", call_id).strip("_").lower()
