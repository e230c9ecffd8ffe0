"""What a request needs to be let in: the key, the headers of the user's own, the address.

Everything is settled here once, from flags, config.toml, stored keys and the environment, so that
the transport has nothing left to look up. `request_headers` is the one place where a key is
opened to be sent.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote_plus, urlencode

from msgspec import Struct
from msgspec.structs import replace

from mull.auth.clouds import CLOUDS, Cloud, CloudLogin
from mull.auth.logins import LOGINS
from mull.auth.secret import Secret
from mull.auth.static import MASK, key_headers
from mull.auth.variables import Found, key_variables
from mull.neutral.errors import ConfigError
from mull.neutral.messages import Message
from mull.neutral.patterns import pattern
from mull.neutral.request import WireRequest
from mull.neutral.target import Target
from mull.settings.addresses import is_secret_pair
from mull.settings.words import join_or, quote

if TYPE_CHECKING:
    from mull.client.answer import Client
    from mull.client.transport import HttpRequest

__all__ = [
    "Access",
    "ConfigSaid",
    "KeySource",
    "access",
    "cloud_of",
    "has_key",
    "missing_key",
    "request_headers",
    "signed",
]

_SHORTEST = 8
_VARIABLE = pattern(r"\$\{([^}]*)\}")
_ADDRESS = pattern(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?", re.IGNORECASE)
_SIGNATURE = frozenset({"authorization", "x-amz-date", "x-amz-security-token"})
_NAME = pattern(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)


if TYPE_CHECKING:

    class ProviderSaid(Protocol):
        """What the user's config file says of one provider."""

        @property
        def base_url(self) -> str | None: ...
        @property
        def key_env(self) -> Sequence[str]: ...
        @property
        def headers(self) -> Mapping[str, str]: ...
        @property
        def query(self) -> Mapping[str, str]: ...

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

        def read_text(self, path: str) -> str | None:
            """The text of another program's file, which may hold keys; None where there is none."""


class Access(Struct, frozen=True):
    """How one target is reached. Its headers and query may contain secrets."""

    base_url: str
    """The address that the paths of requests are appended to."""
    key: Secret | None = None
    """The API key, or that of `login`; None if there is none."""
    headers: Mapping[str, str] = {}
    """The user's own headers, with lower-case names."""
    login: str | None = None
    """The provider whose login the key belongs to: it is traded for a session's token first."""
    fetch: Callable[[], str | Awaitable[str]] | None = None
    """Returns the key when a request is sent; None if the key is known or there is none."""
    cloud: CloudLogin | None = None
    """What replaces the key in a cloud: keys that sign requests, or what a token is traded for."""
    region: str | None = None
    """The region that such keys sign for."""
    client: Client | None = None
    """What carries the requests; None is the engine's own client."""
    query: Mapping[str, str] = {}
    """What is added at the end of each address."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What a cloud's login and the query must never show; shorter texts are in any message."""
        held = set(self.cloud.secrets if self.cloud is not None else ())
        if self.query:
            secret = [text for name, text in self.query.items() if is_secret_pair(name, text)]
            held |= {*secret, *map(quote_plus, secret)}
        return tuple(one for one in held if len(one) >= _SHORTEST)

    def __repr__(self) -> str:
        shown, asked = dict.fromkeys(self.headers, MASK), dict.fromkeys(self.query, MASK)
        of = f"key={self.key}, headers={shown}, query={asked}, login={self.login!r}"
        return f"Access({self.base_url!r}, {of})"


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
    asked = {
        name: _filled(text, keys.environ, f"config.toml: {target.provider}: query", "set that")
        for name, text in (own.query if own else {}).items()
    }
    template = base_url or (own.base_url if own else None) or target.endpoint
    cloud = cloud_of(target)
    environ = _with_places(keys, cloud, template)
    sent = {**_checked(filled, where), **_checked(headers or {}, "the headers given")}
    alone = cloud is not None and found is None and "authorization" not in sent
    return Access(
        base_url=_address(target, template, environ),
        key=found.key if found else None,
        headers=sent,
        query=asked,
        login=target.provider if found and target.provider in LOGINS else None,
        cloud=cloud.login(keys.environ, keys.read_text) if cloud is not None and alone else None,
        region=_region(keys, cloud) if cloud is not None and alone else None,
    )


def cloud_of(target: Target) -> Cloud | None:
    """The cloud that the target is part of, if it is one."""
    found = CLOUDS.get(target.compat.auth or "")
    return found() if found is not None else None


def _with_places(keys: KeySource, cloud: Cloud | None, template: str | None) -> Mapping[str, str]:
    """The environment, and beside it what a cloud's own files say of an address."""
    if cloud is None or not _VARIABLE.search(template or ""):
        return keys.environ
    known = {name: text for name, text in keys.environ.items() if text}
    return ChainMap(known, dict(cloud.address(keys.environ, keys.read_text)))


def _region(keys: KeySource, cloud: Cloud) -> str | None:
    return cloud.address(keys.environ, keys.read_text).get("AWS_REGION")


