"""What adapters of gateways share: the models to serve, and waiting for the gateway."""

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.parse

PROVIDERS = {
    "anthropic": ("anthropic", ("claude-sonnet-4-5", "claude-opus-5-5", "claude-nova-9")),
    "openai": ("openai-responses", ("gpt-5", "gpt-9-nova", "gpt-oss-120b")),
    "gemini": ("gemini", ("gemini-3-pro-preview", "gemini-9-pro")),
    "openrouter": ("openai-chat", ("anthropic/claude-sonnet-4.5", "anthropic/claude-nova-9")),
    "kimi": ("openai-chat", ("kimi-k2.5", "kimi-k9-preview")),
    "deepseek": ("openai-chat", ("deepseek-v4-pro", "deepseek-v9")),
    "zai": ("openai-chat", ("glm-4.7",)),
    "vllm": ("openai-chat", ("Qwen/Qwen3-32B",)),
    "llama.cpp": ("openai-chat", ("qwen3-8b",)),
    "compatible": ("openai-chat", ("acme-reasoner-9", "acme-gemini-3")),
}
"""The models of the suite by provider, and the API that serves them."""


def upstream_of(at):
    """The address of the judge, without the name of an endpoint."""
    parts = urllib.parse.urlsplit(at["url"])
    return f"{parts.scheme}://{parts.netloc}"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def start(command, port, seconds=200, **environ):
    """Start a gateway and wait until it listens; returns its address."""
    options = {"stdin": subprocess.DEVNULL, "stdout": sys.stderr, "env": {**os.environ, **environ}}
    process = subprocess.Popen(command, **options)
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return f"http://127.0.0.1:{port}"
        time.sleep(0.2)
    raise SystemExit(f"{command[0]} does not listen on port {port}")
