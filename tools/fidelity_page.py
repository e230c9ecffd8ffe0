"""The page of the fidelity suite: scores, a picture, every case, and every reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from mull.testing.fidelity.case import KINDS, Case
from mull.testing.fidelity.peers import Peer

__all__ = ["render", "render_picture"]

Outcomes = Mapping[str, tuple[str, str]]
Found = Mapping[str, tuple[str, Outcomes]]
SIGNS = {"kept": "✓", "lost": "–", "leaked": "!", "refused": "✗", "not claimed": ""}
COLOURS = {
    "kept": "#2e7d4f",
    "lost": "#c9a227",
    "leaked": "#d2691e",
    "refused": "#b3261e",
    "not claimed": "#d8d8d8",
}
_INTRO = """\
# Reasoning fidelity

Many clients show a model's reasoning; few send it back as the provider wants it. This page shows
what becomes of it. mull and other libraries hold the same {count} conversations, each taken from
a public report of a failure, with endpoints on loopback that enforce the real providers' rules.
The bytes that come back decide. The figures are preliminary: they were measured in several runs
while the suite grew, and only its authors have reviewed the adapters of other systems.

![How many cases each system keeps](images/fidelity.svg)

`make fidelity` installs every system in an environment of its own, runs all cases, and writes this
page; `make fidelity PEERS=litellm,llm` runs some. The cases are data that any project can use:
[the suite](../fidelity/README.md) describes their format and how to write an adapter for
another client. To reproduce one cell of the tables below, with every request that was sent:

```console
$ mull fidelity litellm --case anthropic/interleaved/blocking
```

