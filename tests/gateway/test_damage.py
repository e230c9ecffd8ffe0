"""A damaged, emptied or missing `serve.db`: nobody is let in who was not before, nobody is refused
for ever, and what can be read is saved."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway.test_app import KIMI, QUESTION, SCRIPT, ask
from mull.agent.engine import Engine
from mull.cli.main import main
from mull.gateway import sqlite
from mull.gateway.damage import begin_anew
from mull.gateway.serve import build_app
from mull.gateway.sqlite import SqliteMemory
from mull.store.serve import ServeConfig, ServedModel
from mull.testing import StrictServer

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def mull(capsys):
    def run(line: str) -> tuple[int, str, str]:
        status = main(["serve", *line.split()])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def store() -> Path:
    return Path(os.environ["MULL_DATA_DIR"]) / "serve.db"


def app_on(url: str = NOWHERE):
    models = {"m": ServedModel(KIMI, base_url=url)}
    return build_app(Engine(isolated=True), ServeConfig(models=models))


def shown(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"} if token else {}


def statuses(*tokens: str) -> list[int]:
    """What a gateway that starts now says to these tokens, one after the other."""

    async def work():
        app = app_on()
        told = [(await ask(app, "GET", "/v1/models", **shown(one))).status for one in tokens]
        health = await ask(app, "GET", "/health")
        assert health.json["status"] == ("degraded" if 503 in told else "ok")
        assert health.status == (503 if 503 in told else 200)
        await app.close()
        return told

    return asyncio.run(work())


def keep_records(path: Path, count: int = 200) -> None:
    async def work():
        memory = SqliteMemory(path)
        for number in range(count):
            await memory.keep("", [f"k{number}"], bytes([number % 256]) * 2_000)
        await memory.close()

    asyncio.run(work())
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def found(path: Path, count: int = 200) -> int:
    async def work():
        memory = SqliteMemory(path)
        records = await memory.find("", [f"k{number}" for number in range(count)])
        await memory.close()
        assert all(data == bytes([int(key[1:]) % 256]) * 2_000 for key, data in records.items())
        return len(records)

    return asyncio.run(work())


def zero_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(bytes(100))


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def garbage(path: Path) -> None:
    path.write_bytes(b"nonsense" * 2_000)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGE = [zero_header, cut, garbage, folder, pipe]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_without_tokens_is_set_aside_and_all_goes_on(damage, store, caplog):
    keep_records(store, 20)
    damage(store)
    with StrictServer("kimi", SCRIPT) as server:

        async def work():
            app = app_on(server.url)
            answer = await ask(app, "POST", "/v1/chat/completions", QUESTION)
            assert (answer.status, answer.headers.get("x-mull-notes")) == (200, None)
            assert (await ask(app, "GET", "/health")).json == {"status": "ok"}
            await app.close()

        asyncio.run(work())
    (aside,) = [one for one in store.parent.glob("serve.db.damaged-*") if "-wal" not in one.name]
    assert f"is kept as {aside.name}" in caplog.text
    assert store.stat().st_mode & 0o777 == 0o600
    assert statuses("") == [200]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_with_tokens_lets_nobody_in_until_it_is_repaired(
    damage, store, mull, caplog
):
    ann = mull("token add ann")[1].strip()
    keep_records(store)
    damage(store)
    assert statuses("", ann, "mull-other") == [503] * 3
    assert "`mull serve repair` saves what can be read" in caplog.text
    assert not list(store.parent.glob("serve.db.damaged-*"))
    assert "mull serve repair" in mull("token list")[2]
    status, told, error = mull("repair")
    assert len(list(store.parent.glob("serve.db.damaged-*"))) == 1
    if damage in (zero_header, cut):
        assert status == 0
        assert "client tokens saved: 1\n" in told
        assert statuses("", ann) == [401, 200]
        records = found(store)
        assert f"answers saved: {records:,}" in told
        assert records == 200 or damage is cut
        assert ("is lost" in told) == (damage is cut)
    else:
        assert status != 0
        assert "mull serve token add NAME" in error
        assert statuses("", ann) == [503] * 2
        assert mull("repair --without-tokens")[0] == 0
        assert statuses("", ann) == [200] * 2


def gone(path: Path) -> None:
    path.unlink()


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def new(path: Path) -> None:
    path.unlink()
    keep_records(path, 1)


@pytest.mark.parametrize("loss", [gone, emptied, new])
def test_a_file_that_lost_its_tokens_lets_nobody_in(loss, store, mull, caplog):
    ann = mull("token add ann")[1].strip()
    assert statuses("", ann) == [401, 200]
    backup = store.read_bytes()
    loss(store)
    assert statuses("", ann) == [503, 503]
    assert "Restore it, or add tokens with `mull serve token add NAME`" in caplog.text
    status, _, told = mull("token list")
    assert status != 0
    assert "there were client tokens, and serve.db has none" in told
    for one in store.parent.glob("serve.db*"):
        one.unlink()
    store.write_bytes(backup)
    assert statuses("", ann) == [401, 200]
    loss(store)
    bob = mull("token add bob")[1].strip()
    assert statuses("", ann, bob) == [401, 401, 200]


def copied(path: Path) -> bytes:
    """The file as a backup has it: with everything that was written so far."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.read_bytes()


