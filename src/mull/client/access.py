"""What a request needs to be let in: the key, the headers of the user's own, the address.

Everything is settled here once, from flags, config.toml, stored keys and the environment, so that
the transport has nothing left to look up. `request_headers` is the one place where a key is
opened to be sent.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from mull.auth.logins import LOGINS
from mull.auth.secret import Secret
from mull.auth.static import MASK, key_headers
from mull.auth.variables import Found, key_variables
from mull.neutral.errors import ConfigError
from mull.neutral.messages import Message
from mull.neutral.patterns import pattern
from mull.neutral.request import WireRequest
from mull.neutral.target import Target
from mull.settings.words import join_or, quote

__all__ = ["Access", "ConfigSaid", "KeySource", "access", "missing_key", "request_headers"]

_VARIABLE = pattern(r"\$\{([^}]*)\}")
_ADDRESS = pattern(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?", re.IGNORECASE)
_NAME = pattern(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)


class ProviderSaid(Protocol):
    """What the user's config file says of one provider."""

    @property
    def base_url(self) -> str | None: ...
    @property
    def key_env(self) -> Sequence[str]: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


class ConfigSaid(Protocol):
    """What it says of all of them, by their id."""

    @property
    def providers(self) -> Mapping[str, ProviderSaid]: ...


class KeySource(Protocol):
    """Where keys are found, and the environment they may be in."""

    @property
    def environ(self) -> Mapping[str, str]: ...

    def find(
        self,
        provider: str,
        variables: Sequence[str] = (),
        *,
        given: str | None = None,
        own: Sequence[str] = (),
    ) -> Found | None:
        """The key for a provider."""


class Access(Struct, frozen=True):
    """How one target is reached. `headers` have lower-case names and may hold secrets.

    With `login`, the key is that login's and has to be traded for a session's token first. With
    `fetch`, the key is asked for when a request goes out.
    """

    base_url: str
    key: Secret | None = None
    headers: Mapping[str, str] = {}
    login: str | None = None
    fetch: Callable[[], str | Awaitable[str]] | None = None

    def __repr__(self) -> str:
        shown = dict.fromkeys(self.headers, MASK)
        return f"Access({self.base_url!r}, key={self.key}, headers={shown}, login={self.login!r})"


def access(
    target: Target,
    config: ConfigSaid,
    keys: KeySource,
    *,
    key: str | None = None,
    base_url: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Access:
    """The way to a target; what is given outright goes before config.toml, that before the rest.

    `${VAR}` in an address, and in the headers of config.toml, is filled from the environment.

    Raises:
        ConfigError: no address is known, a variable is missing, or a value cannot be used.
    """
    own = config.providers.get(target.provider.lower())
    own_variables = own.key_env if own else ()
    found = keys.find(target.provider, target.key_env, given=key, own=own_variables)
    where = f"config.toml: a header of {target.provider}"
    filled = {
        name: _filled(text, keys.environ, where, "set that, or leave the header out")
        for name, text in (own.headers if own else {}).items()
    }
    template = base_url or (own.base_url if own else None) or target.endpoint
    return Access(
        base_url=_address(target, template, keys.environ),
        key=found.key if found else None,
        headers={**_checked(filled, where), **_checked(headers or {}, "the headers given")},
        login=target.provider if found and target.provider in LOGINS else None,
    )


def missing_key(target: Target, way: Access) -> str | None:
    """What to tell the user if this target wants a key and none is there.

    A server that the catalog names no key for wants none, nor does one of the user's own.
    """
    sent = any(name in way.headers for name in ("authorization", *key_headers(target, MASK)))
    if way.key is not None or sent or not target.key_env:
        return None
    if target.provider in LOGINS:
        return f"{target.provider_name} needs a login: run `mull keys login {target.provider}`"
    variables = key_variables(target.key_env)
    ways = f"set {join_or(variables)}, or " if variables else ""
    return (
        f"there is no key for {target.provider_name}: {ways}run `mull keys set {target.provider}`"
    )


def request_headers(
    way: Access, target: Target, wire: WireRequest, messages: Sequence[Message] = ()
) -> dict[str, str]:
    """All headers of a request, in lower case: the dialect's, the key's, then the user's own."""
    login = LOGINS.get(target.provider)
    return {
        **{name.lower(): text for name, text in wire.headers.items()},
        **(login().request_headers(messages) if login else {}),
        **(key_headers(target, way.key.reveal()) if way.key else {}),
        **way.headers,
    }


def _address(target: Target, template: str | None, environ: Mapping[str, str]) -> str:
    advice = "give the whole address with --base-url, or as base_url in config.toml"
    if template is None:
        raise ConfigError(f"no address is known for {target.provider_name}: {advice}")
    shown = re.split(r"[?#]", template)[0]  # what follows may hold a key
    where = f"the address of {target.provider_name}, {quote(shown)}"
    url = _filled(template, environ, where, f"set that, or {advice}")
    # DATABRICKS_HOST and its like are documented with the scheme, and without it
    url = re.sub(r"^https?://(?=https?://)", "", url, flags=re.IGNORECASE)
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise ConfigError(
            f"the address of {target.provider_name} holds a name or password before the @: "
            "leave it out, and send it as a header or as the key"
        )
    if not _ADDRESS.fullmatch(url):
        names = _VARIABLE.findall(template)
        at_fault = f"; look at {join_or(names)}" if names else ""
        bare = re.split(r"[?#]", url)[0]
        if bare != url and _ADDRESS.fullmatch(bare):
            raise ConfigError(
                f"{where}, goes on with a ? or a # after that{at_fault}: leave that part out, for"
                " paths are put at the end of an address, and send what it says as a header"
            )
        raise ConfigError(f"{where} is not an http or https address{at_fault}: {advice}")
    return url.rstrip("/")


def _filled(text: str, environ: Mapping[str, str], where: str, advice: str) -> str:
    missing = [name for name in _VARIABLE.findall(text) if not environ.get(name)]
    if missing:
        names = " and ".join(dict.fromkeys(missing))
        raise ConfigError(f"{where} needs {names} in the environment: {advice}")
    return _VARIABLE.sub(lambda found: environ[found[1]].strip(), text)


def _checked(headers: Mapping[str, str], where: str) -> dict[str, str]:
    """The headers in lower case; filled in, they may hold what config.toml could not."""
    for name, text in headers.items():
        if not _NAME.fullmatch(name):
            raise ConfigError(f"{where}: a header cannot be called {quote(name)}")
        # its value may be a key, so it is not shown; h11 and others send ISO 8859-1 at most
        if not (text.isprintable() and text.isascii()):
            raise ConfigError(
                f"{where}: the value of {name} holds a line break or a character that is not "
                "ASCII: use one line of plain text"
            )
    return {name.lower(): text for name, text in headers.items()}
