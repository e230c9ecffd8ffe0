"""The programs in `examples/`: what their servers answer, and how they are run and counted."""

from __future__ import annotations

import ast
import asyncio
import io
import json
import os
import re
import runpy
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from mull.testing import Call, Say, StrictServer, Think

FOLDER = Path(__file__).parents[1] / "examples"
INVOICE = {
    "seller": "Brew & Co",
    "bought": "2026-03-03",
    "items": [
        {"name": "teapot", "count": 2, "euros": 20},
        {"name": "kettle", "count": 1, "euros": 35.5},
    ],
    "total": 75.5,
}
REFUND = {"order": 1234, "euros": 40, "reason": "damaged"}


class Program(NamedTuple):
    """The peer's program, and the world of both: endpoints, arguments and what a user types."""

    peer: str
    scripts: dict[str, list]
    runs: tuple[tuple[str, ...], ...] = ((),)
    typed: str = ""


PROGRAMS = {
    "batch": Program(
        "batch_litellm",
        {"deepseek": [[Think("Multiply."), Say("It is the square.")]] * 200},
        runs=((), ()),
    ),
    "chat_server": Program(
        "chat_server_anthropic",
        {
            "anthropic": [
                [Think("2 + 2 is 4."), Say("Four.")],
                [Think("4 * 4 is 16."), Say("Sixteen.")],
            ]
        },
    ),
    "agent": Program(
        "agent_pydantic_ai",
        {
            "kimi": [
                [Think("Which order?"), Call("find_order", {"number": 1234})],
                [Think("It is broken: all of it."), Call("refund", {"refund": REFUND})],
                [Think("Done."), Say("You get your 40 euros back.")],
            ]
        },
        typed="y\n",
    ),
    "invoice": Program(
        "invoice_openai",
        {"openai": [[Think("40 and 35.50 are 75.50."), Say(json.dumps(INVOICE))]]},
    ),
    "attachments": Program(
        "attachments_anthropic",
        {"anthropic": [[Think("The chart rises."), Say("Yes: both say that sales doubled.")]]},
        runs=(("chart.png", "report.pdf"),),
    ),
    "switching": Program(
        "switching_litellm",
        {
            "anthropic": [
                [Think("Lisbon is warm."), Say("Go to Lisbon.")],
                [Think("All agreed."), Say("On Friday, then.")],
            ],
            "deepseek": [[Think("By night train."), Say("By train, overnight.")]],
        },
        runs=(
            ("Where is it warm?", "anthropic/claude-haiku-4-5"),
            ("How do I get there?", "deepseek/deepseek-v4"),
            ("When?", "anthropic/claude-haiku-4-5"),
        ),
    ),
}
VARIABLES = {
    "anthropic": ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
    "deepseek": ("DEEPSEEK_API_BASE", "DEEPSEEK_API_KEY"),
    "kimi": ("MOONSHOTAI_BASE_URL", "MOONSHOTAI_API_KEY"),
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_KEY"),
}
"""The address and the key of each provider, as the peers read them."""
PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)
PDF = b"%PDF-1.4\n%%EOF\n"


def lines_of_code(path: Path) -> int:
    """The lines that are neither blank, nor a comment, nor a docstring."""
    tree = ast.parse(path.read_text())
    docs = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    return sum(
        bool(text.strip()) and not text.strip().startswith("#") and number not in docs
        for number, text in enumerate(path.read_text().splitlines(), 1)
    )


@contextmanager
def world(name, monkeypatch, folder):
    """The server of a program, and a folder with its files to run it in."""
    program = PROGRAMS[name]
    monkeypatch.chdir(folder)
    (folder / "chart.png").write_bytes(PNG)
    (folder / "report.pdf").write_bytes(PDF)
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or it is fetched
    with ExitStack() as servers:
        made = {
            provider: servers.enter_context(StrictServer(provider, script))
            for provider, script in program.scripts.items()
        }
        for provider, server in made.items():
            address, key = VARIABLES[provider]
            monkeypatch.setenv(address, server.url)
            monkeypatch.setenv(key, "strict")
        yield made
    for provider, server in made.items():
        assert not server.refusals
        assert server.answered == len(program.scripts[provider])


def run(path, name, monkeypatch, capsys):
    """What a terminal shows of what the program prints, in all its runs."""
    program = PROGRAMS[name]
    for arguments in program.runs:
        monkeypatch.setattr(sys, "argv", [path.name, *arguments])
        monkeypatch.setattr(sys, "stdin", io.StringIO(program.typed))
        _execute(path)
    return _shown(capsys.readouterr().out)


def run_apart(path, name):
    """The same in processes of their own."""
    program = PROGRAMS[name]
    said = ""
    for arguments in program.runs:
        command = [sys.executable, __file__, str(path), *arguments]
        ended = subprocess.run(
            command, input=program.typed, capture_output=True, text=True, timeout=200, check=False
        )
        assert ended.returncode == 0, ended.stderr
        said += ended.stdout
    return _shown(said)


def _execute(path):
    names = runpy.run_path(str(path), run_name="__main__")
    if "app" in names:
        print(asyncio.run(_chat(names["app"])), end="")


async def _chat(app):
    first = await _get(app, "/chats/me", {"question": "What is 2 + 2?"})
    await _get(app, "/chats/me", {"question": "And squared?"})
    return first


def _shown(said):
    return re.sub(r"[^\n]*\r", "", said)


async def _get(app, path, query):
    """The body of an ASGI application's response."""
    body = []
    left = asyncio.Event()

    async def receive():
        if not body:
            body.append(b"")
            return {"type": "http.request", "body": b"", "more_body": False}
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        body.append(message.get("body", b""))
        if message["type"] == "http.response.body" and not message.get("more_body"):
            left.set()

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": urlencode(query).encode(),
        "headers": [],
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
    }
    await app(scope, receive, send)
    return b"".join(body).decode()


if __name__ == "__main__":
    if "MOONSHOTAI_BASE_URL" in os.environ:  # no setting of pydantic-ai changes this address
        from pydantic_ai.providers.moonshotai import MoonshotAIProvider

        MoonshotAIProvider.base_url = os.environ["MOONSHOTAI_BASE_URL"]
    sys.argv = sys.argv[1:]
    _execute(Path(sys.argv[0]))
