"""Whatever was said, and wherever compression cuts it, the next request is whole and smaller."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compressing import TARGETS, body_of, conversations, prepared_for
from mull.history.log import Log, Summary, Undone
from mull.neutral.blocks import ToolCallBlock, ToolResultBlock
from mull.policy.compress.decide import left_out_text, summary_record, summary_text
from mull.policy.compress.plan import CompressionPlan, NotCompressed, plan
from mull.policy.prepare import Prepared
from mull.policy.tokens import CHARACTERS
from mull.testing.rules import refusal

STRATEGIES = ["middle-out", "truncate", "one-shot"]


def recorded(found: CompressionPlan, body: str) -> Summary:
    cut = found.strategy == "truncate"
    return summary_record(found, left_out_text(found) if cut else summary_text(found, body))


def spoken(prepared: Prepared) -> str:
    return "\n".join(message.text for message in prepared.request.messages)


def unpaired(log: Log) -> set[str]:
    """Calls without a result and results without a call."""
    blocks = [block for message in log.active for block in message.blocks]
    called = {block.id for block in blocks if isinstance(block, ToolCallBlock)}
    return called ^ {block.call_id for block in blocks if isinstance(block, ToolResultBlock)}


@pytest.mark.parametrize("dialect", TARGETS)
@settings(max_examples=50)
@given(data=st.data())
def test_g01_any_cut_leaves_a_request_that_the_endpoint_takes(dialect, data):
    target = TARGETS[dialect]
    log = Log(data.draw(conversations(target)))
    task = log.messages[0].text
    include = {} if dialect == "openai-chat" else {"includeInContext": data.draw(st.booleans())}
    for number in range(3):
        values = {**include, "context__limit": data.draw(st.integers(900, 12_000))}
        before = prepared_for(log, target, **values)
        assert refusal(dialect, body_of(before)) is None
        found = plan(log, before, CHARACTERS, data.draw(st.sampled_from(STRATEGIES)))
        if isinstance(found, NotCompressed):
            assert found.reason
            continue
        record = recorded(found, f"what came to pass, {number}")
        if no_gain(log, record, before, values):  # more room lets a model think, and thoughts back
            continue
        kept = [entry.message for at, entry in log.entries() if at >= found.end]
        log.add(record)
        after = prepared_for(log, target, **values)
        assert refusal(dialect, body_of(after)) is None
        assert after.tokens < before.tokens
        assert "here" in spoken(after)
        assert (task if len(task) < 150 else task[:12]) in spoken(after)
        assert not unpaired(log)
        assert not kept or all(a is b for a, b in zip(kept, log.active[-len(kept) :], strict=True))


def no_gain(log, record, before, values):
    tried = Log(records=(*log, record))
    return prepared_for(tried, before.target, **values).tokens >= before.tokens


@pytest.mark.parametrize("dialect", TARGETS)
@settings(max_examples=30)
@given(data=st.data())
def test_undoing_a_compression_brings_the_very_bytes_back(dialect, data):
    target = TARGETS[dialect]
    log = Log(data.draw(conversations(target)))
    before = prepared_for(log, target)
    found = plan(log, before, CHARACTERS, data.draw(st.sampled_from(STRATEGIES)))
    if isinstance(found, NotCompressed):
        return
    log.add(recorded(found, "short"))
    assert body_of(prepared_for(log, target)) != body_of(before)
    log.add(Undone(len(log) - 1, len(log)))
    assert body_of(prepared_for(log, target)) == body_of(before)
