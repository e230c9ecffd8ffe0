"""The rate limits of an account, from the headers of a response.

Providers name these headers alike but not the same: `x-ratelimit-remaining-tokens` (OpenAI, Azure,
Groq, xAI), `anthropic-ratelimit-input-tokens-reset`, `x-ratelimit-limit-req-minute` (Mistral),
`x-ratelimit-reset-requests-day` (Cerebras), `x-ratelimit-remaining-tokens-prompt` (Fireworks),
`x-tokenlimit-remaining` (Together), `ratelimit-limit` (IETF drafts). So a name is read word by
word; one with a word that is not known here is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from mull.client.moments import read_moment, read_number
from mull.neutral.patterns import pattern
from mull.neutral.rate_limit import RateLimit, RateWindow

__all__ = ["rate_limit_of"]

_ROOTS = {"ratelimit": "requests", "ratelimitbysize": "tokens", "tokenlimit": "tokens"}
"""The word after which the rest is read, and what is limited if no other word says so."""
_FIELDS = frozenset({"limit", "remaining", "reset"})
_SUBJECTS = {
    "requests": "requests",
    "request": "requests",
    "req": "requests",
    "tokens": "tokens",
    "token": "tokens",
    "input": "input_tokens",
    "prompt": "input_tokens",
    "output": "output_tokens",
    "generated": "output_tokens",
    "completion": "output_tokens",
}
_WINDOWS = frozenset("per second minute hour day week month 1s 1m 1h 1d".split())
_STRUCTURED = pattern(r"\b(limit|remaining|reset|r|t)=(\d{1,15})")
_SHORT = {"r": "remaining", "t": "reset"}
_NUMBER = pattern(r"\d{1,15}")


def rate_limit_of(headers: Mapping[str, str], now: float) -> RateLimit | None:
    """What the headers say about limits, at the time `now` in seconds since 1970; None if nothing.

    Names of headers are in lower case.
    """
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for name, value in headers.items():
        if "limit" not in name:
            continue
        if name == "ratelimit":
            said = (match.groups() for match in _STRUCTURED.finditer(value))
            found[("requests",)] = {_SHORT.get(str(key), str(key)): text for key, text in said}
        elif (place := _place(name)) is not None:
            subject, window, field = place
            found.setdefault((subject, *window), {})[field] = value
    windows: dict[str, RateWindow] = {}
    for (subject, *_), told in found.items():
        read, held = _window(told, now), windows.get(subject)
        if read != RateWindow() and (held is None or _left(read) < _left(held)):
            windows[subject] = read
    return RateLimit(**windows) if windows else None


def _place(name: str) -> tuple[str, tuple[str, ...], str] | None:
    """What a header is about: what is limited, its window, and which number it holds."""
    words = name.replace("rate-limit", "ratelimit").split("-")
    at = next((at for at, word in enumerate(words) if word in _ROOTS), None)
    if at is None:
        return None
    subject, said = _ROOTS[words[at]], ""
    window, fields = [], []
    for word in words[at + 1 :]:
        if word in _FIELDS:
            fields.append(word)
        elif word in _SUBJECTS:
            said = _SUBJECTS[word] if said in ("", "tokens") else said
        elif word in _WINDOWS:
            window.append(word)
        else:
            return None
    return (said or subject, tuple(window), fields[0]) if len(fields) == 1 else None


def _window(said: Mapping[str, str], now: float) -> RateWindow:
    reset = read_moment(said.get("reset"), now)
    return RateWindow(
        _count(said.get("limit")),
        _count(said.get("remaining")),
        None if reset is None else max(reset, 0.0),
    )


def _count(text: str | None) -> int | None:
    """The first number: some name several limits, or the length of the window after it."""
    match = _NUMBER.match(text.strip()) if text is not None else None
    value = read_number(match.group(0)) if match else None
    return None if value is None else int(value)


def _left(window: RateWindow) -> float:
    return float("inf") if window.remaining is None else window.remaining
