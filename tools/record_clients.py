"""Records what coding agents send, into `tests/fixtures/clients`.

    python -m tools.record_clients [NAME ...]

The agents are those of tools/agents.py, installed if they are missing. Each is run without a
terminal, in a home and a project made for it, against a server on loopback that plays the model,
and asked twice in one conversation. What names this machine or its user gets a plain name.
"""

from __future__ import annotations

import argparse
import platform
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from mull.dialects.serving import answer_writer, decode_request, write_answer
from mull.dialects.writer import About
from mull.neutral.asked import Asked
from mull.neutral.assemble import tell
from mull.neutral.blocks import (
    Block,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Wire,
)
from mull.neutral.messages import Dialect, Message, assistant
from mull.neutral.usage import Usage
from mull.testing import Call, Say, Think
from mull.testing.server import Recorded, Reply, ScriptedServer
from tools.agents import PACKAGES, PATH, install
from tools.clients import CLIENTS, Client, Scripted

FIXTURES = Path(__file__).parent.parent / "tests" / "fixtures" / "clients"
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c4944415408d763f8cfc000000301010018dd8db00000000049454e44ae426082"
)
FILES = {"notes.txt": b"Milk, bread.\nTea.\n", "picture.png": PICTURE}
QUESTIONS = ("What do notes.txt and picture.png hold?", "Add coffee to notes.txt.")
LIMIT_S = 60
DIALECTS: Mapping[str, Dialect] = {
    "/messages": "anthropic",
    "/chat/completions": "openai-chat",
    "/responses": "openai-responses",
    "enerateContent": "gemini",
}
"""The dialect of a request, by the end of its path."""
COUNTED = {":countTokens": {"totalTokens": 1000}, "/count_tokens": {"input_tokens": 1000}}
HEADERS = re.compile(r"anthropic-(beta|version)|originator|user-agent|.*(session|thread|codex)")
LONG, KEPT = 800, 200
"""A text of more characters than this is cut, and how much of it is kept."""


class Player:
    """Plays the model: requests that offer tools get the script's answers, others a few words."""

    def __init__(self, client: Client, project: Path) -> None:
        self._script = iter(client.script)
        self._project = project
        self._numbers = count(1)

    def reply(self, recorded: Recorded) -> Reply:
        """The answer to one request."""
        path = recorded.path.partition("?")[0]
        dialect = next((d for end, d in DIALECTS.items() if path.endswith(end)), None)
        if dialect is None:
            counts = (Reply.json(known) for end, known in COUNTED.items() if path.endswith(end))
            return next(counts, None) or Reply.json({"error": {"message": "not here"}}, 404)
        asked = decode_request(dialect, recorded.body, recorded.path, recorded.headers)
        acts = next(self._script, (Say("Done."),)) if asked.tools else (Say(_aside(asked)),)
        message = self._message(dialect, acts)
        about = About(id=f"resp_{next(self._numbers)}", model=asked.model)
        if not asked.stream:
            return Reply.json(msgspec.Raw(write_answer(message, dialect, about).body))
        writer = answer_writer(dialect, about)
        return Reply.events(*(*map(writer.feed, tell(message)), writer.close()))

    def _message(self, dialect: Dialect, acts: Sequence[Scripted]) -> Message:
        blocks: list[Block] = []
        for act in acts:
            is_first = not any(isinstance(block, ToolCallBlock) for block in blocks)
            blocks.append(self._block(dialect, act, is_first))
        calls = not isinstance(acts[-1], Say)
        ending = "tool_calls" if calls else "stop"
        return assistant(*blocks, stop_reason=ending, usage=Usage(input=1000, output=100))

    def _block(self, dialect: Dialect, act: Scripted, is_first: bool) -> Block:
        number = next(self._numbers)
        carrier = b64encode(f"carrier {number}".encode()).decode()
        match act:
            case Think(text, hidden):
                return _thought(dialect, text, hidden, number, carrier)
            case Say(text):
                return TextBlock(text, wire=_named(dialect, f"msg_{number}"))
            case Call(name, given):
                here = msgspec.json.encode(given).replace(b"{project}", bytes(self._project))
                signature = carrier if dialect == "gemini" and is_first else None
                wire = _named(dialect, f"fc_{number}")
                call = msgspec.json.decode(here)
                return ToolCallBlock(f"call_{number}", name, call, None, signature, wire)
        return OpaqueBlock({**act.data, "id": f"item_{number}", "call_id": f"call_{number}"})


def _named(dialect: Dialect, name: str) -> Wire | None:
    """The id of an item, where blocks are items."""
    return Wire(dialect, {"id": name}) if dialect == "openai-responses" else None


def _thought(dialect: Dialect, text: str, hidden: bool, number: int, carrier: str) -> ThinkingBlock:
    match dialect:
        case "anthropic" if hidden:
            return ThinkingBlock("", "redacted_thinking", redacted=carrier)
        case "anthropic":
            return ThinkingBlock(text, "thinking", signature=carrier)
        case "openai-responses":
            shown = "" if hidden else text
            return ThinkingBlock(shown, encrypted=carrier, id=f"rs_{number}", kind="summary")
        case "gemini":
            return ThinkingBlock(text)
    return ThinkingBlock(text, "reasoning_content")


