"""`mull serve` as a process of its own, as users run it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ports import free_port

MULL = (sys.executable, "-m", "mull")
LIMIT_S = 60


def home_environ(home: Path, **more: str) -> dict[str, str]:
    """The variables of a user whose home this is, without keys and proxies."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": str(home), "NO_PROXY": "127.0.0.1", **more}


def write_config(
    file: Path, port: int, models: Mapping[str, Mapping[str, str]], **more: str
) -> Path:
    """A file for `--config`."""
    lines = ["[serve]", f'listen = "127.0.0.1:{port}"']
    lines += [f'{key} = "{value}"' for key, value in more.items()]
    for name, given in models.items():
        lines += [f'[serve.models."{name}"]', *(f'{key} = "{one}"' for key, one in given.items())]
    file.write_text("\n".join(lines) + "\n")
    return file


@contextmanager
def served(
    home: Path, models: Mapping[str, Mapping[str, str]], **more: str
) -> Iterator[tuple[str, Path]]:
    """The address and the configuration of a gateway that serves these models."""
    port = free_port()
    config = write_config(home / "serve.toml", port, models, **more)
    url = f"http://127.0.0.1:{port}"
    with (home / "serve.log").open("wb") as log:
        process = subprocess.Popen(
            [*MULL, "serve", "--config", str(config)],
            env=home_environ(home),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            _wait_healthy(url, process)
            yield url, config
        finally:
            process.terminate()
            process.wait(LIMIT_S)


def _wait_healthy(url: str, process: subprocess.Popen[bytes]) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    limit = time.monotonic() + LIMIT_S
    while True:
        assert process.poll() is None, "the gateway ended"
        assert time.monotonic() < limit, "the gateway does not answer"
        try:
            with opener.open(f"{url}/health", timeout=5):
                return
        except OSError:
            time.sleep(0.02)
