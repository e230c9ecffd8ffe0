"""The rules of the fidelity suite as a section of its page: what is refused or wanted, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from mull.testing.fidelity.case import find_suite

__all__ = ["rules_section"]

_INTRO = """\
## Rules

An endpoint of the suite refuses a request only where the real one is known to. What a client merely
should not do is left to the checks of a case, and is lost, not refused. Each rule has its evidence;
if one is wrong, please report it.
"""


class Refusal(msgspec.Struct, frozen=True):
    """What is refused, with the words of the endpoint."""

    rules: tuple[str, ...]
    says: str
    when: str
    evidence: tuple[str, ...]


class Wish(msgspec.Struct, frozen=True):
    """What an endpoint is to get back."""

    endpoint: str
    what: str
    evidence: tuple[str, ...]


class Evidence(msgspec.Struct, frozen=True):
    """The contents of `fidelity/evidence.json`."""

    refuses: tuple[Refusal, ...]
    wants: tuple[Wish, ...]


def rules_section() -> str:
    """The section, with its heading."""
    data = (find_suite() / "evidence.json").read_bytes()
    return _INTRO + "\n" + "\n".join(_tables(msgspec.json.decode(data, type=Evidence))) + "\n"


def _tables(evidence: Evidence) -> Iterator[str]:
    yield "| Refused by | If | Words | Evidence |"
    yield "|---|---|---|---|"
    for rule in evidence.refuses:
        words = rule.says.replace("`", "'")
        yield f"| {', '.join(rule.rules)} | {rule.when} | {words} | {_links(rule.evidence)} |"
    yield "\n| Endpoint | What it is to get back | Evidence |"
    yield "|---|---|---|"
    for wish in evidence.wants:
        yield f"| {wish.endpoint} | {wish.what} | {_links(wish.evidence)} |"


def _links(urls: Sequence[str]) -> str:
    return " ".join(f"[{at}]({url})" for at, url in enumerate(urls, 1))
