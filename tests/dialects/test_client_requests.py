"""Requests of real coding agents are decoded whole: nothing that they say is dropped in silence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from msgspec.structs import replace

from answers import target_of
from conversations import snapshot, target
from mull.dialects.registry import encode_request
from mull.dialects.serving import decode_request
from mull.history.log import Log
from mull.neutral.asked import Asked, ThinkingAsked
from mull.neutral.blocks import Block, MediaBlock, TextBlock, ToolResultBlock
from mull.neutral.errors import ConfigError
from mull.neutral.messages import Dialect, Message
from mull.neutral.request import Request
from mull.neutral.thinking import ThinkingPlan
from mull.policy.prepare import prepare

FOLDER = Path(__file__).parent.parent / "fixtures" / "clients"
DIALECTS: dict[str, Dialect] = {
    "/messages": "anthropic",
    "/chat/completions": "openai-chat",
    "/responses": "openai-responses",
    "/models/": "gemini",
}
SCHEMAS = ("input_schema", "parameters", "parametersJsonSchema", "schema")
Place = tuple[str | int, ...]


class Sent(NamedTuple):
    """A request as a client sent it."""

    client: str
    dialect: Dialect
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    def decoded(self, body: Any = None) -> Asked:
        data = msgspec.json.encode(self.body if body is None else body)
        return decode_request(self.dialect, data, self.path, self.headers)


def load(name: str) -> Sent:
    held = msgspec.json.decode((FOLDER / f"{name}.json").read_bytes())
    dialect = next(d for part, d in DIALECTS.items() if part in held["path"])
    client = name.partition("/")[0]
    return Sent(client, dialect, held["path"], held["headers"], held["body"])


NAMES = [f"{file.parent.name}/{file.stem}" for file in sorted(FOLDER.glob("*/*.json"))]
TURNS = [name for name in NAMES if name.endswith("turn")]


def leaves(value: Any, place: Place = ()) -> Iterator[Place]:
    """The places of all that is no list or object; a schema is taken as one."""
    if isinstance(value, dict) and not (place and place[-1] in SCHEMAS):
        for name, held in value.items():
            yield from leaves(held, (*place, name))
    elif isinstance(value, list):
        for at, held in enumerate(value):
            yield from leaves(held, (*place, at))
    elif value is not None:
        yield place


def objects(value: Any, place: Place = ()) -> Iterator[Place]:
    """The places of all objects; a schema is taken as one."""
    if isinstance(value, dict):
        yield place
        inner = {} if place and place[-1] in SCHEMAS else value
        for name, held in inner.items():
            yield from objects(held, (*place, name))
    elif isinstance(value, list):
        for at, held in enumerate(value):
            yield from objects(held, (*place, at))


def changed(value: Any, place: Place) -> Any:
    """The same with something else of its kind at that place; an object has a key more there."""
    if place:
        copy = value.copy()
        copy[place[0]] = changed(value[place[0]], place[1:])
        return copy
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}z"
    return {**value, "added": True}


def unseen(sent: Sent, places: Iterable[Place]) -> list[Place]:
    """Those places where something else could stand, and nobody would know."""
    asked, found = sent.decoded(), []
    for place in places:
        with suppress(ConfigError):  # it is read, and no longer what it must be
            if sent.decoded(changed(sent.body, place)) == asked:
                found.append(place)
    return found


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_nothing_can_change_unseen(name):
    sent = load(name)
    assert not unseen(sent, leaves(sent.body))


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_nothing_can_be_added_unseen(name):
    sent = load(name)
    assert not unseen(sent, objects(sent.body))


LEFT = {
    "claude-code": {
        "anthropic-beta",
        "context_management",
        "messages[].content[].cache_control",
        "messages[].content[].content[]",  # a reference to a tool
        "system[].cache_control",
        "tools[].defer_loading",
        "thinking.display",
    },
    "codex": {
        "client_metadata",
        "include",
        "input[].content[].detail",
        "input[].id",
        "input[].output[].detail",
        "store",
        "x-codex-beta-features",
    },
    "gemini-cli": {"contents[].parts[].functionResponse.name"},
    "opencode-chat": set(),
    "opencode-gemini": set(),
    "opencode-messages": {
        "anthropic-beta",
        "messages[].content[].cache_control",
        "system[].cache_control",
        "tools[].eager_input_streaming",
    },
    "opencode-responses": {"include", "store"},
    "qwen-code": set(),
}
LEFT["claude-code-budget"] = LEFT["claude-code-foreign"] = LEFT["claude-code"]
"""What they say that has no neutral field, by client."""


@pytest.mark.parametrize("client", LEFT)
def test_what_has_no_place_is_told(client):
    told = [load(name).decoded() for name in NAMES if name.startswith(f"{client}/")]
    left = {re.sub(r"\[\d+\]", "[]", path) for asked in told for path in asked.rest}
    assert left | {name for asked in told for name in asked.headers} == LEFT[client]


def test_every_client_is_here():
    assert {name.partition("/")[0] for name in NAMES} == LEFT.keys()


THOUGHTS = ["I have to read it first.", "Now all at once.", "That is all.", "One line more."]


@pytest.mark.parametrize("name", [name for name in TURNS if "/2-" in name])
def test_the_history_is_understood(name):
    """What the model did is in it, as the model was played in `tools.clients`."""
    sent = load(name)
    messages = sent.decoded().messages
    thoughts = [one for message in messages for one in message.thinking]
    shown = [one.thought for one in thoughts if one.thought in THOUGHTS]
    kept = {"gemini-cli": [], "opencode-gemini": THOUGHTS, "qwen-code": THOUGHTS}
    kept["opencode-chat"] = THOUGHTS  # elsewhere one thought came hidden
    assert shown == kept.get(sent.client, [*THOUGHTS[:2], THOUGHTS[3]])
    if sent.dialect in ("anthropic", "openai-responses"):
        assert all(one.has_carrier for one in thoughts)
    calls = [call for message in messages for call in message.tool_calls]
    assert {"notes.txt", "picture.png", "missing.txt"} <= {
        str(value).rpartition("/")[2] for call in calls for value in call.input.values()
    }
    results = [b for m in messages for b in m.blocks if isinstance(b, ToolResultBlock)]
    assert {call.id for call in calls} == {result.call_id for result in results}
    media = [b for m in messages for b in m.blocks if isinstance(b, MediaBlock)]
    media += [one for result in results for one in result.media]
    assert {one.media_type.partition("/")[0] for one in media} == {"image"}


@pytest.mark.parametrize("name", [name for name in NAMES if "count" not in name])
def test_encoding_gives_the_history_back(name):
    sent = load(name)
    asked, to = sent.decoded(), target_of(sent.dialect)
    to = replace(to, compat=replace(to.compat, system_inside="system"))
    request = Request(
        messages=asked.messages,
        thinking=ThinkingPlan("absent"),
        system=asked.system,
        tools=asked.tools,
        hosted_tools=asked.hosted_tools,
        max_tokens=asked.max_tokens,
    )
    wire = encode_request(request, to)
    back = decode_request(sent.dialect, wire.body, wire.path, wire.headers)
    assert back.system == asked.system
    offered = [replace(tool, parameters=tool.parameters or NOTHING) for tool in asked.tools]
    assert [*back.tools] == offered
    assert back.hosted_tools == asked.hosted_tools
    assert flat(back.messages) == flat(asked.messages)


NOTHING = {"type": "object", "properties": {}}
"""The schema of a tool that takes nothing, for clients that leave it out."""


def flat(messages: Sequence[Message]) -> list[Block | str]:
    """The blocks in order. What was said to the model one after the other is one text, whoever
    said it: not every dialect keeps the borders."""
    found: list[Block | str] = []
    for message in messages:
        for block in message.blocks:
            if message.role == "assistant" or not isinstance(block, TextBlock):
                found.append(block)
            elif found and isinstance(found[-1], str):
                found[-1] = f"{found[-1]}\n\n{block.text}"
            else:
                found.append(block.text)
    return found


# What they ask for.


def test_claude_code_asks_for_thinking_in_two_ways():
    adaptive = load("claude-code/2-turn").decoded()
    assert adaptive.thinking == ThinkingAsked("on", "high", shown=False)
    assert adaptive.system.startswith("x-anthropic-billing-header: ")
    budget = load("claude-code-budget/2-turn").decoded()
    assert budget.thinking == ThinkingAsked("on", None, 31999, shown=False)


def test_claude_code_instructs_in_the_middle():
    messages = load("claude-code-foreign/2-turn").decoded().messages
    spoken = [message.role for message in messages].index("user")
    assert [message.role for message in messages[spoken : spoken + 3]] == [
        "user",
        "system",
        "assistant",
    ]


def test_codex_asks_for_a_form():
    asked = load("codex/2-turn").decoded()
    assert asked.thinking == ThinkingAsked("on", "high", None, True, "auto")
    assert asked.format is not None
    assert (asked.format.name, asked.format.strict) == ("codex_output_schema", True)
    assert load("codex/1-turn").decoded().format is None


@pytest.mark.parametrize("model", ["responses", "another"])
def test_calls_of_codex_go_where_their_results_go(model):
    """To their own kind of endpoint with their results, and to another without them; a call that
    any endpoint understands goes to both."""
    asked = load("codex/2-turn").decoded()
    here = target("responses", dialect="openai-responses", options=[EFFORT])
    home = here.origin if model == "responses" else replace(here.origin, model="elsewhere")
    messages = [
        replace(message, origin=home) if message.role == "assistant" else message
        for message in asked.messages
    ]
    prepared = prepare(Log(messages), snapshot(includeInContext=True), here)
    sent = msgspec.json.decode(encode_request(prepared.request, here).body)["input"]
    kinds = [item["type"] for item in sent if "_tool_" in item["type"] or "search" in item["type"]]
    assert kinds == (CODEX_ITEMS if home == here.origin else [])
    patches = [item for item in sent if item.get("name") == "apply_patch"]
    assert [item["type"] for item in patches] == [
        "custom_tool_call" if home == here.origin else "function_call"
    ]


CODEX_ITEMS = [
    "web_search_call",
    "tool_search_call",
    "tool_search_output",
    "custom_tool_call",
    "custom_tool_call_output",
]
EFFORT = {"type": "effort", "values": ["none", "low", "high"]}


def test_gemini_cli_forgets_signatures_when_it_resumes():
    first, second = load("gemini-cli/1-turn").decoded(), load("gemini-cli/2-turn").decoded()
    assert [_signed(one) for one in (first, second)] == [[True, True], [False, False, True, True]]


def _signed(asked: Asked) -> list[bool]:
    return [bool(m.tool_calls[0].signature) for m in asked.messages if m.tool_calls]


def test_a_thought_that_is_said_twice_is_one():
    """qwen-code sends `reasoning_content` and `reasoning`."""
    messages = load("qwen-code/2-turn").decoded().messages
    answers = [message for message in messages if message.role == "assistant"]
    assert [len(answer.thinking) for answer in answers] == [1, 1, 1, 1]
