"""`mull serve token` and `mull serve usage`: what a person types and reads."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mull.cli.main import main
from mull.gateway.ledger import Entry, Tally
from mull.gateway.ledger_sqlite import SqliteLedger
from mull.gateway.serve import check_listen
from mull.gateway.tokens import Budget, Limits, hashed
from mull.neutral.errors import ConfigError
from mull.store.serve import ServeConfig

DAY = 86_400


@pytest.fixture
def mull(capsys):
    def run(line: str) -> tuple[int, str, str]:
        status = main(["serve", *line.split()])
        return status, *capsys.readouterr()

    return run


def store() -> Path:
    return Path(os.environ["MULL_DATA_DIR"]) / "serve.db"


def on_ledger(work):
    async def all_of_it():
        ledger = SqliteLedger(store())
        try:
            return await work(ledger)
        finally:
            await ledger.close()

    return asyncio.run(all_of_it())


def tokens():
    async def read(ledger):
        return {token.name: token for token in await ledger.tokens()}

    return on_ledger(read)


def test_a_token_is_shown_once_and_stored_as_its_hash(mull):
    status, secret, told = mull("token add ann")
    assert status == 0
    assert told == "This is the only time the token is shown:\n"
    assert tokens()["ann"].hash == hashed(secret.strip())
    assert secret.strip().encode() not in store().read_bytes()
    _, listed, _ = mull("token list")
    assert listed.splitlines()[1].split() == ["ann", "valid", "all", "none", "0", "$0"]
    assert hashed(secret.strip()) not in mull("token list --json")[1]


def test_limits_are_set_changed_and_taken_back(mull):
    line = "token add ann --models kimi a/* --rpm 5 --tpm 900 --budget 5/day --budget 50/month"
    assert mull(f"{line} --budget-tokens 2k/day --expires 90d")[0] == 0
    held = tokens()["ann"]
    dollars = (Budget(5, "day"), Budget(50, "month"))
    assert held.limits == Limits(("kimi", "a/*"), 5, 900, (Budget(2_000, "day"),), dollars)
    assert held.expires - held.created == pytest.approx(90 * DAY)
    assert mull("token set ann --rpm none --models none --budget none --expires none")[0] == 0
    changed = tokens()["ann"]
    assert changed.limits == Limits((), None, 900, (Budget(2_000, "day"),))
    assert (changed.expires, changed.hash) == (None, held.hash)


def test_a_revoked_client_comes_back_with_a_new_token_alone(mull):
    first = mull("token add ann --rpm 5")[1].strip()
    assert mull("token revoke ann")[0] == 0
    assert tokens()["ann"].revoked is not None
    assert "revoked" in mull("token list")[1]
    second = mull("token rotate ann")[1].strip()
    held = tokens()["ann"]
    assert (held.hash, held.revoked) == (hashed(second), None)
    assert held.limits.requests_per_minute == 5
    assert first != second
    assert mull("token remove ann")[0] == 0
    assert tokens() == {}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("token add ann", 'the client "ann" already exists'),
        ("token add -- -x", '"-x" is not a valid client name'),
        ("token set an --rpm 1", 'there is no client "an": did you mean ann?'),
        ("token revoke zz", 'there is no client "zz": see `mull serve token list`'),
        ("token set ann", "no limit is given"),
        ("token set ann --rpm 0", '"0" is not a limit'),
        ("token set ann --tpm 1.5", '"1.5" is not a limit'),
        ("token set ann --budget 5", '"5" is not a budget'),
        ("token set ann --budget 5/day --budget 6/day", "two budgets have the same period"),
        ("token set ann --expires 2001-01-01", "2001-01-01 is in the past"),
        ("token set ann --expires soon", '"soon" is not a date'),
        ("usage --by user", 'cannot be summed by "user": use token, model or day'),
        ("usage --since yesterday", '"yesterday" is not a date'),
    ],
)
def test_mistakes_are_told_and_change_nothing(mull, line, told):
    mull("token add ann")
    before = tokens()
    status, out, err = mull(line)
    assert (status, out) == (2, "")
    assert told in err
    assert tokens() == before


def test_a_gateway_listens_for_others_once_there_is_a_token(mull):
    config = ServeConfig(listen="0.0.0.0:8484")
    told = "create a token for each client first"
    with pytest.raises(ConfigError, match=told):
        asyncio.run(check_listen(config))
    mull("token add ann --expires 1h")
    asyncio.run(check_listen(config))
    mull("token revoke ann")
    assert told in mull("--listen 0.0.0.0:8484")[2]


NOW = time.time()
TODAY = datetime.fromtimestamp(NOW, UTC).strftime("%Y-%m-%d")
ENTRIES = [
    Entry("ann", "a/x", NOW, Tally(2, 0, 1, 0, 1_000, 400, 300, 100, 20_000_000)),
    Entry("bob", "a/x", NOW, Tally(1, 1)),
    Entry("", "b/y", NOW, Tally(1, 0, 0, 1, 10, 0, 20, 5)),
    Entry("ann", "b/y", NOW - 8 * DAY, Tally(1, input=7, output=1, nanodollars=5)),
]


@pytest.fixture
def used():
    on_ledger(lambda ledger: ledger.add("batch", ENTRIES))


def test_usage_is_a_table(mull, used):
    _, told, _ = mull("usage")
    lines = [line.split() for line in told.splitlines()]
    assert lines[0] == "TOKEN MODEL REQUESTS ERRORS INPUT CACHED OUTPUT REASONING COST".split()
    assert lines[1] == "ann a/x 2 0 1,000 400 300 100 $0.02".split()
    assert lines[2] == "(no token) b/y 1 0 10 0 20 5 unknown".split()
    assert lines[3] == "bob a/x 1 1 0 0 0 0 $0".split()
    assert lines[4] == "total 4 1 1,010 400 320 105 ≥ $0.02".split()
    assert "estimated for 1 request whose" in told
    assert "does not include 1 request of unknown price" in told


def test_usage_by_other_things_and_for_programs(mull, used):
    rows = json.loads(mull("usage --by model --json")[1])
    assert [(row["model"], row["requests"], row["cost"]) for row in rows] == [
        ("a/x", 3, 0.02),
        ("b/y", 1, 0.0),
    ]
    days = list(csv.DictReader(io.StringIO(mull("usage --by day --since 10d --csv")[1])))
    assert [(row["day"] == TODAY, row["input"]) for row in days] == [(False, "7"), (True, "1010")]
    one = json.loads(mull(f"usage --since {TODAY} --by token,day --json")[1])
    assert {row["day"] for row in one} == {TODAY}


def test_no_usage_is_told_and_still_a_table_for_programs(mull):
    assert "no requests since" in mull("usage")[2]
    assert mull("usage --json")[1] == "[]\n"
    assert mull("usage --csv")[1].startswith("token,model,requests,")


def test_a_removal_that_fails_leaves_the_client_revoked_and_can_be_repeated(mull, monkeypatch):
    async def broken(self, scope):
        raise OSError("no")

    mull("token add ann")
    with monkeypatch.context() as patch:
        patch.setattr("mull.gateway.sqlite.SqliteMemory.forget_all", broken)
        status, _, told = mull("token remove ann")
    assert status == 2
    assert "ann is revoked, but its records are not deleted" in told
    assert tokens()["ann"].revoked is not None
    assert mull("token remove ann")[0] == 0
    assert tokens() == {}


def test_a_store_that_cannot_be_used_is_told_without_a_traceback(mull):
    mull("token add ann")
    store().unlink()
    store().mkdir()
    for line in ("token list", "usage", "token add bob", "token remove ann"):
        status, out, err = mull(line)
        assert (status, out) == (2, "")
        assert "the gateway's store cannot be used" in err
