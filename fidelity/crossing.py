"""Pairs for gateways: a client of each API before a model of each API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from fidelity.endpoints import ENDPOINTS
from fidelity.scene import (
    AGAIN,
    CLEAR,
    DONE,
    SECOND,
    THOUGHT,
    Line,
    ask,
    call,
    case,
    gh,
    think,
    unseen,
)
from fidelity.table import CALLS
from fidelity.wire import Json, Say

__all__ = ["CLIENTS", "UPSTREAMS", "all_pairs"]

CLIENTS = {
    "chat": ("openai-chat", gh("router-for-me/CLIProxyAPI#5104")),
    "responses": ("openai-responses", gh("BerriAI/litellm#36197")),
    "messages": ("anthropic", gh("musistudio/claude-code-router#1378")),
    "generate-content": ("gemini", gh("diegosouzapw/OmniRoute#7206")),
}
"""The API that a client speaks, and a report of one whose reasoning a gateway lost."""

UPSTREAMS = {
    "kimi": gh("musistudio/claude-code-router#1400", "farion1231/cc-switch#2365"),
    "openai": gh("BerriAI/litellm#39339", "maximhq/bifrost#5410"),
    "anthropic": gh("router-for-me/CLIProxyAPI#2172", "onyx-dot-app/onyx#13691"),
    "gemini": gh("router-for-me/CLIProxyAPI#2360", "MadAppGang/claudish#26"),
}
"""An endpoint of each API, and reports of gateways that it refused or that lost its reasoning."""


def all_pairs() -> Iterator[Json]:
    """Every pair, with a client that returns all and one that does not, in both its calls."""
    for client, upstream in product(CLIENTS, UPSTREAMS):
        for forgets, way in product((False, True), CALLS):
            yield pair(client, upstream, way, forgets=forgets)


def pair(client: str, upstream: str, way: str, *, forgets: bool) -> Json:
    """Two tool rounds and a following question."""
    dialect, sources = CLIENTS[client]
    spec = ENDPOINTS[upstream]
    which = f"{client}-to-{upstream}/{'forgetful' if forgets else 'faithful'}/{way}"
    line = Line(spec, which)
    line.turn()
    line.answer(think("one"), call(1))
    line.answer(think("two", SECOND), call(2, "wall"))
    line.answer(think("three", "Enough seen."), Say(DONE))
    line.turn()
    line.answer(Say(CLEAR))
    ids = [line.call_id(1), line.call_id(2)]
    hidden = [*unseen(spec, THOUGHT), *unseen(spec, SECOND)]
    line.checks = [[*_without(ids, checks), *hidden] for checks in line.checks]
    sends = "texts and calls" if forgets else "everything"
    title = f"{client} client that sends back {sends}, before {spec.provider}"
    reports = [*sources, *UPSTREAMS[upstream]]
    found = case(which, "crossing", title, reports, way, {"a": line}, [ask(), ask(AGAIN)])
    return {**found, "client": {"dialect": dialect, **({"forgets": True} if forgets else {})}}


def _without(ids: Sequence[str], checks: Sequence[Json]) -> Iterator[Json]:
    """The same checks without the ids of calls: a gateway may choose its own."""
    for check in checks:
        if ways := check.get("anyOf"):
            yield {"anyOf": [*_without(ids, ways)]}
        elif "order" not in check:
            yield check
        elif order := [mark for mark in check["order"] if mark not in ids]:
            yield {**check, "order": order}
