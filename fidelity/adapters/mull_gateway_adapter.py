"""mull's gateway: one model of each provider, served under its own name."""

import sys
import tempfile
from pathlib import Path

import faithful_adapter
from line import serve
from proxy import PROVIDERS, free_port, start, upstream_of

NAMES = {"gemini": "google", "kimi": "moonshotai", "compatible": "openai-compatible"}
VERSIONS = {"openai-chat": "/v1", "openai-responses": "/v1", "gemini": "/v1beta"}


def config(upstream):
    lines = []
    for provider, (dialect, models) in PROVIDERS.items():
        name = NAMES.get(provider, provider)
        lines += [f'[providers."{name}"]', f'base_url = "{upstream}{VERSIONS.get(dialect, "")}"']
        lines += ['key_env = "FIDELITY_KEY"', ""]
        for model in models:
            lines += [f'[serve.models."{model}"]', f'model = "{name}/{model}"', ""]
    return "\n".join(lines)


class Client(faithful_adapter.Client):
    started = None

    def gateway(self, at):
        if Client.started is None:
            home, port = Path(tempfile.mkdtemp()), free_port()
            (home / "config.toml").write_text(config(upstream_of(at)))
            command = [sys.executable, "-m", "mull", "serve", "--listen", f"127.0.0.1:{port}"]
            command += ["--config", str(home / "config.toml")]
            Client.started = start(command, port, FIDELITY_KEY="x", XDG_DATA_HOME=str(home))
        return Client.started


serve(Client)
