"""`mull ask --tools` as people run it, a process of its own, on every strict server.

Ten rounds with mull's own tools in a real folder; in the middle the process is killed by a signal
that cannot be caught, and another one goes on. No request may be refused and no round be lost.
"""

import os
import signal
import subprocess
import sys
import time

import pytest

from mull.agent.processes import members
from mull.testing import Call, Say, StrictServer, Think

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

MODELS = {
    "anthropic": "anthropic/claude-sonnet-4-5",
    "deepseek": "deepseek/deepseek-v4-pro",
    "gemini": "google/gemini-3-pro-preview",
    "kimi": "moonshotai/kimi-k2.5",
    "openai": "openai/gpt-5",
}
PATIENCE = 60
ROUNDS, KILLED_IN = 10, 4


def start(folder, server, provider, *words):
    place = ["-m", MODELS[provider], "--base-url", server.url]
    return subprocess.Popen(
        [sys.executable, "-m", "mull", "ask", *place, "--tools", "all", "--yes", *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def script():
    for at in range(ROUNDS):
        look = Call("read", {"path": "n"})
        if at == KILLED_IN:
            look = Call("run", {"command": "echo $$ > pid; sleep 600"})
        yield [
            Think(f"thought {at}"),
            look,
            Call("edit", {"path": "n", "old": str(at), "new": str(at + 1)}),
        ]
    yield [Think("that is all"), Say("It is ten.")]
    yield [Think("again"), Say("Still ten.")]


@pytest.mark.parametrize("provider", MODELS)
def test_ten_rounds_outlive_a_killed_process(provider, tmp_path):
    (tmp_path / "n").write_text("0")
    pid = tmp_path / "pid"
    with StrictServer(provider, script()) as server:
        with start(tmp_path, server, provider, "Count to ten.") as first:
            until = time.monotonic() + PATIENCE
            while not (pid.exists() and pid.read_text() and (tmp_path / "n").read_text() == "5"):
                assert first.poll() is None
                assert time.monotonic() < until
                time.sleep(0.02)
            first.kill()
        for left in members(int(pid.read_text())):
            os.kill(left, signal.SIGKILL)
        for question, answer in (("Go on.", "It is ten.\n"), ("And now?", "Still ten.\n")):
            with start(tmp_path, server, provider, "--continue", question) as going:
                out, err = going.communicate(timeout=PATIENCE)
            assert (going.returncode, out) == (0, answer), err
    assert server.refusals == []
    assert server.answered == ROUNDS + 2
    assert (tmp_path / "n").read_text() == "10"
    # every thought of the turn that was gone on with came back
    assert (
        server.returned[ROUNDS][-(ROUNDS - KILLED_IN - 1) :]
        == server.issued[KILLED_IN + 1 : ROUNDS]
    )
