"""Limits: what fits is admitted, what does not is told until when; and all that is used is counted
once, whatever fails in between."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple

from effort import tried
from gateway.ledgers import NOON, Model
from mull.gateway.accounts import Accounts
from mull.gateway.keyring import Keyring
from mull.gateway.ledger import WINDOW, Second, Spent, Tally, day_of
from mull.gateway.limits import Demand, Use, find_exceeded, say_duration
from mull.gateway.metering import Meter, expected, tally_of
from mull.gateway.observing import Outcome
from mull.gateway.relay import Client
from mull.gateway.tokens import Budget, ClientToken, Limits, make_token, parse_budget
from mull.neutral.errors import ConfigError, RefusedError
from mull.neutral.events import TextDelta, ThinkingDelta, ToolCallDelta
from mull.neutral.usage import Usage

PRICES = {"input": 2.0, "output": 10.0}
small = st.integers(0, 9)
uses = st.lists(
    st.builds(Use, st.integers(-70, 0).map(NOON.__add__), st.integers(0, 3), small, small),
    max_size=6,
)
some_limits = st.builds(
    Limits,
    requests_per_minute=st.none() | st.integers(1, 9),
    tokens_per_minute=st.none() | st.integers(1, 30),
    tokens=st.none().map(lambda _: ()) | small.map(lambda n: (Budget(n + 1.0, "day"),)),
    dollars=st.just(()) | small.map(lambda n: (Budget((n + 1) / 1e9, "month"),)),
)
spents = st.builds(
    Spent,
    st.lists(
        st.builds(Second, st.integers(-59, 0).map(int(NOON).__add__), small, small), max_size=5
    ).map(tuple),
    st.builds(Tally, small, input=small),
    st.builds(Tally, small, input=small, nanodollars=small),
)
demands = st.builds(Demand, small, small)


def fits(limits: Limits, spent: Spent, pending: list[Use], demand: Demand, now: float) -> bool:
    """The rule, said plainly."""
    since = int(now) - WINDOW
    today = [use for use in pending if day_of(use.at) == day_of(now)]
    month = [use for use in pending if day_of(use.at)[:7] == day_of(now)[:7]]
    requests = sum(s.requests for s in spent.recent if s.at > since)
    requests += sum(use.requests for use in pending if int(use.at) > since)
    tokens = sum(s.tokens for s in spent.recent if s.at > since)
    tokens += sum(use.tokens for use in pending if int(use.at) > since)
    rules = [
        requests + 1 <= (limits.requests_per_minute or 10**9),
        tokens + demand.tokens <= (limits.tokens_per_minute or 10**9),
    ]
    for budget in limits.tokens:
        used = spent.day.tokens + sum(use.tokens for use in today)
        rules.append(used + demand.tokens <= budget.amount)
    for budget in limits.dollars:
        used = spent.month.nanodollars + sum(use.nanodollars for use in month)
        rules.append(used + demand.nanodollars <= round(budget.amount * 1e9))
    return all(rules)


@given(some_limits, spents, uses, demands)
def test_a_request_is_admitted_if_and_only_if_it_fits(limits, spent, pending, demand):
    exceeded = find_exceeded(limits, spent, pending, demand, NOON)
    assert (exceeded is None) == fits(limits, spent, pending, demand, NOON)
    if exceeded is None or exceeded.seconds is None:
        return
    assert exceeded.seconds > 0
    later = NOON + exceeded.seconds
    spent_later = Spent(
        spent.recent, Tally(), Tally() if exceeded.limit == "dollars" else spent.month
    )
    assert fits(limits, spent_later, pending if later < NOON + 70 else [], demand, later)


@given(some_limits, spents, uses, demands)
def test_what_can_never_fit_has_no_time_to_come_back_at(limits, spent, pending, demand):
    exceeded = find_exceeded(limits, spent, pending, demand, NOON)
    alone = find_exceeded(limits, Spent(), [], demand, NOON)
    if exceeded is not None:
        assert (exceeded.seconds is None) == (alone is not None)


@pytest.mark.parametrize(
    ("limits", "spent", "text", "seconds"),
    [
        (
            Limits(requests_per_minute=2),
            Spent((Second(int(NOON) - 50, 1, 0), Second(int(NOON) - 10, 1, 0))),
            "this token may send 2 requests a minute: try again in 10 s",
            10,
        ),
        (
            Limits(tokens_per_minute=1_000),
            Spent((Second(int(NOON) - 20, 1, 950),)),
            "this token may use 1,000 tokens a minute; this request needs about 100:"
            " try again in 40 s",
            40,
        ),
        (
            Limits(tokens_per_minute=50),
            Spent(),
            "this token may use 50 tokens a minute; this request needs about 100: send less, or ask"
            " for a higher limit",
            None,
        ),
        (
            Limits(tokens=(Budget(2_000, "day"),)),
            Spent(day=Tally(input=1_500, output=450)),
            "this token may use 2,000 tokens a day and has used 1,950 tokens; this request needs"
            " about 100 tokens: the next day begins in 12 h",
            43_200,
        ),
        (
            Limits(dollars=(Budget(20, "month"),)),
            Spent(month=Tally(nanodollars=19_999_900_000)),
            "this token may use $20.00 a month and has used $20.00; this request needs about"
            " $0.0005: the next month begins in 15 days",
            43_200 + 14 * 86_400,
        ),
    ],
)
def test_a_refusal_says_which_limit_how_much_and_until_when(limits, spent, text, seconds):
    exceeded = find_exceeded(limits, spent, [], Demand(100, 500_000), NOON)
    assert exceeded is not None
    assert (exceeded.text, exceeded.seconds) == (text, seconds)


def test_durations_are_rounded_up():
    assert [say_duration(s) for s in (0.2, 119, 119.5, 7_100, 7_260, 50 * 3_600)] == [
        "1 s",
        "119 s",
        "2 min",
        "119 min",
        "2 h 1 min",
        "3 days",
    ]


def prepared(tokens: int = 100, prices: Any = PRICES, max_tokens: int | None = 50) -> Any:
    target = SimpleNamespace(
        facts=SimpleNamespace(cost=prices), provider="p", model="m", known=True
    )
    return SimpleNamespace(
        exact=True,
        estimate=tokens,
        target=target,
        request=SimpleNamespace(max_tokens=max_tokens),
    )


class FakeJob:
    def __init__(self, client: str = "ann", **more: Any) -> None:
        self.client = Client("openai-chat", client)
        self.prepared = prepared(**more)


def outcome(ending: Any = "complete", usage: Usage | None = None) -> Outcome:
    return Outcome(ending, 0.0, 1.0, usage)


THOUGHT = [ThinkingDelta("abcdefgh"), TextDelta("ab"), ToolCallDelta(name="f", arguments="{}")]


@pytest.mark.parametrize(
    ("ending", "usage", "tally"),
    [
        ("refused", None, Tally(1, 1)),
        (
            "complete",
            Usage(90, 10, reasoning=7, cache_read=64),
            Tally(1, input=90, cached=64, output=10, reasoning=7, nanodollars=280_000),
        ),
        ("complete", None, Tally(1, 0, 1, 0, 100, 0, 4, 2, 240_000)),
        ("left", None, Tally(1, 0, 1, 0, 100, 0, 4, 2, 240_000)),
        ("left", Usage(90, 1), Tally(1, 0, 1, 0, 90, 0, 4, 2, 220_000)),
        ("broken", Usage(90, 50), Tally(1, 1, 1, 0, 90, 0, 50, 2, 680_000)),
    ],
)
def test_what_a_request_used(ending, usage, tally):
    meter = Meter()
    meter.add(THOUGHT)
    assert tally_of(outcome(ending, usage), prepared(), meter) == tally


def test_a_model_without_a_price_costs_nobody_knows_what():
    tally = tally_of(outcome(usage=Usage(5, 5)), prepared(prices=None), Meter())
    assert (tally.unpriced, tally.nanodollars) == (1, 0)
    assert expected(prepared(prices=None), 999) == Demand(150, 0)
    assert expected(prepared(max_tokens=None), 999).tokens == 1_099


@pytest.mark.parametrize("count", [10**40, -5])
def test_what_an_upstream_claims_can_always_be_added_up(count):
    tally = tally_of(
        outcome(usage=Usage(count, count, count, cache_read=count)), prepared(), Meter()
    )
    assert all(0 <= one <= 10**14 for one in astuple(tally))


class Failing(Model):
    """A ledger that can be broken, and then does not say what it has done."""

    def __init__(self) -> None:
        super().__init__()
        self.broken: str | None = None

    async def add(self, batch, entries):
        await asyncio.sleep(0)
        if self.broken != "before":
            await super().add(batch, entries)
        if self.broken:
            raise OSError("broken")

    async def spent(self, client, now):
        await asyncio.sleep(0)
        if self.broken:
            raise OSError("broken")
        return await super().spent(client, now)


LIMITS = Limits(requests_per_minute=4, tokens=(Budget(1_000, "day"),))
moves = st.lists(
    st.one_of(
        st.tuples(st.just("begin"), st.integers(0, 1)),
        st.tuples(st.just("end"), small, st.sampled_from(("complete", "left", "refused"))),
        st.tuples(st.just("wait"), st.sampled_from((1.0, 30.0, 61.0))),
        st.tuples(st.just("ledger"), st.sampled_from((None, "before", "after"))),
        st.tuples(st.just("rest")),
    ),
    max_size=25,
)


class Machine:
    """Two gateways on one ledger, and what truly was used."""

    def __init__(self, monkeypatch_pause: Any = None) -> None:
        self.now = NOON
        self.ledger = Failing()
        token = ClientToken("ann", "h", limits=LIMITS)
        self.gateways = [
            Accounts(self.ledger, Keyring(tokens=[token]), lambda: self.now, patience=600)
            for _ in range(2)
        ]
        self.open: list[tuple[int, FakeJob, float]] = []
        self.used: list[tuple[float, Tally]] = []

    async def begin(self, at: int) -> None:
        job = FakeJob()
        ours = [begun for gate, _, begun in self.open if gate == at]
        begun = ours + [at for at, _ in self.used]
        recent = [when for when in begun if int(when) > int(self.now) - WINDOW]
        tokens = 150 * len(ours) + sum(tally.tokens for _, tally in self.used)
        fits = len(recent) + 1 <= 4 and tokens + 100 <= 1_000
        try:
            await self.gateways[at].admit(job)
        except RefusedError:
            assert not fits or self.unsure
        else:
            assert fits or self.unsure
            self.gateways[at].began(job)
            self.open.append((at, job, self.now))

    unsure = False

    async def end(self, which: int, ending: str) -> None:
        if not self.open:
            return
        at, job, begun = self.open.pop(which % len(self.open))
        done = outcome(ending, Usage(80, 20) if ending == "complete" else None)
        self.gateways[at].ended(job, done)
        self.used.append((begun, tally_of(done, job.prepared, Meter())))
        await self.rest()

    async def rest(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    async def run(self, drawn: list) -> None:
        for kind, *words in drawn:
            match kind:
                case "begin":
                    await self.begin(words[0])
                case "end":
                    await self.end(*words)
                case "wait":
                    self.now += words[0]
                case "ledger":
                    self.ledger.broken = words[0]
                    self.unsure = self.unsure or words[0] is not None
                case "rest":
                    await self.rest()
        self.ledger.broken = None
        for gateway in self.gateways:
            await gateway.close()
        whole = sum((tally for _, tally in self.used), Tally())
        spent = await self.ledger.spent("ann", self.now)
        assert spent.day == whole


@given(moves)
@tried(0.5)
def test_gateways_keep_to_the_limits_and_count_everything_once(drawn):
    asyncio.run(Machine().run(drawn))


def limited(tokens: int) -> Accounts:
    token = ClientToken("ann", "h", limits=Limits(tokens=(Budget(tokens, "day"),)))
    return Accounts(Failing(), Keyring(tokens=[token]), lambda: NOON, patience=600)


async def answered(accounts: Accounts, output: int, **more: Any) -> None:
    job = FakeJob(**more)
    await accounts.admit(job)
    accounts.began(job)
    accounts.ended(job, outcome(usage=Usage(100, output)))


async def admitted(accounts: Accounts, count: int, **more: Any) -> list[FakeJob]:
    """Those of so many requests at once that are let through."""
    jobs = [FakeJob(**more) for _ in range(count)]
    told = await asyncio.gather(*map(accounts.admit, jobs), return_exceptions=True)
    return [job for job, refused in zip(jobs, told, strict=True) if refused is None]


@pytest.mark.parametrize("wanted", [None, 50, 128_000])
def test_a_request_is_refused_only_when_its_input_does_not_fit(wanted):
    async def work():
        assert len(await admitted(limited(100), 2, max_tokens=wanted)) == 1
        assert not await admitted(limited(99), 2, max_tokens=wanted)

    asyncio.run(work())


@pytest.mark.parametrize("wanted", [None, 128_000])
def test_requests_at_once_reserve_what_answers_usually_have(wanted):
    async def work():
        accounts = limited(50_000)
        assert len(await admitted(accounts, 80, max_tokens=wanted)) == 46  # 1,100 each
        accounts = limited(50_000)
        for _ in range(50):
            await answered(accounts, 100, max_tokens=wanted)
        assert len(await admitted(accounts, 150, max_tokens=wanted)) == 150  # 200 each
        assert len(await admitted(accounts, 150, client="bob", max_tokens=wanted)) == 150

    asyncio.run(work())


def test_an_answer_counts_as_it_grows_and_up_to_its_limit():
    async def work():
        accounts = limited(2_000)
        (job,) = await admitted(accounts, 1, max_tokens=None)
        assert len(await admitted(accounts, 1, max_tokens=50)) == 1
        accounts.began(job)
        accounts.emitted(job, [TextDelta("word " * 1_400)])
        assert not await admitted(accounts, 1, max_tokens=50)

    asyncio.run(work())


def test_while_the_ledger_fails_a_gateway_holds_to_what_it_knows():
    async def work():
        machine = Machine()
        for _ in range(3):
            await machine.begin(0)
        machine.ledger.broken = "before"
        machine.unsure = True
        await machine.end(0, "complete")
        job = FakeJob()
        await machine.gateways[0].admit(job)
        with pytest.raises(RefusedError):
            await machine.gateways[0].admit(FakeJob())
        machine.gateways[0].began(job)
        machine.gateways[0].ended(job, outcome("refused"))
        machine.used.append((NOON, Tally(1, 1)))
        while machine.open:
            await machine.end(0, "left")
        machine.ledger.broken = None
        await machine.run([])

    asyncio.run(work())


def test_a_ledger_that_hangs_keeps_no_request_waiting(monkeypatch):
    monkeypatch.setattr("mull.gateway.accounts._WRITE_PATIENCE", 600)

    class Hanging(Model):
        async def add(self, batch, entries):
            await hang.wait()
            await super().add(batch, entries)

    async def work():
        token = ClientToken("ann", "h", limits=Limits(requests_per_minute=2))
        accounts = Accounts(ledger, Keyring(tokens=[token]), lambda: NOON, patience=0.01)
        for _ in range(2):
            job = FakeJob()
            await accounts.admit(job)
            accounts.began(job)
            accounts.ended(job, outcome("refused"))
            await asyncio.sleep(0)
        with pytest.raises(RefusedError):
            await accounts.admit(FakeJob())
        hang.set()
        await accounts.close()
        assert (await ledger.spent("ann", NOON)).day.requests == 2

    ledger, hang = Hanging(), asyncio.Event()
    asyncio.run(work())


def test_a_client_that_leaves_while_it_waits_reserves_nothing():
    async def work():
        machine = Machine()
        gate = asyncio.Event()
        spent = machine.ledger.spent

        async def slow(client, now):
            await gate.wait()
            return await spent(client, now)

        machine.ledger.spent = slow
        accounts = machine.gateways[0]
        leaving = [asyncio.create_task(accounts.admit(FakeJob())) for _ in range(3)]
        await machine.rest()
        for task in leaving:
            task.cancel()
        await asyncio.wait(leaving)
        gate.set()
        staying = [FakeJob() for _ in range(4)]
        await asyncio.gather(*map(accounts.admit, staying))
        with pytest.raises(RefusedError):
            await accounts.admit(FakeJob())

    asyncio.run(work())


def test_many_unwritten_requests_take_little_room():
    async def work():
        ledger, now = Failing(), [NOON]
        accounts = Accounts(ledger, Keyring(), lambda: now[0])
        ledger.broken = "before"
        for _ in range(12_000):
            job = FakeJob()
            accounts.began(job)
            accounts.ended(job, outcome("refused"))
            now[0] += 1
        assert len(accounts._pending) < 10_001
        ledger.broken = None
        await accounts.close()
        assert (await ledger.spent("ann", now[0])).day.requests == 12_000

    asyncio.run(work())


def test_tokens_are_long_random_and_different():
    made = {make_token() for _ in range(50)}
    assert len(made) == 50
    assert all(len(one) == 45 and one.startswith("mull-") and one[5:].isalnum() for one in made)


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("20/month", Budget(20, "month")),
        ("$2.50/day", Budget(2.5, "day")),
        ("500k/day", Budget(500_000, "day")),
        ("2M/month", Budget(2_000_000, "month")),
    ],
)
def test_budgets_are_read(text, budget):
    assert parse_budget(text) == budget


@pytest.mark.parametrize(
    "text", ["", "20", "20/week", "0/day", "-1/day", "1e3/day", "x/day", "٣/day"]
)
def test_what_is_no_budget_is_refused(text):
    with pytest.raises(ConfigError, match="budget"):
        parse_budget(text)
