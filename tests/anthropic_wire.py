"""The other side of the Messages API, for tests: answers as streams and as whole messages."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st

from conversations import json_objects, target, texts, wired
from mull.dialects.anthropic.endings import write_stop_reason
from mull.dialects.anthropic.usage import write_usage
from mull.dialects.registry import decoder
from mull.dialects.serving import write_answer
from mull.neutral.assemble import assemble
from mull.neutral.blocks import (
    Block,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Wire,
)
from mull.neutral.events import Event, Failed, Finished
from mull.neutral.messages import Message, assistant
from mull.neutral.target import Target
from mull.neutral.usage import Usage

FIXTURES = Path(__file__).parent / "fixtures" / "anthropic"
STREAMS = {file.stem: file.read_bytes() for file in sorted(FIXTURES.glob("*.sse"))}
WHOLES = {file.stem: file.read_bytes() for file in sorted(FIXTURES.glob("*.json"))}
BUDGET = {"type": "budget_tokens", "min": 1024, "max": 64_000}


def claude(writer: str = "anthropic-budget", **more: Any) -> Target:
    """A target of this dialect whose thinking takes a budget, unless told otherwise."""
    compat = {"requires_reasoning": "tool_calls", "signed_only": True, **more.pop("compat", {})}
    options = more.pop("options", [{"type": "toggle"}, BUDGET])
    return target(writer, dialect="anthropic", options=options, compat=compat, **more)


HERE = claude()


def events_of(data: bytes, size: int | None = None, where: Target = HERE) -> list[Event]:
    one = decoder(where)
    size = size or len(data) or 1
    fed = [e for at in range(0, len(data), size) for e in one.feed(data[at : at + size])]
    return fed + one.close()


def decode(data: bytes, size: int | None = None, where: Target = HERE) -> Message:
    return assemble(events_of(data, size, where), where.origin)


def ending(data: bytes) -> Finished | Failed:
    last = events_of(data)[-1]
    assert isinstance(last, Finished | Failed)
    return last


def sse(*values: dict[str, Any], named: bool = True) -> bytes:
    lines = []
    for value in values:
        lines += [f"event: {value['type']}\n"] if named else []
        lines.append(f"data: {json.dumps(value, ensure_ascii=False)}\n\n")
    return "".join(lines).encode()


def started(**message: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {"id": "msg_1", "content": [], **message}}


def begin(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **more: Any) -> dict[str, Any]:
    inner = {"type": f"{kind}_delta", **more}
    return {"type": "content_block_delta", "index": index, "delta": inner}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def ended(reason: str | None = "end_turn", **usage: Any) -> list[dict[str, Any]]:
    return [
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage},
        {"type": "message_stop"},
    ]


def wire_block(block: Block) -> dict[str, Any]:
    """A block as a whole response holds it; an input that cannot be read is none here."""
    whole = json.loads(write_answer(assistant(block), "anthropic").body)
    written: dict[str, Any] = whole["content"][0]
    return {**written, "input": block.input} if isinstance(block, ToolCallBlock) else written


def _pieces(text: str, rng: random.Random) -> list[str]:
    cuts = sorted(rng.randrange(len(text) + 1) for _ in range(rng.randrange(4)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def _shuffle_in(
    deltas: list[dict[str, Any]], more: list[dict[str, Any]], rng: random.Random
) -> list[dict[str, Any]]:
    """Both lists as one, each in its own order."""
    places = sorted(rng.randrange(len(deltas) + 1) for _ in more)
    for done, (place, one) in enumerate(zip(places, more, strict=True)):
        deltas.insert(place + done, one)
    return deltas


def _streamed(
    index: int, block: Block, rng: random.Random, *, neatly: bool
) -> list[dict[str, Any]]:
    wire = wire_block(block)
    match block:
        case TextBlock():
            start = begin(index, type="text", text="")
            deltas = [delta(index, "text", text=piece) for piece in _pieces(block.text, rng)]
            cited = wired(block).get("citations", [])
            cites = [delta(index, "citations", citation=one) for one in cited]
            deltas = _shuffle_in(deltas, cites, rng)
        case ThinkingBlock() if block.redacted is None:
            start = begin(index, type="thinking", thinking="")
            deltas = [delta(index, "thinking", thinking=p) for p in _pieces(block.thought, rng)]
            if block.signature is not None:
                signed = [block.signature] if neatly else _pieces(block.signature, rng)
                deltas += [delta(index, "signature", signature=piece) for piece in signed]
        case ToolCallBlock():
            start = begin(index, **{**wire, "input": {}})
            text = msgspec.json.encode(block.input).decode() if block.input else ""
            deltas = [delta(index, "input_json", partial_json=p) for p in _pieces(text, rng)]
        case _:
            start, deltas = begin(index, **wire), []
    return [start, *deltas, stop(index)]


def render_stream(message: Message, seed: int = 0, *, neatly: bool = False) -> bytes:
    """The message as a stream that is cut where chance wills; neatly, as the vendor's own server
    would: events with names, signatures in one piece."""
    rng = random.Random(seed)
    assert message.usage is not None
    values = [started(usage=write_usage(Usage(input=message.usage.input)))]
    for index, block in enumerate(message.blocks):
        values += _streamed(index, block, rng, neatly=neatly)
        values += [{"type": "ping"}] if rng.random() < 0.2 else []
    values += ended(write_stop_reason(message.stop_reason), **write_usage(message.usage))
    return sse(*values, named=neatly or rng.random() < 0.5)


def render_whole(message: Message) -> bytes:
    """The message as one response."""
    return write_answer(message, "anthropic").body


citations = st.lists(
    st.integers(0, 9).map(lambda n: {"type": "char_location", "cited_text": f"c{n}"}),
    min_size=1,
    max_size=3,
    unique_by=lambda c: c["cited_text"],
).map(lambda found: Wire("anthropic", {"citations": found}))
tool_names = st.text("abcdefgh_-", min_size=1, max_size=10)
answer_blocks = st.one_of(
    st.builds(TextBlock, texts, st.none(), st.none() | citations),
    st.builds(ThinkingBlock, texts, st.just("thinking"), signature=texts),
    st.builds(ThinkingBlock, source_field=st.just("redacted_thinking"), redacted=texts),
    st.builds(ToolCallBlock, st.just(""), tool_names, json_objects),
    json_objects.map(lambda data: OpaqueBlock({**data, "type": "something_new"})),
)
usages = st.tuples(*[st.integers(1, 10**6)] * 4).map(
    lambda n: Usage(
        input=n[0] + n[1] + n[2],
        output=n[3] + 5,
        reasoning=5,
        total=n[0] + n[1] + n[2] + n[3] + 5,
        cache_read=n[1],
        cache_write=n[2],
    )
)


def _answer(blocks: list[Block], usage: Usage, cut: bool) -> Message:
    numbered = tuple(
        msgspec.structs.replace(b, id=f"toolu_{i}") if isinstance(b, ToolCallBlock) else b
        for i, b in enumerate(blocks)
    )
    thinks = any(isinstance(b, ThinkingBlock) for b in blocks)
    says = any(
        not isinstance(b, ThinkingBlock) and not (isinstance(b, TextBlock) and not b.text.strip())
        for b in blocks
    )
    calls = any(isinstance(b, ToolCallBlock) for b in blocks)
    if cut:
        status = "truncated_in_reasoning" if thinks and not says else "truncated"
        reason = "length"
    else:
        status = "complete" if says else "no_answer"
        reason = "tool_calls" if calls else "stop"
    return assistant(*numbered, origin=HERE.origin, status=status, stop_reason=reason, usage=usage)


answers = st.builds(_answer, st.lists(answer_blocks, max_size=6), usages, st.booleans())
