"""What every ledger does, held against a model of it: steps are drawn, done on both, compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from hypothesis import strategies as st

from mull.gateway.ledger import WINDOW, Entry, Ledger, Spent, Tally, UsageRow, day_of
from mull.gateway.tokens import Budget, ClientToken, Limits

NOON = 1_794_830_400.0
"""2026-11-16 12:00 UTC."""
CLIENTS = ("ann", "bob")
MODELS = ("a/x", "b/y")
DAY = 86_400

counts = st.integers(0, 10**9)
tallies = st.builds(Tally, st.integers(0, 3), *[counts] * 8)
entries = st.builds(
    Entry,
    st.sampled_from(CLIENTS),
    st.sampled_from(MODELS),
    st.sampled_from([0.0, 0.5, -1.0, -59.0, -60.0, -61.0, -DAY, -20.0 * DAY]).map(NOON.__add__),
    tallies,
)
limits = st.builds(
    Limits,
    models=st.lists(st.sampled_from(("*", "a/*")), max_size=2).map(tuple),
    requests_per_minute=st.none() | st.integers(1, 9),
    tokens=st.just(()) | st.just((Budget(5.0, "day"), Budget(50.0, "month"))),
)
tokens = st.builds(
    ClientToken,
    st.sampled_from(CLIENTS),
    st.text("0123456789abcdef", min_size=64, max_size=64),
    expires=st.none() | st.just(NOON),
    revoked=st.none() | st.just(NOON),
    limits=limits,
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from("pqr"), st.lists(entries, max_size=4)),
        st.tuples(st.just("put"), tokens, st.booleans()),
        st.tuples(st.just("remove"), st.sampled_from(CLIENTS)),
        st.tuples(st.just("spent"), st.sampled_from((*CLIENTS, "nobody"))),
        st.tuples(st.just("tokens")),
        st.tuples(st.just("usage"), st.sampled_from((0, 1, 30))),
    ),
    max_size=12,
)


class Model:
    """A ledger as it is meant."""

    def __init__(self) -> None:
        self._tokens: dict[str, ClientToken] = {}
        self._batches: dict[str, Sequence[Entry]] = {}

    def _entries(self) -> list[Entry]:
        return [entry for some in self._batches.values() for entry in some]

    async def tokens(self) -> Sequence[ClientToken]:
        return [self._tokens[name] for name in sorted(self._tokens)]

    async def put_token(self, token: ClientToken, *, new: bool) -> bool:
        if (token.name in self._tokens) == new:
            return False
        self._tokens[token.name] = token
        return True

    async def remove_token(self, name: str) -> bool:
        return self._tokens.pop(name, None) is not None

    async def add(self, batch: str, entries: Sequence[Entry]) -> None:
        self._batches.setdefault(batch, entries)

    async def spent(self, client: str, now: float) -> Spent:
        mine = [entry for entry in self._entries() if entry.client == client]
        seconds: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        for entry in mine:
            if int(entry.at) > int(now) - WINDOW:
                seconds[int(entry.at)][0] += entry.tally.requests
                seconds[int(entry.at)][1] += entry.tally.tokens
        recent = tuple((at, *seconds[at]) for at in sorted(seconds))
        today = day_of(now)
        day = [entry.tally for entry in mine if day_of(entry.at) == today]
        month = [e.tally for e in mine if day_of(e.at)[:7] == today[:7] and day_of(e.at) <= today]
        return Spent(recent, sum(day, Tally()), sum(month, Tally()))

    async def usage(self, since: str, until: str) -> Sequence[UsageRow]:
        rows: dict[tuple[str, str, str], Tally] = {}
        for e in self._entries():
            if since <= day_of(e.at) <= until:
                key = day_of(e.at), e.client, e.model
                rows[key] = rows.get(key, Tally()) + e.tally
        return [UsageRow(*key, rows[key]) for key in sorted(rows)]

    async def close(self) -> None:
        pass


async def agrees(ledger: Ledger, steps: Sequence[tuple]) -> None:
    """Do the steps on the ledger and on the model."""
    model = Model()
    for kind, *words in steps:
        assert await _do(ledger, kind, words) == await _do(model, kind, words), (kind, words)


async def _do(ledger: Ledger, kind: str, words: Sequence) -> object:
    match kind:
        case "add":
            return await ledger.add(*words)
        case "put":
            return await ledger.put_token(words[0], new=words[1])
        case "remove":
            return await ledger.remove_token(words[0])
        case "spent":
            return await ledger.spent(words[0], NOON + 0.7)
        case "tokens":
            return list(await ledger.tokens())
    return list(await ledger.usage(day_of(NOON - words[0] * DAY), day_of(NOON)))