def missing_key(target: Target, way: Access) -> str | None:
    """What to tell the user if this target wants a key and none is there.

    A server that the catalog names no key for wants none, nor does one of the user's own.
    """
    sent = has_key(target, way.headers) or bool(way.query and way.secrets)
    if way.key is not None or way.cloud is not None or sent or not target.key_env:
        return None
    if (cloud := cloud_of(target)) is not None:
        return f"no credentials for {target.provider_name}: {cloud.missing}"
    if target.provider in LOGINS:
        return f"{target.provider_name} needs a login: run `mull keys login {target.provider}`"
    variables = key_variables(target.key_env)
    ways = f"set {join_or(variables)}, or " if variables else ""
    return f"no API key for {target.provider_name}: {ways}run `mull keys set {target.provider}`"


def request_url(way: Access, path: str, base: str | None = None) -> str:
    """The address of a request: below the way's, or another `base` at the same server."""
    url = (way.base_url if base is None else base) + path
    return f"{url}{'&' if '?' in url else '?'}{urlencode(way.query)}" if way.query else url


def shown_url(config: ConfigSaid, target: Target, path: str) -> str:
    """The address of a request as it may be shown: without secrets of config.toml's query."""
    own = config.providers.get(target.provider.lower())
    url = f"{target.endpoint or ''}{path}"
    for name, text in (own.query if own else {}).items():
        kept = MASK if "${" in text or is_secret_pair(name, text) else quote_plus(text)
        url += f"{'&' if '?' in url else '?'}{quote_plus(name)}={kept}"
    return url


def has_key(target: Target, headers: Mapping[str, str]) -> bool:
    """Whether the headers of a request hold a key for this target, whatever it is."""
    return any(name in headers for name in ("authorization", *key_headers(target, MASK)))


def request_headers(
    way: Access, target: Target, wire: WireRequest, messages: Sequence[Message] = ()
) -> dict[str, str]:
    """All headers of a request, in lower case: the dialect's, the key's, then the user's own."""
    login = LOGINS.get(target.provider)
    return {
        **{name.lower(): text for name, text in wire.headers.items()},
        **(login().request_headers(messages) if login else {}),
        **(_key_headers(way, target, way.key) if way.key else {}),
        **_billing(way),
        **way.headers,
    }


def _key_headers(way: Access, target: Target, key: Secret) -> dict[str, str]:
    return key_headers(target, key.reveal(), fetched=way.fetch is not None)


def _billing(way: Access) -> dict[str, str]:
    """Who pays for a person's own requests: Google wants to hear it beside their token."""
    project = getattr(way.cloud, "quota_project", None)
    return {"x-goog-user-project": project} if project else {}


def signed(way: Access, request: HttpRequest, now: float) -> HttpRequest:
    """The request as it goes out at the time `now`: where keys sign, with their signature.

    Raises:
        ConfigError: the region that a signature is for is not known.
    """
    if way.key is not None or "authorization" in way.headers or way.cloud is None:
        return request
    from mull.auth import flow
    from mull.auth.sigv4 import AwsKeys, scope_of, sign

    if not isinstance(way.cloud, AwsKeys):
        return request
    scope = scope_of(way.base_url, way.region)
    if scope is None:
        raise ConfigError(
            f"a request to {way.base_url} is signed for a region, and none is named: set AWS_REGION"
        )
    plain = {n: v for n, v in request.headers.items() if n not in _SIGNATURE}
    bare = flow.HttpRequest(request.method, request.url, plain, request.body)
    more = sign(way.cloud, scope, bare, now)
    return replace(request, headers={**plain, **more})


def _address(target: Target, template: str | None, environ: Mapping[str, str]) -> str:
    advice = "give the whole address with --base-url, or as base_url in config.toml"
    if template is None:
        raise ConfigError(f"no address is known for {target.provider_name}: {advice}")
    url = template
    if "${" in template:
        shown = _shown_address(target, template)
        url = _filled(template, environ, shown, f"set that, or {advice}")
    if url.count("://") > 1:
        # DATABRICKS_HOST and its like are documented with the scheme, and without it
        url = re.sub(r"^https?://(?=https?://)", "", url, flags=re.IGNORECASE)
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise ConfigError(
            f"the address of {target.provider_name} contains a user name or password before the @: "
            "remove it, and send it as a header or as the key"
        )
    if not _ADDRESS.fullmatch(url):
        where = _shown_address(target, template)
        names = _VARIABLE.findall(template)
        at_fault = f"; look at {join_or(names)}" if names else ""
        bare = re.split(r"[?#]", url)[0]
        if bare != url and _ADDRESS.fullmatch(bare):
            raise ConfigError(
                f"{where}, is followed by a ? or a #{at_fault}: leave that part out, because mull"
                " appends paths to the address. Put query parameters into `query` of [providers."
                f"{target.provider}] in config.toml, or into `extra_query` in the library"
            )
        raise ConfigError(f"{where} is not an http or https address{at_fault}: {advice}")
    return url.rstrip("/")


def _shown_address(target: Target, template: str) -> str:
    shown = re.split(r"[?#]", template)[0]  # what follows may hold a key
    return f"the address of {target.provider_name}, {quote(shown)}"


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
