"""CPU per chunk of writing an answer in each dialect, as the gateway does: events in, bytes out.

msgspec stands for the usual way: a value for each chunk, encoded whole and framed. The limit has
the frame ready and encodes nothing but the text (and what a checksum or a running number needs). It
knows what comes: it finds no block, checks nothing and keeps nothing for the end of the answer.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from zlib import crc32

import msgspec

from bench.report import QUICK, Figure, median_ratio
from bench.streams import CHUNKS, events
from mull.dialects.registry import DIALECTS
from mull.dialects.serving import answer_writer
from mull.neutral.events import Event, TextDelta, ThinkingDelta, ToolCallDelta
from mull.neutral.messages import Dialect

ROUNDS = 3 if QUICK else 9
_MARK = "\0"
_encode = msgspec.json.Encoder().encode
_HEAD = (
    b"\x0b:event-type\x07\x00\x11contentBlockDelta"
    b"\r:content-type\x07\x00\x10application/json\r:message-type\x07\x00\x05event"
)


def _text(event: Event) -> tuple[str, str] | None:
    """The kind of a delta and its text."""
    if type(event) is ThinkingDelta:
        return "thinking", event.text
    if type(event) is TextDelta:
        return "text", event.text
    return ("call", event.arguments) if type(event) is ToolCallDelta else None


_CHAT = {"thinking": "reasoning_content", "text": "content"}


def _chat(kind: str, text: str, number: int) -> bytes:
    delta: dict[str, object] = {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}
    if kind != "call":
        delta = {_CHAT[kind]: text}
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    value = {"id": "r1", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    return b"data: %b\n\n" % _encode({**value, "choices": [choice]})


_RESPONSES = {
    "thinking": "response.reasoning_text.delta",
    "text": "response.output_text.delta",
    "call": "response.function_call_arguments.delta",
}


def _responses(kind: str, text: str, number: int) -> bytes:
    name = _RESPONSES[kind]
    value = {
        "type": name,
        "item_id": "rs_1",
        "output_index": 0,
        "content_index": 0,
        "delta": text,
        "sequence_number": number,
    }
    return b"event: %b\ndata: %b\n\n" % (name.encode(), _encode(value))


_ANTHROPIC = {
    "thinking": ("thinking_delta", "thinking"),
    "text": ("text_delta", "text"),
    "call": ("input_json_delta", "partial_json"),
}


def _anthropic(kind: str, text: str, number: int) -> bytes:
    name, key = _ANTHROPIC[kind]
    value = {"type": "content_block_delta", "index": 0, "delta": {"type": name, key: text}}
    return b"event: content_block_delta\ndata: %b\n\n" % _encode(value)


def _gemini(kind: str, text: str, number: int) -> bytes:
    part: dict[str, object] = {"text": text}
    if kind == "thinking":
        part["thought"] = True
    elif kind == "call":
        part = {"functionCall": {"name": "f", "args": {"n": number}, "id": "call_1"}}
    candidate = {"content": {"role": "model", "parts": [part]}, "index": 0}
    value = {"candidates": [candidate], "modelVersion": "m", "responseId": "r1"}
    return b"data: %b\n\n" % _encode(value)


def _converse(kind: str, text: str, number: int) -> bytes:
    delta: dict[str, object] = {"text": text}
    if kind == "thinking":
        delta = {"reasoningContent": delta}
    elif kind == "call":
        delta = {"toolUse": {"input": text}}
    return _framed(_encode({"contentBlockIndex": 0, "delta": delta}))


def _framed(payload: bytes) -> bytes:
    lengths = (16 + len(_HEAD) + len(payload)).to_bytes(4, "big") + len(_HEAD).to_bytes(4, "big")
    body = b"%b%b%b%b" % (lengths, crc32(lengths).to_bytes(4, "big"), _HEAD, payload)
    return body + crc32(body).to_bytes(4, "big")


_WRITERS: dict[Dialect, Callable[[str, str, int], bytes]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "bedrock-converse": _converse,
}


def usual(dialect: Dialect, told: list[Event]) -> int:
    """Encode a value for every delta; the number of bytes."""
    write, size, number = _WRITERS[dialect], 0, 0
    for event in told:
        found = _text(event)
        if found is not None:
            size += len(write(*found, number))
            number += 1
    return size


def _ready(dialect: Dialect, kind: str) -> tuple[bytes, bytes]:
    """A frame before and after its text."""
    whole = _WRITERS[dialect](kind, _MARK, 0)
    if dialect == "bedrock-converse":
        whole = whole[12 + len(_HEAD) : -4]
    before, _, after = whole.partition(_encode(_MARK))
    return before, after.replace(b'"sequence_number":0', b'"sequence_number":%d')


def limit(dialect: Dialect, told: list[Event]) -> int:
    """Put the text of every delta into its frame; the number of bytes."""
    frames = {kind: _ready(dialect, kind) for kind in ("thinking", "text", "call")}
    counts, framed, size, number = (
        dialect == "openai-responses",
        dialect == "bedrock-converse",
        0,
        0,
    )
    for event in told:
        found = _text(event)
        if found is None:
            continue
        number += 1
        if found[0] == "call" and dialect == "gemini":  # a value, whoever writes it
            size += len(_gemini(*found, number))
            continue
        before, after = frames[found[0]]
        frame = b"%b%b%b" % (before, _encode(found[1]), after % number if counts else after)
        size += len(_framed(frame) if framed else frame)
    return size


def mull(dialect: Dialect, told: list[Event]) -> int:
    """Write the whole answer; the number of bytes."""
    writer = answer_writer(dialect)
    return sum([len(writer.feed(event)) for event in told])


def measure(dialect: Dialect) -> list[Figure]:
    """Both on the same events, in turns."""
    told = list(events(dialect))
    steps = {"limit": limit, "msgspec": usual, "mull": mull}
    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(ROUNDS + 1):
        for name, write in steps.items():
            began = time.process_time()
            write(dialect, told)
            if turn:  # the first one warms up
                times[name].append((time.process_time() - began) / CHUNKS * 1e6)
    figures = []
    for name, values in times.items():
        against, target = ("", "") if name == "limit" else ("limit", "≤ 3" * (name == "mull"))
        ratio = median_ratio(values, times["limit"]) if against else None
        value = statistics.median(values)
        figures.append(Figure(f"{dialect}: {name}", value, "µs CPU", against, ratio, target))
    return figures


def run() -> list[Figure]:
    """All dialects."""
    return [figure for dialect in DIALECTS for figure in measure(dialect)]
