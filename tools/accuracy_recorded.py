"""Counts recorded requests as mull would, and reads what their providers reported."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec.structs import replace

from mull import Log, RequestOptions, Settings, counter_for, prepare, resolve
from mull.dialects.registry import decode_response
from mull.neutral.assemble import assemble
from mull.neutral.messages import Dialect, Message, Origin
from mull.neutral.target import Target
from mull.policy.prepare import Prepared
from mull.policy.reasoning import starts_turn
from mull.policy.reported import Reported, corrected
from tools.accuracy_server import Sample
from tools.recorded import Asked, NotComparable, Wire, read_body

__all__ = ["Measured", "measure"]

PROVIDERS = {
    "aiplatform.googleapis.com": "google",
    "api.anthropic.com": "anthropic",
    "api.cerebras.ai": "cerebras",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral",
    "api.openai.com": "openai",
    "api.z.ai": "zai",
    "bedrock-mantle.us-east-1.api.aws": "openai",
    "bedrock-runtime.us-east-1.amazonaws.com": "amazon-bedrock",
    "generativelanguage.googleapis.com": "google",
    "openrouter.ai": "openrouter",
    "pydantic-ai-realtime-dev.openai.azure.com": "openai",
    "router.huggingface.co": "huggingface",
}
FAMILIES = {
    "distill-llama": "Llama 3 (R1 distill)",
    "gpt-oss": "gpt-oss",
    "claude": "Claude",
    "gemini": "Gemini",
    "deepseek": "DeepSeek",
    "glm": "GLM",
    "qwen": "Qwen 3",
    "mistral": "Mistral",
    "minimax": "MiniMax",
    "gpt": "GPT",
    "o3": "GPT",
}
"""The first of these that a model's name holds says its family."""
_WIRES: dict[str, Wire] = {
    r"[gG]enerateContent": "gemini",
    r"/messages(/count_tokens)?$": "anthropic",
    r"/responses$": "openai-responses",
    r"/chat/completions$": "openai-chat",
    r"/converse(-stream)?$": "converse",
}
_MODEL = re.compile(r"/models?/([^:/]+?)(?:%3A0)?[:/]")
_SAID = re.compile(rb'"(?:input_tokens|inputTokens)"\s*:\s*(\d+)')
"""Counts outside the four dialects."""


class Exchange(Protocol):
    """One recorded request and its answer."""

    @property
    def host(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def request(self) -> dict[str, Any]: ...
    @property
    def status(self) -> int: ...
    @property
    def body(self) -> bytes: ...


class Measured(NamedTuple):
    """A request; whether it holds thoughts of turns that are over; and the estimate that the
    report on the request before it leads to, if there was one."""

    sample: Sample
    old_thoughts: bool
    corrected: Sample | None


def measure(recorded: Iterable[Sequence[Exchange]]) -> tuple[list[Measured], list[str]]:
    """Every comparable request, and the reasons why others are not."""
    found: list[Measured] = []
    skipped: list[str] = []
    for conversation in recorded:
        last: tuple[Origin, Reported] | None = None
        for one in conversation:
            wire = next((wire for path, wire in _WIRES.items() if re.search(path, one.path)), None)
            if wire is None or one.status != 200 or one.host not in PROVIDERS:
                continue
            try:
                asked = read_body(wire, one.request)
            except NotComparable as reason:
                skipped.append(str(reason))
                continue
            target = _target(one)
            reported = _reported(one, wire, target)
            if reported:
                prepared = _prepared(target, asked)
                found.append(_measured(prepared, asked.messages, reported, last))
                last = target.origin, Reported(prepared.characters, reported)
    return found, skipped


def _measured(
    prepared: Prepared,
    messages: Sequence[Message],
    reported: int,
    last: tuple[Origin, Reported] | None,
) -> Measured:
    name = next(name for word, name in FAMILIES.items() if word in prepared.target.model.lower())
    sample = Sample(name, prepared.counter, prepared.exact, prepared.tokens, reported)
    moved = None
    if last is not None and last[0] == prepared.target.origin:
        guess = corrected(prepared.tokens, prepared.characters, last[1])
        moved = sample._replace(estimated=guess)
    return Measured(sample, _has_old_thoughts(messages), moved)


def _target(one: Exchange) -> Target:
    in_path = _MODEL.search(one.path)
    model: str = in_path[1] if in_path else one.request["model"]
    return resolve(f"{PROVIDERS[one.host]}/{model.removeprefix('openai.')}")


def _prepared(target: Target, asked: Asked) -> Prepared:
    settings = Settings()
    settings.set("reasoning.includeInContext", True)
    options = RequestOptions(system=asked.system, tools=asked.tools)
    log, counter = Log(asked.messages), counter_for(target)
    return prepare(log, settings.snapshot(), target, options, counter=counter)


def _reported(one: Exchange, wire: Wire, target: Target) -> int | None:
    if wire == "converse" or "count_tokens" in one.path:
        said = _SAID.search(one.body)
        return int(said[1]) if said else None
    dialect: Dialect = wire
    target = replace(target, dialect=dialect)
    usage = assemble(decode_response(one.body, target), target.origin).usage
    return usage.input if usage else None


def _has_old_thoughts(messages: Sequence[Message]) -> bool:
    """Whether a turn that is over holds thoughts, in a field or in the text."""
    last = max((at for at, message in enumerate(messages) if starts_turn(message)), default=0)
    before = [message for message in messages[:last] if message.role == "assistant"]
    return any(message.thinking or "<think" in message.text for message in before)
