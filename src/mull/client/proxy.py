"""Which proxy a request goes through: one that was given, or one from the variables that all tools
share.

HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, in small letters first; NO_PROXY names the exceptions:
hosts, domains with all below them, addresses and networks, each with a port if need be, or `*`.
This machine's own addresses are not asked for through those: a local model is nobody else's. A
proxy that was given is for every address.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from mull.neutral.errors import ConfigError

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

__all__ = ["Proxy", "find_proxy", "given_proxy", "is_loopback"]


GIVEN = "proxy"
"""What names a proxy that was given, as an error says it."""
_PORTS = {"http": 80, "https": 443}


class Proxy(Struct, frozen=True):
    """A proxy, what named it, and the header that opens it."""

    scheme: str
    host: str
    port: int
    named_by: str
    authorization: str | None = None

    @property
    def whence(self) -> str:
        """Who named it, for people."""
        return "given as proxy=" if self.named_by == GIVEN else f"that {self.named_by} names"

    def __repr__(self) -> str:
        return f"Proxy({self.scheme}://{self.host}:{self.port}, {self.named_by})"


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def given_proxy(url: str) -> Proxy:
    """The proxy at an address that was given outright.

    Raises:
        ConfigError: it cannot be used; the address is not shown.
    """
    return _read(GIVEN, url.strip())


def find_proxy(scheme: str, host: str, port: int, environ: Mapping[str, str]) -> Proxy | None:
    """The proxy for an address, or None.

    Raises:
        ConfigError: a variable names one that cannot be used; its value is not shown.
    """
    if is_loopback(host) or _is_excepted(host, port, _value("NO_PROXY", environ)[1]):
        return None
    for name in (f"{scheme.upper()}_PROXY", "ALL_PROXY"):
        if name == "HTTP_PROXY" and "REQUEST_METHOD" in environ and not environ.get("http_proxy"):
            continue  # in a CGI script, a request's Proxy header would set it (httpoxy)
        variable, value = _value(name, environ)
        if value:
            return _read(variable, value)
    return None


def _value(name: str, environ: Mapping[str, str]) -> tuple[str, str]:
    small = name.lower()
    if value := environ.get(small, "").strip():
        return small, value
    return name, environ.get(name, "").strip()


def _read(named_by: str, value: str) -> Proxy:
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        raise ConfigError(f"{named_by} does not hold the address of a proxy") from None
    if parts.scheme.startswith("socks"):
        raise ConfigError(
            f"{named_by} names a SOCKS proxy, which mull's own client does not support.\n"
            "In Python, give one that does: http_client=httpx.AsyncClient(proxy=...)"
        )
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ConfigError(f"{named_by} must be an address such as http://HOST:PORT")
    opens = None
    if parts.username is not None:
        import base64

        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        opens = "Basic " + base64.b64encode(pair.encode()).decode()
    return Proxy(parts.scheme, parts.hostname, port, named_by, opens)


def _is_excepted(host: str, port: int, listed: str) -> bool:
    for entry in listed.lower().split(","):
        name = entry.strip()
        if name == "*":
            return True
        stem, colon, number = name.rpartition(":")
        if colon and number.isdigit() and (":" not in stem or stem.endswith("]")):
            if int(number) != port:
                continue
            name = stem
        name = name.strip("[]").removeprefix("*").lstrip(".")
        if name and (host == name or host.endswith(f".{name}") or _is_in(host, name)):
            return True
    return False


def _is_in(host: str, network: str) -> bool:
    address = _address(host)
    if address is None:
        return False
    from ipaddress import ip_network

    try:
        return address in ip_network(network, strict=False)
    except ValueError:
        return False


def _address(host: str) -> IPv4Address | IPv6Address | None:
    if ":" not in host and not host[-1:].isdigit():
        return None  # a name, as nearly always: not worth loading anything for
    from ipaddress import ip_address

    try:
        return ip_address(host.strip("[]"))
    except ValueError:
        return None
