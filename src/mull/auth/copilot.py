"""GitHub Copilot: the device login, the sessions it is good for, and the headers it wants.

    device code -> the person enters a code on GitHub -> GitHub token (kept)
    GitHub token -> session token with its own address, good for about half an hour (not kept)

The device login is RFC 8628; section numbers below are its. GitHub documents it as "device flow",
the exchange for a session is what its editor plugins do (microsoft/vscode-copilot-chat,
anomalyco/opencode, BerriAI/litellm `github_copilot`; seen 2026-11).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mull._version import __version__
from mull.auth.flow import Flow, HttpReply, HttpRequest, LoggedIn, Session, Show, Wait, ask, json_of
from mull.auth.secret import Secret, parse_secret
from mull.neutral.blocks import Block, MediaBlock, ToolResultBlock
from mull.neutral.errors import ConfigError, NetworkError, RefusedError, RemoteError
from mull.neutral.messages import Message
from mull.neutral.patterns import pattern
from mull.settings.words import quote

__all__ = ["log_in", "request_headers", "session"]

# GitHub's own id for Copilot in editors, as other open clients use it. It is public: the device
# login has no client secret. The exchange below serves tokens of such ids only.
_CLIENT_ID = "Iv1.b507a08c87ecfe98"
_DEVICE_URL = "https://github.com/login/device/code"
_TOKEN_URL = "https://github.com/login/oauth/access_token"
_SESSION_URL = "https://api.github.com/copilot_internal/v2/token"
_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_AGAIN = "`mull keys login github-copilot`"

_INTERVAL = 5.0  # section 3.2: where no interval is given
_SLOWER = 5.0  # section 3.5: what slow_down adds
_SLOWEST = 60.0
_EXPIRES = 900.0
_MARGIN = 300.0  # a session is renewed this long before it ends
_HALF_HOUR = 1500.0

_HTTPS = pattern(r"https://[A-Za-z0-9.-]+(?::\d+)?(?:/[!-~]*)?", re.ASCII)
_USER_CODE = pattern(r"[A-Za-z0-9-]{4,32}", re.ASCII)

_CLIENT_HEADERS = {
    "accept": "application/json",
    "user-agent": f"mull/{__version__}",
    "editor-version": f"mull/{__version__}",
}


def log_in() -> Flow[LoggedIn]:
    """Log a person in: shows them a code, waits until they entered it, and tries the outcome.

    Raises:
        RefusedError: they said no, took too long, or have no Copilot.
        RemoteError: GitHub cannot be reached or is not understood.
    """
    reply = yield from ask(_post(_DEVICE_URL, client_id=_CLIENT_ID, scope="read:user"))
    device = json_of(reply, "GitHub")
    code, url = device.get("user_code"), device.get("verification_uri")
    if not isinstance(device.get("device_code"), str) or not _can_show(code, url):
        raise _refused(reply, device, "GitHub did not start a login")
    expires = _number(device.get("expires_in")) or _EXPIRES
    yield Show(str(code), str(url), expires)
    key = yield from _poll(device, reply.at, reply.at + expires)
    return LoggedIn(key, (yield from session(key, None, 0)))


def session(key: Secret, held: Session | None, now: float) -> Flow[Session]:
    """A session that can be used at the time `now`: the one held, or a new one.

    Raises:
        RefusedError: GitHub gives this key no session.
        RemoteError: GitHub cannot be reached or is not understood.
    """
    if held is not None and held.is_fresh(now):
        return held
    headers = {**_CLIENT_HEADERS, "authorization": f"token {key.reveal()}"}
    reply = yield from ask(HttpRequest("GET", _SESSION_URL, headers))
    answer = json_of(reply, "GitHub")
    token = answer.get("token")
    if reply.status != 200 or not isinstance(token, str):
        raise _refused(
            reply,
            answer,
            "GitHub did not grant a Copilot session",
            f"; run {_AGAIN} to log in again",
        )
    return Session(_secret(token), _refresh_at(answer, reply.at), _api(answer))


def request_headers(messages: Sequence[Message]) -> dict[str, str]:
    """The headers of one request to Copilot, beside the key.

    A request that a person's own message begins is one of theirs (`user`); one that carries on
    after a tool call is the program's (`agent`), which Copilot does not count against them.
    """
    mine = not messages or messages[-1].role == "user"
    headers = {
        "user-agent": _CLIENT_HEADERS["user-agent"],
        "editor-version": _CLIENT_HEADERS["editor-version"],
        "copilot-integration-id": "vscode-chat",
        "x-initiator": "user" if mine else "agent",
    }
    if any(_is_image(block) for message in messages for block in message.blocks):
        headers["copilot-vision-request"] = "true"
    return headers


def _poll(device: Mapping[str, Any], now: float, until: float) -> Flow[Secret]:
    request = _post(
        _TOKEN_URL, client_id=_CLIENT_ID, device_code=device["device_code"], grant_type=_GRANT
    )
    interval = _number(device.get("interval")) or _INTERVAL
    while now + interval < until:
        yield Wait(interval)
        try:
            reply = yield from ask(request)
        except NetworkError:  # section 3.5: back off and go on
            now, interval = now + interval, _slower(interval)
            continue
        now = reply.at
        if reply.status == 429 or reply.status >= 500:
            interval = _slower(interval)
            continue
        answer = json_of(reply, "GitHub")
        token = answer.get("access_token")
        if isinstance(token, str):
            return _secret(token)
        error = answer.get("error")
        if error == "slow_down":
            interval = max(interval + _SLOWER, _number(answer.get("interval")) or 0)
        elif error == "expired_token":
            break
        elif error == "access_denied":
            raise _no(reply, error, "the login was declined on GitHub; nothing is stored")
        elif error != "authorization_pending":
            raise _refused(reply, answer, "GitHub refused the login")
    raise RefusedError(
        f"the code was not entered in time; run {_AGAIN} for a new one",
        status=200,
        code="expired_token",
    )


def _slower(interval: float) -> float:
    return max(interval, min(2 * interval, _SLOWEST))


def _post(url: str, **fields: str) -> HttpRequest:
    headers = {**_CLIENT_HEADERS, "content-type": "application/json"}
    return HttpRequest("POST", url, headers, msgspec.json.encode(fields))


def _can_show(code: object, url: object) -> bool:
    """Whether these can be put before a person: the code is typed, the address is opened."""
    return (
        isinstance(code, str)
        and isinstance(url, str)
        and _USER_CODE.fullmatch(code) is not None
        and _HTTPS.fullmatch(url) is not None
    )


def _number(value: object) -> float | None:
    """A JSON number that can be a time or a span of it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value < 1e11 else None


