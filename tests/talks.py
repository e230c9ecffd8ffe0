"""Clients of four APIs that hold whole conversations, and change what they were given.

Plain dicts again, and nothing of mull: a client here streams or not, leaves turns out, goes back,
says something else than was said, and asks another model in the middle. `Manner` is what it does to
an answer before it sends it back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple

from naive_clients import post

SCHEMA = {"type": "object", "properties": {"at": {"type": "string"}}}
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJ"
    "RU5ErkJggg=="
)
Entry = dict[str, Any]


class Usage(NamedTuple):
    """What a client is told of the tokens: all of the input, of the output, and of it thoughts."""

    input: int
    output: int
    reasoning: int | None


class Called(NamedTuple):
    id: str
    name: str
    input: Any


@dataclass(frozen=True)
class Result:
    """What a tool gave; `None` for a text is a call that is not answered."""

    text: str | None = "r"
    failed: bool = False
    picture: bool = False


@dataclass(frozen=True)
class Heard:
    """An answer as a client has it: what it keeps, and what it shows."""

    entries: list[Entry]
    calls: list[Called]
    text: str
    thoughts: str
    usage: Usage


@dataclass(frozen=True)
class Manner:
    """How a client treats what it was given."""

    drops: bool = False
    """It keeps no reasoning at all."""
    renames: bool = False
    """It replaces what it finds odd in ids."""
    respaces: bool = False
    """It writes arguments anew, and trims texts."""
    splits: bool = False
    """It keeps every piece of an answer as an answer of its own, or its texts as lists."""
    nameless: bool = False
    """It keeps no ids where its API can do without."""


class Talk:
    """One conversation: turns of entries, each beginning with a question."""

    path: str

    def __init__(self, manner: Manner | None = None) -> None:
        self.manner = manner or Manner()
        self.turns: list[list[Entry]] = []
        self.system = "Be brief."

    def history(self) -> list[Entry]:
        return [deepcopy(entry) for turn in self.turns for entry in turn]

    def ask(self, text: str) -> None:
        self.turns.append([self.question(text)])

    def hear(self, url: str, model: str, *, stream: bool) -> Heard:
        """Ask for the next answer, and keep it."""
        data = post(url + self.address(model, stream), self.body(model, stream))
        whole = self.fold(events_of(data)) if stream else json.loads(data)
        heard = self.read(whole)
        self.turns[-1] += self.kept(heard.entries)
        return heard

    def answer(self, calls: Sequence[Called], results: Sequence[Result]) -> None:
        given = [
            (self.id_of(c), r) for c, r in zip(calls, results, strict=True) if r.text is not None
        ]
        self.turns[-1] += self.results(given)

    def id_of(self, call: Called) -> Called:
        return call._replace(id=renamed(call.id)) if self.manner.renames else call

    # what differs
    def address(self, model: str, stream: bool) -> str:
        return self.path

    def question(self, text: str) -> Entry:
        raise NotImplementedError

    def body(self, model: str, stream: bool) -> Any:
        raise NotImplementedError

    def fold(self, events: Iterator[Any]) -> Any:
        raise NotImplementedError

    def read(self, whole: Any) -> Heard:
        raise NotImplementedError

    def kept(self, entries: list[Entry]) -> list[Entry]:
        raise NotImplementedError

    def results(self, given: Sequence[tuple[Called, Result]]) -> list[Entry]:
        raise NotImplementedError

    def retell(self, turn: int, text: str) -> None:
        """Say that the model said something else there."""
        raise NotImplementedError

    def compact(self) -> None:
        """Put a summary in the place of all that was said."""
        self.turns = [[self.question("So far: nothing."), *self.spoken("I see.")]]

    def spoken(self, text: str) -> list[Entry]:
        """An answer that no model gave."""
        raise NotImplementedError


def renamed(call_id: str) -> str:
    return re.sub(r"[^a-zA-Z0-9]", "-", call_id)


def respaced(arguments: str) -> str:
    return json.dumps(json.loads(arguments or "{}"), indent=1, sort_keys=True, ensure_ascii=True)


def events_of(data: bytes) -> Iterator[Any]:
    for line in data.decode().split("\n"):
        if line.startswith("data:") and line[5:].strip() != "[DONE]":
            yield json.loads(line[5:])


class Chat(Talk):
    def spoken(self, text):
        return [{"role": "assistant", "content": text}]

    path = "/v1/chat/completions"
    CARRIERS = ("reasoning", "reasoning_content", "reasoning_details", "reasoning_opaque")

    def question(self, text):
        return {"role": "user", "content": text}

    def body(self, model, stream):
        tool = {"type": "function", "function": {"name": "look", "parameters": SCHEMA}}
        said = [{"role": "system", "content": self.system}, *self.history()]
        more = {"stream_options": {"include_usage": True}} if stream else {}
        return {"model": model, "messages": said, "tools": [tool], "stream": stream, **more}

    def fold(self, events):
        message: Any = {"role": "assistant", "content": ""}
        calls: dict[int, Any] = {}
        usage = None
        reason = None
        for event in events:
            assert "error" not in event, event
            usage = event.get("usage") or usage
            for choice in event["choices"]:
                delta = choice["delta"]
                reason = choice.get("finish_reason") or reason
                for key in ("content", "reasoning_content", "reasoning"):
                    if delta.get(key) is not None:
                        message[key] = message.get(key, "") + delta[key]
                if delta.get("reasoning_details"):
                    message.setdefault("reasoning_details", []).extend(delta["reasoning_details"])
                if delta.get("reasoning_opaque"):
                    message["reasoning_opaque"] = delta["reasoning_opaque"]
                for piece in delta.get("tool_calls") or ():
                    call = calls.setdefault(
                        piece["index"], {"type": "function", "function": {"arguments": ""}}
                    )
                    if piece.get("id"):
                        call["id"] = piece["id"]
                    function = piece.get("function") or {}
                    if function.get("name"):
                        call["function"]["name"] = function["name"]
                    call["function"]["arguments"] += function.get("arguments") or ""
        if calls:
            message["tool_calls"] = [calls[at] for at in sorted(calls)]
        if message.get("reasoning_details"):
            message["reasoning_details"] = merged(message["reasoning_details"])
        assert reason == ("tool_calls" if calls else "stop"), reason
        return {"choices": [{"message": message, "finish_reason": reason}], "usage": usage}

    def read(self, whole):
        message = whole["choices"][0]["message"]
        calls = [
            Called(c["id"], c["function"]["name"], json.loads(c["function"]["arguments"] or "{}"))
            for c in message.get("tool_calls") or ()
        ]
        told = whole["usage"]
        detail = (told.get("completion_tokens_details") or {}).get("reasoning_tokens")
        usage = Usage(told["prompt_tokens"], told["completion_tokens"], detail)
        thoughts = message.get("reasoning_content") or message.get("reasoning") or ""
        return Heard([message], calls, message["content"] or "", thoughts, usage)

    def kept(self, entries):
        (message,) = deepcopy(entries)
        if self.manner.drops:
            message = {k: v for k, v in message.items() if k not in self.CARRIERS}
        for call in message.get("tool_calls") or ():
            if self.manner.renames:
                call["id"] = renamed(call["id"])
            if self.manner.respaces:
                call["function"]["arguments"] = respaced(call["function"]["arguments"])
        if self.manner.respaces:
            message["content"] = (message["content"] or "").strip() or None
        if self.manner.splits and message["content"]:
            message["content"] = [{"type": "text", "text": message["content"]}]
        return [message]

    def results(self, given):
        return [
            {"role": "tool", "tool_call_id": call.id, "content": result.text}
            for call, result in given
        ]

    def retell(self, turn, text):
        answers = [e for e in self.turns[turn] if e["role"] == "assistant"]
        answers[-1]["content"] = text


def merged(details: list[Entry]) -> list[Entry]:
    """Entries of one index, as OpenRouter's clients put them together."""
    folded: dict[Any, Entry] = {}
    for at, detail in enumerate(details):
        key = detail.get("index", f"at {at}")
        if key not in folded:
            folded[key] = dict(detail)
            continue
        for name, value in detail.items():
            if name in ("text", "summary"):
                folded[key][name] = folded[key].get(name, "") + value
            elif value is not None:
                folded[key][name] = value
    return list(folded.values())


