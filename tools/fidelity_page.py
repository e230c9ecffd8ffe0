"""The page of the fidelity suite: a picture, scores, gateways, and what every system lost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any

from mull.testing.fidelity.case import KINDS, Case
from mull.testing.fidelity.peers import Peer
from tools.fidelity_limits import limits_section
from tools.fidelity_results import Outcomes, Result, Served
from tools.fidelity_rules import rules_section
from tools.fidelity_servers_page import servers_section

__all__ = ["render", "render_picture"]

Found = Mapping[str, Result]
SIGNS = {"kept": "✓", "lost": "–", "leaked": "!", "refused": "✗", "not claimed": ""}
COUNTED = tuple(SIGNS)
SIGNS |= {"not measured": "?"}
COLOURS = {
    "kept": "#2e7d4f",
    "lost": "#c9a227",
    "leaked": "#d2691e",
    "refused": "#b3261e",
    "not claimed": "#d8d8d8",
}
GROUPS = {"library": "Libraries", "SDK": "SDKs of providers", "gateway": "Gateways"}
GROUPS |= {"client": "Clients without a library"}
_INTRO = """\
# Reasoning fidelity

Many clients show a model's reasoning; fewer send it back as the provider wants it. This page shows
what becomes of it. mull and other systems hold the same {count} conversations, each derived from a
public report of a failure, with endpoints on loopback that enforce the real providers' rules. The
bytes that come back decide.

![How many cases each system keeps](images/fidelity.svg)

{measured}

On this page:

