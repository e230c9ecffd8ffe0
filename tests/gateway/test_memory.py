"""What the gateway remembers: records by key and scope, on disk, bounded; and ids."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys

import pytest

from mull.gateway import sqlite
from mull.gateway.ids import is_sound, mint, normalised
from mull.gateway.memory import SEVERAL, InProcess
from mull.gateway.sqlite import SqliteMemory


@pytest.fixture(params=["memory", "disk"])
def store(request, tmp_path):
    return InProcess() if request.param == "memory" else SqliteMemory(tmp_path / "a" / "serve.db")


def run(store, work):
    async def all_of_it():
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(all_of_it())


def test_a_record_is_found_by_any_of_its_keys_in_its_scope_alone(store):
    async def work(one):
        await one.keep("a", ["x", "y"], b"1")
        await one.keep("a", ["z"], b"2")
        assert await one.find("a", ["y", "z", "none"]) == {"y": b"1", "z": b"2"}
        assert await one.find("b", ["x"]) == {}
        assert await one.keep("a", ["x", "y"], b"1") == []
        assert await one.keep("a", ["x", "w"], b"3") == ["x"]
        assert await one.find("a", ["w", "x", "y"]) == {"w": b"3", "x": SEVERAL, "y": b"1"}
        await one.forget("a", ["x", "y"])
        assert await one.find("a", ["w", "x", "y"]) == {"w": b"3", "x": SEVERAL}
        assert await one.keep("a", ["x", "y"], b"1") == ["x"]
        many = [f"k{n}" for n in range(2_000)]
        await one.keep("a", many, b"m")
        assert len(await one.find("a", many)) == 2_000

    run(store, work)


def test_what_a_process_holds_is_bounded_by_its_size():
    async def work(one):
        for number in range(100):
            await one.keep("a", [f"{number}", f"{number} too"], b"%d" % number * 1_000)
        many = [f"{number}" for number in range(100)]
        assert list(await one.find("a", many)) == many[-7:]
        await one.keep("a", ["large"], bytes(50_000))
        assert list(await one.find("a", ["99", "large"])) == ["large"]
        await one.keep("a", ["small"], b"1")
        assert list(await one.find("a", ["small", "large"])) == ["small"]
        await one.forget("a", ["small"])
        assert (one.size, len(one._records), len(one._keys)) == (0, 0, 0)
        for number in range(2_000):
            await one.keep("a", ["small", f"{number // 2} twice"], b"%d" % number)
        assert one.size <= 20_000

    run(InProcess(most=20_000), work)


def test_what_was_kept_survives_the_process_that_kept_it(tmp_path):
    path = tmp_path / "serve.db"
    program = (
        "import asyncio, os, sys, pathlib\n"
        "from mull.gateway.sqlite import SqliteMemory\n"
        "async def go():\n"
        "    await SqliteMemory(pathlib.Path(sys.argv[1])).keep('', ['k'], b'kept')\n"
        "    os.kill(os.getpid(), 9)\n"
        "asyncio.run(go())\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert done.returncode == -9
    assert run(SqliteMemory(path), lambda one: one.find("", ["k"])) == {"k": b"kept"}
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_many_at_once_are_all_kept(tmp_path):
    async def work(one):
        await asyncio.gather(*(one.keep("", [f"k{n}"], b"%d" % n) for n in range(300)))
        return await one.find("", [f"k{n}" for n in range(300)])

    found = run(SqliteMemory(tmp_path / "serve.db"), work)
    assert found == {f"k{n}": b"%d" % n for n in range(300)}


def test_the_file_is_bounded_and_what_was_used_last_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "_CLEAN_EVERY", -1.0)
    path = tmp_path / "serve.db"

    async def work(one):
        for n in range(40):
            await one.keep("", [f"k{n}"], bytes([n]) * 100_000)
        return await one.find("", [f"k{n}" for n in range(40)])

    found = run(SqliteMemory(path, megabytes=1), work)
    assert 5 <= len(found) <= 10
    assert "k39" in found
    assert "k0" not in found
    old = SqliteMemory(path, days=1e-9)
    assert run(old, lambda one: one.keep("", ["new"], b"n")) == []


def test_a_file_that_is_no_database_fails_the_request_of_nobody_else(tmp_path):
    path = tmp_path / "serve.db"
    path.write_bytes(b"no database at all" * 100)
    (tmp_path / "serve.tokens").write_bytes(b'{"serve.db": "it had tokens"}')

    async def work(one):
        for _ in range(2):
            with pytest.raises(sqlite3.DatabaseError):
                await one.find("", ["k"])
        path.unlink()
        await one.keep("", ["k"], b"again")
        return await one.find("", ["k"])

    assert run(SqliteMemory(path), work) == {"k": b"again"}


def test_ids_are_sound_whatever_a_client_does_to_them():
    minted = mint("anthropic")
    assert is_sound(minted)
    assert minted.startswith("toolu_")
    assert normalised(minted.replace("_", "-").upper()) == normalised(minted)
    for bad in ("functions.read:0", "functions_get_weather_0", "", "call_1", "x" * 65, "é" * 20):
        assert not is_sound(bad)
    assert is_sound("chatcmpl-tool-0123456789abcdef0123456789abcdef")
