"""What an endpoint said when it said no, before a stream or inside one.

Error bodies are read by the dialect's own decoder, which knows their shapes; this file adds what
only HTTP knows: statuses, redirects, web pages where an answer should be. Nothing that was sent
as a secret is ever part of what is reported, also where the endpoint echoes it.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import msgspec

from mull.client.answer import Answer
from mull.client.rate_limit import rate_limit_of
from mull.client.retry import may_pass, wait_asked
from mull.client.secrets import scrub
from mull.client.transport import host_of
from mull.dialects.registry import decode_response
from mull.neutral.errors import (
    NetworkError,
    RefusedError,
    RemoteError,
    TooLongError,
    UnusableError,
)
from mull.neutral.events import Failed
from mull.neutral.patterns import pattern
from mull.neutral.target import Target
from mull.policy.failure import Failure, is_damage, meaning_of, overflow_of
from mull.policy.prepare import Prepared

__all__ = [
    "error_in",
    "error_of",
    "failure_in_stream",
    "is_refusal",
    "read_refusal",
    "refused_error",
    "scrubbed",
]

BODY_LIMIT = 256 * 1024
BAD_REQUEST = 400
"""The lowest status that is an error; also what is assumed of an error without one."""

BODY_SECONDS = 10.0
"""How long the words of a refusal may take."""

_TITLE = pattern(r"<title\b", re.IGNORECASE)
_TITLE_END = pattern(r"</title\b", re.IGNORECASE)


async def read_refusal(answer: Answer, target: Target) -> Failure:
    """The failure that an answer is which did not succeed."""
    answer.finish_within(BODY_SECONDS)
    try:
        body = await answer.read(BODY_LIMIT)
    except NetworkError:
        body = b""  # the status alone says enough
    failure = _read_body(body, target)
    return msgspec.structs.replace(
        failure,
        status=answer.status,
        headers=answer.headers,
        text=failure.text or "no reason given",
    )


def _read_body(body: bytes, target: Target) -> Failure:
    ending = decode_response(body, target)[-1]
    if not isinstance(ending, Failed) or is_damage(ending.code):
        return Failure(_words(body))
    return _from_event(ending)


def _words(body: bytes) -> str:
    """The text of a body that is no error in the dialect's shape; of a web page, its title."""
    text = body.decode("utf-8", "replace")
    if text.lstrip()[:1] == "<":
        title = _title(text)
        text = f"a web page, {title!r}" if title else "a web page"
    return " ".join(text.split())


def _title(page: str) -> str:
    """The title of a web page. It is looked for once: a page may be full of beginnings."""
    tag = _TITLE.search(page)
    begin = page.find(">", tag.end()) + 1 if tag else 0
    end = _TITLE_END.search(page, begin) if begin else None
    return " ".join(page[begin : end.start()].split()) if end else ""


def _from_event(failed: Failed) -> Failure:
    error = failed.body
    if isinstance(error, dict) and isinstance(error.get("error"), dict):
        error = error["error"]
    kind = error.get("type") if isinstance(error, dict) else None
    return Failure(
        failed.text,
        code=failed.code,
        kind=kind if isinstance(kind, str) else None,
        body=failed.body,
    )


def is_refusal(failed: Failed) -> bool:
    """Whether a failure inside a stream is the endpoint's own no, not a cut or damage."""
    return failed.status != "interrupted" and not is_damage(failed.code)


def failure_in_stream(failed: Failed) -> Failure:
    """A refusal inside a stream, with the status that its code may be."""
    code = failed.code or ""
    status = int(code) if re.fullmatch(r"[1-5][0-9]{2}", code) else BAD_REQUEST
    return msgspec.structs.replace(_from_event(failed), status=status, streamed=True)


def refused_error(
    failure: Failure,
    target: Target,
    url: str,
    advice: str,
    now: float,
    prepared: Prepared | None = None,
) -> RefusedError:
    """The error for a person: who refused, in its own words, and what to do that was not done."""
    from mull.policy.heal.advice import explain  # its many patterns are only needed for this

    status = failure.status or 0
    where = failure.headers.get("location")
    if where is not None and 300 <= status < 400:
        message = (
            f"{host_of(url)} redirects to {_address(where)}; mull does not send an API key after"
            " a redirect.\n"
            "If that is the right address, use it as the base URL."
        )
    elif 200 <= status < 300:
        said = f"{host_of(url)} returned {failure.text} instead of a model's answer"
        message = f"{said}.\nCheck the base URL."
    else:
        message = explain(failure, target, prepared)
    if advice:
        message += (" " if "\n" in message else "\n") + f"{advice}."
    error = _error(failure, message, now)
    if isinstance(error, TooLongError) and prepared is not None:
        from mull.policy.heal.overflow import far_below

        if error.overflow is None or far_below(prepared, error.overflow) is not None:
            error.overflow = None
    return error


def _error(failure: Failure, message: str, now: float) -> RefusedError:
    """The error that callers can catch, by what the failure means."""
    status = failure.status or 0
    is_error = failure.streamed or status >= BAD_REQUEST  # not a redirect or a web page
    kind = meaning_of(failure).error if is_error else RefusedError
    overflow = {"overflow": overflow_of(failure)} if issubclass(kind, TooLongError) else {}
    return kind(
        message,
        status=status,
        text=failure.text,
        code=failure.code,
        headers=failure.headers,
        retry_after=wait_asked(failure, now),
        rate_limit=rate_limit_of(failure.headers, now),
        retryable=may_pass(failure),
        **overflow,
    )


def error_in(body: bytes, status: int | None, target: Target) -> RefusedError:
    """The error that a response with this body is; the status may be unknown."""
    from mull.policy.heal.advice import explain

    failure = msgspec.structs.replace(
        _read_body(body, target), status=status or BAD_REQUEST, streamed=status is None
    )
    return _error(failure, explain(failure, target), 0.0)


def error_of(failed: Failed) -> RemoteError:
    """The error that the `Failed` event of an answer amounts to.

    What a refusal inside a stream is about follows from its code and its words, as before one. Its
    status is the one that it names, or that a response would have had.
    """
    if not is_refusal(failed):
        cut = failed.status == "interrupted"
        return (NetworkError if cut else UnusableError)(failed.text)
    failure = failure_in_stream(failed)
    error = _error(failure, failed.text, 0.0)
    statuses = meaning_of(failure).statuses
    if failure.status == BAD_REQUEST and statuses:
        error.status = statuses[0]
    return error


def _address(url: str) -> str:
    """An address without its query, which may hold anything."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "elsewhere"
    return f"{parts.scheme}://{host_of(url)}{parts.path}" if parts.netloc else parts.path


def scrubbed(failure: Failure, secrets: tuple[str, ...]) -> Failure:
    """The failure without the secrets, which an endpoint may quote."""
    return msgspec.structs.replace(
        failure,
        text=scrub(failure.text, secrets),
        code=scrub(failure.code, secrets),
        kind=scrub(failure.kind, secrets),
        body=scrub(failure.body, secrets),
        headers=scrub(dict(failure.headers), secrets),
    )
