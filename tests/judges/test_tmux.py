"""tmux as the judge of the scrollback: it breaks lines anew when a window changes. Needs `tmux`."""

import os
import re
import shutil
import subprocess
import sys
import time

import pytest

from mull.testing.server import Gate, ScriptedServer
from tui.scripts import answer, say, think

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed"),
]
PATIENCE = 30
MOVING = re.compile(r".*(?:· Esc interrupts|thinker ·).*")


class Tmux:
    """One program in a window of tmux, without anybody's configuration."""

    def __init__(self, folder, *program):
        self._server = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        self._folder = folder
        self._do("new-session", "-d", "-s", "m", "-x", "100", "-y", "30", *program)
        self._do("set", "-g", "window-size", "manual")

    def _do(self, *words):
        run = subprocess.run(
            [*self._server, *words], cwd=self._folder, capture_output=True, text=True, check=True
        )
        return run.stdout

    @property
    def everything(self):
        return self._do("capture-pane", "-p", "-S", "-", "-t", "m")

    def press(self, *keys):
        self._do("send-keys", "-t", "m", *keys)

    def resize(self, columns, rows):
        self._do("resize-window", "-t", "m", "-x", str(columns), "-y", str(rows))

    def wait_for(self, holds):
        until = time.monotonic() + PATIENCE
        while not holds(self.everything):
            assert time.monotonic() < until, self.everything
            time.sleep(0.05)

    def wait_still(self):
        """Return when nothing has changed for a while: a window is drawn for once it rests."""
        before = ""
        while before != (now := MOVING.sub("", self.everything)):
            before = now
            time.sleep(0.5)

    def end(self):
        subprocess.run([*self._server, "kill-server"], check=False, capture_output=True)


@pytest.fixture
def tmux(tmp_path):
    started = []

    def start(*program):
        started.append(Tmux(tmp_path, *program))
        return started[-1]

    yield start
    for one in started:
        one.end()


def test_nothing_stands_twice_whatever_the_window_does(tmux, tmp_path):
    gate = Gate()
    thought = "\n\n".join(f"thought-{n:03} " + "t " * 60 for n in range(15))
    text = "\n\n".join(f"para-{n:03} " + "w " * 70 for n in range(30))
    live = answer(think("again"), say("live-one " + "word " * 60), gate, say(" live-end"))
    words = [f"thought-{n:03}" for n in range(15)] + [f"para-{n:03}" for n in range(30)]
    with ScriptedServer([answer(think(thought), say(text)), live]) as server:
        own = [f"{name}={os.environ[name]}" for name in os.environ if name.startswith("MULL_")]
        where = ("-m", "openai-compatible/thinker", "--base-url", server.url, "--view", "full")
        screen = tmux("env", f"HOME={tmp_path}", *own, sys.executable, "-m", "mull", *where)

        def check():
            screen.wait_still()
            now = screen.everything
            assert {word: now.count(word) for word in words} == dict.fromkeys(words, 1)
            assert now.count("thinker ·") == 1

        screen.wait_for(lambda now: "/help lists" in now)
        screen.press("go", "Enter")
        screen.wait_for(lambda now: "para-029" in now and "· Esc interrupts" not in now)
        check()
        for columns in (90, 80, 70, 60, 50, 60, 80, 100, 40, 100):
            screen.resize(columns, 30)
            check()
        for rows in (20, 35, 30):
            screen.resize(100, rows)
            check()
        screen.press("C-t")
        screen.wait_for(lambda now: "q closes" in now)
        screen.press("q")
        screen.wait_for(lambda now: "q closes" not in now)
        check()
        screen.press("/theme high-contrast", "Enter")
        screen.wait_for(lambda now: "Theme:" in now)
        check()
        words += ["live-one"]
        screen.press("again", "Enter")
        screen.wait_for(lambda now: "live-one" in now)
        for columns in (70, 50, 100):
            screen.resize(columns, 30)
            check()
        gate.open()
        screen.wait_for(lambda now: "live-end" in now)
        check()