class Messages(Talk):
    def spoken(self, text):
        return [{"role": "assistant", "content": [{"type": "text", "text": text}]}]

    path = "/v1/messages"

    def question(self, text):
        return {"role": "user", "content": text}

    def body(self, model, stream):
        return {
            "model": model,
            "system": self.system,
            "messages": self.history(),
            "tools": [{"name": "look", "input_schema": SCHEMA}],
            "max_tokens": 8000,
            "thinking": {"type": "enabled", "budget_tokens": 2000},
            "stream": stream,
        }

    def fold(self, events):  # noqa: PLR0912
        whole: Any = {}
        parts: list[str] = []
        ended = False
        for event in events:
            match event["type"]:
                case "message_start":
                    whole = event["message"]
                case "content_block_start":
                    assert event["index"] == len(whole["content"])
                    whole["content"].append(event["content_block"])
                    parts = []
                case "content_block_delta":
                    block, delta = whole["content"][event["index"]], event["delta"]
                    match delta["type"]:
                        case "text_delta":
                            block["text"] += delta["text"]
                        case "thinking_delta":
                            block["thinking"] += delta["thinking"]
                        case "signature_delta":
                            block["signature"] = delta["signature"]
                        case "input_json_delta":
                            parts.append(delta["partial_json"])
                case "content_block_stop":
                    if "".join(parts):
                        whole["content"][event["index"]]["input"] = json.loads("".join(parts))
                case "message_delta":
                    whole["usage"] |= {k: v for k, v in event["usage"].items() if v is not None}
                case "message_stop":
                    ended = True
                case "error":
                    raise AssertionError(event)
        assert ended
        return whole

    def read(self, whole):
        blocks = whole["content"]
        calls = [Called(b["id"], b["name"], b["input"]) for b in blocks if b["type"] == "tool_use"]
        told = whole["usage"]
        given = sum(
            told.get(key) or 0
            for key in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        )
        return Heard(
            blocks,
            calls,
            "".join(b["text"] for b in blocks if b["type"] == "text"),
            "".join(b["thinking"] for b in blocks if b["type"] == "thinking"),
            Usage(given, told["output_tokens"], None),
        )

    def kept(self, entries):
        blocks = deepcopy(entries)
        if self.manner.drops:
            blocks = [b for b in blocks if b["type"] not in ("thinking", "redacted_thinking")]
        for block in blocks:
            if block["type"] == "tool_use" and self.manner.renames:
                block["id"] = renamed(block["id"])
            if block["type"] == "text" and self.manner.respaces:
                block["text"] = block["text"].strip()
        if self.manner.respaces:
            blocks = [b for b in blocks if b["type"] != "text" or b["text"]]
        if self.manner.splits:
            return [{"role": "assistant", "content": [block]} for block in blocks]
        return [{"role": "assistant", "content": blocks}] if blocks else []

    def results(self, given):
        blocks = []
        for call, result in given:
            block: Any = {"type": "tool_result", "tool_use_id": call.id, "content": result.text}
            if result.failed:
                block["is_error"] = True
            if result.picture:
                source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
                block["content"] = [
                    {"type": "text", "text": result.text},
                    {"type": "image", "source": source},
                ]
            blocks.append(block)
        return [{"role": "user", "content": blocks}] if blocks else []

    def retell(self, turn, text):
        answers = [e for e in self.turns[turn] if e["role"] == "assistant"]
        if not answers:
            return
        blocks = [b for b in answers[-1]["content"] if b["type"] != "text"]
        answers[-1]["content"] = [*blocks, {"type": "text", "text": text}]


