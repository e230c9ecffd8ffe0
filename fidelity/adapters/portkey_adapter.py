"""Portkey's gateway: headers of each request name the provider and its address."""

import sys
from pathlib import Path

import faithful_adapter
from line import NotClaimed, serve
from proxy import free_port, start, upstream_of

PROVIDERS = {"gemini": "google", "anthropic": "anthropic", "openrouter": "openrouter"}
"""Servers of Chat Completions are reached as openai with another host: its own transformation for
Kimi drops tool calls.
"""
ROUTES = {("anthropic", "anthropic"), ("openai-responses", "openai-responses")}
ROUTES |= {("openai-chat", at) for at in ("openai-chat", "anthropic", "gemini")}
"""The APIs of clients and models that it joins."""
SERVER = "node_modules/@portkey-ai/gateway/build/start-server.js"


class Client(faithful_adapter.Client):
    started = None

    def gateway(self, at):
        speaks = self.dialect or at["dialect"]
        if (speaks, at["dialect"]) not in ROUTES:
            raise NotClaimed(f"does not join a client of {speaks} to a model of {at['dialect']}")
        if Client.started is None:
            node, home = sys.argv[1:]
            port = free_port()
            command = [node, str(Path(home) / SERVER), f"--port={port}", "--headless"]
            Client.started = start(command, port)
        version = "/v1beta" if at["dialect"] == "gemini" else "/v1"
        faithful_adapter.HEADERS |= {
            "x-portkey-provider": PROVIDERS.get(at["provider"], "openai"),
            "x-portkey-custom-host": upstream_of(at) + version,
            "x-portkey-strict-open-ai-compliance": "false",
        }
        return Client.started


class Chat(faithful_adapter.Chat):
    """With its own additions: `thinking` asks for thoughts, `content_blocks` has them."""

    def body(self, history):
        body = super().body(history)
        if body.pop("reasoning_effort", None):
            body |= faithful_adapter.BUDGET
        return body

    def read(self, given):
        (message,), report = super().read(given)
        blocks = [self.block(one) for one in message.get("content_blocks") or ()]
        if blocks:
            message["content_blocks"] = blocks
            thoughts = [one["thinking"] for one in blocks if "thinking" in one]
            report["thinking"] = "\n\n".join(thoughts) or report["thinking"]
        return [message], report

    def block(self, one):
        """A block of a stream has its fields in a delta, and no type."""
        if "delta" not in one:
            return one
        kinds = {"thinking": "thinking", "data": "redacted_thinking"}
        kind = next((kinds[key] for key in kinds if key in one["delta"]), "text")
        return {"type": kind, **one["delta"]}


faithful_adapter.APIS["openai-chat"] = Chat
serve(Client)
