"""An answer over loopback in each dialect, from the socket to the caller: CPU per chunk.

Each client has a process of its own and reads the same stream from the same fast server: 60 %
thinking, 35 % text, 5 % tool arguments, each delta an HTTP chunk of its own, in frames as long as
the provider's. Measured is the CPU of the client's process, in rounds in which everybody has a
turn; ratios are taken inside a round. The limit is a bare socket, HTTP's chunks taken apart by
their sizes, frames split, each decoded into a typed value and made an event (`bench.limits`).
mull's figure holds all that a user of `stream` and `stream_async` gets: events, the folded message
with its carriers, the turn; peers hand over their chunks or events, and most leave the rest to the
caller. A peer that hands over less than nine tenths of the deltas is left out.

mull and the limit read 20,000 chunks, the peers, of which a chunk costs more, 1,000. What a stream
of 100 costs is subtracted from both, so that the request and the turn around it are no part of the
figure, however long the stream.

The streams come as fast as they are read, so that a read holds many chunks. At 2,000 chunks a
second every chunk is a read of its own, and waking up for it is most of the cost. A document is an
answer of 200 kB in one piece. The everyday request is the same with a sentence of thinking and one
of text; each figure is for one of twenty in a row, blocking, on a connection that is kept.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator

from bench.helper import endpoint, peer_script
from bench.peers import leave_out, peer_python
from bench.report import QUICK, Figure, median_ratio
from bench.runners import CLIENTS, DIALECTS, REQUESTS

OWN = ("limit", "mull")
ROUNDS = 3 if QUICK else 7
CHUNKS = 10_000 if QUICK else 20_000
PEER_CHUNKS = 500 if QUICK else 1_000
"""A peer's chunk costs so much that fewer of them tell the same."""
SHORT = 100
"""Chunks of a stream whose cost is subtracted: a request weighs more the fewer chunks share it."""
PACED = 400 if QUICK else 1_000
WHOLE = {"document": 1, "sentence": REQUESTS}
"""Answers in one piece, and how many of them are measured together."""
VENDORS = ("openai", "anthropic", "google-genai", "boto3")
UNIT = "µs CPU"


class Client:
    """A runner that waits for its rounds."""

    def __init__(self, name: str, python: str) -> None:
        self._process = peer_script(python, "runners.py", name)
        self.close = self._process.close
        self.name, self.ways = name, dict(CLIENTS[name].ways)
        self.label = f"{name} {self._process.said}".strip()

    def cpu(self, dialect: str, url: str, way: str, least: int) -> float | None:
        """CPU seconds of one answer; nothing if it cannot be read, which is said once."""
        taken, _, said = self._process.ask(f"{dialect} {url} {way}").partition(" ")
        if taken and taken != "broken" and int(said) >= least:
            return float(taken)
        why = f"{said} pieces" if said.isdigit() else said or "it ended"
        leave_out(f"{self.label}, {dialect}, {way}", why)
        self.ways.pop((dialect, way))
        return None


def start_clients(stack: contextlib.ExitStack) -> list[Client]:
    """Everyone who can take part."""
    clients = []
    for name, row in CLIENTS.items():
        if QUICK and name not in (*OWN, *VENDORS):
            continue
        python = sys.executable if name in OWN else peer_python(row.peer)
        if python is not None:
            clients.append(client := Client(name, python))
            stack.callback(client.close)
    return clients


class Table:
    """CPU microseconds by client and way, one value per round."""

    def __init__(self, label: str, dialect: str) -> None:
        self._label, self._dialect = label, dialect
        self._times: dict[tuple[str, str], list[float]] = defaultdict(list)

    def measure(self, clients: list[Client], url: str, what: str, ways: tuple[str, ...]) -> None:
        """Let everybody read, once to warm up and then in rounds."""
        for turn in range(ROUNDS + 1):
            for client in clients:
                for way in ways:
                    if (self._dialect, way) not in client.ways:
                        continue
                    taken = self._cost(client, f"{url}/{self._dialect}", what, way)
                    if taken is not None and turn:  # the first one warms up
                        self._times[client.label, way].append(taken * 1e6)

    def _cost(self, client: Client, url: str, what: str, way: str) -> float | None:
        """CPU seconds of a whole answer, or of a chunk alone; nothing if it cannot be read."""
        if what in WHOLE:
            whole = client.cpu(self._dialect, f"{url}/{what}", way, 1)
            return None if whole is None else whole / WHOLE[what]
        chunks = PACED if what == "paced" else CHUNKS if client.name in OWN else PEER_CHUNKS
        taken = []
        for count in (chunks, SHORT):
            address = f"{url}/{count}-paced" if what == "paced" else f"{url}/{count}"
            cost = client.cpu(self._dialect, address, way, count * 9 // 10)
            if cost is None:
                return None
            taken.append(cost)
        return (taken[0] - taken[1]) / (chunks - SHORT)

    def figures(self, target: str = "", wanted_of_best: str = "") -> Iterator[Figure]:
        """The limit, mull beside it, every peer beside mull, and the best of them."""
        whole = {way: times for way, times in self._times.items() if len(times) == ROUNDS}
        for (name, way), times in whole.items():
            value, against = (
                statistics.median(times),
                {"limit": "", "mull": "limit"}.get(name, "mull"),
            )
            base = whole.get((against, way)) or whole.get((against, "sync"))
            ratio = median_ratio(times, base) if base else None
            wanted = target if name == "mull" else ""
            label = f"{self._label}: {name}, {way}"
            yield Figure(label, value, UNIT, f"{against}, {way}" if against else "", ratio, wanted)
        peers = [row for row in whole if row[0] not in OWN]
        if not peers or not wanted_of_best:
            return
        best = min(peers, key=lambda row: statistics.median(whole[row]))
        for way in ("sync", "async"):
            if own := whole.get(("mull", way)):
                ratio = median_ratio(whole[best], own)
                label = f"{self._label}: the best of the others ({', '.join(best)})"
                yield Figure(
                    label,
                    statistics.median(whole[best]),
                    UNIT,
                    f"mull, {way}",
                    ratio,
                    wanted_of_best,
                )


def run() -> list[Figure]:
    """All dialects; one of them also paced, and answers in one piece."""
    figures: list[Figure] = []
    streams = ("sync", "async")
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(endpoint("bench.upstream"))
        clients = start_clients(stack)
        for dialect in DIALECTS:
            table = Table(dialect, dialect)
            table.measure(clients, url, "stream", streams)
            figures += table.figures("≤ 3", "≥ 8")
        vendors = [client for client in clients if client.name in (*OWN, *VENDORS)]
        paced = Table("openai-chat, 2,000 a second", "openai-chat")
        paced.measure(vendors, url, "paced", streams)
        figures += paced.figures("≤ 3")
        for dialect in ("openai-chat",) if QUICK else DIALECTS:
            for what, label in (("document", "a document"), ("sentence", "the everyday request")):
                table = Table(f"{dialect}, {label}", dialect)
                table.measure(vendors, url, what, (what,))
                figures += table.figures()
    return figures
