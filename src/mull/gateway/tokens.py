"""Client tokens: who may use the gateway, which models, and how much.

A token is shown once, when it is created; only its hash is stored. Tokens are long and random, so
the hash needs no salt.
"""

from __future__ import annotations

import re
import secrets
import string
from collections.abc import Iterable
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Literal, TypeAlias

from mull.neutral.blocks import Value
from mull.neutral.errors import ConfigError
from mull.settings.words import quote

__all__ = [
    "Budget",
    "ClientToken",
    "Limits",
    "Period",
    "check_name",
    "client_name",
    "hashed",
    "make_scope",
    "make_token",
    "parse_budget",
]

Period: TypeAlias = Literal["day", "month"]

_ALPHABET = string.ascii_letters + string.digits
_RANDOM = 40
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)
_BUDGET = re.compile(r"\$?(\d{1,12}(?:\.\d{1,9})?)\s*([kKmM]?)/(day|month)", re.ASCII)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


class Budget(Value, frozen=True):
    """The amount that may be used in each period. Days and months are in UTC."""

    amount: float
    period: Period


class Limits(Value, frozen=True):
    """What one client may use. `models` holds patterns of model names; if empty, every model is
    allowed. `tokens` and `dollars` are budgets in tokens and in US dollars."""

    models: tuple[str, ...] = ()
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    tokens: tuple[Budget, ...] = ()
    dollars: tuple[Budget, ...] = ()

    @property
    def bounded(self) -> bool:
        """Whether requests must be counted before they are sent."""
        minute = (self.requests_per_minute, self.tokens_per_minute)
        return minute != (None, None) or bool(self.tokens or self.dollars)

    def allows(self, names: Iterable[str]) -> bool:
        """Whether a model with these names may be used."""
        if not self.models:
            return True
        return any(fnmatchcase(name, pattern) for name in names for pattern in self.models)


class ClientToken(Value, frozen=True):
    """The token of one client. Times are in seconds since 1970. `id` is made with the client and
    stays when its token is rotated; clients of earlier versions have none."""

    name: str
    hash: str
    created: float = 0.0
    expires: float | None = None
    revoked: float | None = None
    limits: Limits = Limits()
    id: str = ""

    @property
    def scope(self) -> str:
        """What the client's records, envelopes and usage are kept under. Not its name: whoever gets
        the name of a removed client must not get what it left."""
        return self.id or self.name

    def is_valid(self, now: float) -> bool:
        """Whether the token is neither revoked nor expired."""
        return self.revoked is None and (self.expires is None or now < self.expires)


def make_scope(name: str) -> str:
    """A new id for a client. It begins with the name, for people who read the ledger, and equals no
    name, because none contains `#`."""
    return f"{name}#{secrets.token_hex(8)}"


def client_name(scope: str) -> str:
    """The name of the client with this scope."""
    return scope.partition("#")[0]


def make_token() -> str:
    """A new token."""
    return "mull-" + "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM))


def hashed(token: str) -> str:
    """The hash under which a token is stored."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def check_name(name: str) -> str:
    """Return the name if it is a valid client name.

    Raises:
        ConfigError: it is not.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{quote(name)} is not a valid client name: use up to 64 letters, digits and . _ @ -"
        )
    return name


def parse_budget(text: str) -> Budget:
    """The budget in `20/month`, `500k/day` or `2m/month`.

    Raises:
        ConfigError: it is not a budget.
    """
    found = _BUDGET.fullmatch(text)
    amount = float(found[1]) * _UNITS[found[2].lower()] if found else 0.0
    if found is None or amount <= 0:
        raise ConfigError(
            f"{quote(text)} is not a budget: use AMOUNT/day or AMOUNT/month, such as 20/month"
        )
    period: Period = "day" if found[3] == "day" else "month"
    return Budget(amount, period)
