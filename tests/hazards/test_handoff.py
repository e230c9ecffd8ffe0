"""A conversation moves between the dialects and back, inside a tool chain too.

Whatever wrote the history, each endpoint's own rules accept the request, nothing foreign goes
along, and back on the first dialect its carriers are there byte for byte.
"""

import itertools
import json

import pytest
from msgspec.structs import replace

from mull.catalog.load import load
from mull.catalog.resolve import resolve
from mull.dialects.registry import encode_request
from mull.history.log import Entry, Log
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
TOOLS = RequestOptions(
    system="be brief", tools=(Tool("look", "looks", {"type": "object", "properties": {}}),)
)
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
    prepared = prepare(Log(messages), snapshot, target, TOOLS)
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


CLAUDES = ("opus-4-8", "sonnet-5", "opus-5", "opus-5-5", "sonnet-5-5", "haiku-5-5")
CLAUDES += ("fable-5", "fable-5-1", "mythos-5-1", "fable-5-2", "mythos-5-2")
FABLES = {"fable-5-1", "mythos-5-1", "fable-5-2", "mythos-5-2"}
READ_BY = {
    "opus-4-8": set(CLAUDES) - {"haiku-5-5"},
    "sonnet-5": set(CLAUDES) - {"haiku-5-5"},
    "opus-5": {"opus-5-5", *FABLES},
    "opus-5-5": FABLES,
    "sonnet-5-5": {"opus-5-5"},
    "haiku-5-5": {"opus-5-5", "sonnet-5-5", *FABLES},
    "fable-5": FABLES,
    "fable-5-1": FABLES,
    "mythos-5-1": FABLES,
    "fable-5-2": {"mythos-5-2"},
    "mythos-5-2": {"fable-5-2"},
}


def switched(before, after, *, open_chain=False):
    """The request after a switch of models, which the log tells as a running session does."""
    log = Log()

    def asked(target):
        snapshot = Settings().snapshot(preset=preset_values(target.facts))
        return prepare(log, snapshot, target, TOOLS)

    log.add(Entry(user("look")))
    blocks = thinking(before.dialect, "it"), ToolCallBlock("c1", "look", {"at": "it"})
    first = assistant(*blocks, origin=before.origin, stop_reason="tool_calls")
    log.add(Entry(first, prefix=asked(before).prefix))
    log.add(Entry(Message("tool", blocks=(ToolResultBlock("c1", "nothing"),))))
    if not open_chain:
        done = assistant(TextBlock("Nothing."), origin=before.origin)
        log.add(Entry(done, prefix=asked(before).prefix))
        log.add(Entry(user("again")))
    prepared = asked(after)
    body = json.loads(encode_request(prepared.request, after).body)
    assert refusal(after.dialect, body) is None
    return "SIG-it" in json.dumps(body), prepared


@pytest.mark.parametrize("open_chain", [False, True])
@pytest.mark.parametrize("before", CLAUDES)
def test_thoughts_that_the_next_model_reads_survive_a_switch(before, open_chain):
    targets = {name: resolve(f"anthropic/claude-{name}", catalog=CATALOG) for name in CLAUDES}
    for after in set(CLAUDES) - {before}:
        sent, prepared = switched(targets[before], targets[after], open_chain=open_chain)
        assert sent is (after in READ_BY[before]), after
        assert sent is not any(note.kind == "foreign" for note in prepared.notes)


BEDROCK = "amazon-bedrock/us.anthropic.claude-"


@pytest.mark.parametrize(
    ("before", "after", "is_read"),
    [
        (BEDROCK + "opus-5", BEDROCK + "fable-5-1", True),
        (BEDROCK + "opus-5-v1:0", BEDROCK + "fable-5-1-v1:0", True),
        (BEDROCK + "opus-5-5", BEDROCK + "fable-5-1", False),
        (BEDROCK + "sonnet-5-5", BEDROCK + "opus-5-5", False),
        (
            "google-vertex-anthropic/claude-sonnet-5-5",
            "google-vertex-anthropic/claude-opus-5-5",
            True,
        ),
        (
            "google-vertex-anthropic/claude-opus-5-5",
            "google-vertex-anthropic/claude-fable-5-1",
            False,
        ),
        ("anthropic/claude-opus-5", BEDROCK + "fable-5-1", False),
        ("anthropic/claude-sonnet-4-5", "anthropic/claude-opus-4-5", True),
        ("anthropic/claude-opus-4-1", "anthropic/claude-haiku-4-5", True),
        ("anthropic/claude-sonnet-4-5", "anthropic/claude-sonnet-4-5-20250929", True),
        (BEDROCK + "sonnet-4-5-20250929-v1:0", BEDROCK + "opus-4-8", True),
        ("anthropic/claude-sonnet-4-5", BEDROCK + "opus-4-8", False),
        (
            "google-vertex-anthropic/claude-opus-4-1@20250805",
            "google-vertex-anthropic/claude-opus-5",
            True,
        ),
        ("anthropic/claude-opus-5", "anthropic/claude-sonnet-4-5", False),
        (
            "google-vertex-anthropic/claude-opus-5@20260901",
            "google-vertex-anthropic/claude-fable-5-1",
            True,
        ),
        ("openai/gpt-5", "openai/gpt-5.6", False),
    ],
)
def test_who_reads_whose_thoughts_depends_on_the_endpoint(before, after, is_read):
    told = [resolve(name, catalog=CATALOG) for name in (before, after)]
    assert switched(*told)[0] is is_read
    assert switched(*told, open_chain=True)[0] is is_read


@pytest.mark.parametrize("model", CLAUDES)
def test_a_model_reads_its_own_thoughts_under_each_of_its_names(model):
    names = [f"anthropic/claude-{model}", f"anthropic/claude-{model}-20260901"]
    regions = [f"amazon-bedrock/{at}.anthropic.claude-{model}" for at in ("us", "eu")]
    for pair in (names, names[::-1], regions):
        assert switched(*(resolve(name, catalog=CATALOG) for name in pair))[0], pair


def test_thoughts_of_another_account_are_not_read():
    before = resolve("anthropic/claude-opus-5", catalog=CATALOG)
    after = resolve("anthropic/claude-fable-5-1", catalog=CATALOG)
    assert not switched(replace(before, account="work"), after)[0]
    assert switched(replace(before, account="work"), replace(after, account="work"))[0]


def test_a_bound_thought_that_another_model_reads_needs_the_same_conversation():
    before = resolve("anthropic/claude-opus-5-5", catalog=CATALOG)
    after = resolve("anthropic/claude-fable-5-1", catalog=CATALOG)
    _, prepared = switched(before, after)
    changed = replace(prepared.made.options, system="another prompt")
    again = prepare(prepared.made.log, prepared.made.snapshot, after, changed)
    assert b"SIG-it" not in encode_request(again.request, after).body
    assert any(note.kind == "bound" for note in again.notes)
