"""A server process without a model: lives and ends as the real one does.

Its directory may hold `wait` (it loads until that file is gone), `fail` (it says what is in it
and does not start) and `die` (it writes to its log and ends). It notes each launch in `launches`
and its environment in `environment`.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from pathlib import Path

from mull.local import life
from mull.local.place import ServerFolder

life.TICK = 0.01


class Fake:
    """Takes connections, and closes them."""

    def __init__(self) -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        threading.Thread(target=self._take, args=(listening,), daemon=True).start()

    def _take(self, listening: socket.socket) -> None:
        while True:
            listening.accept()[0].close()

    def work(self) -> tuple[int, bool]:
        return 0, False


def launch(key: str) -> Fake:
    with (DIRECTORY / "launches").open("a") as file:
        file.write(f"{os.getpid()}\n")
    (DIRECTORY / "environment").write_text("\n".join(os.environ))
    while (DIRECTORY / "wait").exists():
        time.sleep(0.01)
    if (DIRECTORY / "fail").exists():
        raise RuntimeError((DIRECTORY / "fail").read_text())
    if (DIRECTORY / "die").exists():
        print("loading\ncannot allocate a tensor", flush=True)
        os._exit(7)
    return Fake()


if __name__ == "__main__":
    DIRECTORY = Path(sys.argv[1])
    kept = "--kept" in sys.argv
    life.live(
        ServerFolder(DIRECTORY), launch, int(sys.argv[2]), model="local/fake", idle=600.0, kept=kept
    )
