"""`mull local`."""

from __future__ import annotations

import json
from argparse import ArgumentParser

import pytest

from mull.cli import local
from mull.local import manage, weights
from mull.local.manage import Status
from mull.local.place import Running
from mull.neutral.errors import ConfigError

RUNNING = Running(7, "http://127.0.0.1:5/v1", "canary-key", "local/smollm2", 0.0, 600.0, True)
STATUS = Status(
    pid=7,
    base_url="http://127.0.0.1:5/v1",
    port=5,
    model="local/smollm2",
    kept=False,
    uptime=125.4,
    idle=600.0,
    memory=300_000_000,
    tokens_read=1200,
    tokens_written=34,
    busy=True,
)


class Fake:
    def __init__(self, status: Status | None = None) -> None:
        self.now = status
        self.started: tuple | None = None

    def start(self, threads: int, idle: float) -> tuple[Running, bool]:
        self.started = (threads, idle)
        return RUNNING, self.now is None

    def stop(self) -> bool:
        return self.now is not None

    def status(self) -> Status | None:
        return self.now


@pytest.fixture
def run(monkeypatch, capsys):
    def command(*words: str, fake: Fake) -> tuple[int, str, str]:
        monkeypatch.setattr(manage, "embedded", lambda _: fake)
        parser = ArgumentParser()
        local.arguments(parser)
        status = local.run(parser.parse_args(words))
        said = capsys.readouterr()
        assert RUNNING.key not in said.out + said.err
        return status, said.out, said.err

    monkeypatch.setattr(weights, "is_installed", lambda: True)
    return command


def test_status(run):
    assert run("status", fake=Fake(STATUS)) == (
        0,
        "model    local/smollm2\n"
        "address  http://127.0.0.1:5/v1\n"
        "process  7, up 2 min 5 s\n"
        "memory   300 MB\n"
        "work     1,200 tokens read, 34 written, answering now\n"
        "ends     after 10 min idle, or with the last process that uses it\n",
        "",
    )


def test_status_as_json(run):
    code, out, _ = run("status", "--json", fake=Fake(STATUS))
    assert code == 0
    assert json.loads(out) == {
        "running": True,
        "installed": True,
        "pid": 7,
        "port": 5,
        "baseUrl": "http://127.0.0.1:5/v1",
        "model": "local/smollm2",
        "memory": 300_000_000,
        "uptime": 125.4,
        "idle": 600.0,
        "kept": False,
        "tokensRead": 1200,
        "tokensWritten": 34,
        "busy": True,
    }


def test_status_without_a_server(run, monkeypatch):
    assert run("status", fake=Fake()) == (0, "not running\n", "")
    monkeypatch.setattr(weights, "is_installed", lambda: False)
    said = "not installed; `mull local install` downloads it\n"
    assert run("status", fake=Fake()) == run(fake=Fake()) == (0, said, "")
    code, out, _ = run("status", "--json", fake=Fake())
    assert (code, json.loads(out)) == (0, {"running": False, "installed": False})


def test_start_says_that_the_model_is_small(run):
    fake = Fake()
    code, out, err = run("start", fake=fake)
    assert (code, out) == (0, "local/smollm2 runs at http://127.0.0.1:5/v1\n")
    assert "very small model" in err
    assert "often wrong" in err
    assert fake.started == (1, 600.0)


def test_start_with_options_as_json(run):
    fake = Fake(STATUS)
    _, out, err = run("start", "--threads", "2", "--idle", "1.5", "--json", fake=fake)
    assert json.loads(out) == {
        "started": False,
        "pid": 7,
        "baseUrl": "http://127.0.0.1:5/v1",
        "model": "local/smollm2",
    }
    assert err == ""
    assert fake.started == (2, 90.0)


def test_stop(run):
    assert run("stop", fake=Fake(STATUS)) == (0, "stopped\n", "")
    assert run("stop", fake=Fake()) == (0, "it is not running\n", "")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("stop", "--idle", "5"), "only work with `mull local start`"),
        (("start", "--idle", "0"), "must be greater than 0"),
        (("start", "--threads", "0"), "must be greater than 0"),
    ],
)
def test_options_that_make_no_sense(run, words, text):
    with pytest.raises(ConfigError, match=text):
        run(*words, fake=Fake())


def test_install_does_nothing_twice(run, monkeypatch, tmp_path):
    monkeypatch.setattr("mull.local.install.install", lambda: False)
    monkeypatch.setattr(weights, "require", lambda: tmp_path)
    code, out, _ = run("install", "--json", fake=Fake())
    assert (code, json.loads(out)) == (0, {"installed": True, "fetched": False})


def test_alone_it_says_how_things_stand(run):
    assert run(fake=Fake(STATUS)) == run("status", fake=Fake(STATUS))
