"""Writes a scripted answer as each API sends it: one document, and the bytes of a stream.

Nothing of mull is used here: the suite must not inherit mull's mistakes.
"""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

__all__ = [
    "FORMAT",
    "GOOGLE",
    "Answer",
    "Call",
    "Json",
    "Part",
    "Say",
    "Think",
    "carrier",
    "chat_stream",
    "compact",
    "invoked",
    "sse",
    "write",
]

Json = dict[str, Any]


@dataclass(frozen=True)
class Think:
    """A thought, and what carries it: a signature, encrypted content, redacted data."""

    text: str
    carrier: str = ""
    hidden: bool = False


@dataclass(frozen=True)
class Say:
    """Text for the user; Gemini signs some."""

    text: str
    carrier: str = ""


@dataclass(frozen=True)
class Call:
    """A tool call."""

    id: str
    at: str
    carrier: str = ""


Part = Think | Say | Call
TOOL = "look"
GOOGLE = "\r\n"
"""How lines of a Gemini stream end; those of all others end in LF."""
FORMAT = "anthropic-claude-v1"
"""How OpenRouter names the reasoning of Claude; in a request it may be left out."""


@dataclass(frozen=True)
class Answer:
    """One answer in both forms."""

    document: Json
    stream: bytes


def compact(value: object) -> str:
    """JSON as servers write it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def sse(values: Sequence[object], *, named: bool = False, end: str = "\n") -> bytes:
    """Values as server-sent events, with their type as name where the API does that."""
    lines = []
    for value in values:
        if named and isinstance(value, dict):
            lines.append(f"event: {value['type']}{end}")
        lines.append(f"data: {value if isinstance(value, str) else compact(value)}{end}{end}")
    return "".join(lines).encode()


def pieces(text: str, size: int = 16) -> list[str]:
    """A text as deltas."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def write(api: str, model: str, parts: Sequence[Part], number: int, **options: Any) -> Answer:
    """The answer of an API; `number` makes its ids unique."""
    return _WRITERS[api](model, parts, number, **options)


# Chat Completions


def _chat(
    model: str,
    parts: Sequence[Part],
    number: int,
    *,
    field: str = "reasoning_content",
    finish: str | None = None,
    tokens: int | None = None,
) -> Answer:
    thoughts = [part for part in parts if isinstance(part, Think)]
    calls = [part for part in parts if isinstance(part, Call)]
    said = "".join(part.text for part in parts if isinstance(part, Say))
    message: Json = {"role": "assistant", "content": said}
    deltas: list[Json] = []
    if field == "details":
        _details(message, deltas, thoughts)
    elif field == "content-list":
        _content_list(message, deltas, thoughts, said)
    elif field == "tags":
        inside = "".join(f"<think>{part.text}</think>" for part in thoughts)
        message["content"] = inside + said
        deltas += [{"content": piece} for piece in pieces(inside)]
    elif field == "extra-content":
        deltas += _signed_calls(message, calls)
    elif thoughts:
        message[field] = "".join(part.text for part in thoughts)
        deltas += [{field: piece} for piece in pieces(message[field]) or [""]]
    deltas += [{"content": piece} for piece in pieces(said)]
    whole_calls = field == "content-list"
    if calls and field != "extra-content":
        message["tool_calls"] = [_chat_call(call) for call in calls]
        deltas += _whole_calls(message) if whole_calls else _chat_call_deltas(calls)
    ending = finish or ("tool_calls" if calls else "stop")
    usage = _chat_usage(tokens)
    about = {"id": f"chatcmpl-{number}", "created": 1760000000, "model": model}
    choice = {"index": 0, "message": message, "finish_reason": ending}
    document = {**about, "object": "chat.completion", "choices": [choice], "usage": usage}
    stream = chat_stream(model, deltas, ending, number, usage, apart=not whole_calls)
    if field != "details":
        return Answer(document, stream)
    native = {"stop": "end_turn", "tool_calls": "tool_use"}.get(ending, ending)
    document = {**document, "provider": "Anthropic", "system_fingerprint": None}
    document["choices"] = [{**choice, "native_finish_reason": native}]
    return Answer(document, stream.replace(b'"object":', b'"provider":"Anthropic","object":'))


