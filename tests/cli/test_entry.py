"""`mull` as a program of its own: it ends at once, and nothing is lost by that."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mull.store.paths import data_dir
from mull.store.sessions.sqlite import open_sessions
from mull.testing.server import Reply, ScriptedServer

ANSWER = Reply.events(
    {"choices": [{"index": 0, "delta": {"content": "fine " * 5000}, "finish_reason": "stop"}]},
    "[DONE]",
)


def mull(*words, **more):
    return subprocess.run(
        [sys.executable, "-m", "mull", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **more,
    )


@pytest.fixture
def asked(tmp_path):
    with ScriptedServer([ANSWER]) as server:
        place = ["-m", "openai-compatible/m", "--base-url", server.url]
        return mull("ask", *place, "hello", cwd=tmp_path)


def test_the_whole_answer_comes_out_and_is_stored_and_the_store_is_closed(asked):
    assert (asked.returncode, asked.stdout.strip(), asked.stderr) == (
        0,
        ("fine " * 5000).strip(),
        "",
    )
    (info,) = open_sessions().list()
    assert (info.title, info.records) == ("hello", 2)


def test_sqlites_own_files_are_put_away(asked):
    assert asked.returncode == 0
    ours = ["session-locks", "sessions.db", "sessions.db.lock", "sessions.db.reserve"]
    assert sorted(os.listdir(data_dir())) == ours
    assert os.listdir(data_dir() / "session-locks") == []


def test_statuses_and_errors_are_told_as_ever():
    assert mull("--version").stdout.startswith("mull ")
    wrong = mull("settings", "--set", "no.such=1")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("mull: ")
    usage = mull("no-such-command")
    assert usage.returncode == 2
    assert usage.stderr.startswith("mull: a conversation needs a terminal")
    misspelt = mull("sesions", "list")
    assert misspelt.returncode == 2
    assert "unknown command 'sesions': did you mean sessions?" in misspelt.stderr
    assert mull("ask", "--help").stdout.startswith("usage: mull ask ")


def test_what_waits_for_the_end_of_the_program_is_done():
    code = (
        "import atexit, sys; atexit.register(print, 'last words');"
        "sys.argv = ['mull', '--version'];"
        "from mull.cli.process import entry; entry()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines()[1:] == ["last words"]


def test_a_thread_that_still_works_is_waited_for():
    code = (
        "import sys, threading; gate = threading.Event();"
        "threading.Thread(target=lambda: (gate.wait(5), print('done'))).start();"
        "import threading as t; t._register_atexit(gate.set);"
        "sys.argv = ['mull', '--version'];"
        "from mull.cli.process import entry; entry()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines()[1:] == ["done"]