class Contents(Talk):
    def spoken(self, text):
        return [{"role": "model", "parts": [{"text": text}]}]

    def address(self, model, stream):
        method = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return f"/v1beta/models/{model}:{method}"

    def question(self, text):
        return {"role": "user", "parts": [{"text": text}]}

    def body(self, model, stream):
        return {
            "contents": self.history(),
            "systemInstruction": {"parts": [{"text": self.system}]},
            "tools": [{"functionDeclarations": [{"name": "look", "parameters": SCHEMA}]}],
            "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
        }

    def fold(self, events):
        parts: list[Any] = []
        last: Any = {}
        usage = None
        for event in events:
            assert "error" not in event, event
            last, usage = event, event.get("usageMetadata") or usage
            for part in event["candidates"][0].get("content", {}).get("parts", ()):
                before = parts[-1] if parts else {}
                plain = "text" in part and "thoughtSignature" not in part
                if (
                    plain
                    and "text" in before
                    and "thoughtSignature" not in before
                    and (before.get("thought") == part.get("thought"))
                ):
                    before["text"] += part["text"]
                else:
                    parts.append(dict(part))
        assert last["candidates"][0]["finishReason"] == "STOP"
        return {"candidates": [{"content": {"parts": parts}}], "usageMetadata": usage}

    def read(self, whole):
        parts = whole["candidates"][0]["content"]["parts"]
        calls = [
            Called(c.get("id", ""), c["name"], c.get("args") or {})
            for part in parts
            if (c := part.get("functionCall"))
        ]
        told = whole["usageMetadata"]
        thought = told.get("thoughtsTokenCount")
        usage = Usage(
            told["promptTokenCount"], told.get("candidatesTokenCount", 0) + (thought or 0), thought
        )
        said = [part for part in parts if "text" in part]
        return Heard(
            parts,
            calls,
            "".join(part["text"] for part in said if not part.get("thought")),
            "".join(part["text"] for part in said if part.get("thought")),
            usage,
        )

    def kept(self, entries):
        parts = deepcopy(entries)
        if self.manner.drops:
            parts = [part for part in parts if not part.get("thought")]
            for part in parts:
                part.pop("thoughtSignature", None)
            parts = [part for part in parts if part != {"text": ""}]
        for part in parts:
            if self.manner.renames and "functionCall" in part:
                part["functionCall"]["id"] = renamed(part["functionCall"]["id"])
            if self.manner.nameless and "functionCall" in part:
                del part["functionCall"]["id"]
            if self.manner.respaces and "text" in part and not part.get("thought"):
                part["text"] = part["text"].strip()
        if self.manner.splits:
            return [{"role": "model", "parts": [part]} for part in parts]
        return [{"role": "model", "parts": parts}] if parts else []

    def results(self, given):
        parts = []
        for call, result in given:
            key = "error" if result.failed else "output"
            response = {"id": call.id, "name": call.name, "response": {key: result.text}}
            if self.manner.nameless:
                del response["id"]
            parts.append({"functionResponse": response})
            if result.picture:
                parts.append({"inlineData": {"mimeType": "image/png", "data": PIXEL}})
        return [{"role": "user", "parts": parts}] if parts else []

    def retell(self, turn, text):
        answers = [e for e in self.turns[turn] if e["role"] == "model"]
        if not answers:
            return
        kept = [p for p in answers[-1]["parts"] if "text" not in p or p.get("thought")]
        answers[-1]["parts"] = [*kept, {"text": text}]


