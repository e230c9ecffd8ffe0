"""The client tokens that a gateway accepts, read from the ledger again each second.

Tokens that are added or revoked while the gateway runs take effect within that time. A gateway
reads them when it starts. If the ledger cannot be read, the tokens read last stay valid; if it
never could be read, all requests are refused.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from mull.gateway.tokens import ClientToken, hashed
from mull.logs import log_warning

if TYPE_CHECKING:
    from mull.gateway.ledger import Ledger

__all__ = ["Keyring"]

_FRESH = 1.0
_PATIENCE, _FIRST_PATIENCE = 0.25, 5.0


class Keyring:
    """Finds tokens by scope and by secret. Without a ledger, these are the tokens given."""

    def __init__(
        self,
        ledger: Ledger | None = None,
        tokens: Iterable[ClientToken] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._read_at = -float("inf")
        self._reading: asyncio.Task[None] | None = None
        self.is_failing: bool = False
        self.known: bool = ledger is None
        self._set_tokens(tokens)

    def _set_tokens(self, tokens: Iterable[ClientToken]) -> None:
        self._by_scope = {token.scope: token for token in tokens}
        self._by_hash = {token.hash: token for token in self._by_scope.values()}

    def __bool__(self) -> bool:
        """Whether any token exists, valid or not: if so, every client needs one."""
        return bool(self._by_scope)

    def of(self, scope: str) -> ClientToken | None:
        """The token of a client."""
        return self._by_scope.get(scope)

    def find(self, shown: str) -> ClientToken | None:
        """The token whose secret a client sent. It is looked up by hash, so that the time taken
        reveals nothing about existing tokens."""
        digest = hashed(shown)
        found = self._by_hash.get(digest)
        return found if found is not None and hmac.compare_digest(found.hash, digest) else None

    async def refresh(self) -> None:
        """Read the tokens again, unless they were read within the last second."""
        if self._ledger is None or self._clock() - self._read_at < _FRESH:
            return
        if self._reading is None or self._reading.done():
            self._reading = asyncio.get_running_loop().create_task(self._read(self._ledger))
        if not (self.known and self.is_failing):  # requests do not wait for a failing ledger
            await asyncio.shield(self._reading)

    async def _read(self, ledger: Ledger) -> None:
        try:
            async with asyncio.timeout(_PATIENCE if self.known else _FIRST_PATIENCE):
                self._set_tokens(await ledger.tokens())
            self.known, self.is_failing = True, False
        except Exception as error:
            if not self.is_failing:
                self.is_failing = True
                effect = (
                    "the tokens read last stay valid"
                    if self.known
                    else "all requests are refused until they can be"
                )
                log_warning(
                    f"the client tokens cannot be read ({str(error) or repr(error):.500}): {effect}"
                )
        self._read_at = self._clock()