def chat_stream(
    model: str,
    deltas: Sequence[Json],
    finish: str | None,
    number: int = 1,
    usage: Json | None = None,
    *,
    apart: bool = True,
) -> bytes:
    """The deltas of a Chat Completions stream as its bytes; the usage in a chunk of its own."""
    about = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk"}
    about |= {"created": 1760000000, "model": model}
    told = [{"role": "assistant", "content": ""}, *deltas]
    chunks = [
        {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in told
    ]
    if finish is not None:
        last = {"index": 0, "delta": {}, "finish_reason": finish}
        counted = {"usage": usage or _chat_usage(None)}
        chunks.append({**about, "choices": [last], **({} if apart else counted)})
        chunks += [{**about, "choices": [], **counted}] if apart else []
    return sse([*chunks, *(["[DONE]"] if finish is not None else [])])


def _chat_usage(tokens: int | None) -> Json:
    usage: Json = {"prompt_tokens": 40, "completion_tokens": 60, "total_tokens": 100}
    if tokens is not None:
        usage["completion_tokens_details"] = {"reasoning_tokens": tokens}
    return usage


def _chat_call(call: Call) -> Json:
    function = {"name": TOOL, "arguments": compact({"at": call.at})}
    return {"id": call.id, "type": "function", "function": function}


def _chat_call_deltas(calls: Sequence[Call]) -> Iterator[Json]:
    for index, call in enumerate(calls):
        about = {"id": call.id, "type": "function", "index": index}
        head = {**about, "function": {"name": TOOL, "arguments": ""}}
        yield {"tool_calls": [head]}
        for piece in pieces(compact({"at": call.at}), 8):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _whole_calls(message: Json) -> list[Json]:
    """Mistral sends calls in one piece."""
    return [{"tool_calls": [{"index": at, **one} for at, one in enumerate(message["tool_calls"])]}]


def _signed_calls(message: Json, calls: Sequence[Call]) -> list[Json]:
    """Gemini behind its Chat Completions endpoint: the signature inside the call."""
    message["tool_calls"] = []
    for call in calls:
        signed = _chat_call(call)
        if call.carrier:
            signed["extra_content"] = {"google": {"thought_signature": call.carrier}}
        message["tool_calls"].append(signed)
    return [{"tool_calls": [{"index": at, **c}]} for at, c in enumerate(message["tool_calls"])]


def _details(message: Json, deltas: list[Json], thoughts: Sequence[Think]) -> None:
    """OpenRouter in front of Claude: text twice, signed or encrypted entries."""
    shown = "".join(part.text for part in thoughts if not part.hidden)
    message["reasoning"] = shown or None
    message["reasoning_details"] = entries = []
    for index, part in enumerate(thoughts):
        about = {"format": FORMAT, "index": index}
        if part.hidden:
            entry = {"type": "reasoning.encrypted", "data": part.carrier, **about}
            entries.append(entry)
            deltas.append({"reasoning": None, "reasoning_details": [entry]})
            continue
        kind = {"type": "reasoning.text"}
        entries.append({**kind, "text": part.text, "signature": part.carrier, **about})
        for piece in pieces(part.text):
            detail = {**kind, "text": piece, **about}
            deltas.append({"reasoning": piece, "reasoning_details": [detail]})
        deltas.append({"reasoning_details": [{**kind, "signature": part.carrier, **about}]})


def _content_list(message: Json, deltas: list[Json], thoughts: Sequence[Think], said: str) -> None:
    """Mistral: a list of content with nested thinking."""

    def chunk(text: str) -> Json:
        return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}

    message["content"] = [chunk(part.text) for part in thoughts]
    message["content"] += [{"type": "text", "text": said}] if said else []
    deltas += [{"content": [chunk(piece)]} for part in thoughts for piece in pieces(part.text)]


# Messages