class Responses(Talk):
    def spoken(self, text):
        return [{"role": "assistant", "content": text}]

    path = "/v1/responses"

    def question(self, text):
        return {"type": "message", "role": "user", "content": text}

    def body(self, model, stream):
        tool = {"type": "function", "name": "look", "parameters": SCHEMA, "strict": False}
        return {
            "model": model,
            "instructions": self.system,
            "input": self.history(),
            "tools": [tool],
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"summary": "auto"},
            "stream": stream,
        }

    def fold(self, events):
        whole = None
        items: list[Any] = []
        for event in events:
            match event["type"]:
                case "response.output_item.done":
                    assert event["output_index"] == len(items)
                    items.append(event["item"])
                case "response.completed":
                    whole = event["response"]
                case "error" | "response.failed" | "response.incomplete":
                    raise AssertionError(event)
        assert whole is not None
        assert whole["output"] == items
        return whole

    def read(self, whole):
        items = whole["output"]
        calls = [
            Called(i["call_id"], i["name"], json.loads(i["arguments"] or "{}"))
            for i in items
            if i["type"] == "function_call"
        ]
        told = whole["usage"]
        detail = told["output_tokens_details"]["reasoning_tokens"]
        said = [p["text"] for i in items if i["type"] == "message" for p in i["content"]]
        thought = [
            part["text"]
            for item in items
            if item["type"] == "reasoning"
            for part in (item.get("content") or item["summary"])
        ]
        usage = Usage(told["input_tokens"], told["output_tokens"], detail)
        return Heard(items, calls, "".join(said), "".join(thought), usage)

    def kept(self, entries):
        items = deepcopy(entries)
        if self.manner.drops:
            items = [item for item in items if item["type"] != "reasoning"]
            for item in items:
                item.pop("id", None)
        for item in items:
            if item["type"] == "function_call":
                if self.manner.renames:
                    item["call_id"] = renamed(item["call_id"])
                if self.manner.respaces:
                    item["arguments"] = respaced(item["arguments"])
        return items

    def results(self, given):
        items = []
        for call, result in given:
            output: Any = result.text
            if result.picture:
                output = [
                    {"type": "input_text", "text": result.text},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
                ]
            items.append({"type": "function_call_output", "call_id": call.id, "output": output})
        return items

    def retell(self, turn, text):
        said = [item for item in self.turns[turn] if item.get("type") == "message"]
        if said[-1]["role"] == "assistant":
            said[-1]["content"] = [{"type": "output_text", "text": text, "annotations": []}]


class Stored(Responses):
    """One that refers to the answer before by its id, as long as it has changed nothing."""

    def __init__(self, manner: Manner | None = None) -> None:
        super().__init__(manner)
        self._before: tuple[str, list[Entry]] | None = None

    def body(self, model, stream):
        whole = super().body(model, stream)
        del whole["store"], whole["include"]
        if self._before is not None:
            name, said = self._before
            if whole["input"][: len(said)] == said:
                whole |= {"previous_response_id": name, "input": whole["input"][len(said) :]}
        return whole

    def read(self, whole):
        self._answered = whole["id"]
        return super().read(whole)

    def hear(self, url, model, *, stream):
        heard = super().hear(url, model, stream=stream)
        self._before = (self._answered, self.history())
        return heard


TALKS: dict[str, Callable[..., Talk]] = {
    "chat": Chat,
    "messages": Messages,
    "contents": Contents,
    "responses": Responses,
    "stored": Stored,
}
