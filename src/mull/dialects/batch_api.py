"""The batch APIs of providers, as requests and their responses: OpenAI's and Anthropic's.

Both take many requests at once, work through them within a day, and give back a file with one line
per request in any order. What is asked and answered in a line has the form of the dialect, so this
file does not look into it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import msgspec

from mull.dialects.anthropic.encode import VERSION
from mull.neutral.blocks import Value
from mull.neutral.errors import UnusableError
from mull.neutral.request import WireRequest

__all__ = ["APIS", "BatchApi", "BatchState", "Outcome", "Submission", "batch_headers"]

_JSON = {"content-type": "application/json", "accept": "application/json"}
_KEPT = ("anthropic-version", "anthropic-beta", "openai-beta")
"""Headers of a request that the whole batch needs."""
_BOUNDARY = "mull-batch-8f14e45fceea167a5a36dedd4bea2543"
_TOKEN = "mull"


class BatchState(Value, frozen=True):
    """How far a batch is at the provider."""

    id: str
    """The provider's id of the batch."""
    status: str
    """The provider's own word for its state, such as `in_progress`."""
    is_over: bool = False
    """Whether the provider has finished with it, answered or not."""
    total: int = 0
    """How many requests it has; 0 until the provider has counted them."""
    done: int = 0
    """How many requests have been answered."""
    failed: int = 0
    """How many requests failed, were cancelled or expired."""
    files: tuple[str, ...] = ()
    """The paths below the base URL at which results can be fetched."""
    problem: str | None = None
    """Why none of the requests was done; None if the batch did not fail as a whole."""


class Outcome(Value, frozen=True):
    """What came of one request: the body of its response, or why there is none."""

    id: str
    body: bytes = b""
    status: int | None = None
    request_id: str | None = None
    problem: str | None = None


class Submission(Value, frozen=True):
    """Requests that go to a provider together; `token` marks their batch as ours."""

    token: str
    path: str
    lines: tuple[bytes, ...]
    headers: dict[str, str] = {}


class BatchApi(Protocol):
    """One provider's API. Paths are relative to the endpoint of its models."""

    most_lines: int
    most_bytes: int

    def line(self, name: str, wire: WireRequest) -> bytes:
        """One request of a batch, under this name."""

    def upload(self, submission: Submission) -> WireRequest | None:
        """What has to be sent before the batch can be created, if anything."""

    def create(self, submission: Submission, uploaded: bytes | None) -> WireRequest:
        """What creates the batch; `uploaded` is the response to the upload."""

    def look(self, id: str) -> WireRequest:
        """What asks for the state of a batch."""

    def read_state(self, body: bytes) -> BatchState:
        """The state of a batch, from the response to `create`, `look` or `cancel`."""

    def cancel(self, id: str) -> WireRequest:
        """What ends a batch early."""

    def recent(self) -> WireRequest:
        """What lists the newest batches."""

    def find(self, body: bytes, token: str, total: int, since: float) -> str | None:
        """The id of the batch with this token in such a list."""

    def fetch(self, path: str) -> WireRequest:
        """What asks for a file of results."""

    def read_outcomes(self, body: bytes) -> Iterable[Outcome]:
        """What a file of results says."""


def batch_headers(wire: WireRequest) -> dict[str, str]:
    """The headers of a request that its batch must have."""
    return {name: text for name, text in wire.headers.items() if name.lower() in _KEPT}


