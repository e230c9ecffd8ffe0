"""Google Cloud: the files that stand for a login, and the tokens they are traded for.

    a person's file (`gcloud auth application-default login`): refresh token -> access token
    a service account's file: an assertion signed with its key -> access token

A token is good for an hour and is kept until shortly before. cloud.google.com/docs/authentication/
application-default-credentials; RFC 6749 section 6 and RFC 7523 section 2.1.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from mull.auth.aws import ReadText
from mull.auth.flow import Flow, HttpRequest, Session, ask, json_of
from mull.auth.secret import Secret, parse_secret
from mull.neutral.errors import ConfigError, RefusedError, RemoteError
from mull.neutral.patterns import pattern
from mull.neutral.percent import quote_part
from mull.settings.words import quote

__all__ = ["LOG_IN", "Grant", "find_grant", "find_location", "find_project", "host_at", "session"]

LOG_IN = "`gcloud auth application-default login`"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_TOKEN_URL = "https://oauth2.googleapis.com/token"
_NAMED = "GOOGLE_APPLICATION_CREDENTIALS"
_DEFAULT = "application_default_credentials.json"
_MARGIN = 300.0
_HOUR = 3600.0
_GLOBAL = "global"
_ASSERTION = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_PROJECTS = ("GOOGLE_VERTEX_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT")
_LOCATIONS = ("GOOGLE_VERTEX_LOCATION", "GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION")
_WHOLE = pattern(r"us|eu")
_ENDPOINT = pattern(r"https://[^\s/?#@]+/[^\s?#]*|http://(?:127\.0\.0\.1|localhost):\d+/[^\s?#]*")


class Grant(Struct, frozen=True):
    """What a token is traded for."""

    kind: str
    """The `type` in the file: `authorized_user` or `service_account`."""
    secret: Secret
    """A refresh token, or the private key of a service account."""
    client: str
    """The id of the OAuth client, or the address of the service account."""
    token_url: str = _TOKEN_URL
    """Where the token is fetched."""
    client_secret: Secret | None = None
    """The secret of the OAuth client; None for a service account."""
    key_id: str | None = None
    """The id of a service account's key; None if the file names none."""
    project: str | None = None
    """The Google Cloud project that the file names; None if it names none."""
    quota_project: str | None = None
    """The quota project that the file names; it replaces a missing `project`."""
    place: str = ""
    """The file in which it was found."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be shown of it."""
        held = (self.secret, self.client_secret)
        return tuple(one.reveal() for one in held if one is not None)


def find_grant(environ: Mapping[str, str], read: ReadText) -> Grant | None:
    """The login on this machine, if there is one.

    Raises:
        ConfigError: the file that was named is missing, damaged or of a kind mull does not know.
    """
    named = environ.get(_NAMED)
    path = named or _default_path(environ)
    text = read(path)
    if text is None:
        if named:
            raise ConfigError(f"{_NAMED} names {quote(path)}, which does not exist")
        return None
    try:
        held = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):  # it may be a key, so nothing of it is told
        raise ConfigError(f"{path} is not a Google credentials file: run {LOG_IN} anew") from None
    return _grant(held, path)


def find_project(environ: Mapping[str, str], grant: Grant | None) -> str | None:
    """The project that requests are billed to: as named, or the one of the login."""
    named = next((environ[name].strip() for name in _PROJECTS if environ.get(name)), None)
    if named or grant is None:
        return named
    return grant.project or grant.quota_project


def find_location(environ: Mapping[str, str]) -> str:
    """Where models run: as named, or wherever there is room."""
    named = next((environ[name].strip() for name in _LOCATIONS if environ.get(name)), None)
    return named or _GLOBAL


def host_at(location: str) -> str:
    """The host that serves a location."""
    if location == _GLOBAL:
        return "aiplatform.googleapis.com"
    if _WHOLE.fullmatch(location):
        return f"aiplatform.{location}.rep.googleapis.com"
    return f"{location}-aiplatform.googleapis.com"