- [Scores](#scores)
- [Verdicts](#verdicts)
- [Limits](#limits)
- [Gateways across APIs](#gateways-across-apis)
- [Servers of models](#servers-of-models)
- [What is lost, by kind](#what-is-lost-by-kind)
- [Settings](#settings)
- [Rules](#rules)
- [Reasons](#reasons)
- [Every case](#every-case)

`make fidelity` installs every system in an environment of its own, runs all cases, and writes this
page; `make fidelity PEERS=litellm,llm` runs some. Environments older than a day are renewed first,
with `FRESH=1` all. To reproduce one verdict, with every request that was sent, or to score another
version:

```console
$ mull fidelity litellm --case anthropic/interleaved/blocking
$ mull fidelity litellm==1.106.2
```

`mull fidelity http://localhost:4000` scores a gateway of your own, and `mull fidelity
./my_adapter.py` a client. [The suite](../fidelity/README.md) is data that any project can use: it
describes the cases and how to write an adapter.
"""
_VERDICTS = """\
## Verdicts

| | Verdict | What happened |
|---|---|---|
| ✓ | kept | the thoughts were read, and came back to the byte where the endpoint wants them |
| – | lost | something is missing or altered: text, signature, order, count, or the whole answer |
| ! | leaked | a thought was shown or sent as an answer, or a foreign carrier was sent |
| ✗ | refused | the endpoint rejected a request, and the client did not recover |
| | not claimed | the system does not offer this; the case does not count |
| ? | not measured | the run itself failed; the case does not count |

White space around an answer does not matter. A client that repairs a rejected request by itself
keeps the case. Every system runs in its newest version that installs, with the settings that it
recommends for keeping reasoning, listed [below](#settings). Where a library leaves the history to
its caller, the caller sends back what it was given.

A case is not claimed if the system has no API for what it needs, or if its documentation says that
it does not do this; [the reasons](#reasons) name which. What a system offers in several ways counts
in the way that its documentation recommends for keeping reasoning. In front of a gateway stands a
client of the suite, which plays no Bedrock, no switches between APIs, no tags and no lists of
content: those cases are no statement about the gateway.

A thought of another model that is sent as the text of an answer counts as leaked, also where a
library does that on purpose, as pydantic-ai and pi-ai do when the model changes. The next model
takes the text for something that it said itself, and the user was never shown it as an answer.

A client that neither sends its next request nor reports an answer for a minute, after it was sent a
whole one, has hung, and has lost the case.

If an adapter treats a system unfairly, that is a bug of this page: please report it.
"""
_PAIRS = """\
## Gateways across APIs

A gateway's main job is to put a client of one API before a model of another. Here clients of four
APIs talk to models of four: two tool calls, an answer, and another question. What reaches the model
is judged as in every other case, except that a gateway may choose the ids of calls; and the client
must be shown each thought apart from the answer. Some clients send back everything that they were
given. Others send back only the texts and calls of an answer, as many chat interfaces and
frameworks do: then the gateway itself has to remember.
"""
_COMMAND = """\
Below, a row is a client's API and the endpoint that the gateway forwards to. A cell is the verdict
on blocking and on streamed requests, each by itself if they differ; it is empty where the gateway
does not offer the pair. To reproduce one:

```console
$ mull fidelity litellm-proxy --case chat-to-openai/faithful/streaming
```
"""


def render(
    cases: Sequence[Case],
    pairs: Sequence[Case],
    peers: Mapping[str, Peer],
    found: Found,
    served: Mapping[str, Served],
) -> str:
    """The whole page."""
    parts = [
        _INTRO.format(count=len(cases), measured=_measured(found)),
        "## Scores\n\n" + "\n".join(_scores(peers, found)) + "\n",
        _VERDICTS,
        limits_section(cases, found.get("litellm")),
        _PAIRS + "\n" + "\n".join(_crossing(pairs, found)) + "\n",
        servers_section(served),
        "## What is lost, by kind\n\n" + "\n".join(_by_kind(cases, found)) + "\n",
        "## Settings\n\n" + "\n".join(_settings(peers, found)) + "\n",
        rules_section(),
        "## Reasons\n\n" + "\n".join(_reasons(found)),
        "## Every case\n\n" + "\n".join(_every_case(cases, peers, found)),
    ]
    return "\n".join(parts)


def _measured(found: Found) -> str:
    """When and where the results were measured, and whether all of them together."""
    runs: dict[tuple[str, str, str], list[str]] = {}
    for name, one in found.items():
        runs.setdefault((one.date, one.commit, one.machine), []).append(name)
    told = {
        f"on {date} at commit `{commit}`, {machine}" if date else "at a date not recorded": names
        for (date, commit, machine), names in sorted(runs.items())
    }
    if len(told) == 1:
        return f"All results were measured {min(told)}."
    lines = [f"- {run}: {', '.join(names)}" for run, names in told.items()]
    return "The results are not all of one run. They were measured\n\n" + "\n".join(lines)


def _marks(outcomes: Outcomes, ids: Iterable[str] | None = None) -> Counter[str]:
    names = outcomes if ids is None else ids
    return Counter(outcomes[name][0] for name in names if name in outcomes)


def _claimed(marks: Counter[str]) -> int:
    return marks.total() - marks["not claimed"] - marks["not measured"]


def _in_groups(peers: Mapping[str, Peer], found: Found) -> dict[str, list[str]]:
    """The names of the systems that were measured, by what they are."""
    grouped = {
        title: [name for name in found if peers[name].kind == kind]
        for kind, title in GROUPS.items()
    }
    return {title: names for title, names in grouped.items() if names}


def _scores(peers: Mapping[str, Peer], found: Found) -> Iterator[str]:
    yield "| System | Version | Kept | Lost | Leaked | Refused | Not claimed | Of what it claims |"
    yield "|---|---|---|---|---|---|---|---|"
    for title, names in _in_groups(peers, found).items():
        yield f"| **{title}** | | | | | | | |"
        for name in names:
            marks = _marks(found[name].outcomes)
            counts = " | ".join(str(marks[mark]) for mark in COUNTED)
            claimed, failed = _claimed(marks), marks["not measured"]
            share = f"{100 * marks['kept'] / claimed:.0f} %" if claimed else ""
            share += f", {failed} not measured" * bool(failed)
            yield f"| {name} | {found[name].version} | {counts} | {share} |"


def _crossing(pairs: Sequence[Case], found: Found) -> Iterator[str]:
    crossing = {name: one.pairs for name, one in found.items() if one.pairs}
    ways = {"faithful": "sends back everything", "forgetful": "sends back texts and calls"}
    yield "| Gateway | " + " | ".join(f"Client {about}" for about in ways.values()) + " |"
    yield "|---|---|---|"
    for name, outcomes in crossing.items():
        shares = []
        for way in ways:
            marks = _marks(outcomes, [pair.id for pair in pairs if f"/{way}/" in pair.id])
            claimed = _claimed(marks)
            offers = f", {marks['not claimed']} not claimed" if marks["not claimed"] else ""
            shares.append(f"{marks['kept']} of {claimed}{offers}")
        yield f"| {name} | " + " | ".join(shares) + " |"
    yield f"\n{_COMMAND}"
    for way, about in ways.items():
        yield f"### A {way} client {about}\n"
        yield "| Pair | " + " | ".join(crossing) + " |"
        yield "|---|" + "---|" * len(crossing)
        chosen = [pair for pair in pairs if f"/{way}/" in pair.id]
        for stem, both in groupby(chosen, key=lambda pair: pair.id.partition("/")[0]):
            ids = {one.call: one.id for one in both}
            cells = (_both(ids, outcomes) for outcomes in crossing.values())
            yield f"| `{stem}` | " + " | ".join(cells) + " |"
        yield ""


def _both(ids: Mapping[Any, str], outcomes: Outcomes) -> str:
    """The verdict on a pair, blocking and streamed."""
    marks = {call: outcomes[name][0] for call, name in ids.items()}
    if len(set(marks.values())) == 1:
        (mark,) = set(marks.values())
        return f"{SIGNS[mark]}&nbsp;{mark}" if SIGNS[mark] else ""
    return ", ".join(f"{call} {SIGNS[mark]}&nbsp;{mark}" for call, mark in marks.items())


def _by_kind(cases: Sequence[Case], found: Found) -> Iterator[str]:
    ids = {kind: [case.id for case in cases if case.kind == kind] for kind in KINDS}
    yield "| Kind | What is kept | Cases |"
    yield "|---|---|---|"
    for kind, about in KINDS.items():
        if ids[kind]:
            yield f"| {kind} | {about} | {len(ids[kind])} |"
    yield "\nCases kept, of those that the system claims. All kinds that are not named are whole.\n"
    yield "| System | Not whole | Not claimed |"
    yield "|---|---|---|"
    for name, one in found.items():
        shares = {kind: _marks(one.outcomes, ids[kind]) for kind in KINDS if ids[kind]}
        claimed = {kind: _claimed(marks) for kind, marks in shares.items()}
        silent = [kind for kind, count in claimed.items() if not count]
        broken = [
            f"{kind}&nbsp;{marks['kept']}/{claimed[kind]}"
            for kind, marks in shares.items()
            if marks["kept"] < claimed[kind]
        ]
        yield f"| {name} | {', '.join(broken) or 'none'} | {', '.join(silent)} |"


def _settings(peers: Mapping[str, Peer], found: Found) -> Iterator[str]:
    yield "| System | Settings |"
    yield "|---|---|"
    for name in found:
        yield f"| {name} | {_cell(peers[name].settings)} |"


def _every_case(cases: Sequence[Case], peers: Mapping[str, Peer], found: Found) -> Iterator[str]:
    counted = {name for name in found if not _is_variant(peers[name])}
    yield (
        "The systems that do not keep a case are named with their verdict; all others keep it or do"
        " not claim it. How many keep it is counted without those that are measured a second time"
        " and forget on purpose. `fidelity/results` has every verdict.\n"
    )
    for endpoint, group in groupby(cases, key=lambda case: case.id.partition("/")[0]):
        yield f"### {endpoint}\n"
        yield "| Case | Reports | Kept | Not kept by |"
        yield "|---|---|---|---|"
        for case in group:
            links = " ".join(f"[{at}]({url})" for at, url in enumerate(case.sources, 1))
            marks = {name: one.outcomes[case.id][0] for name, one in found.items()}
            claimed = [marks[name] for name in counted if not marks[name].startswith("not ")]
            share = f"{claimed.count('kept')} of {len(claimed)}"
            yield f"| `{case.id}` | {links} | {share} | {_named(marks)} |"
        yield ""


def _is_variant(peer: Peer) -> bool:
    """Whether it is a system that is measured already, told to behave otherwise."""
    return any(name.startswith("FIDELITY_") for name in peer.environ)


def _named(marks: Mapping[str, str]) -> str:
    """Who does not keep a case, by verdict."""
    told = []
    for mark in ("lost", "leaked", "refused", "not measured"):
        names = [name for name, one in marks.items() if one == mark]
        if names:
            told.append(f"{SIGNS[mark]} {', '.join(names)}")
    return "; ".join(told)


_CARRIER = re.compile(r"'[A-Za-z0-9+/=]{24,}(?:'|\.\.\.|$)")


def _reasons(found: Found) -> Iterator[str]:
    for name, one in found.items():
        grouped: dict[tuple[str, str], list[str]] = {}
        for case, (mark, reason) in [*one.outcomes.items(), *one.pairs.items()]:
            if mark not in ("kept", "not claimed") or reason:
                told = _CARRIER.sub("a carrier", reason)
                grouped.setdefault((mark, told), []).append(case)
        if not grouped:
            continue
        yield f"### {name}\n"
        for (mark, reason), ids in sorted(grouped.items()):
            listed = ", ".join(f"`{one}`" for one in ids[:4])
            more = f" and {len(ids) - 4} more" if len(ids) > 4 else ""
            yield f"- {mark}: {_cell(reason)} ({listed}{more})"
        yield ""


def _cell(text: str) -> str:
    """Foreign words that cannot break the table."""
    return escape(text, quote=False).replace("|", "\\|").replace("`", "'").replace("*", "\\*")


_LEFT, _WIDTH, _ROW, _BAR = 178, 256, 24, 15
_PAGE = _LEFT + _WIDTH + 46
"""Narrow, so that its words can still be read on a telephone."""
_STYLE = """<style>
.page { fill: #ffffff } text { fill: #1f2328 }
@media (prefers-color-scheme: dark) {
.page { fill: #16191d } text { fill: #e6e6e6 }
.kept { fill: #4caf78 } .refused { fill: #d9534a } .not-claimed { fill: #3a3f45 } }
</style>
"""


def render_picture(peers: Mapping[str, Peer], found: Found) -> str:
    """A bar for each system, in parts of its verdicts, under what it is."""
    top, rows, total = 8, [], max(len(one.outcomes) for one in found.values())
    for title, names in _in_groups(peers, found).items():
        rows.append(f'<text x="{_LEFT}" y="{top + 13}" font-weight="bold">{escape(title)}</text>\n')
        top += _ROW
        for name in names:
            rows.append(_bar(top, name, _marks(found[name].outcomes), total))
            top += _ROW
        top += _ROW // 3
    height = top + _ROW
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_PAGE} {height}" width="{_PAGE}"'
        f' height="{height}" font-family="system-ui, sans-serif" font-size="14" role="img">\n'
        f"<title>Cases kept, lost, leaked, refused and not claimed, of {total}</title>\n"
        f'{_STYLE}<rect class="page" width="100%" height="100%"/>\n{"".join(rows)}'
        f"{_legend(height)}</svg>\n"
    )


def _bar(top: int, name: str, marks: Mapping[str, int], total: int) -> str:
    label = f'<text x="{_LEFT - 8}" y="{top + 13}" text-anchor="end">{escape(name)}</text>\n'
    left, parts = float(_LEFT), []
    for mark, colour in COLOURS.items():
        width = _WIDTH * marks.get(mark, 0) / total
        parts.append(
            f'<rect class="{_class(mark)}" x="{left:.1f}" y="{top}" width="{width:.1f}"'
            f' height="{_BAR}" fill="{colour}">'
            f"<title>{escape(name)}: {marks.get(mark, 0)} {mark}</title></rect>\n"
        )
        left += width
    kept = f'<text x="{_LEFT + _WIDTH + 6}" y="{top + 13}">{marks.get("kept", 0)}</text>\n'
    return label + "".join(parts) + kept


def _legend(height: int) -> str:
    parts, left = [], 10
    for mark, colour in COLOURS.items():
        parts.append(
            f'<rect class="{_class(mark)}" x="{left}" y="{height - 22}" width="11" height="11"'
            f' fill="{colour}"/>\n<text x="{left + 16}" y="{height - 11}">{mark}</text>\n'
        )
        left += 32 + 8 * len(mark)
    return "".join(parts)


def _class(mark: str) -> str:
    return mark.replace(" ", "-")