class _OpenAI:
    """`/v1/files` and `/v1/batches`, which Groq and others have too."""

    most_lines, most_bytes = 50_000, 100 * 1024 * 1024

    _OVER = frozenset({"completed", "failed", "expired", "cancelled"})

    def line(self, name: str, wire: WireRequest) -> bytes:
        request = {"custom_id": name, "method": "POST", "url": _url(wire.path)}
        return msgspec.json.encode({**request, "body": msgspec.Raw(wire.body)})

    def upload(self, submission: Submission) -> WireRequest | None:
        kind = f"multipart/form-data; boundary={_BOUNDARY}"
        body = _form({"purpose": "batch"}, "batch.jsonl", b"\n".join(submission.lines) + b"\n")
        return WireRequest("/files", body, {"content-type": kind, "accept": "application/json"})

    def create(self, submission: Submission, uploaded: bytes | None) -> WireRequest:
        body = {
            "input_file_id": _text(_object(uploaded or b""), "id"),
            "endpoint": _url(submission.path),
            "completion_window": "24h",
            "metadata": {_TOKEN: submission.token},
        }
        return WireRequest("/batches", msgspec.json.encode(body), {**_JSON, **submission.headers})

    def look(self, id: str) -> WireRequest:
        return WireRequest(f"/batches/{_safe(id)}", b"", _JSON, "GET")

    def read_state(self, body: bytes) -> BatchState:
        value = _object(body)
        status = _word(value.get("status"))
        counts = _counts(value.get("request_counts"))
        files = [value.get(key) for key in ("output_file_id", "error_file_id")]
        return BatchState(
            id=_text(value, "id"),
            status=status,
            is_over=status in self._OVER,
            total=counts.get("total", 0),
            done=counts.get("completed", 0),
            failed=counts.get("failed", 0),
            files=tuple(f"/files/{_safe(one)}/content" for one in files if isinstance(one, str)),
            problem=self._problem(value) if status == "failed" else None,
        )

    def _problem(self, value: Mapping[str, Any]) -> str:
        errors = value.get("errors")
        listed = errors.get("data") if isinstance(errors, dict) else None
        said = [
            str(one.get("message") or one.get("code"))
            for one in (listed if isinstance(listed, list) else [])
            if isinstance(one, dict)
        ]
        return "; ".join(said[:3]) or "no reason given"

    def cancel(self, id: str) -> WireRequest:
        return WireRequest(f"/batches/{_safe(id)}/cancel", b"", _JSON)

    def recent(self) -> WireRequest:
        return WireRequest("/batches?limit=100", b"", _JSON, "GET")

    def fetch(self, path: str) -> WireRequest:
        return WireRequest(path, b"", {}, "GET")

    def find(self, body: bytes, token: str, total: int, since: float) -> str | None:
        for one in _listed(body):
            metadata = one.get("metadata")
            if isinstance(metadata, dict) and metadata.get(_TOKEN) == token:
                return _text(one, "id")
        return None

    def read_outcomes(self, body: bytes) -> Iterable[Outcome]:
        for value in _lines(body):
            name, response, error = (
                value.get("custom_id"),
                value.get("response"),
                value.get("error"),
            )
            if not isinstance(name, str):
                continue
            if isinstance(response, dict) and response.get("body") is not None:
                status, request_id = response.get("status_code"), response.get("request_id")
                yield Outcome(
                    name,
                    msgspec.json.encode(response["body"]),
                    status if isinstance(status, int) else None,
                    request_id if isinstance(request_id, str) else None,
                )
            else:
                said = error.get("message") if isinstance(error, dict) else None
                yield Outcome(name, problem=str(said or "no answer came back"))