def session(grant: Grant, held: Session | None, now: float) -> Flow[Session]:
    """A token that can be used at the time `now`: the one held, or a new one.

    Raises:
        ConfigError: the key of a service account cannot be used here.
        RefusedError: Google gives no token for this login.
        RemoteError: Google cannot be reached or is not understood.
    """
    if held is not None and held.is_fresh(now):
        return held
    form = _assertion(grant, now) if grant.kind == "service_account" else _refresh(grant)
    body = "&".join(f"{name}={quote_part(text)}" for name, text in form.items())
    headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
    request = HttpRequest("POST", grant.token_url, headers, body.encode())
    reply = yield from ask(request)
    answer = json_of(reply, "Google")
    token = answer.get("access_token")
    if reply.status != 200 or not isinstance(token, str):
        told = answer.get("error_description") or answer.get("error")
        reason = quote(told) if isinstance(told, str) else f"it answered {reply.status}"
        advice = f"; run {LOG_IN} to log in again" if grant.kind == "authorized_user" else ""
        code = answer.get("error")
        raise RefusedError(
            f"Google issued no token for the login in {grant.place}: {reason}{advice}",
            status=reply.status,
            code=code if isinstance(code, str) else None,
        )
    return Session(_token(token), reply.at + _lasts(answer))


def _lasts(answer: Mapping[str, Any]) -> float:
    told = answer.get("expires_in")
    number = isinstance(told, int | float) and not isinstance(told, bool)
    seconds = float(told) if number and told is not None and 0 < told < 1e6 else _HOUR
    return max(seconds - _MARGIN, seconds / 2)


def _token(text: str) -> Secret:
    try:
        return parse_secret(text, "the token from Google")
    except ConfigError as error:
        raise RemoteError(str(error).partition(":")[0]) from None


def _refresh(grant: Grant) -> dict[str, str]:
    secret = grant.client_secret.reveal() if grant.client_secret else ""
    return {
        "grant_type": "refresh_token",
        "client_id": grant.client,
        "client_secret": secret,
        "refresh_token": grant.secret.reveal(),
    }


def _assertion(grant: Grant, now: float) -> dict[str, str]:
    from mull.auth.rs256 import sign_rs256

    named = {"kid": grant.key_id} if grant.key_id else {}
    head = {"alg": "RS256", "typ": "JWT", **named}
    claims = {
        "iss": grant.client,
        "scope": _SCOPE,
        "aud": grant.token_url,
        "iat": int(now),
        "exp": int(now + _HOUR),
    }
    signed = b".".join(_part(msgspec.json.encode(one)) for one in (head, claims))
    signature = sign_rs256(grant.secret, signed, grant.place)
    assertion = b".".join((signed, _part(signature)))
    return {"grant_type": _ASSERTION, "assertion": assertion.decode()}


def _part(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")


def _default_path(environ: Mapping[str, str]) -> str:
    if environ.get("CLOUDSDK_CONFIG"):
        return f"{environ['CLOUDSDK_CONFIG']}/{_DEFAULT}"
    if environ.get("APPDATA"):
        return f"{environ['APPDATA']}/gcloud/{_DEFAULT}"
    return f"~/.config/gcloud/{_DEFAULT}"


def _grant(held: Mapping[str, Any], path: str) -> Grant:
    kind = held.get("type")
    if kind == "authorized_user":
        secret, client = _text(held, "refresh_token", path), _text(held, "client_id", path)
        shared = Secret(_text(held, "client_secret", path))
    elif kind == "service_account":
        secret, client = _text(held, "private_key", path), _text(held, "client_email", path)
        shared = None
    else:
        said = quote(kind) if isinstance(kind, str) else "nothing"
        raise ConfigError(
            f"{path} is of the type {said}, which mull cannot use: use a service account's file,"
            f" {LOG_IN}, or put a token into GOOGLE_OAUTH_ACCESS_TOKEN"
        )
    url = held.get("token_uri") or _TOKEN_URL
    if not isinstance(url, str) or not _ENDPOINT.fullmatch(url):
        raise ConfigError(f"token_uri in {path} is not an https address")
    return Grant(
        kind,
        Secret(secret),
        client,
        url,
        shared,
        _maybe(held, "private_key_id"),
        _maybe(held, "project_id"),
        _maybe(held, "quota_project_id"),
        path,
    )


def _text(held: Mapping[str, Any], name: str, path: str) -> str:
    value = held.get(name)
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{path} has no {name}: run {LOG_IN} anew, or fetch the file again")
    return value


def _maybe(held: Mapping[str, Any], name: str) -> str | None:
    value = held.get(name)
    return value if isinstance(value, str) and value else None
