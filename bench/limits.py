"""The physical limit of reading an answer: take HTTP's chunks apart, split the frames, decode into
typed values, make an event.

No tolerance for dirty chunks, no tags, no warnings: nothing can be had for less in this language
with this JSON library.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import Any
from zlib import crc32

import msgspec
from msgspec import Struct

from mull.neutral.events import Event, TextDelta, ThinkingDelta, ToolCallDelta


class _Function(Struct):
    name: str | None = None
    arguments: str = ""


class _Call(Struct):
    index: int = 0
    id: str | None = None
    function: _Function | None = None


class _ChatDelta(Struct):
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(Struct):
    delta: _ChatDelta
    finish_reason: str | None = None


class _ChatChunk(Struct):
    choices: list[_Choice]


def _chat(chunk: _ChatChunk) -> Event | None:
    delta = chunk.choices[0].delta
    if delta.reasoning_content is not None:
        return ThinkingDelta(delta.reasoning_content)
    if delta.content is not None:
        return TextDelta(delta.content)
    if delta.tool_calls:
        call = delta.tool_calls[0]
        function = call.function or _Function()
        return ToolCallDelta(call.index, call.id, function.name, function.arguments)
    return None


class _BlockDelta(Struct):
    type: str = ""
    thinking: str = ""
    text: str = ""
    partial_json: str = ""


class _AnthropicEvent(Struct):
    type: str
    index: int = 0
    delta: _BlockDelta | None = None


def _anthropic(event: _AnthropicEvent) -> Event | None:
    if event.type != "content_block_delta" or event.delta is None:
        return None
    if event.delta.type == "thinking_delta":
        return ThinkingDelta(event.delta.thinking, event.index)
    if event.delta.type == "text_delta":
        return TextDelta(event.delta.text, event.index)
    return ToolCallDelta(event.index, arguments=event.delta.partial_json)


class _ResponsesEvent(Struct):
    type: str
    item_id: str = ""
    delta: str = ""


def _responses(event: _ResponsesEvent) -> Event | None:
    if event.type in ("response.reasoning_text.delta", "response.reasoning_summary_text.delta"):
        return ThinkingDelta(event.delta, event.item_id)
    if event.type == "response.output_text.delta":
        return TextDelta(event.delta, event.item_id)
    if event.type == "response.function_call_arguments.delta":
        return ToolCallDelta(event.item_id, arguments=event.delta)
    return None


class _FunctionCall(Struct):
    name: str
    args: msgspec.Raw


class _Part(Struct):
    text: str | None = None
    thought: bool = False
    functionCall: _FunctionCall | None = None


class _Content(Struct):
    parts: list[_Part]


class _Candidate(Struct):
    content: _Content


class _GeminiChunk(Struct):
    candidates: list[_Candidate]


def _gemini(chunk: _GeminiChunk) -> Event | None:
    part = chunk.candidates[0].content.parts[0]
    if part.functionCall is not None:
        return ToolCallDelta(name=part.functionCall.name)
    return ThinkingDelta(part.text or "") if part.thought else TextDelta(part.text or "")


class _Reasoning(Struct):
    text: str = ""


class _Input(Struct):
    input: str = ""


class _ConverseDelta(Struct):
    text: str | None = None
    reasoningContent: _Reasoning | None = None
    toolUse: _Input | None = None


class _ConverseEvent(Struct):
    contentBlockIndex: int = 0
    delta: _ConverseDelta | None = None


def _converse(event: _ConverseEvent) -> Event | None:
    delta, index = event.delta, event.contentBlockIndex
    if delta is None:
        return None
    if delta.reasoningContent is not None:
        return ThinkingDelta(delta.reasoningContent.text, index)
    if delta.text is not None:
        return TextDelta(delta.text, index)
    return ToolCallDelta(index, arguments=delta.toolUse.input if delta.toolUse else "")


def _lines(data: bytes) -> tuple[list[bytes], bytes]:
    """The data of server-sent events, and what is not whole."""
    *frames, rest = data.split(b"\n\n")
    return [frame[frame.index(b"data: ") + 6 :] for frame in frames], rest


def _messages(data: bytes) -> tuple[list[bytes], bytes]:
    """The payloads of Amazon's event stream, checked, and what is not whole."""
    found: list[bytes] = []
    at = 0
    while len(data) - at >= 8:
        size, headers = _LENGTHS.unpack_from(data, at)
        if len(data) - at < size:
            break
        end = at + size - 4
        if crc32(data[at:end]) != int.from_bytes(data[end : end + 4], "big"):
            raise ValueError("a message is damaged")
        found.append(data[at + 12 + headers : end])
        at += size
    return found, data[at:]


READ = 256 * 1024
"""How much is read from a socket at once, if it is there."""
_LENGTHS = struct.Struct(">II")
_KINDS: dict[str, tuple[type, Callable[[Any], Event | None]]] = {
    "openai-chat": (_ChatChunk, _chat),
    "anthropic": (_AnthropicEvent, _anthropic),
    "openai-responses": (_ResponsesEvent, _responses),
    "gemini": (_GeminiChunk, _gemini),
    "bedrock-converse": (_ConverseEvent, _converse),
}


class Decoding:
    """Decodes one stream as its bytes come."""

    def __init__(self, dialect: str) -> None:
        kind, self._make = _KINDS[dialect]
        self._decode = msgspec.json.Decoder(kind).decode
        self._split = _messages if dialect == "bedrock-converse" else _lines
        self._rest, self._count = b"", 0

    def feed(self, data: bytes) -> int:
        """The number of events so far."""
        bodies, self._rest = self._split(self._rest + data)
        make, decode = self._make, self._decode
        for body in bodies:
            if body != b"[DONE]" and make(decode(body)) is not None:
                self._count += 1
        return self._count


def decode(dialect: str, chunks: list[bytes]) -> int:
    """Decode a stream cut into chunks; the number of events."""
    decoding = Decoding(dialect)
    return max(map(decoding.feed, chunks))


class Answer:
    """Reads one answer from the bytes of a socket: its head, its chunks, its frames."""

    def __init__(self, dialect: str) -> None:
        self._decoding = Decoding(dialect)
        self._rest = b""
        self._in_head = True
        self.count = 0
        self.done = False

    def feed(self, data: bytes) -> None:
        """Count the events that these bytes complete."""
        data, at = self._rest + data, 0
        if self._in_head:
            _, found, data = data.partition(b"\r\n\r\n")
            self._in_head = not found
        pieces: list[bytes] = []
        size, find, take = len(data), data.find, pieces.append
        while (begin := find(b"\n", at) + 1) and (
            (end := begin + int(data[at:begin], 16)) + 2 <= size
        ):
            if end == begin:
                self.done = True
                break
            take(data[begin:end])
            at = end + 2
        self._rest = data[at:]
        self.count = self._decoding.feed(b"".join(pieces))


def document(dialect: str, link: socket.socket) -> int:
    """Read one document of a known length from a socket and decode it; the length of its text."""
    head, found, body = b"", b"", b""
    while not found:
        head, found, body = (head + body + link.recv(READ)).partition(b"\r\n\r\n")
    size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    pieces = [body]
    left = size - len(body)
    while left > 0:
        pieces.append(link.recv(READ))
        left -= len(pieces[-1])
    return len(msgspec.json.decode(b"".join(pieces)))