class _Anthropic:
    """`/v1/messages/batches`."""

    most_lines, most_bytes = 100_000, 100 * 1024 * 1024

    def line(self, name: str, wire: WireRequest) -> bytes:
        return msgspec.json.encode({"custom_id": name, "params": msgspec.Raw(wire.body)})

    def upload(self, submission: Submission) -> WireRequest | None:
        return None

    def create(self, submission: Submission, uploaded: bytes | None) -> WireRequest:
        body = b'{"requests":[' + b",".join(submission.lines) + b"]}"
        return WireRequest("/messages/batches", body, {**_JSON, **submission.headers})

    def look(self, id: str) -> WireRequest:
        return WireRequest(f"/messages/batches/{_safe(id)}", b"", _VERSIONED, "GET")

    def read_state(self, body: bytes) -> BatchState:
        value = _object(body)
        id, status = _text(value, "id"), _word(value.get("processing_status"))
        counts = _counts(value.get("request_counts"))
        is_over = status == "ended"
        gone = sum(counts.get(word, 0) for word in ("errored", "canceled", "expired"))
        return BatchState(
            id=id,
            status=status,
            is_over=is_over,
            total=sum(counts.values()),
            done=counts.get("succeeded", 0),
            failed=gone,
            files=(f"/messages/batches/{_safe(id)}/results",) if is_over else (),
        )

    def cancel(self, id: str) -> WireRequest:
        return WireRequest(f"/messages/batches/{_safe(id)}/cancel", b"", _VERSIONED)

    def recent(self) -> WireRequest:
        return WireRequest("/messages/batches?limit=100", b"", _VERSIONED, "GET")

    def fetch(self, path: str) -> WireRequest:
        return WireRequest(path, b"", {"anthropic-version": VERSION}, "GET")

    def find(self, body: bytes, token: str, total: int, since: float) -> str | None:
        """This API keeps no token, so the batch is the only one of this size since then."""
        found = [
            _text(one, "id")
            for one in _listed(body)
            if sum(_counts(one.get("request_counts")).values()) == total
            and _seconds(one.get("created_at")) >= since
        ]
        return found[0] if len(found) == 1 else None

    def read_outcomes(self, body: bytes) -> Iterable[Outcome]:
        for value in _lines(body):
            name, result = value.get("custom_id"), value.get("result")
            if not isinstance(name, str) or not isinstance(result, dict):
                continue
            match result.get("type"):
                case "succeeded":
                    yield Outcome(name, msgspec.json.encode(result.get("message")), 200)
                case "errored":
                    error = result.get("error")
                    said = error.get("request_id") if isinstance(error, dict) else None
                    request_id = said if isinstance(said, str) else None
                    yield Outcome(name, msgspec.json.encode(error), None, request_id)
                case word:
                    yield Outcome(name, problem=f"the provider reports it as {word}")


_VERSIONED = {**_JSON, "anthropic-version": VERSION}
APIS: Mapping[str, BatchApi] = {"openai": _OpenAI(), "anthropic": _Anthropic()}
"""The APIs, by the name that compat rows give them."""


def _url(path: str) -> str:
    """The path of requests as OpenAI's API names it, whatever the endpoint's own prefix is."""
    return f"/v1{path.partition('?')[0]}"


def _form(fields: Mapping[str, str], name: str, content: bytes) -> bytes:
    """A form with a file."""
    disposition = 'Content-Disposition: form-data; name="'
    parts = [
        f'--{_BOUNDARY}\r\n{disposition}{field}"\r\n\r\n{text}\r\n'.encode()
        for field, text in fields.items()
    ]
    head = f'--{_BOUNDARY}\r\n{disposition}file"; filename="{name}"\r\n'
    kind = "Content-Type: application/jsonl\r\n\r\n"
    return b"".join([*parts, (head + kind).encode(), content, f"\r\n--{_BOUNDARY}--\r\n".encode()])


def _safe(id: str) -> str:
    """An id as a part of a path.

    Raises:
        UnusableError: it is not one; such an address is not called.
    """
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,200}", id) or not id.strip("."):
        raise UnusableError("the provider's batch API gave an id that cannot be used")
    return id


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise UnusableError("the provider's batch API gave something that is not a JSON object")
    return value


def _text(value: Mapping[str, Any], key: str) -> str:
    found = value.get(key)
    if not isinstance(found, str):
        raise UnusableError(f"the provider's batch API gave an object without {key}")
    return _safe(found)


def _word(value: Any) -> str:
    """A status, as it may be shown."""
    return re.sub(r"[^\w -]", "?", str(value))[:40]


def _counts(value: Any) -> dict[str, int]:
    given = value.items() if isinstance(value, dict) else ()
    return {str(name): count for name, count in given if type(count) is int}


def _listed(body: bytes) -> Sequence[Mapping[str, Any]]:
    data = _object(body).get("data")
    return [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []


def _lines(body: bytes) -> Iterable[dict[str, Any]]:
    for line in body.splitlines():
        try:
            value = msgspec.json.decode(line) if line.strip() else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue  # its item is told to have no answer
        if isinstance(value, dict):
            yield value


def _seconds(text: Any) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (TypeError, ValueError, OverflowError):
        return 0.0
