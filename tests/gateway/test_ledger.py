"""The ledger on disk holds what was added, once, whoever adds it and however that ends."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given

from effort import tried
from gateway.ledgers import NOON, agrees, steps
from mull.gateway.ledger import KEEP_DAYS, KEEP_SECONDS, Entry, Second, Tally, day_of
from mull.gateway.ledger_sqlite import SqliteLedger
from mull.gateway.tokens import ClientToken

ONE = Entry("ann", "a/x", NOON, Tally(requests=1, input=5, output=2))


def run(work):
    return asyncio.run(work)


@given(steps)
@tried(0.5)
def test_the_ledger_does_what_the_model_does(drawn):
    async def work(path):
        ledger = SqliteLedger(path, lambda: NOON)
        await agrees(ledger, drawn)
        await ledger.close()

    with tempfile.TemporaryDirectory() as folder:
        run(work(Path(folder) / "serve.db"))


def test_two_gateways_on_one_file_add_up(tmp_path):
    async def work():
        one, other = (SqliteLedger(tmp_path / "serve.db", lambda: NOON) for _ in range(2))
        await asyncio.gather(
            *(one.add(f"a{n}", [ONE]) for n in range(20)),
            *(other.add(f"b{n}", [ONE]) for n in range(20)),
            *(one.add(f"b{n}", [ONE]) for n in range(20)),  # those of the other once more
        )
        assert await other.put_token(ClientToken("ann", "h"), new=True)
        assert [token.name for token in await one.tokens()] == ["ann"]
        spent = await one.spent("ann", NOON)
        assert spent.day == spent.month == Tally(requests=40, input=200, output=80)
        assert spent.recent == (Second(int(NOON), 40, 280),)
        await asyncio.gather(one.close(), other.close())

    run(work())


def test_a_file_whose_journal_another_process_is_changing_is_waited_for(tmp_path, monkeypatch):
    """SQLite does not wait there by itself."""
    connect, locked = sqlite3.connect, iter([True, True, False])

    class Busy:
        def __init__(self, *given, **more):
            self._db = connect(*given, **more)

        def __getattr__(self, name):
            return getattr(self._db, name)

        def execute(self, statement, *given):
            if "journal_mode" in statement and next(locked):
                raise sqlite3.OperationalError("database is locked")
            return self._db.execute(statement, *given)

        def __enter__(self):
            return self._db.__enter__()

        def __exit__(self, *given):
            return self._db.__exit__(*given)

    monkeypatch.setattr(sqlite3, "connect", Busy)

    async def work():
        ledger = SqliteLedger(tmp_path / "serve.db", lambda: NOON)
        await ledger.add("a", [ONE])
        await ledger.close()

    run(work())


def test_old_rows_go(tmp_path):
    now = [NOON]
    path = tmp_path / "serve.db"

    async def work():
        ledger = SqliteLedger(path, lambda: now[0])
        await ledger.add("a", [ONE])
        now[0] += KEEP_SECONDS + 1
        await ledger.add("b", [])
        assert len(await ledger.usage("2000-01-01", "2100-01-01")) == 1
        now[0] += (KEEP_DAYS + 1) * 86_400
        await ledger.add("c", [])
        assert await ledger.usage("2000-01-01", "2100-01-01") == []
        await ledger.close()

    run(work())
    with sqlite3.connect(path) as db:
        assert [
            db.execute(f"SELECT count(*) FROM {t}").fetchone() for t in ("second", "batch")
        ] == [
            (0,),
            (1,),
        ]
    db.close()


def test_a_failed_write_changes_nothing_and_the_file_is_opened_anew(tmp_path):
    path = tmp_path / "serve.db"

    async def work():
        ledger = SqliteLedger(path, lambda: NOON)
        await ledger.add("a", [ONE])
        with pytest.raises(sqlite3.Error):
            await ledger.add("b", [ONE, Entry("ann", None, NOON, Tally(requests=1))])
        await ledger.add("b", [ONE])
        assert (await ledger.spent("ann", NOON)).day.requests == 2
        await ledger.close()
        assert (await ledger.spent("ann", NOON)).day.requests == 2
        await ledger.close()

    run(work())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_days_are_those_of_utc():
    assert day_of(NOON) == "2026-11-16"
    assert day_of(NOON + 12 * 3600 - 0.001) == "2026-11-16"
    assert day_of(NOON + 12 * 3600) == "2026-11-17"
