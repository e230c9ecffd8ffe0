"""The endpoints that cases play, how each carries reasoning, and what it must get back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fidelity.wire import FORMAT, Answer, Call, Json, Part, Say, Think, write

__all__ = ["ENDPOINTS", "Spec", "returned"]


@dataclass(frozen=True)
class Spec:
    """An endpoint: its address data, and the field that its reasoning comes in."""

    provider: str
    dialect: str
    model: str
    rules: str
    api: str
    field: str = ""
    reads: str = ""
    """Another field in which it takes its reasoning back."""
    keeps: bool = False
    """Whether the reasoning of earlier turns is to be sent back too, by its own documentation."""
    forbids: tuple[Json, ...] = ()

    def data(self) -> Json:
        """The endpoint as a case names it."""
        found = {"provider": self.provider, "dialect": self.dialect, "model": self.model}
        found["rules"] = self.rules
        return {**found, **({"forbids": list(self.forbids)} if self.forbids else {})}

    def write(self, parts: Sequence[Part], number: int, **options: Any) -> Answer:
        """An answer of this endpoint."""
        if self.field:
            options = {"field": self.field, **options}
        return write(self.api, self.model, parts, number, **options)


_EXTRA = {
    "path": "messages[role=assistant].reasoning_content",
    "status": 422,
    "message": "body.messages.1.assistant.reasoning_content: Extra inputs are not permitted",
}


def _chat(provider: str, model: str, rules: str, field: str, **more: Any) -> Spec:
    return Spec(provider, "openai-chat", model, rules, "chat", field, **more)


ENDPOINTS = {
    "anthropic": Spec(
        "anthropic", "anthropic", "claude-sonnet-4-5", "anthropic", "messages", keeps=True
    ),
    "openai": Spec("openai", "openai-responses", "gpt-5", "openai", "responses"),
    "gemini": Spec("gemini", "gemini", "gemini-3-pro-preview", "gemini", "gemini", keeps=True),
    "bedrock": Spec(
        "bedrock",
        "bedrock-converse",
        "anthropic.claude-sonnet-4-5-20250929-v1:0",
        "converse",
        "converse",
        keeps=True,
    ),
    "openrouter": _chat(
        "openrouter", "anthropic/claude-sonnet-4.5", "openrouter", "details", keeps=True
    ),
    "kimi": _chat("kimi", "kimi-k2.5", "kimi", "reasoning_content", keeps=True),
    "deepseek": _chat("deepseek", "deepseek-v4-pro", "deepseek", "reasoning_content", keeps=True),
    "zai": _chat("zai", "glm-4.7", "chat", "reasoning_content"),
    "vllm": _chat("vllm", "Qwen/Qwen3-32B", "chat", "reasoning", reads="reasoning_content"),
    "llama.cpp": _chat("llama.cpp", "qwen3-8b", "chat", "reasoning_content"),
    "mistral": _chat(
        "mistral", "magistral-medium-latest", "chat", "content-list", forbids=(_EXTRA,)
    ),
    "compatible": _chat("compatible", "acme-reasoner-9", "chat", "reasoning_content"),
}

Reply = tuple[Sequence[Part], int]
_ASSISTANT = "messages[role=assistant]"


def returned(spec: Spec, replies: Sequence[Reply]) -> list[Json]:
    """What a request must bring back of these answers, each with its number."""
    parts = [part for reply, _ in replies for part in reply]
    thoughts = [part for part in parts if isinstance(part, Think)]
    shown = [part.text for part in thoughts if part.text and not part.hidden]
    calls = [part.id for part in parts if isinstance(part, Call)]
    match spec.api:
        case "messages":
            marks = [_mark(part) for part in parts if not isinstance(part, Say)]
            return [
                {"path": f"{_ASSISTANT}.content[*].(signature|data|id)", "order": marks},
                *({"path": f"{_ASSISTANT}.content[*].thinking", "has": text} for text in shown),
            ]
        case "responses":
            return _items(replies)
        case "gemini":
            signed = [part.carrier for part in parts if not isinstance(part, Think)]
            path = "contents[*].parts[*].thoughtSignature"
            return [{"path": path, "order": [mark for mark in signed if mark]}]
        case "converse":
            path = "messages[*].content[*].reasoningContent"
            signed = [part.carrier for part in thoughts if not part.hidden]
            redacted = [part.carrier for part in thoughts if part.hidden]
            checks: list[Json] = [{"path": f"{path}.reasoningText.signature", "order": signed}]
            checks += [{"path": f"{path}.reasoningText.text", "has": text} for text in shown]
            return [*checks, {"path": f"{path}.redactedContent", "order": redacted}]
    return _fields(spec, replies, thoughts, shown, calls)


def _mark(part: Part) -> str:
    return part.id if isinstance(part, Call) else part.carrier


def _items(replies: Sequence[Reply]) -> list[Json]:
    """Reasoning items before their calls, by encrypted content, or by the id of stored ones."""
    encrypted, ids = [], []
    for parts, number in replies:
        for at, part in enumerate(parts):
            if isinstance(part, Think):
                encrypted.append(part.carrier)
                ids.append(f"rs_{number * 10 + at}")
            elif isinstance(part, Call):
                encrypted.append(part.id)
                ids.append(part.id)
    path = "input[type!=function_call_output]"
    ways = [
        {"path": f"{path}.(encrypted_content|call_id)", "order": encrypted},
        {"path": f"{path}.(id|call_id)", "order": ids},
    ]
    return [{"anyOf": ways}]


def _fields(
    spec: Spec,
    replies: Sequence[Reply],
    thoughts: Sequence[Think],
    shown: Sequence[str],
    calls: Sequence[str],
) -> list[Json]:
    joined = [
        text
        for parts, _ in replies
        if (text := "".join(part.text for part in parts if isinstance(part, Think)))
    ]
    paired = [{"path": f"{_ASSISTANT}.tool_calls[*].id", "order": [*calls]}]
    content = f"{_ASSISTANT}.content"
    unseen: list[Json] = [{"path": content, "lacks": text} for text in joined]
    match spec.field:
        case "details":
            path = f"{_ASSISTANT}.reasoning_details"
            marks = [part.carrier for part in thoughts]
            ways = [f"{path}[format={name}].(signature|data)" for name in (FORMAT, None)]
            checks: list[Json] = [{"anyOf": [{"path": way, "order": marks} for way in ways]}]
            checks += [{"path": f"{path}[*].text", "has": text} for text in shown]
            return [*checks, *paired, *unseen]
        case "content-list":
            path = f"{_ASSISTANT}.content[type=thinking].thinking"
            return [*({"path": path, "joined": text} for text in shown), *paired]
        case "tags":
            return [*paired]
        case "extra-content":
            carriers = [part.carrier for reply, _ in replies for part in reply if _signed(part)]
            path = f"{_ASSISTANT}.tool_calls[*].extra_content.google.thought_signature"
            return [{"path": path, "order": carriers}, *paired]
    fields = [name for name in (spec.field, spec.reads) if name]
    back: list[Json] = [{"path": f"{_ASSISTANT}.{name}", "order": joined} for name in fields]
    return [*(back if len(back) == 1 else [{"anyOf": back}]), *paired, *unseen]


def _signed(part: Part) -> bool:
    return isinstance(part, Call) and bool(part.carrier)
