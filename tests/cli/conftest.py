"""Commands as a person types them, over the store of the test's own home."""

from __future__ import annotations

import io

import pytest

from mull.cli.main import main
from mull.store.sessions.sqlite import sessions_path


@pytest.fixture
def store_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return sessions_path()


@pytest.fixture
def call(request, capsys, monkeypatch):
    """Gives the exit status, standard output and standard error of a command.

    A module that names its `COMMAND` leaves it out of the words.
    """
    first = getattr(request.module, "COMMAND", None)

    def call(*words, stdin=None):
        if stdin is not None:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = main([*([first] if first else []), *words])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return status, out, err

    return call


@pytest.fixture
def run(call):
    """Gives what a command prints, or with status 2 what it says went wrong, and no more."""

    def run(*words, status=0):
        ended, out, err = call(*words)
        assert ended == status, err
        assert (out if status == 2 else err) == ""
        return err if status == 2 else out

    return run
