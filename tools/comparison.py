"""What README.md and docs/gateway.md say of measurements, written from the results themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from bench.page_plots import Measured, by_system
from bench.record import Result, load_results
from bench.report import Figure, number

from mull.testing.fidelity.peers import Peer, load_peers
from tools.fidelity_results import results as fidelity_results

__all__ = ["fidelity_part", "fidelity_text", "sizes_part", "sizes_text", "speed_part", "speed_text"]

Outcomes = Mapping[str, tuple[str, str]]
_APIS = {
    "openai-chat": "Chat Completions",
    "openai-responses": "Responses",
    "anthropic": "Messages",
    "gemini": "generateContent",
    "bedrock-converse": "Bedrock Converse",
}
_CHUNK = (
    "CPU time for each chunk of a streamed response over loopback, beside the least that reading "
    "it can cost and the cheapest other client of that API; all three are called in the way, sync "
    "or async, in which that client is cheapest. [Performance](docs/performance.md) has the rest, "
    "and how it was measured; compare the ratios (medians of those in each round), not the times."
)
_ABREAST = 3
"""Systems in a row of the table."""


def fidelity_part() -> str:
    """How much of what they claim mull and others keep."""
    results = fidelity_results()
    found = {name: result.outcomes for name, result in results.items()}
    pairs = {name: result.pairs for name, result in results.items() if result.pairs}
    return fidelity_text(found, pairs, load_peers())


def fidelity_text(
    found: Mapping[str, Outcomes], pairs: Mapping[str, Outcomes], peers: Mapping[str, Peer]
) -> str:
    """The same of these outcomes."""
    clients = [name for name in found if peers[name].kind not in ("gateway", "client")]
    ordered = sorted(clients, key=lambda name: (name != "mull", -_share(found[name])))
    cases = max((len(outcomes) for outcomes in found.values()), default=0)
    text = (
        f"[The fidelity suite](docs/fidelity.md) holds {cases} conversations, each derived from a "
        "public report of a failure, with servers that reject what the providers reject. A system "
        "keeps a case if everything the endpoint wants comes back to the byte; cases that it does "
        "not claim to support do not count. mull is measured as it comes, without any setting. "
        "Kept, of the cases claimed:"
    )
    table = _abreast([[name, _kept(found[name])] for name in ordered])
    if not pairs:
        return "\n".join([text, "", *table])
    return "\n".join(
        [
            *(text, "", *table, ""),
            "Gateways between a client of one API and a model of another, of the pairs that they "
            "claim; the client returns all that it was given, or only texts and calls:",
            "",
            "| Gateway | returns all | returns texts and calls |",
            "|---|---|---|",
            *(_gateway(name, outcomes) for name, outcomes in pairs.items()),
        ]
    )


def _gateway(name: str, outcomes: Outcomes) -> str:
    """A row: what it keeps with a client that forgets nothing, and with one that does."""
    title = "`mull serve`" if name == "mull-gateway" else name
    forgetful = {case: one for case, one in outcomes.items() if "/forgetful/" in case}
    faithful = {case: one for case, one in outcomes.items() if case not in forgetful}
    return f"| {title} | {_kept(faithful)} | {_kept(forgetful)} |"


def _abreast(cells: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows of several pairs, read like lines of text."""
    yield "| System | kept " * _ABREAST + "|"
    yield "|---|---" * _ABREAST + "|"
    for at in range(0, len(cells), _ABREAST):
        row = [*cells[at : at + _ABREAST], *[("", "")] * (at + _ABREAST - len(cells))]
        yield "".join(f"| {name} | {kept} " for name, kept in row) + "|"


def _counts(outcomes: Outcomes) -> tuple[int, int]:
    marks = [mark for mark, _ in outcomes.values()]
    return marks.count("kept"), sum(not mark.startswith("not ") for mark in marks)


def _share(outcomes: Outcomes) -> float:
    kept, claimed = _counts(outcomes)
    return kept / claimed if claimed else 0.0


def _kept(outcomes: Outcomes) -> str:
    kept, claimed = _counts(outcomes)
    return f"{kept} of {claimed}" if claimed else "–"


def speed_part() -> str:
    """What a chunk of a streamed response costs, and a start."""
    return speed_text(load_results())


def speed_text(results: Mapping[str, Result]) -> str:
    """The same of these results."""
    systems: dict[str, list[Measured]] = {}
    for one in by_system(results["road"].figures if "road" in results else ()):
        systems.setdefault(one.dialect, []).append(one)
    rows = [row for dialect, ones in systems.items() if (row := _api_row(dialect, ones))]
    table = [_CHUNK, "", "| API | limit | mull | best other client |", "|---|---|---|---|", *rows]
    sentences = " ".join(filter(None, (_slow_sentence(results), _start_sentence(results))))
    return "\n".join([*(table if rows else ()), *(["", sentences] if sentences else [])])