def _aside(asked: Asked) -> str:
    """A few words, or an object with the names of a schema."""
    if asked.format is None:
        return "Notes and a picture"
    names = (asked.format.schema or {}).get("properties", {})
    return msgspec.json.encode(dict.fromkeys(names, True)).decode()


def record(client: Client, root: Path) -> Iterator[list[Recorded]]:
    """The requests of a conversation with an agent, by question."""
    home, project = root / "home", root / "project"
    project.mkdir()
    home.mkdir()
    for name, data in FILES.items():
        (project / name).write_bytes(data)
    with ScriptedServer(Player(client, project).reply) as server:
        words = {"{url}": server.url, "{home}": str(home), "{project}": str(project)}
        for name, text in client.files.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(_filled(text, words))
        variables = {"HOME": str(home), "PATH": PATH, "USER": "user", "LANG": "C.UTF-8"}
        variables |= {name: _filled(value, words) for name, value in client.variables.items()}
        for command, question in zip(client.commands, QUESTIONS, strict=True):
            asking = {**words, "{question}": question}
            _run([_filled(word, asking) for word in shlex.split(command)], project, variables)
            yield server.requests
            server.requests = []


def _filled(text: str, words: Mapping[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def _run(command: Sequence[str], project: Path, variables: Mapping[str, str]) -> None:
    done = subprocess.run(
        command,
        cwd=project,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    print(f"$ {shlex.join(command)}\n{done.stdout[-400:]}{done.stderr[-400:]}")


class Cleaner:
    """Puts plain names in the place of what belongs to this machine, the same ones each time."""

    def __init__(self, root: Path) -> None:
        self._names = {
            str(root / "project"): "/home/user/project",
            str(root / "home"): "/home/user",
            root.name: "user",
            socket.gethostname(): "host",
            platform.release(): "6.1.0",
        }
        self._ids: dict[str, str] = {}

    def clean(self, value: Any) -> Any:
        """The value with its texts cleaned and the long ones cut, keys too."""
        match value:
            case str():
                return self._text(value)
            case dict():
                return {self._text(name): self.clean(held) for name, held in value.items()}
            case list():
                return [self.clean(held) for held in value]
        return value

    def _text(self, text: str) -> str:
        for pattern in _IDS:
            text = pattern.sub(self._plain, _filled(text, self._names))
        if len(text) > LONG:
            return f"{text[:KEPT]} [{len(text) - KEPT} characters cut]"
        return text

    def _plain(self, found: re.Match[str]) -> str:
        """An id of the same form, by the order in which they come."""
        if found[0] not in self._ids:
            digits = re.sub("[0-9A-Za-z]", "0", found[0])
            number = str(len(self._ids) + 1)
            self._ids[found[0]] = digits[: -len(number)] + number
        return self._ids[found[0]]


_IDS = (
    re.compile(r"(?<![0-9a-f])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f])"),
    re.compile(r"(?<![0-9a-f])[0-9a-f]{32,}(?![0-9a-f])"),
    re.compile(r"(?<=\bses_)[0-9A-Za-z]{20,}"),
)


def kept(requests: Iterable[Recorded]) -> dict[str, Recorded]:
    """The last request that offers tools, which has the whole history, and one of each other."""
    chosen: dict[str, Recorded] = {}
    for recorded in requests:
        path = recorded.path.partition("?")[0]
        if any(path.endswith(end) for end in COUNTED):
            chosen["count"] = recorded
        for end, dialect in DIALECTS.items():
            if path.endswith(end):
                asked = decode_request(dialect, recorded.body, recorded.path, recorded.headers)
                chosen["turn" if asked.tools else "aside"] = recorded
    return chosen


def main() -> None:
    """Records the agents that are named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", nargs="*", help="an agent: " + ", ".join(CLIENTS))
    options = parser.parse_args()
    for name in options.name or CLIENTS:
        client = CLIENTS[name]
        install(client.package)
        shutil.rmtree(FIXTURES / name, ignore_errors=True)
        (FIXTURES / name).mkdir(parents=True)
        with tempfile.TemporaryDirectory() as root:
            cleaner = Cleaner(Path(root))
            for number, requests in enumerate(record(client, Path(root)), 1):
                for kind, recorded in kept(requests).items():
                    headers = {k: v for k, v in recorded.headers.items() if HEADERS.match(k)}
                    fixture = {
                        "client": f"{client.package} {PACKAGES[client.package]}",
                        "path": recorded.path,
                        "headers": cleaner.clean(headers),
                        "body": cleaner.clean(recorded.json),
                    }
                    text = msgspec.json.format(msgspec.json.encode(fixture), indent=1)
                    (FIXTURES / name / f"{number}-{kind}.json").write_bytes(text + b"\n")


if __name__ == "__main__":
    main()
