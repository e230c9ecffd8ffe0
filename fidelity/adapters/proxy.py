"""What adapters of gateways share: the models to serve, and waiting for the gateway."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path

CASES = Path(__file__).resolve().parents[1] / "cases"
UNPLAYED = ("bedrock", "mistral")
"""Providers that the client in front of a gateway does not play."""


def providers():
    """The models of the suite by provider, and the API that serves them, from its cases."""
    found = {}
    for file in sorted(CASES.glob("*.json")):
        for case in json.loads(file.read_text("utf-8")):
            for at in case["endpoints"].values():
                if at["provider"] not in UNPLAYED:
                    _, models = found.setdefault(at["provider"], (at["dialect"], []))
                    models += [at["model"]] if at["model"] not in models else []
    return found


PROVIDERS = providers()


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


if __name__ == "__main__":
    for provider, (dialect, models) in PROVIDERS.items():
        print(f"{provider:12} {dialect:18} {', '.join(models)}")
