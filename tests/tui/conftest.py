"""Programs that a test has started in a terminal end with it."""

from __future__ import annotations

import pytest

from tui.fronts import at_terminal
from tui.terminal import Terminal


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Starts mull at a terminal, in a folder of its own."""
    started = []
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def start(*words, **how):
        started.append(Terminal(*words, **how))
        return started[-1]

    yield start
    for terminal in started:
        terminal.close()


@pytest.fixture
def converse(start):
    """Starts a conversation with a model on a server, and waits until it can begin."""

    def converse(server, *words, model="openai-compatible/thinker", **how):
        terminal = start("-m", model, "--base-url", server.url, *words, **how)
        terminal.wait_for("/help lists commands")
        return terminal

    return converse


@pytest.fixture
def talk(request, tmp_path):
    """A conversation without a terminal; a module's `REPLIES` and `HOW` say over which server."""
    module = request.module
    replies, how = getattr(module, "REPLIES", ()), getattr(module, "HOW", {})
    with at_terminal(tmp_path, *replies, **how) as one:
        yield one