def _refresh_at(answer: Mapping[str, Any], at: float) -> float:
    """From `refresh_in` where it is given: this machine's clock need not be GitHub's."""
    refresh_in = _number(answer.get("refresh_in"))
    if refresh_in is not None:
        return at + refresh_in
    expires_at = _number(answer.get("expires_at"))
    return at + _HALF_HOUR if expires_at is None else expires_at - _MARGIN


def _api(answer: Mapping[str, Any]) -> str | None:
    endpoints = answer.get("endpoints")
    api = endpoints.get("api") if isinstance(endpoints, Mapping) else None
    return api.rstrip("/") if isinstance(api, str) and _HTTPS.fullmatch(api) else None


def _secret(token: str) -> Secret:
    try:
        return parse_secret(token, "the token from GitHub")
    except ConfigError as error:
        raise RemoteError(str(error).partition(":")[0]) from None


def _is_image(block: Block) -> bool:
    media = block.media if isinstance(block, ToolResultBlock) else (block,)
    return any(isinstance(b, MediaBlock) and b.media_type.startswith("image/") for b in media)


def _refused(
    reply: HttpReply, answer: Mapping[str, Any], what: str, advice: str = ""
) -> RefusedError:
    """A refusal with GitHub's own reason, which it puts in one of three places."""
    details = answer.get("error_details")
    told = (
        (details.get("message") if isinstance(details, Mapping) else None)
        or answer.get("error_description")
        or answer.get("message")
        or answer.get("error")
    )
    reason = quote(told) if isinstance(told, str) else f"it answered {reply.status}"
    return _no(reply, answer.get("error"), f"{what}: {reason}{advice}")


def _no(reply: HttpReply, code: object, text: str) -> RefusedError:
    return RefusedError(text, status=reply.status, code=code if isinstance(code, str) else None)
