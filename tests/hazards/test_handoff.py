"""A conversation moves between the dialects and back, inside a tool chain too.

Whatever wrote the history, each endpoint's own rules accept the request, nothing foreign goes
along, and back on the first dialect its carriers are there byte for byte.
"""

import itertools
import json

import pytest

from mull.catalog.load import load
from mull.catalog.resolve import resolve
from mull.dialects.registry import encode_request
from mull.history.log import Log
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock, Wire
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import RequestOptions, Tool
from mull.policy.prepare import prepare
from mull.settings.layers import Settings
from mull.settings.presets import preset_values
from mull.testing.rules import refusal

MODELS = {
    "anthropic": "anthropic/claude-sonnet-4-5",
    "openai-responses": "openai/gpt-5",
    "gemini": "google/gemini-3-pro-preview",
    "openai-chat": "moonshotai/kimi-k2.5",
    "bedrock-converse": "amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
}
CATALOG = load()
TARGETS = {dialect: resolve(name, catalog=CATALOG) for dialect, name in MODELS.items()}
CARRIERS = {
    "anthropic": ["SIG-anthropic"],
    "openai-responses": ["ENC-openai-responses", "rs_openai-responses"],
    "gemini": ["SIG-gemini"],
    "openai-chat": ["because openai-chat"],
    "bedrock-converse": ["SIG-bedrock-converse"],
}


def thinking(dialect, name):
    if dialect == "anthropic":
        return ThinkingBlock(f"because {name}", "thinking", signature=f"SIG-{name}")
    if dialect == "openai-responses":
        return ThinkingBlock(
            f"because {name}",
            "reasoning",
            encrypted=f"ENC-{name}",
            id=f"rs_{name}",
            kind="summary",
            wire=Wire(
                "openai-responses", {"parts": [{"type": "summary_text", "text": f"because {name}"}]}
            ),
        )
    if dialect == "gemini":
        return ThinkingBlock(f"because {name}", "thought")
    if dialect == "bedrock-converse":
        return ThinkingBlock(f"because {name}", "reasoningContent", signature=f"SIG-{name}")
    return ThinkingBlock(f"because {name}", "reasoning_content")


def call(dialect, name):
    block = ToolCallBlock(f"call_{name}", "look", {"at": name})
    if dialect == "gemini":
        return ToolCallBlock(block.id, "look", {"at": name}, signature=f"SIG-{name}")
    if dialect == "openai-responses":
        return ToolCallBlock(
            block.id, "look", {"at": name}, wire=Wire("openai-responses", {"id": f"fc_{name}"})
        )
    return block


def tool_turn(dialect, name, *, answered=True):
    origin = TARGETS[dialect].origin
    turn = [
        user(f"look at {name}"),
        assistant(
            thinking(dialect, name),
            call(dialect, name),
            origin=origin,
            stop_reason="tool_calls",
        ),
        Message(role="tool", blocks=(ToolResultBlock(f"call_{name}", f"saw {name}"),)),
    ]
    if answered:
        turn.append(assistant(TextBlock(f"it is {name}"), origin=origin, stop_reason="stop"))
    return turn


def encode(messages, dialect, **settings):
    target = TARGETS[dialect]
    layers = Settings()
    for key, value in settings.items():
        layers.set(f"reasoning.{key}", value)
    snapshot = layers.snapshot(preset=preset_values(target.facts))
    conversation = RequestOptions(
        system="be brief", tools=(Tool("look", "looks", {"type": "object", "properties": {}}),)
    )
    prepared = prepare(Log(messages), snapshot, target, conversation)
    return json.loads(encode_request(prepared.request, target).body)


PAIRS = list(itertools.product(MODELS, MODELS))


@pytest.mark.parametrize(("wrote", "reads"), PAIRS)
@pytest.mark.parametrize("answered", [True, False])
@pytest.mark.parametrize("include", [True, False])
def test_d13_any_history_is_accepted_anywhere(wrote, reads, answered, include):
    messages = tool_turn(wrote, wrote, answered=answered)
    if answered:
        messages.append(user("and now?"))
    body = encode(messages, reads, includeInContext=include)
    assert refusal(reads, body) is None
    text = json.dumps(body)
    if wrote != reads:
        for carrier in CARRIERS[wrote]:
            assert carrier not in text
    assert f"saw {wrote}" in text


@pytest.mark.parametrize("first", MODELS)
def test_switching_through_all_four_and_back_restores_the_carriers(first):
    order = [first, *(other for other in MODELS if other != first)]
    messages = [message for dialect in order for message in tool_turn(dialect, dialect)]
    for dialect in order:
        body = encode([*messages, user("next?")], dialect, includeInContext=True)
        assert refusal(dialect, body) is None
        text = json.dumps(body)
        for owner, carriers in CARRIERS.items():
            for carrier in carriers:
                assert (carrier in text) == (owner == dialect), (owner, dialect, carrier)


@pytest.mark.parametrize("first", MODELS)
@pytest.mark.parametrize("second", MODELS)
def test_switching_inside_an_open_chain(first, second):
    messages = [*tool_turn(first, first), *tool_turn(first, "open", answered=False)]
    assert refusal(second, encode(messages, second)) is None
    assert refusal(first, encode(messages, first)) is None