@pytest.mark.parametrize("before", ["never", "removed"])
def test_an_older_file_without_tokens_lets_nobody_in(before, store, mull):
    """A backup from before there were tokens, or a file whose journal with them is lost."""
    assert statuses("") == [200]
    if before == "removed":
        mull("token add old")
        mull("token remove old")
    assert statuses("") == [200]
    older = copied(store)
    ann = mull("token add ann")[1].strip()
    assert statuses("", ann) == [401, 200]
    newer = copied(store)
    for one in store.parent.glob("serve.db*"):
        one.unlink()
    store.write_bytes(older)
    assert statuses("", ann) == [503, 503]
    store.write_bytes(newer)
    assert statuses("", ann) == [401, 200]
    assert mull("token remove ann")[0] == 0
    assert statuses("", ann) == [200, 200]


def test_the_last_token_may_be_removed_on_purpose(store, mull):
    mull("token add ann")
    assert statuses("") == [401]
    assert mull("token remove ann")[0] == 0
    store.unlink()
    assert mull("repair")[0] == 0
    assert statuses("") == [200]
    mull("token add ann")
    assert mull("token remove ann")[0] == 0
    assert statuses("") == [200]


def test_what_never_was_there_is_not_told_as_lost(store, mull):
    mull("token add ann")  # no gateway ran: there is no table of answers yet
    zero_header(store)
    assert "answers saved: 0\n" in mull("repair")[1]


def test_tokens_of_an_earlier_version_are_noticed_in_a_damaged_file(store, mull):
    mull("token add ann")
    (store.parent / "serve.tokens").unlink()
    zero_header(store)
    assert statuses("") == [503]
    mull("repair")
    assert statuses("") == [401]


@pytest.mark.parametrize("content", [b"", b"nonsense", b"[]", b"\xff"])
def test_the_note_of_the_tokens_may_be_damaged_too(content, store, mull):
    ann = mull("token add ann")[1].strip()
    note = store.parent / "serve.tokens"
    note.write_bytes(content)
    assert statuses("", ann) == [401, 200]
    assert json.loads(note.read_bytes())["serve.db"]
    if content:
        note.write_bytes(content)
        store.unlink()
        assert statuses("", ann) == [503, 503]


@pytest.mark.parametrize("put", [folder, pipe])
def test_nor_does_it_matter_what_is_in_its_place(put, store, mull):
    ann = mull("token add ann")[1].strip()
    put(store.parent / "serve.tokens")
    assert statuses("", ann) == [401, 200]
    for one in store.parent.glob("serve.db*"):
        one.unlink()
    assert statuses("", ann) == [503, 503]


