"""The gateway's own ids for tool calls and answers.

Many ids of providers repeat (`functions.read:0` in every conversation), are missing, are long, or
contain characters that clients rewrite. The gateway replaces them with its own: short, unique, and
made of letters and digits, so that they remain recognisable whatever a client does to them. A
provider's id that already has these properties is kept, so that it is valid even without a stored
record; and a short one is spelt out in the gateway's id, from which it can be read again.
"""

from __future__ import annotations

import re
from base64 import b32decode, b32encode
from binascii import Error
from hashlib import blake2b
from secrets import token_bytes

from mull.dialects.traits import TRAITS
from mull.neutral.messages import Dialect

__all__ = ["is_sound", "mint", "mint_answer_id", "normalised", "provider_id"]

_LETTERS = b"abcdefghijklmnopqrstuvwxyz234567"
_LENGTH = 24
_SPELL = bytes(_LETTERS[byte % len(_LETTERS)] for byte in range(256))
_SOUND = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_RUN = re.compile(r"[A-Za-z0-9]{16,}", re.ASCII)
_STRANGE = re.compile(r"[^A-Za-z0-9]+")
_SPELT = re.compile(r"[a-z2-7]+\Z")
_MOST_SPELT = 26
"""The longest id in bytes that is spelt out: the whole then has fewer than 64 characters."""
_LONGEST = 64
_CHECKED, _DRAWN = 3, 5


def is_sound(call_id: str) -> bool:
    """Whether an id can be sent to any client unchanged: short, of safe characters, and random
    enough to be unique."""
    return _SOUND.fullmatch(call_id) is not None and any(
        any(map(str.isdigit, run)) for run in _RUN.findall(call_id)
    )


def _random() -> str:
    return token_bytes(_LENGTH).translate(_SPELL).decode()


def mint(dialect: Dialect, provider: str | None = None) -> str:
    """A new id for a tool call, in the form that clients of this dialect expect. If the id that the
    provider gave the call is short, `provider_id` reads it from the new one."""
    own = (provider or "").encode("utf-8", "surrogatepass")
    if not own or len(own) > _MOST_SPELT:
        return TRAITS[dialect].call_ids + _random()
    held = token_bytes(_DRAWN) + own
    return TRAITS[dialect].call_ids + b32encode(_check(held) + held).decode().lower().rstrip("=")


def provider_id(call_id: str) -> str | None:
    """The provider's id that is spelt out in one of the gateway's; None if there is none."""
    end = normalised(call_id)[-_LONGEST:]  # the search takes the square of the length
    spelt = _SPELT.search(end)
    if spelt is None:
        return None
    text = spelt.group().upper()
    try:
        data = b32decode(text + "=" * (-len(text) % 8))
        check, held = data[:_CHECKED], data[_CHECKED:]
        own = held[_DRAWN:].decode("utf-8", "surrogatepass")
        return own if own and check == _check(held) else None
    except (Error, UnicodeDecodeError):
        return None


def _check(held: bytes) -> bytes:
    """What distinguishes such an id from any other of the same letters."""
    return blake2b(held, digest_size=_CHECKED, key=b"mull call id").digest()


def mint_answer_id(dialect: Dialect) -> str:
    """A new id for an answer, in the form that clients of this dialect expect."""
    return TRAITS[dialect].answer_ids + _random()


def normalised(call_id: str) -> str:
    """The id in a form that does not depend on the characters a client replaced, or on case."""
    return _STRANGE.sub("_", call_id).strip("_").lower()
