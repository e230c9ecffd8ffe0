"""Signature Version 4: a request to AWS signed with a key that is never sent.

docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html. What is signed
is the method, the address, the body, and of the headers the host, the content type and Amazon's
own: what proxies add or change is none of these.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime

from msgspec import Struct

from mull.auth.flow import HttpRequest
from mull.auth.secret import Secret
from mull.neutral.patterns import pattern
from mull.neutral.percent import quote_part

__all__ = ["AwsKeys", "Scope", "scope_of", "sign"]

_ALGORITHM = "AWS4-HMAC-SHA256"
_HOST = pattern(
    r"https://(bedrock-[a-z]+)(?:-fips)?\.([a-z0-9-]+)\.(?:amazonaws\.com|api\.aws)(?:[:/]|$)"
)
_SERVICES = {"bedrock-runtime": "bedrock"}
"""Hosts whose service has another name in signatures than in addresses."""


class AwsKeys(Struct, frozen=True):
    """The two halves of a key, and the token of a role that was taken on for a while. `place` says
    where they were found."""

    access_key: Secret
    secret_key: Secret
    session_token: Secret | None = None
    place: str = ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be shown of it."""
        held = (self.access_key, self.secret_key, self.session_token)
        return tuple(one.reveal() for one in held if one is not None)


class Scope(Struct, frozen=True):
    """What a signature is good for."""

    region: str
    service: str = "bedrock"


def scope_of(url: str, region: str | None) -> Scope | None:
    """The scope for requests to an address: as its host says, else the region that is named."""
    if (told := _HOST.match(url)) is not None:
        return Scope(told[2], _SERVICES.get(told[1], told[1]))
    return None if region is None else Scope(region)


def sign(keys: AwsKeys, scope: Scope, request: HttpRequest, now: float) -> dict[str, str]:
    """The headers that sign a request at the time `now`; its own have lower-case names."""
    host, path, query = _split(request.url)
    when = datetime.fromtimestamp(now, UTC)
    stamp, day = when.strftime("%Y%m%dT%H%M%SZ"), when.strftime("%Y%m%d")
    own = {"x-amz-date": stamp}
    if keys.session_token is not None:
        own["x-amz-security-token"] = keys.session_token.reveal()
    signed = {
        "host": host,
        **{
            name: " ".join(text.split())
            for name, text in request.headers.items()
            if name == "content-type" or name.startswith("x-amz-")
        },
        **own,
    }
    names = ";".join(sorted(signed))
    lines = "".join(f"{name}:{signed[name]}\n" for name in sorted(signed))
    payload = hashlib.sha256(request.body or b"").hexdigest()
    canonical = "\n".join(
        (request.method, quote_part(path, "/"), _canonical_query(query), lines, names, payload)
    )
    area = f"{day}/{scope.region}/{scope.service}/aws4_request"
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    text = "\n".join((_ALGORITHM, stamp, area, hashed))
    signature = hmac.new(_day_key(keys, scope, day), text.encode(), hashlib.sha256).hexdigest()
    credential = f"{keys.access_key.reveal()}/{area}"
    own["authorization"] = (
        f"{_ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={signature}"
    )
    return own


def _day_key(keys: AwsKeys, scope: Scope, day: str) -> bytes:
    key = f"AWS4{keys.secret_key.reveal()}".encode()
    for part in (day, scope.region, scope.service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def _split(url: str) -> tuple[str, str, str]:
    """Host, path and query of an address; a port that everybody knows is not part of the host."""
    scheme, _, rest = url.partition("://")
    rest, _, query = rest.partition("#")[0].partition("?")
    host, slash, path = rest.partition("/")
    usual = {"https": ":443", "http": ":80"}.get(scheme.lower(), "")
    return host.lower().removesuffix(usual) if usual else host.lower(), slash + path or "/", query


def _canonical_query(query: str) -> str:
    pairs = [part.partition("=") for part in query.split("&") if part]
    return "&".join(sorted(f"{name}={value}" for name, _, value in pairs))