def test_a_repair_that_finds_no_room_leaves_all_as_it_is(store, mull, monkeypatch):
    ann = mull("token add ann")[1].strip()
    keep_records(store)
    zero_header(store)
    before = store.read_bytes()
    set_up = sqlite.set_up

    def with_limit(db):
        set_up(db)
        db.execute("PRAGMA max_page_count = 40")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "set_up", with_limit)
        status, _, told = mull("repair")
    assert status != 0
    assert "is left as it is: the new file cannot be written" in told
    assert store.read_bytes() == before
    assert not [one.name for one in store.parent.iterdir() if "repair" in one.name]
    assert mull("repair")[0] == 0
    assert statuses("", ann) == [401, 200]


def test_a_token_that_cannot_be_read_refuses_all_and_repair_removes_it(store, mull):
    ann = mull("token add ann")[1].strip()
    mull("token add bob")
    with sqlite3.connect(store) as db:
        db.execute("UPDATE token SET data = 'x' WHERE name = 'bob'")
    db.close()
    assert statuses(ann) == [503]
    status, told, _ = mull("repair")
    assert status == 0
    assert "client tokens saved: 1; what cannot be read is lost" in told
    assert statuses(ann, "") == [200, 401]


def test_a_sound_file_is_left_alone(store, mull):
    ann = mull("token add ann")[1].strip()
    keep_records(store, 3)
    before = store.stat().st_ino
    status, told, _ = mull("repair")
    assert (status, "is sound" in told, "client tokens: 1" in told) == (0, True, True)
    assert store.stat().st_ino == before
    assert mull("repair --without-tokens")[0] != 0
    assert statuses("", ann) == [401, 200]


def test_a_running_gateway_keeps_its_tokens_and_goes_on_with_a_repaired_file(
    store, mull, monkeypatch
):
    monkeypatch.setattr("mull.gateway.keyring._FRESH", 0.0)
    ann = mull("token add ann")[1].strip()

    async def work():
        app = app_on()

        async def told():
            tokens = ("", ann)
            return [(await ask(app, "GET", "/v1/models", **shown(one))).status for one in tokens]

        assert await told() == [401, 200]
        backup = store.read_bytes()
        store.unlink()
        assert await told() == [401, 200]
        health = await ask(app, "GET", "/health")
        assert (health.status, health.json) == (200, {"status": "degraded"})
        for one in store.parent.glob("serve.db*"):
            one.unlink()
        store.write_bytes(backup)
        assert await told() == [401, 200]
        while (await ask(app, "GET", "/health")).json != {"status": "ok"}:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert await told() == [401, 200]
        await app.close()

    asyncio.run(work())


@pytest.mark.parametrize("has_tokens", [False, True])
def test_a_file_that_is_damaged_while_it_is_used_is_replaced_or_kept(has_tokens, store, mull):
    if has_tokens:
        mull("token add ann")
    keep_records(store, 20)

    async def work():
        memory = SqliteMemory(store)
        assert len(await memory.find("", ["k1"])) == 1
        with store.open("r+b") as file:
            file.seek(4096)
            file.write(bytes(store.stat().st_size - 4096))
        with pytest.raises(sqlite3.DatabaseError):
            await memory.find("", [f"k{number}" for number in range(20)])
        if has_tokens:
            with pytest.raises(sqlite3.DatabaseError, match="mull serve repair"):
                await memory.keep("", ["new"], b"1")
        else:
            await memory.keep("", ["new"], b"1")
            assert await memory.find("", ["new", "k1"]) == {"new": b"1"}
        await memory.close()

    asyncio.run(work())
    assert bool(list(store.parent.glob("serve.db.damaged-*"))) == (not has_tokens)


def test_a_file_that_another_process_has_replaced_is_left_alone(store):
    keep_records(store, 1)
    begin_anew(store, sqlite3.DatabaseError("of the one before"), (0, 0))
    assert found(store, 1) == 1
