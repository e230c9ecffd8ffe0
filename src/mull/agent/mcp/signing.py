"""The SDK's OAuth for requests, where nobody can be asked: a refusal renews the tokens first.

The SDK renews tokens only when it knows that they have ended, and else asks a person. But a
token may end before its time, and another process may have renewed it, which spends the old one.

Imported only where a login is used: it imports the SDK.
"""

from __future__ import annotations

from collections.abc import Callable

import httpx2
from mcp.client.auth import OAuthClientProvider

__all__ = ["Signing"]


class Signing(OAuthClientProvider):
    """Signs requests with tokens that are there; `reload` looks for those of another process."""

    reload: Callable[[], bool]
    asks_nobody = True
    _is_renewing = False

    async def _perform_authorization(self) -> httpx2.Request:
        """Renew the tokens in place of a login, once."""
        self._is_renewing = self.asks_nobody and self.context.can_refresh_token()
        if self._is_renewing:
            return await self._refresh_token()
        return await super()._perform_authorization()

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        if not self._is_renewing:
            await super()._handle_token_response(response)
        elif not await self._handle_refresh_response(response):
            await super()._perform_authorization()  # says that a person is needed

    async def _handle_refresh_response(self, response: httpx2.Response) -> bool:
        return await super()._handle_refresh_response(response) or self.reload()
