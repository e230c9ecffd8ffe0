"""Answers in every dialect: 60 % reasoning, 35 % text, 5 % tool arguments.

The frames have what their provider puts beside the delta: ids of full length, fingerprints, counts
and padding. Whoever decodes pays for it, whether they look at it or not.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec

from bench.report import QUICK
from mull.dialects.eventstream import message
from mull.dialects.registry import DIALECTS
from mull.dialects.serving import answer_writer
from mull.neutral.events import (
    BlockEnded,
    Event,
    Finished,
    Started,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
)
from mull.neutral.messages import Dialect

CHUNKS = 4_000 if QUICK else 20_000
_THOUGHT = "rs_68af4030592c81938ec0a5fbab4a3e9f05438e46b5f69a3b"
_TEXT = "msg_68af4033bbd481939a4c2c1d8e7c2d5405438e46b5f69a3b"
_CALL = "fc_68af4034d7e08193a5f0c7c1b2a9b0e905438e46b5f69a3b"
_WORDS = ("so ", "the ", "answer ", "would ", "then ", "follow ", "from ", "this.\n")


def pieces(chunks: int = CHUNKS) -> tuple[list[str], list[str], list[str]]:
    """The pieces of reasoning, text and tool arguments."""
    words = [_WORDS[n % len(_WORDS)] for n in range(chunks)]
    reasoning, text = int(chunks * 0.6), int(chunks * 0.35)
    values = [f'"{n}",' for n in range(chunks - reasoning - text - 2)]
    return words[:reasoning], words[: int(text)], ['{"items":[', *values, '"end"]}']


def events(dialect: Dialect, chunks: int = CHUNKS) -> Iterator[Event]:
    """The answer as events. Gemini sends calls whole, so that there each piece is a call."""
    thoughts, texts, arguments = pieces(chunks)
    yield Started("r1", "m")
    yield from (ThinkingDelta(text, _THOUGHT) for text in thoughts)
    if dialect in ("anthropic", "bedrock-converse"):
        yield ThinkingCarrier(_THOUGHT, signature="EqQB")
    if dialect == "openai-responses":
        yield ThinkingCarrier(_THOUGHT, encrypted="gAAAA")
    yield BlockEnded(_THOUGHT)
    yield from (TextDelta(text, _TEXT) for text in texts)
    if dialect == "gemini":
        for n in range(len(arguments)):
            yield ToolCallDelta(f"fc_{n}", f"call_{n}", f"f{n}", f'{{"n":{n}}}')
            yield BlockEnded(f"fc_{n}")
    else:
        yield ToolCallDelta(_CALL, "call_1", "f")
        yield from (ToolCallDelta(_CALL, arguments=text) for text in arguments)
    yield Finished("tool_calls")


def _as_chat(value: dict[str, Any]) -> None:
    value["id"] = "0f3a6c1e-5b7d-4c8e-9a2b-d1e4f7a8b9c0"
    value |= {"created": 1763301540, "model": "deepseek-reasoner"}
    value["system_fingerprint"] = "fp_ffc7281d48_prod0820_fp8_kvcache"
    for choice in value.get("choices", ()):
        if "reasoning_content" in choice["delta"]:
            choice["delta"] = {"content": None, **choice["delta"]}
        choice["logprobs"] = None


def _as_responses(value: dict[str, Any]) -> None:
    if value["type"].endswith(".delta"):
        value["obfuscation"] = "k3JvQ9xT"
        if "output_text" in value["type"]:
            value["logprobs"] = []


def _as_gemini(value: dict[str, Any]) -> None:
    prompt = [{"modality": "TEXT", "tokenCount": 9}]
    value["usageMetadata"] = {
        "promptTokenCount": 9,
        "candidatesTokenCount": 11,
        "totalTokenCount": 920,
        "promptTokensDetails": prompt,
        "thoughtsTokenCount": 900,
    }
    value |= {"modelVersion": "gemini-2.5-pro", "responseId": "yq8ZaLmWJcKzvdIPx7OB2Ag"}


def _as_converse(value: dict[str, Any]) -> None:
    value["p"] = "abcdefghijklmnopqrstuvwxyz"


_PROVIDERS: dict[Dialect, Callable[[dict[str, Any]], None]] = {
    "openai-chat": _as_chat,
    "openai-responses": _as_responses,
    "gemini": _as_gemini,
    "bedrock-converse": _as_converse,
}
_DATA = re.compile(rb"(?<=^data: )\{.*\}$", re.MULTILINE)
_LENGTHS = struct.Struct(">II")


def _as_sent(dialect: Dialect, piece: bytes) -> bytes:
    """A piece of an answer with all that its provider sends in it."""
    add = _PROVIDERS.get(dialect)
    if add is None or not piece:
        return piece

    def fuller(data: bytes) -> bytes:
        value = msgspec.json.decode(data)
        add(value)
        return msgspec.json.encode(value)

    if dialect != "bedrock-converse":
        return _DATA.sub(lambda found: fuller(found[0]), piece)
    sent = b""
    while piece:
        size, headers = _LENGTHS.unpack_from(piece)
        sent += message(piece[12 : 12 + headers], fuller(piece[12 + headers : size - 4]))
        piece = piece[size:]
    return sent


def frames(dialect: Dialect, chunks: int = CHUNKS) -> list[bytes]:
    """The answer as it goes over the wire, cut where its events end."""
    writer = answer_writer(dialect)
    pieces = filter(None, map(writer.feed, events(dialect, chunks)))
    return [_as_sent(dialect, piece) for piece in pieces]


def stream(dialect: Dialect, chunks: int = CHUNKS) -> bytes:
    """The whole of it."""
    return b"".join(frames(dialect, chunks))


STREAMS: dict[Dialect, Callable[[], bytes]] = {
    dialect: partial(stream, dialect) for dialect in DIALECTS
}
