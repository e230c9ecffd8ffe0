"""Which paths there are, and what each of them is: a dialect and what is asked of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from mull.neutral.messages import Dialect

__all__ = ["Operation", "Surface", "dialect_of_headers", "find_surface"]

Operation: TypeAlias = Literal[
    "answer", "count", "models", "model", "response", "items", "compact", "health", "metrics"
]


class Surface(NamedTuple):
    """One kind of request. `dialect` None leaves it to the headers, `name` is in the path."""

    operation: Operation
    dialect: Dialect | None = None
    name: str | None = None


_VERSION = r"(?:/v1|/v1beta|/v1alpha)?"
_ROWS: tuple[tuple[str, str, Operation, Dialect | None], ...] = (
    ("POST", r"(?:/v1)?/chat/completions", "answer", "openai-chat"),
    ("POST", r"(?:/v1)?/responses", "answer", "openai-responses"),
    ("POST", r"(?:/v1)?/responses/compact", "compact", "openai-responses"),
    ("GET", r"(?:/v1)?/responses/(?P<name>[\w-]+)", "response", "openai-responses"),
    ("DELETE", r"(?:/v1)?/responses/(?P<name>[\w-]+)", "response", "openai-responses"),
    ("GET", r"(?:/v1)?/responses/(?P<name>[\w-]+)/input_items", "items", "openai-responses"),
    ("POST", r"(?:/v1)?/messages", "answer", "anthropic"),
    ("POST", r"(?:/v1)?/messages/count_tokens", "count", "anthropic"),
    (
        "POST",
        _VERSION + r"/models/(?P<name>.+):(?:generateContent|streamGenerateContent)",
        "answer",
        "gemini",
    ),
    ("POST", _VERSION + r"/models/(?P<name>.+):countTokens", "count", "gemini"),
    ("GET", r"(?:/v1beta|/v1alpha)/models", "models", "gemini"),
    ("GET", r"(?:/v1beta|/v1alpha)/models/(?P<name>.+)", "model", "gemini"),
    ("GET", r"(?:/v1)?/models", "models", None),
    ("GET", r"(?:/v1)?/models/(?P<name>.+)", "model", None),
    ("GET", r"/health", "health", None),
    ("GET", r"/metrics", "metrics", None),
)
_TABLE = tuple((method, re.compile(path), *rest) for method, path, *rest in _ROWS)


def find_surface(method: str, path: str) -> Surface | Literal["path", "method"]:
    """What a request is; otherwise whether its path or only its method is unknown."""
    known = False
    for verb, pattern, operation, dialect in _TABLE:
        found = pattern.fullmatch(path.rstrip("/") or "/")
        if found is None:
            continue
        known = True
        if verb == method:
            return Surface(operation, dialect, found.groupdict().get("name"))
    return "method" if known else "path"


def dialect_of_headers(headers: Mapping[str, str]) -> Dialect:
    """The dialect that a client speaks, by what only its SDK sends."""
    if "anthropic-version" in headers:
        return "anthropic"
    return "gemini" if "x-goog-api-key" in headers else "openai-chat"
