"""Other gateways, from the environments of the fidelity suite; what cannot run here is left out,
and said so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from bench.peers import leave_out, peer_command, peer_home
from bench.serving.process import Measured, free_port
from mull.testing.fidelity.peers import cache_folder, load_peers

_KEY = "sk-bench-made-up"
_CONFIG = """
model_list:
  - model_name: short
    litellm_params: {model: openai/deepseek-reasoner, api_base: "URL/short/v1", api_key: sk-x}
  - model_name: long
    litellm_params: {model: openai/deepseek-reasoner, api_base: "URL/long/v1", api_key: sk-x}
litellm_settings: {telemetry: false, num_retries: 0}
"""
_MODELS = ("short", "long")
_CHAT, _MESSAGES = "/v1/chat/completions", "/v1/messages"


class Started(NamedTuple):
    """A gateway that runs, and the headers that a request to a model of its upstream needs. It may
    want another name for a model.
    """

    server: Measured
    headers: Mapping[str, Mapping[str, str]]
    path: str = _CHAT
    model: str = "{}"


class Peer(NamedTuple):
    """A gateway with its name and version."""

    name: str
    started: Started


def peers(url: str, home: Path, env: Mapping[str, str]) -> Iterator[Peer]:
    """Those that can be had, one after another."""
    for name, start in _STARTS.items():
        if peer_command(name) is None:
            continue
        version = load_peers()[name].installed(name, cache_folder())
        try:
            started = start(peer_home(name), url, home, env)
        except (OSError, RuntimeError) as error:
            leave_out(name, str(error))
            continue
        yield Peer(f"{name} {version}", started)


def _litellm(place: Path, url: str, home: Path, env: Mapping[str, str]) -> Started:
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
    return Started(Measured(command, port, env | own), dict.fromkeys(_MODELS, bearer))


def _portkey(place: Path, url: str, home: Path, env: Mapping[str, str]) -> Started:
    script = place / "node_modules" / "@portkey-ai" / "gateway" / "build" / "start-server.js"
    port = free_port()
    own = {"NODE_ENV": "production", "TRUSTED_CUSTOM_HOSTS": "127.0.0.1,localhost"}
    server = Measured([_node(), str(script), f"--port={port}", "--headless"], port, env | own)
    usual = {"authorization": "Bearer sk-x", "x-portkey-provider": "openai"}
    hosts = {model: f"{url}/{model}/v1" for model in _MODELS}
    headers = {m: usual | {"x-portkey-custom-host": at} for m, at in hosts.items()}
    return Started(server, headers)


def _router(place: Path, url: str, home: Path, env: Mapping[str, str]) -> Started:
    program = place / "node_modules" / "@musistudio" / "claude-code-router" / "dist" / "cli.js"
    folder, port = home / ".claude-code-router", free_port()
    providers = [
        {
            "name": model,
            "api_base_url": f"{url}/{model}{_CHAT}",
            "api_key": "sk-x",
            "models": [model],
            "transformer": {"use": ["reasoning"]},
        }
        for model in _MODELS
    ]
    about = {"HOST": "127.0.0.1", "PORT": port, "APIKEY": _KEY, "LOG": False}
    folder.mkdir()
    given = {**about, "Providers": providers, "Router": {"default": "short,short"}}
    (folder / "config.json").write_text(json.dumps(given))
    server = Measured([_node(), str(program), "start"], port, env)
    key = {"x-api-key": _KEY}
    return Started(server, {f"{m},{m}": key for m in _MODELS}, _MESSAGES, "{0},{0}")


def _node() -> str:
    return str(cache_folder() / "node" / "bin" / "node")


_STARTS = {"litellm-proxy": _litellm, "portkey": _portkey, "claude-code-router": _router}
