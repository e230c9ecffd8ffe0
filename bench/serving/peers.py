"""Other gateways, each in an environment of its own, which is made once; what cannot be installed
is left out, and said so. They are slow to install and to measure, so they are asked for: PEERS=1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from bench.client import ROOT, say
from bench.serving.process import Measured, free_port

PLACE = Path(os.environ.get("MULL_BENCH_PEERS") or ROOT / ".venv-peers") / "gateways"
_KEY = "sk-bench-0123456789"
_CONFIG = """
model_list:
  - model_name: short
    litellm_params: {model: openai/deepseek-reasoner, api_base: "URL/short/v1", api_key: sk-x}
  - model_name: long
    litellm_params: {model: openai/deepseek-reasoner, api_base: "URL/long/v1", api_key: sk-x}
litellm_settings: {telemetry: false, num_retries: 0}
"""


class Peer(NamedTuple):
    """A gateway that runs, and the headers that a request to a model of its upstream needs."""

    name: str
    server: Measured
    headers: Mapping[str, Mapping[str, str]]


def peers(url: str, home: Path, env: Mapping[str, str]) -> Iterator[Peer]:
    """Those that can be had."""
    for start in (_litellm, _portkey):
        try:
            yield start(url, home, env)
        except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
            say(f"left out: {start.__name__.strip('_')} ({error})")


def _litellm(url: str, home: Path, env: Mapping[str, str]) -> Peer:
    place = PLACE / "litellm"
    if not (place / "bin" / "litellm").exists():
        say(f"installing litellm into {place}, once ...")
        venv.create(place, with_pip=True)
        _run(str(place / "bin" / "pip"), "install", "--quiet", "litellm[proxy]")
    config, port = home / "litellm.yaml", free_port()
    config.write_text(_CONFIG.replace("URL", url))
    own = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOG": "ERROR",
        "LITELLM_MODE": "PRODUCTION",
        "LITELLM_MASTER_KEY": _KEY,
        "DO_NOT_TRACK": "1",
    }
    command = [str(place / "bin" / "litellm"), "--config", str(config), "--host", "127.0.0.1"]
    command += ["--port", str(port), "--telemetry", "False"]
    bearer = {"authorization": f"Bearer {_KEY}"}
    return Peer(
        "litellm's proxy", Measured(command, port, env | own), dict.fromkeys(_MODELS, bearer)
    )


def _portkey(url: str, home: Path, env: Mapping[str, str]) -> Peer:
    place, npm = PLACE / "portkey", shutil.which("npm")
    script = place / "node_modules" / "@portkey-ai" / "gateway" / "build" / "start-server.js"
    if npm is None:
        raise RuntimeError("npm is missing")
    if not script.exists():
        say(f"installing Portkey into {place}, once ...")
        place.mkdir(parents=True, exist_ok=True)
        _run(npm, "install", "--prefix", str(place), "@portkey-ai/gateway")
    port = free_port()
    own = {"NODE_ENV": "production", "TRUSTED_CUSTOM_HOSTS": "127.0.0.1,localhost"}
    server = Measured(["node", str(script), f"--port={port}", "--headless"], port, env | own)
    usual = {"authorization": "Bearer sk-x", "x-portkey-provider": "openai"}
    hosts = {model: f"{url}/{model}/v1" for model in _MODELS}
    return Peer(
        "Portkey", server, {m: usual | {"x-portkey-custom-host": at} for m, at in hosts.items()}
    )


_MODELS = ("short", "long")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=sys.stderr)
