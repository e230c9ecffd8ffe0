"""The SDK's OAuth for requests without a user to ask: after a rejection the tokens are renewed
first.

The SDK renews tokens only when it knows that they have expired, and otherwise asks the user. But a
token may expire early, and another process may have renewed it, which invalidates the old one.

Imported only where a login is used, because it imports the SDK.
"""

from __future__ import annotations

from collections.abc import Callable

import httpx2
from mcp.client.auth import OAuthClientProvider

__all__ = ["Signing"]


class Signing(OAuthClientProvider):
    """Signs requests with existing tokens; `reload` looks for those of another process."""

    reload: Callable[[], bool]
    asks_nobody = True
    _is_renewing = False

    async def _perform_authorization(self) -> httpx2.Request:
        """Renew the tokens instead of logging in, once."""
        self._is_renewing = self.asks_nobody and self.context.can_refresh_token()
        if self._is_renewing:
            return await self._refresh_token()
        return await super()._perform_authorization()

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        if not self._is_renewing:
            await super()._handle_token_response(response)
        elif not await self._handle_refresh_response(response):
            await super()._perform_authorization()  # reports that a login is needed

    async def _handle_refresh_response(self, response: httpx2.Response) -> bool:
        return await super()._handle_refresh_response(response) or self.reload()
