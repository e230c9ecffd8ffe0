"""OAuth for a server at a URL: the user logs in once, and tokens renew themselves.

The SDK implements the protocol: metadata discovery, client registration, authorization code with
PKCE, renewal. This module decides where its tokens are stored (with the keys, under `mcp:NAME`),
where the browser returns to (a local address, for one response) and what happens without a user:
nothing is asked, and the error says how to log in.

Tokens are for one URL. They are not used if the configuration names another.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

import msgspec
from msgspec import Struct

from mull.auth.secret import Secret
from mull.client.proxy import is_loopback
from mull.neutral.errors import LocalError, RemoteError
from mull.store.keys import Keys

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken

__all__ = ["Answer", "Login", "LoginNeeded", "key_name", "listening"]

_LONGEST_REQUEST = 16 * 1024
_PAGE = (
    "<!doctype html><meta charset=utf-8><title>mull</title>"
    "<p>{}</p><p>You can close this window and go back to the terminal.</p>"
)
_NOWHERE = "http://127.0.0.1/callback"
_USED_FOR = 0.95
"""The fraction of a token's lifetime for which it is used: a request takes time."""


Answer: TypeAlias = "Callable[[], Awaitable[AuthorizationCodeResult]]"
"""Waits for the browser's response."""


class LoginNeeded(RemoteError):
    """The server requires a login by the user."""


class _Kept(Struct, frozen=True, omit_defaults=True):
    url: str
    tokens: dict[str, Any] | None = None
    client: dict[str, Any] | None = None
    ends_at: float | None = None
    metadata: dict[str, Any] | None = None
    resource: dict[str, Any] | None = None
    issuer: str | None = None


def key_name(server: str) -> str:
    """The name under which a server's tokens are stored with the keys."""
    return f"mcp:{server.lower()}"


class Login:
    """The login at one server, as stored."""

    def __init__(self, server: str, url: str, keys: Keys) -> None:
        self._server = server
        self._keys = keys
        self._kept = _Kept(url)
        found = keys.find(key_name(server))
        if found is not None:
            kept = _opened(found.key)
            self._kept = kept if kept is not None and kept.url == url else self._kept

    @property
    def is_there(self) -> bool:
        """Whether there are tokens for this URL."""
        return self._kept.tokens is not None

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that must not be shown."""
        tokens, client = self._kept.tokens or {}, self._kept.client or {}
        found = (
            tokens.get("access_token"),
            tokens.get("refresh_token"),
            client.get("client_secret"),
        )
        return tuple(one for one in found if one)

    def provider(
        self,
        redirect: str = _NOWHERE,
        show: Callable[[str], None] | None = None,
        answer: Answer | None = None,
    ) -> OAuthClientProvider:
        """The object that signs requests. With `show` and `answer` the user is asked to log in."""
        from mcp.shared.auth import OAuthClientMetadata

        from mull.agent.mcp.signing import Signing

        async def ask(url: str) -> None:
            if show is None:
                raise LoginNeeded(f"it requires a login: run `mull mcp login {self._server}`")
            metadata = provider.context.oauth_metadata
            _check_safe(url, *([str(metadata.token_endpoint)] if metadata else []))
            show(url)

        async def wait() -> AuthorizationCodeResult:
            assert answer is not None
            return await answer()

        provider = Signing(
            self._kept.url,
            OAuthClientMetadata.model_validate(
                {
                    "client_name": "mull",
                    "redirect_uris": [redirect],
                    "grant_types": ["authorization_code", "refresh_token"],
                    "response_types": ["code"],
                    "token_endpoint_auth_method": "none",
                }
            ),
            self,
            ask,
            wait,
        )
        provider.asks_nobody = show is None
        provider.reload = self._reload
        self._provider = provider
        self._restore(provider)
        return provider

    def _reload(self) -> bool:
        """Load the tokens that another process has renewed; False if there are none."""
        from mcp.shared.auth import OAuthToken

        found = self._keys.find(key_name(self._server))
        kept = None if found is None else _opened(found.key)
        if kept is None or kept.url != self._kept.url or kept.tokens in (None, self._kept.tokens):
            return False
        self._kept = kept
        self._provider.context.current_tokens = OAuthToken.model_validate(kept.tokens)
        self._provider.context.token_expiry_time = kept.ends_at
        return True

    def _restore(self, provider: OAuthClientProvider) -> None:
        """Restore the metadata that the SDK discovered at login: tokens are renewed there."""
        from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
        from pydantic import ValidationError

        context, kept = provider.context, self._kept
        context.token_expiry_time = kept.ends_at
        context.auth_server_url = kept.issuer
        try:
            if kept.metadata is not None:
                context.oauth_metadata = OAuthMetadata.model_validate(kept.metadata)
            if kept.resource is not None:
                context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(
                    kept.resource
                )
        except ValidationError:  # stored by another version: it is discovered again
            context.oauth_metadata = None

    # What the SDK requires of a store

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens, if there are any."""
        from mcp.shared.auth import OAuthToken

        return None if self._kept.tokens is None else OAuthToken.model_validate(self._kept.tokens)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store the tokens, and where they are renewed.

        Raises:
            ConfigError: they cannot be stored.
        """
        context = self._provider.context
        ends_at = time.time() + tokens.expires_in * _USED_FOR if tokens.expires_in else None
        context.token_expiry_time = ends_at
        self._keep(
            tokens=_plain(tokens),
            ends_at=ends_at,
            metadata=_plain(context.oauth_metadata),
            resource=_plain(context.protected_resource_metadata),
            issuer=context.auth_server_url,
        )

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """The registered client, if there is one."""
        from mcp.shared.auth import OAuthClientInformationFull

        client = self._kept.client
        return None if client is None else OAuthClientInformationFull.model_validate(client)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store the registered client.

        Raises:
            ConfigError: it cannot be stored.
        """
        self._keep(client=_plain(client_info))

    def forget_client(self) -> None:
        """Register again: a client is registered for one redirect address."""
        self._kept = _Kept(self._kept.url)

    def _keep(self, **changes: Any) -> None:
        self._kept = msgspec.structs.replace(self._kept, **changes)
        data = base64.urlsafe_b64encode(msgspec.json.encode(self._kept)).decode()
        self._keys.keep(key_name(self._server), Secret(data))


