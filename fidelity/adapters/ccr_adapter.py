"""claude-code-router: a provider of each API, its models named after it."""

import json
import sys
import tempfile
from pathlib import Path

import faithful_adapter
from line import NotClaimed, serve
from proxy import PROVIDERS, free_port, start, upstream_of

PATHS = {"anthropic": "/v1/messages", "openai-responses": "/v1/responses"}
PATHS |= {"gemini": "/v1beta/models/", "openai-chat": "/v1/chat/completions"}
USES = {"anthropic": "Anthropic", "openai": "openai-responses", "gemini": "gemini"}
USES |= {"openrouter": "openrouter", "deepseek": "deepseek"}
SERVER = "node_modules/@musistudio/claude-code-router/dist/cli.js"


def config(upstream, port):
    providers = [
        {
            "name": provider,
            "api_base_url": upstream + PATHS[dialect],
            "api_key": "x",
            "models": models,
            "transformer": {"use": [USES.get(provider, "reasoning")]},
        }
        for provider, (dialect, models) in PROVIDERS.items()
    ]
    route = {"default": "kimi,kimi-k2.5"}
    about = {"HOST": "127.0.0.1", "PORT": port, "APIKEY": faithful_adapter.KEY, "LOG": False}
    return json.dumps({**about, "Providers": providers, "Router": route})


class Client(faithful_adapter.Client):
    started = None

    def gateway(self, at):
        if (self.dialect or at["dialect"]) != "anthropic":
            raise NotClaimed("routes requests of the Messages API alone")
        if Client.started is None:
            (node, home), port = sys.argv[1:], free_port()
            folder = Path(tempfile.mkdtemp())
            (folder / ".claude-code-router").mkdir()
            settings = folder / ".claude-code-router" / "config.json"
            settings.write_text(config(upstream_of(at), port))
            Client.started = start([node, str(Path(home) / SERVER), "start"], port, HOME=folder)
        at["model"] = f"{at['provider']},{at['model'].rpartition(',')[2]}"
        return Client.started


serve(Client)