def _messages(
    model: str, parts: Sequence[Part], number: int, *, tokens: int | None = None, finish: str = ""
) -> Answer:
    blocks = [_block(part) for part in parts]
    called = any(isinstance(part, Call) for part in parts)
    ending = finish or ("tool_use" if called else "end_turn")
    usage: Json = {"input_tokens": 40, "output_tokens": 60}
    if tokens is not None:
        usage["output_tokens_details"] = {"thinking_tokens": tokens}
    about: Json = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model}
    document = {**about, "content": blocks, "stop_reason": ending, "stop_sequence": None}
    started = {**about, "content": [], "stop_reason": None, "stop_sequence": None}
    opened = {"input_tokens": 40, "output_tokens": 1}
    events: list[Json] = [{"type": "message_start", "message": {**started, "usage": opened}}]
    for index, block in enumerate(blocks):
        events += _block_events(index, block)
    last = {"stop_reason": ending, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": last, "usage": usage})
    events.append({"type": "message_stop"})
    return Answer({**document, "usage": usage}, sse(events, named=True))


def _block(part: Part) -> Json:
    match part:
        case Think(_, carrier, hidden=True):
            return {"type": "redacted_thinking", "data": carrier}
        case Think(text, carrier):
            return {"type": "thinking", "thinking": text, "signature": carrier}
        case Say(text):
            return {"type": "text", "text": text}
        case Call(name, at):
            return {"type": "tool_use", "id": name, "name": TOOL, "input": {"at": at}}


def _block_events(index: int, block: Json) -> Iterator[Json]:
    blank = {"thinking": {"thinking": "", "signature": ""}, "text": {"text": ""}}
    blank["tool_use"] = {"input": {}}  # type: ignore[dict-item]
    empty = {**block, **blank.get(block["type"], {})}
    yield {"type": "content_block_start", "index": index, "content_block": empty}
    for delta in _block_deltas(block):
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _block_deltas(block: Json) -> Iterator[Json]:
    match block:
        case {"type": "thinking", "thinking": text, "signature": carrier}:
            for piece in pieces(text):
                yield {"type": "thinking_delta", "thinking": piece}
            yield {"type": "signature_delta", "signature": carrier}
        case {"type": "text", "text": text}:
            for piece in pieces(text):
                yield {"type": "text_delta", "text": piece}
        case {"type": "tool_use", "input": given}:
            for piece in pieces(compact(given), 8):
                yield {"type": "input_json_delta", "partial_json": piece}


# Responses


def _responses(
    model: str,
    parts: Sequence[Part],
    number: int,
    *,
    tokens: int | None = None,
    raw: bool = False,
    summaries: int = 1,
) -> Answer:
    items = [_item(part, number * 10 + at, raw, summaries) for at, part in enumerate(parts)]
    usage = {"input_tokens": 40, "output_tokens": 60, "total_tokens": 100}
    usage |= {"input_tokens_details": {"cached_tokens": 0}}  # type: ignore[dict-item]
    usage["output_tokens_details"] = {"reasoning_tokens": tokens or 0}  # type: ignore[assignment]
    about: Json = {"id": f"resp_{number}", "object": "response", "created_at": 1760000000}
    about |= {"model": model, "error": None, "incomplete_details": None, "instructions": None}
    about |= {"metadata": {}, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    about |= {"temperature": 1.0, "top_p": 1.0}
    done = {**about, "status": "completed", "output": items, "usage": usage}
    opened = {**about, "status": "in_progress", "output": [], "usage": None}
    events: list[Json] = [{"type": "response.created", "response": opened}]
    for index, item in enumerate(items):
        events += _item_events(index, item)
    events.append({"type": "response.completed", "response": done})
    numbered = [{**event, "sequence_number": at} for at, event in enumerate(events)]
    return Answer(done, sse(numbered, named=True))


def _item(part: Part, number: int, raw: bool, summaries: int) -> Json:
    match part:
        case Think(text, carrier, hidden):
            texts = [] if hidden or not text else _split(text, summaries)
            item: Json = {"id": f"rs_{number}", "type": "reasoning"}
            item["summary"] = [] if raw else [{"type": "summary_text", "text": t} for t in texts]
            if raw:
                item["content"] = [{"type": "reasoning_text", "text": t} for t in texts]
            return {**item, "encrypted_content": carrier or None}
        case Say(text):
            content = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
            about = {"id": f"msg_{number}", "type": "message", "role": "assistant"}
            return {**about, "status": "completed", "content": [content]}
        case Call(name, at):
            about = {"id": f"fc_{number}", "type": "function_call", "call_id": name, "name": TOOL}
            return {**about, "arguments": compact({"at": at}), "status": "completed"}


def _split(text: str, count: int) -> list[str]:
    return text.split("\n\n") if count > 1 else [text]


def _item_events(index: int, item: Json) -> Iterator[Json]:
    where = {"item_id": item["id"], "output_index": index}
    blank = {**item, **({"status": "in_progress"} if "status" in item else {})}
    blank |= {key: [] for key in ("summary", "content") if key in item}
    blank |= {"encrypted_content": None} if "encrypted_content" in item else {}
    blank |= {"arguments": ""} if "arguments" in item else {}
    yield {"type": "response.output_item.added", "output_index": index, "item": blank}
    for at, part in enumerate(item.get("summary", ())):
        yield from _summary_events({**where, "summary_index": at}, part)
    for at, part in enumerate(item.get("content", ())):
        yield from _content_events({**where, "content_index": at}, part)
    if "arguments" in item:
        for piece in pieces(item["arguments"], 8):
            yield {"type": "response.function_call_arguments.delta", **where, "delta": piece}
        yield {
            "type": "response.function_call_arguments.done",
            **where,
            "name": item["name"],
            "arguments": item["arguments"],
        }
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _summary_events(where: Json, part: Json) -> Iterator[Json]:
    event, text = "response.reasoning_summary", part["text"]
    yield {"type": f"{event}_part.added", **where, "part": {**part, "text": ""}}
    for piece in pieces(text):
        yield {"type": f"{event}_text.delta", **where, "delta": piece}
    yield {"type": f"{event}_text.done", **where, "text": text}
    yield {"type": f"{event}_part.done", **where, "part": part}


def _content_events(where: Json, part: Json) -> Iterator[Json]:
    text, raw = part["text"], part["type"] == "reasoning_text"
    event = "response.reasoning_text" if raw else "response.output_text"
    more: Json = {} if raw else {"logprobs": []}
    yield {"type": "response.content_part.added", **where, "part": {**part, "text": ""}}
    for piece in pieces(text):
        yield {"type": f"{event}.delta", **where, **more, "delta": piece}
    yield {"type": f"{event}.done", **where, **more, "text": text}
    yield {"type": "response.content_part.done", **where, "part": part}


# generateContent


def _gemini(
    model: str, parts: Sequence[Part], number: int, *, tokens: int | None = None, finish: str = ""
) -> Answer:
    written = [
        _gemini_part(part) for part in parts if not (isinstance(part, Think) and part.hidden)
    ]
    usage: Json = {"promptTokenCount": 40, "candidatesTokenCount": 20, "totalTokenCount": 100}
    if tokens is not None:
        usage["thoughtsTokenCount"] = tokens
    about = {"modelVersion": model, "responseId": f"gem{number}"}

    def chunk(found: Sequence[Json], ending: str | None) -> Json:
        candidate: Json = {"content": {"parts": found, "role": "model"}, "index": 0}
        if ending:
            candidate["finishReason"] = ending
        return {"candidates": [candidate], "usageMetadata": usage, **about}

    told = [piece for part in written for piece in _gemini_pieces(part)]
    last = finish or "STOP"
    chunks = [
        chunk([piece], last if at + 1 == len(told) else None) for at, piece in enumerate(told)
    ]
    return Answer(chunk(written, last), sse(chunks, end=GOOGLE))


def _gemini_part(part: Part) -> Json:
    match part:
        case Think(text):
            return {"text": text, "thought": True}
        case Say(text, carrier):
            return {"text": text, **({"thoughtSignature": carrier} if carrier else {})}
        case Call(name, at, carrier):
            call = {"functionCall": {"id": name, "name": TOOL, "args": {"at": at}}}
            return {**call, **({"thoughtSignature": carrier} if carrier else {})}


def _gemini_pieces(part: Json) -> list[Json]:
    if "text" not in part:
        return [part]
    plain = {key: value for key, value in part.items() if key != "thoughtSignature"}
    told = [{**plain, "text": piece} for piece in pieces(part["text"])] or [plain]
    return [*told[:-1], {**part, "text": told[-1]["text"]}]


# Converse


def _converse(
    model: str, parts: Sequence[Part], number: int, *, tokens: int | None = None
) -> Answer:
    blocks = [_converse_block(part) for part in parts]
    called = any(isinstance(part, Call) for part in parts)
    usage = {"inputTokens": 40, "outputTokens": 60, "totalTokens": 100}
    ending = "tool_use" if called else "end_turn"
    message = {"role": "assistant", "content": blocks}
    about = {"stopReason": ending, "usage": usage, "metrics": {"latencyMs": 1}}
    document = {"output": {"message": message}, **about}
    frames = [_frame("messageStart", {"role": "assistant"})]
    for index, part in enumerate(parts):
        frames += [_frame(name, value) for name, value in _converse_events(index, part)]
    frames.append(_frame("messageStop", {"stopReason": ending}))
    frames.append(_frame("metadata", {"usage": usage, "metrics": {"latencyMs": 1}}))
    return Answer(document, b"".join(frames))


def invoked(model: str, parts: Sequence[Part], number: int) -> Answer:
    """The same answer of InvokeModel: a message, and its events inside Amazon's."""
    told = _messages(model, parts, number)
    events = [line[6:] for line in told.stream.splitlines() if line.startswith(b"data: ")]
    chunks = [_frame("chunk", {"bytes": b64encode(event).decode()}) for event in events]
    return Answer(told.document, b"".join(chunks))


def _converse_block(part: Part) -> Json:
    match part:
        case Think(_, carrier, hidden=True):
            return {"reasoningContent": {"redactedContent": carrier}}
        case Think(text, carrier):
            return {"reasoningContent": {"reasoningText": {"text": text, "signature": carrier}}}
        case Say(text):
            return {"text": text}
        case Call(name, at):
            return {"toolUse": {"toolUseId": name, "name": TOOL, "input": {"at": at}}}


def _converse_events(index: int, part: Part) -> Iterator[tuple[str, Json]]:
    where = {"contentBlockIndex": index}

    def delta(value: Json) -> tuple[str, Json]:
        return "contentBlockDelta", {**where, "delta": value}

    match part:
        case Think(_, carrier, hidden=True):
            yield delta({"reasoningContent": {"redactedContent": carrier}})
        case Think(text, carrier):
            for piece in pieces(text):
                yield delta({"reasoningContent": {"text": piece}})
            yield delta({"reasoningContent": {"signature": carrier}})
        case Say(text):
            for piece in pieces(text):
                yield delta({"text": piece})
        case Call(name, at):
            start = {"toolUse": {"toolUseId": name, "name": TOOL}}
            yield "contentBlockStart", {**where, "start": start}
            for piece in pieces(compact({"at": at}), 8):
                yield delta({"toolUse": {"input": piece}})
    yield "contentBlockStop", where


def _frame(name: str, value: Json) -> bytes:
    """A message of Amazon's binary event stream."""
    heads = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(text)) + text.encode()
        for key, text in heads.items()
    )
    payload = compact(value).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    told = prelude + struct.pack(">I", crc32(prelude)) + headers + payload
    return told + struct.pack(">I", crc32(told))


def carrier(name: str) -> str:
    """An opaque value as providers send them: base64 that no alphabet writes differently."""
    return b64encode(f"opaque {name} for nobody to read".encode()).decode()


_WRITERS = {
    "chat": _chat,
    "messages": _messages,
    "responses": _responses,
    "gemini": _gemini,
    "converse": _converse,
}
