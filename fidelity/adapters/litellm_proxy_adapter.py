"""litellm's proxy: one model of each provider, served under its own name."""

import json
import secrets
import sys
import tempfile
from pathlib import Path

import faithful_adapter
from line import serve
from proxy import PROVIDERS, free_port, start, upstream_of

PREFIXES = {"kimi": "moonshot", "vllm": "hosted_vllm", "llama.cpp": "openai"}
PREFIXES |= {"compatible": "openai", "openai": "openai/responses"}


def config(upstream):
    """A configuration; YAML contains JSON."""
    models = [
        {
            "model_name": model,
            "litellm_params": {
                "model": f"{PREFIXES.get(provider, provider)}/{model}",
                "api_base": upstream + ("" if dialect in ("anthropic", "gemini") else "/v1"),
                "api_key": "x",
            },
        }
        for provider, (dialect, names) in PROVIDERS.items()
        for model in names
    ]
    settings = {"drop_params": True, "num_retries": 0, "telemetry": False}
    found = {"model_list": models, "litellm_settings": settings}
    return json.dumps({**found, "router_settings": {"disable_cooldowns": True}})


class Client(faithful_adapter.Client):
    started = None

    def gateway(self, at):
        if Client.started is None:
            home, port = Path(tempfile.mkdtemp()), free_port()
            (home / "config.yaml").write_text(config(upstream_of(at)))
            program = Path(sys.executable).with_name("litellm")
            command = [str(program), "--config", str(home / "config.yaml"), "--port", str(port)]
            command += ["--host", "127.0.0.1"]
            faithful_adapter.KEY = key = f"sk-{secrets.token_hex(32)}"
            environ = {"LITELLM_MASTER_KEY": key, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
            Client.started = start(command, port, **environ)
        return Client.started


serve(Client)
