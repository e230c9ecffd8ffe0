"""Servers of tools that lie, flood, die, and change what they were approved as."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.attack.ground import KEY, Home, Ran, Server, Trial, attack, calling, crash_of, home

_KIND = "MCP"
_SERVER = Path(__file__).with_name("mcp_server.py")


def _configured(place: Home, form: str, url: str, more: str = "") -> None:
    table = (
        f"[mcp.evil]\ncommand = {json.dumps(sys.executable)}\n"
        f"args = [{json.dumps(str(_SERVER))}, {json.dumps(form)}]\n"
        f"timeout = 15\nstart_timeout = 15\n"
        f"env = {{ SEEN = {json.dumps(str(place.top / 'seen'))} }}\n{more}"
    )
    place.configure("openai-chat", url, table)


def _called(place: Home, form: str, *words: str, name: str = "mcp__evil__go") -> tuple[Ran, str]:
    """Have a model call the server's tool; gives what was sent back to the model, too."""
    with Server(calling("openai-chat", [(name, "{}")])) as server:
        _configured(place, form, server.url)
        ran = place.mull(
            "ask", "-m", "evil-openai-chat/m", "--tools", "all", *(words or ("--yes",)), "q"
        )
        return ran, server.bodies[-1].decode("utf-8", "replace") if server.bodies else ""


@attack(_KIND, "frames that are huge, broken, deep, of wrong types, ids or none")
def _frames() -> Iterator[Trial]:
    for form in (
        "plain",
        "huge",
        "surrogate",
        "type",
        "deep",
        "other id",
        "dies",
        "garbage",
        "progress",
    ):
        with home() as place:
            ran, told = _called(place, form)
            missing = None if '"role":"tool"' in told else "the model is told nothing"
            long = f"{ran.seconds:.0f} s" if ran.seconds > 14 and form != "silent" else None
            yield form, crash_of(ran, 0) or missing or long


@attack(_KIND, "a server that never answers")
def _silent() -> Iterator[Trial]:
    with home() as place:
        ran, _ = _called(place, "silent")
        yield "start", crash_of(ran, 0, 2, 4)


@attack(_KIND, "an application's error with the code of a lost connection")
def _error() -> Iterator[Trial]:
    with home() as place:
        ran, told = _called(place, "error")
        seen = (place.top / "seen").read_text(encoding="utf-8")
        after = seen.partition("tools/call")[2]
        restarted = "it was started again" if "initialize" in after else None
        hidden = None if "the application's own error" in told else "its words are hidden"
        yield "-32000", crash_of(ran, 0) or restarted or hidden


@attack(_KIND, "5,000 tools, names that shadow, schemas that are none")
def _listings() -> Iterator[Trial]:
    for form in ("many", "names", "schemas"):
        with home() as place:
            ran, told = _called(place, form)
            names = [one["function"]["name"] for one in json.loads(told or "{}").get("tools", [])]
            twice = (
                f"{len(names) - len(set(names))} names twice"
                if len(set(names)) < len(names)
                else None
            )
            yield form, crash_of(ran, 0) or twice or (None if told else "no request")


@attack(_KIND, "a tool that calls itself read-only after it was listed")
def _flip() -> Iterator[Trial]:
    with home() as place:
        _called(place, "flip")  # approved once, and changes what it says of itself
        ran, _ = _called(place, "flip", "--tools", "all")
        calls = (place.top / "seen").read_text(encoding="utf-8").count("tools/call")
        yield "later run", crash_of(ran, 0) or ("it ran unasked" if calls > 1 else None)


@attack(_KIND, "what a server learns of mull's environment and of the machine")
def _environment() -> Iterator[Trial]:
    with home() as place:
        ran, told = _called(place, "environment")
        leaked = "it got the key" if KEY in told else None
        yield "variables", crash_of(ran, 0) or leaked


@attack(_KIND, "requests of the server to mull: sampling, roots")
def _asks() -> Iterator[Trial]:
    with home() as place:
        ran, told = _called(place, "asks")
        yield "both", crash_of(ran, 0) or (None if "done" in told else "the call is lost")


@attack(_KIND, "escapes in descriptions and results, at a terminal")
def _escapes() -> Iterator[Trial]:
    from tools.attack.output import _at_a_terminal, _obeyed

    for words in (
        ("ask", "-m", "evil-openai-chat/m", "--tools", "all", "--yes", "q"),
        ("mcp", "list"),
        ("mcp", "show", "evil"),
    ):
        with home() as place, Server(calling("openai-chat", [("mcp__evil__go", "{}")])) as server:
            _configured(place, "escapes", server.url)
            yield " ".join(words[:2]), _obeyed(_at_a_terminal(place, *words))