- [Verdicts](#verdicts)
- [Scores](#scores)
- [By kind](#by-kind)
- [Settings](#settings)
- [Every case](#every-case)
- [Reasons](#reasons)

## Verdicts

| | Verdict | What happened |
|---|---|---|
| ✓ | kept | the thoughts were read, and came back to the byte where the endpoint wants them |
| – | lost | something is missing or altered: text, signature, order, count, or the whole answer |
| ! | leaked | a thought was shown or sent as an answer, or a foreign carrier was sent |
| ✗ | refused | the endpoint rejected a request, and the client did not recover |
| | not claimed | the library does not offer this; the case does not count |

White space around an answer does not matter. A client that repairs a rejected request by itself
keeps the case. Every system runs in its newest version that installs, with the settings that it
recommends for keeping reasoning, listed below. Where a library leaves the history to its caller,
the caller sends back what it was given. If an adapter treats a system unfairly, that is a bug of
this page: please report it.
"""


def render(cases: Sequence[Case], peers: Mapping[str, Peer], found: Found) -> str:
    """The whole page."""
    parts = [
        _INTRO.format(count=len(cases)),
        "## Scores\n\n" + "\n".join(_scores(found)) + "\n",
        "## By kind\n\nCases kept, of those that the system claims.\n\n"
        + "\n".join(_by_kind(cases, found))
        + "\n",
        "## Settings\n\n" + "\n".join(_settings(peers, found)) + "\n",
        "## Every case\n\n" + "\n".join(_every_case(cases, found)) + "\n",
        "## Reasons\n\n" + "\n".join(_reasons(found)),
    ]
    return "\n".join(parts)


def _marks(outcomes: Outcomes, ids: set[str] | None = None) -> Counter[str]:
    return Counter(mark for name, (mark, _) in outcomes.items() if ids is None or name in ids)


def _share(marks: Mapping[str, int]) -> str:
    claimed = sum(count for mark, count in marks.items() if mark != "not claimed")
    return f"{marks.get('kept', 0)}/{claimed}" if claimed else ""


def _scores(found: Found) -> Iterator[str]:
    yield "| System | Version | Kept | Lost | Leaked | Refused | Not claimed | Of what it claims |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, (version, outcomes) in found.items():
        marks = _marks(outcomes)
        counts = " | ".join(str(marks[mark]) for mark in SIGNS)
        claimed = sum(marks.values()) - marks["not claimed"]
        share = f"{100 * marks['kept'] / claimed:.0f} %" if claimed else ""
        yield f"| {name} | {version} | {counts} | {share} |"


def _by_kind(cases: Sequence[Case], found: Found) -> Iterator[str]:
    yield "| Kind | | " + " | ".join(found) + " |"
    yield "|---|---|" + "---|" * len(found)
    for kind, about in KINDS.items():
        ids = {case.id for case in cases if case.kind == kind}
        shares = (_share(_marks(outcomes, ids)) for _, outcomes in found.values())
        yield f"| {kind} | {about} | " + " | ".join(shares) + " |"


def _settings(peers: Mapping[str, Peer], found: Found) -> Iterator[str]:
    yield "| System | What it is | Settings |"
    yield "|---|---|---|"
    for name in found:
        yield f"| {name} | {peers[name].kind} | {peers[name].settings} |"


def _every_case(cases: Sequence[Case], found: Found) -> Iterator[str]:
    yield "| Case | Reports | " + " | ".join(found) + " |"
    yield "|---|---|" + "---|" * len(found)
    for case in cases:
        links = " ".join(f"[{at}]({url})" for at, url in enumerate(case.sources, 1))
        signs = (SIGNS[outcomes[case.id][0]] for _, outcomes in found.values())
        yield f"| `{case.id}` | {links} | " + " | ".join(signs) + " |"


def _reasons(found: Found) -> Iterator[str]:
    for name, (_, outcomes) in found.items():
        grouped: dict[tuple[str, str], list[str]] = {}
        for case, (mark, reason) in outcomes.items():
            if mark not in ("kept", "not claimed") or reason:
                grouped.setdefault((mark, reason), []).append(case)
        if not grouped:
            continue
        yield f"### {name}\n\n| Verdict | Reason | Cases |\n|---|---|---|"
        for (mark, reason), ids in sorted(grouped.items()):
            listed = ", ".join(f"`{one}`" for one in ids[:4])
            more = f" and {len(ids) - 4} more" if len(ids) > 4 else ""
            yield f"| {mark} | {_cell(reason)} | {listed}{more} |"
        yield ""


def _cell(text: str) -> str:
    """Foreign words that cannot break the table."""
    return escape(text, quote=False).replace("|", "\\|").replace("`", "'").replace("*", "\\*")


_LEFT, _WIDTH, _ROW, _BAR = 170, 560, 24, 15


def render_picture(cases: Sequence[Case], found: Found) -> str:
    """A bar for each system, in parts of its verdicts."""
    height = _ROW * (len(found) + 2)
    rows = "".join(
        _bar(at, name, _marks(outcomes), len(cases))
        for at, (name, (_, outcomes)) in enumerate(found.items())
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 60} {height}"'
        ' font-family="system-ui, sans-serif" font-size="12" role="img">\n'
        f"<title>Cases kept, lost, leaked, refused and not claimed, of {len(cases)}</title>\n"
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n{rows}{_legend(height)}</svg>\n'
    )


def _bar(at: int, name: str, marks: Mapping[str, int], total: int) -> str:
    top = 8 + at * _ROW
    label = f'<text x="{_LEFT - 8}" y="{top + 12}" text-anchor="end">{escape(name)}</text>\n'
    left, parts = float(_LEFT), []
    for mark, colour in COLOURS.items():
        width = _WIDTH * marks.get(mark, 0) / total
        parts.append(
            f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_BAR}" fill="{colour}">'
            f"<title>{escape(name)}: {marks.get(mark, 0)} {mark}</title></rect>\n"
        )
        left += width
    kept = f'<text x="{_LEFT + _WIDTH + 6}" y="{top + 12}">{marks.get("kept", 0)}</text>\n'
    return label + "".join(parts) + kept


def _legend(height: int) -> str:
    parts, left = [], _LEFT
    for mark, colour in COLOURS.items():
        parts.append(
            f'<rect x="{left}" y="{height - 22}" width="11" height="11" fill="{colour}"/>\n'
            f'<text x="{left + 16}" y="{height - 12}">{mark}</text>\n'
        )
        left += 34 + 7 * len(mark)
    return "".join(parts)