def _api_row(dialect: str, ones: Sequence[Measured]) -> str:
    """A row of the table, in the best client's mode; nothing if mull was not measured in it."""
    others = [one for one in ones if one.system not in ("limit", "mull")]
    best = min(others, key=lambda one: one.figure.value, default=None)
    mode = best.mode if best else "async"
    own = {one.system: one.figure for one in ones if one.mode == mode}
    if not {"limit", "mull"} <= own.keys():
        return ""
    told = f"{best.system}: {_with_ratio(best.figure, 'mull')}" if best else ""
    ours = _with_ratio(own["mull"], "the limit")
    name = _APIS.get(dialect, dialect)
    return f"| {name}, {mode} | {number(own['limit'].value)} µs | {ours} | {told} |"


def _with_ratio(figure: Figure, beside: str) -> str:
    ratio = "" if figure.ratio is None else f" ({number(figure.ratio)}× {beside})"
    return f"{number(figure.value)} µs{ratio}"


_ELSEWHERE = {
    "2,000 a second": "where chunks come one at a time (2,000 a second)",
    "a document": "for a response of 200 kB in one piece",
    "the everyday request": "for a short response",
}


def _slow_sentence(results: Mapping[str, Result]) -> str:
    """How others compare where less is to be gained than in a fast stream."""
    figures = results["road"].figures if "road" in results else ()
    told: list[str] = []
    for what, where in _ELSEWHERE.items():
        ratios = [
            one.ratio
            for one in figures
            if f", {what}: " in one.name and one.against.startswith("mull") and one.ratio
        ]
        if ratios:
            span = dict.fromkeys(f"{ratio:.1f}" for ratio in (min(ratios), max(ratios)))
            told.append(f"{' to '.join(span)} times {'' if told else 'the CPU time '}{where}")
    if not told:
        return ""
    return f"The gain is smaller elsewhere: beside mull, the vendors' SDKs take {_listed(told)}."


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _start_sentence(results: Mapping[str, Result]) -> str:
    figures = results["startup"].figures if "startup" in results else ()
    asked = next((one for one in figures if one.name == "mull ask, whole, ms CPU"), None)
    if asked is None or asked.ratio is None:
        return ""
    return (
        "A whole `mull ask`, from the start of the process to its end, takes "
        f"{number(asked.value)} ms of CPU time: {number(asked.ratio)} times an empty Python "
        "program."
    )


def sizes_part() -> str:
    """How many gateways an installation needs."""
    return sizes_text(load_results())


_CHUNKS, _RATE, _SECONDS = 500, 1_000, 30


def sizes_text(results: Mapping[str, Result]) -> str:
    """The same of these results."""
    if not {"gateway", "memory"} <= results.keys():
        return "`make bench` measures it."
    figures = [*results["gateway"].figures, *results["memory"].figures]
    request = _largest(figures, r"CPU of an agent's request")
    chunk = _largest(figures, r"CPU of a streamed chunk: mull")
    worker = _largest(figures, r"memory after")
    stream = _largest(figures, r"memory for each open stream")
    if not (request and chunk and worker and stream):
        return "`make bench` measures it."
    size = re.search(r"[\d,]+ kB", request.name)
    answer = (request.value + _CHUNKS * chunk.value) / 1e3
    cores = -(-_RATE * answer // 1e3)
    held = cores * worker.value / 1e3 + _RATE * _SECONDS * stream.value / 1e6
    return "\n".join(
        [
            f"[As measured](performance.md#the-gateway), an agent's request of "
            f"{size[0] if size else '100 kB'} takes {number(request.value / 1e3)} ms of CPU time "
            f"and a streamed chunk {number(chunk.value)} µs, so a response of {_CHUNKS} chunks "
            f"takes {number(answer)} ms in all. A worker holds {number(worker.value)} MB and "
            f"{number(stream.value)} kB more for each open stream. On one such machine:",
            "",
            f"| | {_RATE // 10} such requests per second | {_RATE:,} such requests per second |",
            "|---|---|---|",
            f"| Cores, one worker each | {-(-_RATE // 10 * answer // 1e3):.0f} | {cores:.0f} |",
            f"| Memory, at {_SECONDS} s a response | {number(held / 10)} GB | {number(held)} GB |",
            "| Store | SQLite, on one machine | PostgreSQL, with Valkey in front of it for what is "
            "read again soon |",
        ]
    )


def _largest(figures: Sequence[Figure], pattern: str) -> Figure | None:
    found = [one for one in figures if re.search(pattern, one.name) and "mull" in one.name]
    return max(found, key=lambda one: one.value, default=None)
