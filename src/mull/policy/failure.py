"""What went wrong with a request, and what that means: one value and one table.

Whether a retry may help, whether it may be about reasoning, and what to tell the user all follow
from the meaning. A rejection about which nothing here is stated may be about reasoning:
`mull.policy.heal.causes` knows those texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mull.neutral.blocks import Value
from mull.neutral.errors import (
    AuthenticationError,
    ContentFilterError,
    OverloadedError,
    QuotaError,
    RateLimitError,
    RefusedError,
    ServerError,
    TooLongError,
)
from mull.neutral.patterns import pattern
from mull.policy.lengths import TOO_LONG, Overflow, read_overflow

__all__ = [
    "READ",
    "Failure",
    "Meaning",
    "details",
    "is_damage",
    "meaning_of",
    "overflow_of",
    "plain",
    "stated",
    "worded",
]

READ = 8_000
"""How much of a text is examined; the cause is named at its beginning."""
_MARKS = pattern(r"""[`'"\\‘’“”]""")
_DAMAGE = frozenset(
    {"unreadable", "damaged", "no_choices", "spliced", "empty", "incomplete", "oversized"}
)
"""Codes of our own decoders for responses that they could not read."""


class Failure(Value, frozen=True):
    """What went wrong, in the other side's own words if there are any."""

    text: str
    """The message of the error; the beginning of the body if it has none."""
    status: int | None = None
    """The HTTP status. One that was `streamed` has the status that it names, or 400. None is a
    failed connection.
    """
    code: str | None = None
    """The `code` of the error, such as `insufficient_quota`, or the code of a decoder that could
    not read the response.
    """
    kind: str | None = None
    """The `type` of the error, such as `invalid_request_error`."""
    headers: dict[str, str] = {}
    """The headers of the response, with lower-case names."""
    body: Any = None
    """The body as decoded JSON, or the event of the stream; None if there is none."""
    streamed: bool = False
    """Whether it arrived inside an answer."""
    keyless: bool = False
    """Whether the request had no API key."""


class Meaning(Value, frozen=True):
    """One meaning of a failure: why, and what to do, in words for the user."""

    name: str
    """What the code calls it, such as `quota` or `length`."""
    why: str = ""
    """What happened, as a clause for the user, such as `the account is out of credit`; empty if
    only the provider's words say it.
    """
    advice: str = ""
    """What the user can do, as an imperative clause; empty if there is nothing general to say."""
    passes: bool = False
    """Whether the same request may succeed later."""
    statuses: tuple[int, ...] = ()
    """The HTTP statuses that mean this."""
    codes: str | None = None
    """A pattern of the error's code or type; None if no code means this."""
    texts: str | None = None
    """A pattern of the error's words; None if no words mean this."""
    certain: bool = True
    """Whether the status or code alone decides. If not, the words of the error go first."""
    error: type[RefusedError] = RefusedError
    """The class of the error that callers can catch."""

    def has_code(self, failure: Failure) -> bool:
        """Whether the code or type says so."""
        said = f"{failure.code or ''} {failure.kind or ''}"
        return self.codes is not None and re.search(self.codes, said, re.IGNORECASE) is not None

    def has_text(self, failure: Failure) -> bool:
        """Whether its words say so."""
        return self.texts is not None and (
            re.search(self.texts, plain(failure), re.IGNORECASE) is not None
        )


_NETWORK = Meaning("network", passes=True)
_REFUSED = Meaning("refused")
_SPENT = (
    r"insufficient[_ ](quota|balance|credit|funds)|exceeded_current_quota|billing|credit_?balance"
    r"|credit balance is too low|out of credits|no resource package|account_?deactivated"
    r"|used all available credits|usage[_ ]limit[_ ](reached|exceeded)|payment required"
)
_LENGTH = "length"
_FORBIDDEN = 403
_N = r"[\d,]{1,12}"
_LATER = ("the problem is on the provider's side", "try again later")
_QUOTA = Meaning(
    "quota",
    "the account is out of credit",
    "see the provider's billing page",
    statuses=(402,),
    codes=_SPENT,
    texts=_SPENT,
    error=QuotaError,
)
_SHARE = Meaning(
    _LENGTH,
    "this request exceeds what the account may send per minute",
    "compress the conversation, or limit the answer with --max-tokens",
    texts=rf"request too large for .{{0,200}}?\blimit:? (?P<share>{_N}), requested:? {_N}",
    error=TooLongError,
)
"""Groq and OpenAI, with the status and code of a rate limit. Waiting never helps."""
_SERVER = Meaning(
    "server",
    *_LATER,
    passes=True,
    statuses=(500,),
    codes=r"api_error|server_error|\binternal|modelstreamerror",
    certain=False,
    error=ServerError,
)
_FILTERED = Meaning(
    "safety",
    "the provider declined to answer this",
    "rephrase the question",
    codes=r"content_policy|content_?filter|moderation_blocked|data_?inspection_?failed"
    r"|responsibleaipolicyviolation|sensitive_words",
    texts=r"content[_ ]policy|content[_ ]filter|safety|flagged|content exists risk"
    r"|violates? (our )?usage (guidelines|polic)|data_?inspection_?failed",
    error=ContentFilterError,
)
_MEANINGS = (
    _QUOTA,
    Meaning(
        "rate",
        "too many requests, or an account limit",
        "wait a little",
        passes=True,
        statuses=(429,),
        codes=r"rate_?limit|resource_exhausted|throttl|servicequotaexceeded|too_?many_?requests",
        error=RateLimitError,
    ),
    Meaning(
        "auth",
        "the key was not accepted",
        "store another with `mull keys set {provider}`",
        statuses=(401,),
        codes=r"authentication|unauthenticated|invalid_api_key|unrecognizedclient|expiredtoken",
        texts=r"(api[ _]key|authorization) (is )?(not valid|invalid|missing|expired)"
        r"|(invalid|incorrect|missing) (x-)?api[ _-]key",
        error=AuthenticationError,
    ),
    Meaning(
        "auth",
        "the API key lacks permission for this",
        "check the permissions of the account and its key",
        statuses=(403,),
        codes=r"permission|accessdenied",
        error=AuthenticationError,
    ),
    Meaning(
        "auth",
        "the proxy requires a login",
        "put it into its address",
        statuses=(407,),
        error=AuthenticationError,
    ),
    Meaning(
        _LENGTH,
        "the conversation exceeds the model's context window",
        "compress it, start a new one, or choose a model with a larger context window",
        codes=r"context_length_exceeded|exceed_context_size",
        texts=TOO_LONG,
        error=TooLongError,
    ),
    Meaning(
        _LENGTH,
        "the request is too large for the endpoint, or for a proxy before it",
        "send fewer or smaller attachments, or compress the conversation",
        statuses=(413,),
        error=TooLongError,
    ),
    _FILTERED,
    Meaning(
        "model",
        "the provider does not offer this model to this account",
        "`mull models` lists names",
        codes=r"model_not_found",
        texts=r"does not exist|no such model|not found the model",
    ),
    Meaning(
        "overload",
        *_LATER,
        passes=True,
        statuses=(503, 408, 502, 504, 529),
        codes=r"overloaded|unavailable|slow_down|timeout|deadline_exceeded|notready",
        error=OverloadedError,
    ),
    Meaning(
        "calls",
        "the endpoint cannot read an earlier tool call",
        "undo the turn, or start a new conversation",
        texts=r"failed to parse tool call arguments",
    ),
    Meaning("busy", passes=True, statuses=(409, 425), certain=False),
    Meaning(
        "address",
        "nothing was found at this address",
        "check the base URL and the model's name",
        statuses=(404,),
        codes=r"not_found",
        certain=False,
    ),
    _SERVER,
)


def meaning_of(failure: Failure) -> Meaning:
    """Its most likely meaning: as stated, otherwise by its words, otherwise by its status alone."""
    vague = (
        one
        for one in _MEANINGS
        if failure.status in one.statuses or (failure.streamed and one.has_code(failure))
    )
    rest = _SERVER if (failure.status or 0) >= 500 else _REFUSED
    return stated(failure) or worded(failure) or next(vague, rest)


def stated(failure: Failure) -> Meaning | None:
    """What its status or code states, whatever its words are about."""
    if failure.status is None:
        return _NETWORK
    if _is_exhausted(failure):
        return _QUOTA
    if _SHARE.has_text(failure):
        return _SHARE
    if failure.status == _FORBIDDEN and _FILTERED.has_text(failure):
        return _FILTERED  # OpenRouter and xAI report it with the status of a missing permission
    certain = (one for one in _MEANINGS if one.certain)
    return next((m for m in certain if failure.status in m.statuses or m.has_code(failure)), None)


def worded(failure: Failure) -> Meaning | None:
    """What its words say."""
    return next((one for one in _MEANINGS if one.has_text(failure)), None)


def overflow_of(failure: Failure) -> Overflow | None:
    """What it says about a request that is too long; None if it has another subject."""
    meaning = meaning_of(failure)
    if meaning.name != _LENGTH:
        return None
    if meaning is _SHARE:  # the numbers are the account's, and say nothing of the window
        share = re.search(_SHARE.texts or "", plain(failure), re.IGNORECASE)
        return Overflow(share=int(share["share"].replace(",", "")) if share else None)
    found = read_overflow(plain(failure), failure.body)
    return Overflow() if found is None and meaning.statuses else found


def plain(failure: Failure) -> str:
    """The failure as patterns see it: on one line and without quotation marks.

    Providers quote the same sentence differently, and proxies quote the providers.
    """
    said = " ".join(part for part in (failure.text, failure.code, failure.kind) if part)
    return " ".join(_MARKS.sub("", said[:READ]).split())


def is_damage(code: str | None) -> bool:
    """Whether the code comes from our own decoders, for a response that could not be read."""
    return code in _DAMAGE


def _is_exhausted(failure: Failure) -> bool:
    """Whether credit or a daily quota is used up, whatever the status.

    Gemini mentions plan and billing also when only a per-minute quota is used up, and then says
    when to retry.
    """
    if _QUOTA.has_code(failure):
        return True
    found = (v for detail in details(failure.body) for v in _violations(detail))
    if any(re.search(r"per[_-]?day", str(v.get("quotaId", "")), re.IGNORECASE) for v in found):
        return True
    if any(isinstance(detail.get("retryDelay"), str) for detail in details(failure.body)):
        return False
    return re.search(_SPENT, failure.text[:READ], re.IGNORECASE) is not None


def details(body: Any) -> Iterator[dict[str, Any]]:
    """The `details` of an error in Google's format, wherever they are."""
    for value in body if isinstance(body, list) else [body]:
        error = value.get("error", value) if isinstance(value, dict) else None
        found = error.get("details") if isinstance(error, dict) else None
        if isinstance(found, list):
            yield from (detail for detail in found if isinstance(detail, dict))


def _violations(detail: dict[str, Any]) -> list[dict[str, Any]]:
    found = detail.get("violations")
    return [v for v in found if isinstance(v, dict)] if isinstance(found, list) else []
