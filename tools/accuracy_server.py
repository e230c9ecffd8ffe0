"""Asks a real llama.cpp server, the embedded one, how many tokens our requests have."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from mull import Log, RequestOptions, Settings, counter_for, prepare, resolve
from mull.dialects.registry import encode_request
from mull.local.manage import Embedded
from mull.local.place import Running, ServerFolder
from mull.local.server import MODEL
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import Tool
from mull.policy.prepare import Prepared
from mull.store.locks import FileLock

__all__ = ["Sample", "ask_server", "conversations"]

FAMILY = "SmolLM2 on llama.cpp"
PROSE = (
    "The ferry left an hour late, because the fog would not lift, and nobody on the pier seemed to"
    " mind. Some had brought bread and coffee; an old man explained the tides to a child. "
)
CODE = """def moving_average(values: list[float], width: int) -> list[float]:
    total, result = 0.0, []
    for index, value in enumerate(values):
        total += value - (values[index - width] if index >= width else 0.0)
        result.append(total / min(index + 1, width))
    return result
"""
DATA = json.dumps([{"id": n, "name": f"item-{n}", "price": n * 1.5, "tags": []} for n in range(5)])
GERMAN = "Die Fähre fuhr eine Stunde zu spät, weil sich der Nebel nicht lichten wollte. "
WEATHER = Tool(
    "get_weather",
    "The weather in a city now, with temperature, wind and the chance of rain",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
SEARCH = Tool(
    "search_files",
    "Find the lines of a project that match a pattern",
    {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "a regular expression"},
            "folder": {"type": "string", "description": "where to look"},
            "limit": {"type": "integer", "minimum": 1},
        },
        "required": ["pattern"],
    },
)


class Sample(NamedTuple):
    """One request: whose vocabulary counted it, what that gave, and what the endpoint reported."""

    family: str
    counter: str
    exact: bool
    estimated: int
    reported: int

    @property
    def ratio(self) -> float:
        """Estimated to reported: above 1 is too high."""
        return self.estimated / self.reported


def conversations() -> list[tuple[list[Message], RequestOptions]]:
    """A dozen and more: short and long, prose, code and data, with thoughts and with tools."""
    plain = RequestOptions()
    told = RequestOptions(system=PROSE)
    tools = RequestOptions(tools=(WEATHER, SEARCH))
    return [
        ([user("Hello")], plain),
        ([user("What is the capital of France?")], told),
        ([user(PROSE * 5)], plain),
        ([user(PROSE * 20)], plain),
        ([user(CODE * 3)], plain),
        ([user(CODE * 8)], told),
        ([user(DATA * 2)], plain),
        ([user(GERMAN * 10)], plain),
        (_talk(3, PROSE), plain),
        (_talk(4, CODE), plain),
        (_talk(3, PROSE, thought=PROSE * 2), told),
        ([user(PROSE)], RequestOptions(tools=(WEATHER,))),
        ([user(PROSE * 5)], tools),
        (_rounds(1), tools),
        (_rounds(4), tools),
    ]


def _talk(turns: int, text: str, thought: str = "") -> list[Message]:
    said: list[Message] = []
    for number in range(turns):
        thoughts = (ThinkingBlock(thought, "reasoning_content"),) if thought else ()
        said += [user(f"{number}. {text}"), assistant(*thoughts, TextBlock(text))]
    return [*said, user("Go on.")]


def _rounds(count: int) -> list[Message]:
    said = [user("What is the weather like?")]
    for number in range(count):
        call = ToolCallBlock(f"call_{number}", "get_weather", {"city": f"city {number}"})
        said.append(assistant(ThinkingBlock(PROSE, "reasoning_content"), call))
        said.append(Message(role="tool", blocks=(ToolResultBlock(call.id, DATA),)))
    return said


def ask_server() -> Iterator[Sample]:
    """What the server says of every conversation, beside our count of it."""
    with TemporaryDirectory() as folder:
        directory = Path(folder) / "local"
        server = Embedded(directory)
        try:
            running = server.ensure()
            for messages, options in conversations():
                prepared = _prepared(messages, options)
                reported = _prompt_tokens(running, prepared)
                yield Sample(FAMILY, prepared.counter, prepared.exact, prepared.tokens, reported)
        finally:
            server.close()
            with FileLock(ServerFolder(directory).alive_lock):  # it ends before its folder does
                pass


def _prepared(messages: list[Message], options: RequestOptions) -> Prepared:
    target = resolve(MODEL)
    settings = Settings()
    settings.set("reasoning.includeInContext", True)
    options = RequestOptions(options.system, options.tools, max_tokens=1, stream=False)
    return prepare(Log(messages), settings.snapshot(), target, options, counter=counter_for(target))


def _prompt_tokens(running: Running, prepared: Prepared) -> int:
    wire = encode_request(prepared.request, prepared.target)
    address = urlsplit(running.base_url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=300)
    headers = {"Authorization": f"Bearer {running.key}", **wire.headers}
    try:
        connection.request(wire.method, address.path + wire.path, wire.body, headers)
        answer: dict[str, Any] = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return int(answer["usage"]["prompt_tokens"])
