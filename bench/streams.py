"""Pre-rendered answers in the four dialects: 60 % reasoning, 35 % text, 5 % tool arguments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

CHUNKS = 20_000
_WORDS = ("so ", "the ", "answer ", "would ", "then ", "follow ", "from ", "this.\n")


def pieces(chunks: int = CHUNKS) -> tuple[list[str], list[str], list[str]]:
    """The pieces of reasoning, text and tool arguments."""
    words = [_WORDS[n % len(_WORDS)] for n in range(chunks)]
    reasoning, text = int(chunks * 0.6), int(chunks * 0.35)
    values = [f'"{n}",' for n in range(chunks - reasoning - text - 2)]
    return words[:reasoning], words[: int(text)], ['{"items":[', *values, '"end"]}']


def _frames(values: Iterator[dict[str, Any]], named: bool = False) -> bytes:
    out = []
    for value in values:
        name = f"event: {value['type']}\n" if named else ""
        out.append(f"{name}data: {json.dumps(value, separators=(',', ':'))}\n\n")
    return "".join(out).encode()


def chat(chunks: int = CHUNKS) -> bytes:
    """A Chat Completions stream with reasoning_content."""
    thoughts, texts, arguments = pieces(chunks)
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}

    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {**head, "choices": [choice]}

    def values() -> Iterator[dict[str, Any]]:
        yield from (chunk({"reasoning_content": text}) for text in thoughts)
        yield from (chunk({"content": text}) for text in texts)
        for n, text in enumerate(arguments):
            call: dict[str, Any] = {"index": 0, "function": {"arguments": text}}
            if n == 0:
                call |= {"id": "call_1", "type": "function"}
                call["function"] = {"name": "f", "arguments": text}
            yield chunk({"tool_calls": [call]})
        yield chunk({}, "tool_calls")

    return _frames(values()) + b"data: [DONE]\n\n"


def anthropic(chunks: int = CHUNKS) -> bytes:
    """A Messages stream with a signed thinking block."""
    kinds = zip(
        (
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "text", "text": ""},
            {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}},
        ),
        ("thinking_delta", "text_delta", "input_json_delta"),
        ("thinking", "text", "partial_json"),
        pieces(chunks),
        strict=True,
    )
    message = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 1},
    }

    def values() -> Iterator[dict[str, Any]]:
        yield {"type": "message_start", "message": message}
        for index, (block, kind, field, texts) in enumerate(kinds):
            yield {"type": "content_block_start", "index": index, "content_block": block}
            for text in texts:
                delta = {"type": kind, field: text}
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            if index == 0:
                signed = {"type": "signature_delta", "signature": "EqQB"}
                yield {"type": "content_block_delta", "index": index, "delta": signed}
            yield {"type": "content_block_stop", "index": index}
        end = {"stop_reason": "tool_use", "stop_sequence": None}
        yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": chunks}}
        yield {"type": "message_stop"}

    return _frames(values(), named=True)


def responses(chunks: int = CHUNKS) -> bytes:
    """A Responses stream with a reasoning item, a message and a function call."""
    thoughts, texts, arguments = pieces(chunks)
    reasoning = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "".join(thoughts)}],
        "encrypted_content": "gAAAA",
    }
    output = {"type": "output_text", "text": "".join(texts), "annotations": []}
    message = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [output],
    }
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "f",
        "arguments": "".join(arguments),
        "status": "completed",
    }
    part = {"type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "summary_index": 0}
    said = {"type": "response.output_text.delta", "item_id": "msg_1", "content_index": 0}
    asked = {"type": "response.function_call_arguments.delta", "item_id": "fc_1"}
    response = {"id": "r1", "object": "response", "model": "m", "status": "in_progress"}

    def values() -> Iterator[dict[str, Any]]:
        yield {"type": "response.created", "response": {**response, "output": []}}
        items = (
            ({**reasoning, "summary": []}, part, thoughts, reasoning),
            ({**message, "content": []}, said, texts, message),
            ({**call, "arguments": ""}, asked, arguments, call),
        )
        for index, (opened, kind, deltas, done) in enumerate(items):
            place = {"output_index": index}
            yield {"type": "response.output_item.added", **place, "item": opened}
            if index == 0:
                empty = {"type": "summary_text", "text": ""}
                added = "response.reasoning_summary_part.added"
                yield {**part, "type": added, **place, "part": empty}
            if index == 1:
                added = "response.content_part.added"
                yield {**said, "type": added, **place, "part": {**output, "text": ""}}
            for text in deltas:
                yield {**kind, **place, "delta": text, **({"logprobs": []} if index == 1 else {})}
            yield {"type": "response.output_item.done", **place, "item": done}
        whole = {**response, "status": "completed", "output": [reasoning, message, call]}
        yield {"type": "response.completed", "response": whole}

    numbered = ({**value, "sequence_number": n} for n, value in enumerate(values()))
    return _frames(numbered, named=True)


def gemini(chunks: int = CHUNKS) -> bytes:
    """A streamGenerateContent stream; its function call comes whole, as Gemini sends it."""
    thoughts, texts, arguments = pieces(chunks)

    def chunk(part: dict[str, Any], **more: Any) -> dict[str, Any]:
        candidate = {"content": {"role": "model", "parts": [part]}, "index": 0, **more}
        return {"candidates": [candidate], "modelVersion": "m", "responseId": "r"}

    def values() -> Iterator[dict[str, Any]]:
        yield from (chunk({"text": text, "thought": True}) for text in thoughts)
        yield from (chunk({"text": text}) for text in texts)
        args = json.loads("".join(arguments))
        for n in range(len(arguments)):
            yield chunk({"functionCall": {"name": f"f{n}", "args": {"n": n}}})
        call = {"functionCall": {"name": "f", "args": args}, "thoughtSignature": "CiQB"}
        yield chunk(call, finishReason="STOP")

    return _frames(values())


STREAMS = {
    "openai-chat": chat,
    "anthropic": anthropic,
    "openai-responses": responses,
    "gemini": gemini,
}
