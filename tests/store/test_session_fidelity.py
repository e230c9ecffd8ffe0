"""What is stored comes back to the byte, and so does the request that is made from it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversations import listed
from mull.catalog.load import load
from mull.catalog.resolve import resolve
from mull.dialects.registry import encode_request
from mull.history.log import Condensed, Entry, Log, Summary, Undone
from mull.neutral.blocks import (
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Wire,
)
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import RequestOptions, Tool
from mull.neutral.usage import Usage
from mull.policy.prepare import prepare
from mull.settings.layers import Settings
from mull.settings.presets import preset_values
from session_samples import new_store, records, stored_bytes, write_version_1

CATALOG = load()
CARRIED = {
    "anthropic/claude-sonnet-4-5": (b"SIG-1", b"REDACTED", b"SIG-2", b"the pond"),
    "openai/gpt-5": (b"ENC-1", b"rs_1", b"fc_1"),
    "google/gemini-3-pro-preview": (b"GSIG-text", b"GSIG-call"),
    "moonshotai/kimi-k2-thinking": (b"before the call", b"the pond"),
    "deepseek/deepseek-v4-pro": (b"before the call", b"the pond"),
    "openrouter/anthropic/claude-sonnet-4.5": (b"reasoning.encrypted", b"DETAIL"),
}
"""What must be found in each model's request: its own carriers, or its thoughts."""


def carriers(dialect):
    """Thinking of every kind that this dialect can carry."""
    if dialect == "anthropic":
        return (
            ThinkingBlock("before the call", "thinking", signature="SIG-1"),
            ThinkingBlock("", "redacted_thinking", redacted="REDACTED"),
            ThinkingBlock("", "thinking", signature="SIG-2"),
            OpaqueBlock(
                {"type": "server_tool_use", "id": "s1", "name": "w", "input": {"é": [1.5]}}
            ),
        )
    if dialect == "openai-responses":
        parts = [{"type": "summary_text", "text": "before the call"}]
        return (
            ThinkingBlock(
                "before the call",
                "reasoning",
                encrypted="ENC-1",
                id="rs_1",
                kind="summary",
                wire=Wire("openai-responses", {"parts": parts}),
            ),
        )
    if dialect == "gemini":
        return (ThinkingBlock("before the call", "thought"), TextBlock("so", signature="GSIG-text"))
    details = [{"type": "reasoning.encrypted", "data": "DETAIL", "id": None, "index": 0}]
    return (
        ThinkingBlock("before the call", "reasoning_content"),
        ThinkingBlock("", "reasoning_details", wire=listed(details)),
    )


def conversation(target):
    """Two turns with tools, a thought of a foreign model, an empty one, and an open chain."""
    origin, dialect = target.origin, target.dialect
    more = {
        "gemini": {"signature": "GSIG-call"},
        "openai-responses": {"wire": Wire("openai-responses", {"id": "fc_1"})},
    }
    foreign = msgspec.structs.replace(origin, provider="else", model="stranger")
    picture = Message(
        role="user", blocks=(TextBlock("what is this? \u2028"), MediaBlock("image/png", "iVBORw0K"))
    )
    for n, asked in enumerate((picture, user("go on"), user("more"))):
        call = ToolCallBlock(
            f"c{n}", "look", {"at": n, "z": 1.0}, '{ "at":1 }', **more.get(dialect, {})
        )
        yield asked
        yield assistant(
            *carriers(dialect), TextBlock("I look."), call, origin=origin, usage=Usage(1, 2)
        )
        yield Message(
            role="tool",
            blocks=(
                ToolResultBlock(
                    f"c{n}",
                    "the pond \x00 \U0001f986",
                ),
            ),
        )
        if n == 0:
            yield assistant(ThinkingBlock("mine", signature="F"), TextBlock("ok"), origin=foreign)
        if n == 1:
            yield assistant(ThinkingBlock("", "reasoning_content"), TextBlock("ok"), origin=origin)


def kept(target):
    """The conversation as records, with a summary, a shorter thought and things taken back."""
    entries = [Entry(m, 1.5 + n, 0.1, 0.25) for n, m in enumerate(conversation(target))]
    return [
        *entries[:8],
        Entry(user("no, not that")),
        Entry(assistant(TextBlock("then not"), origin=target.origin)),
        Undone(8, 10),
        Summary(1, 3, "looked once", by=target.origin, usage=Usage(9, 9)),
        Undone(11, 12, at=3.25),
        Condensed(5, 0, "before the call"),
        *entries[8:],
    ]


def encoded(target, records):
    settings = Settings()
    settings.set("reasoning.includeInContext", True)
    snapshot = settings.snapshot(preset=preset_values(target.facts))
    options = RequestOptions(system="s", tools=(Tool("look", "looks", {"type": "object"}),))
    return encode_request(
        prepare(Log(records=records), snapshot, target, options).request, target
    ).body


@pytest.mark.parametrize("model", CARRIED)
def test_s05_the_request_after_saving_and_loading_is_the_one_before(store, tmp_path, model):
    target = resolve(model, catalog=CATALOG)
    before = encoded(target, kept(target))
    assert [carrier for carrier in CARRIED[model] if carrier not in before] == []
    made = store.create(folder="/")
    for position, record in enumerate(kept(target)):
        store.append(made.id, position, record)
    store.close()
    again = new_store(tmp_path)
    assert encoded(target, again.load(made.id)[1]) == before
    again.close()


@pytest.mark.parametrize("model", CARRIED)
def test_s05_the_request_of_a_fork_is_the_one_before(store, model):
    target = resolve(model, catalog=CATALOG)
    records = kept(target)
    made = store.create(folder="/")
    store.append(made.id, 0, *records)
    for end in (3, 8, len(records)):
        fork = store.fork(store.fork(made.id, end).id)
        assert encoded(target, store.load(fork.id)[1]) == encoded(target, records[:end])


@pytest.mark.parametrize("model", CARRIED)
def test_s05_the_request_after_a_migration_is_the_one_before(tmp_path, model):
    target = resolve(model, catalog=CATALOG)
    data = write_version_1(tmp_path / "sessions.db", "old", kept(target))
    store = new_store(tmp_path)
    assert encoded(target, store.load("old")[1]) == encoded(target, kept(target))
    store.close()
    assert stored_bytes(tmp_path / "sessions.db", "old") == data


@settings(max_examples=50)
@given(st.lists(st.lists(records, max_size=3), max_size=3))
def test_s05_any_records_come_back_equal_and_to_the_byte(store, tmp_path, batches):
    made = store.create(folder="/")
    position = 0
    for batch in batches:
        store.append(made.id, position, *batch)
        position += len(batch)
    everything = [record for batch in batches for record in batch]
    fork = store.fork(made.id)
    for session in (made.id, fork.id):
        info, found = store.load(session)
        assert found == everything
        assert info.records == len(everything)
        data = stored_bytes(tmp_path / "sessions.db", session)
        assert data == [msgspec.json.encode(record) for record in everything]
