"""The gateway's metrics, served at `/metrics` in the text format of Prometheus.

Label values come from the catalog, the configuration and mull itself, never from a client, so
their number is bounded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from mull._version import __version__
from mull.gateway.attach import REATTACHED
from mull.gateway.http import Receive, Scope, Send, give
from mull.gateway.labels import ModelNames

if TYPE_CHECKING:
    from mull.gateway.job import Job
    from mull.gateway.ledger import Tally
    from mull.gateway.limits import LimitName
    from mull.gateway.observing import Outcome
    from mull.neutral.events import Event

__all__ = ["Metrics"]

_MEDIA = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_Labels = tuple[str, ...]


class _Histogram:
    """A histogram: how many values were at most each bound, and the sum of all values."""

    def __init__(self) -> None:
        self._counts: dict[_Labels, list[int]] = {}
        self._sums: dict[_Labels, float] = {}

    def add(self, labels: _Labels, value: float) -> None:
        counts = self._counts.setdefault(labels, [0] * (len(_BOUNDS) + 1))
        counts[bisect_left(_BOUNDS, value)] += 1
        self._sums[labels] = self._sums.get(labels, 0.0) + value

    def lines(self, name: str, names: Sequence[str]) -> Iterator[str]:
        for labels, counts in self._counts.items():
            total = 0
            for bound, count in zip((*map(str, _BOUNDS), "+Inf"), counts, strict=True):
                total += count
                yield _line(f"{name}_bucket", (*names, "le"), (*labels, bound), total)
            yield _line(f"{name}_sum", names, labels, self._sums[labels])
            yield _line(f"{name}_count", names, labels, total)


class Metrics:
    """Counts requests as an observer. `Accounts` reports usage, and the requests it refused."""

    def __init__(self) -> None:
        self.store_failures: Callable[[], Mapping[str, int]] = dict
        """How often the store could not be read or written."""
        self._names = ModelNames()
        self._open = 0
        self._requests: Counter[_Labels] = Counter()
        self._tokens: Counter[_Labels] = Counter()
        self._nanodollars: Counter[_Labels] = Counter()
        self._estimated: Counter[_Labels] = Counter()
        self._limited: Counter[_Labels] = Counter()
        self._unattached: Counter[_Labels] = Counter()
        self._first = _Histogram()
        self._whole = _Histogram()

    def began(self, job: Job) -> None:
        """Count a request as open."""
        self._open += 1

    def emitted(self, job: Job, events: Sequence[Event]) -> None:
        """Do nothing: the outcome says when the response began."""

    def ended(self, job: Job, outcome: Outcome) -> None:
        """Count a finished request."""
        self._open -= 1
        target = job.prepared.target
        model = self._names.of(target)
        dialects = (job.client.dialect, target.dialect)
        self._requests[model, *dialects, outcome.ending, str(outcome.status)] += 1
        for note in job.notes:
            if note.about == REATTACHED:
                self._unattached["altered" if note.warning else "unknown",] += 1
        if outcome.first is not None:
            self._first.add((model,), outcome.first - job.began)
        self._whole.add((model,), outcome.ended - job.began)

    def used(self, model: str, tally: Tally) -> None:
        """Add the usage of a request."""
        for kind in ("input", "cached", "output", "reasoning"):
            self._tokens[model, kind] += getattr(tally, kind)
        self._nanodollars[(model,)] += tally.nanodollars
        self._estimated[(model,)] += tally.estimated

    def limited(self, limit: LimitName) -> None:
        """Count a request that was refused because of this limit."""
        self._limited[(limit,)] += 1

    async def page(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request for `/metrics`."""
        await give(send, self.text().encode(), media=_MEDIA)

    def text(self) -> str:
        """All metrics in the text format of Prometheus."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        build: dict[_Labels, int] = {(__version__,): 1}
        yield from _family("info", "gauge", "The version of mull.", ("version",), build)
        named = ("model", "client_dialect", "upstream_dialect", "ending", "status")
        text = "Requests that were sent upstream and have ended."
        yield from _family("requests_total", "counter", text, named, self._requests)
        text = "Requests in progress."
        yield from _family("open_requests", "gauge", text, (), {(): self._open})
        text = "Requests refused because of a limit of their client."
        yield from _family("limited_total", "counter", text, ("limit",), self._limited)
        text = "Requests with earlier answers that were not stored, or that the client altered."
        yield from _family("unattached_total", "counter", text, ("answers",), self._unattached)
        text = "Tokens used. Cached tokens are part of input, reasoning tokens part of output."
        yield from _family("tokens_total", "counter", text, ("model", "kind"), self._tokens)
        text = "Requests whose usage was estimated because the provider did not report it."
        yield from _family("estimated_total", "counter", text, ("model",), self._estimated)
        text = "Cost by the catalog's prices, in dollars."
        dollars = {labels: nano / 1e9 for labels, nano in self._nanodollars.items()}
        yield from _family("cost_dollars_total", "counter", text, ("model",), dollars)
        failures: dict[_Labels, float] = {(k,): n for k, n in self.store_failures().items()}
        text = "Failed operations of the store."
        yield from _family("store_failures_total", "counter", text, ("operation",), failures)
        yield from _head("first_event_seconds", "histogram", "Seconds until the response began.")
        yield from self._first.lines("mull_gateway_first_event_seconds", ("model",))
        yield from _head("request_seconds", "histogram", "Seconds until the request ended.")
        yield from self._whole.lines("mull_gateway_request_seconds", ("model",))


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP mull_gateway_{name} {text}"
    yield f"# TYPE mull_gateway_{name} {kind}"


def _family(
    name: str, kind: str, text: str, names: Sequence[str], values: Mapping[_Labels, float]
) -> Iterator[str]:
    yield from _head(name, kind, text)
    for labels, value in values.items():
        yield _line(f"mull_gateway_{name}", names, labels, value)


def _line(name: str, names: Iterable[str], labels: Iterable[str], value: float) -> str:
    pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in zip(names, labels, strict=True))
    return f"{name}{{{pairs}}} {value}" if pairs else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