def _check_safe(*urls: str) -> None:
    """A login uses TLS, or stays on this machine.

    Raises:
        RemoteError: it would not.
    """
    for url in urls:
        place = urlsplit(url)
        if place.scheme != "https" and not (
            place.scheme == "http" and is_loopback(place.hostname or "")
        ):
            raise RemoteError(
                f"the login would go over {place.scheme}://{place.netloc}, which is not encrypted"
            )


def _plain(model: Any) -> dict[str, Any] | None:
    if model is None:
        return None
    dumped: dict[str, Any] = model.model_dump(mode="json", exclude_none=True)
    return dumped


def _opened(key: Secret) -> _Kept | None:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(key.reveal()), type=_Kept)
    except (ValueError, msgspec.DecodeError):
        return None


@asynccontextmanager
async def listening(port: int = 0) -> AsyncIterator[tuple[str, Answer]]:
    """A local address for the browser to return to, and what it brought.

    Raises:
        LocalError: no port is available.
    """
    brought: asyncio.Future[dict[str, list[str]]] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n")
            _, target, _ = head.decode("ascii", "replace").split(" ", 2)
            place = urlsplit(target)
            is_answer = place.path == "/callback"
            said = parse_qs(place.query) if is_answer else {}
            _respond(writer, said, found=is_answer)
            await writer.drain()
            if is_answer and not brought.done():
                brought.set_result(said)
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whatever that was, it was not the returning browser
        finally:
            writer.close()

    async def answer() -> AuthorizationCodeResult:
        from mcp.shared.auth import AuthorizationCodeResult

        said = {name: values[0] for name, values in (await brought).items()}
        if "error" in said:
            why = said.get("error_description") or said["error"]
            raise RemoteError(f"the login was rejected: {why[:200]}")
        return AuthorizationCodeResult(
            code=said.get("code", ""), state=said.get("state"), iss=said.get("iss")
        )

    try:
        server = await asyncio.start_server(serve, "127.0.0.1", port, limit=_LONGEST_REQUEST)
    except OSError as error:
        raise LocalError(f"cannot listen on this machine: {error.strerror or error}") from None
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/callback", answer


def _respond(writer: asyncio.StreamWriter, said: dict[str, list[str]], *, found: bool) -> None:
    status = "200 OK" if found else "404 Not Found"
    words = "The login was rejected." if "error" in said else "You are logged in."
    page = _PAGE.format(words if found else "Not found.").encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
        f"Content-Length: {len(page)}\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode() + page)
