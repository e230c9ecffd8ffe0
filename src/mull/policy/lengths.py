"""What endpoints say about a request that is too long, and the numbers they name.

One row per known text, with the place where it was seen. `window` is the limit for request and
answer together, `input` the limit for the request alone, `held` what the endpoint counted in the
request, `over` by how much that is too much, `asked` the answer limit that does not fit beside it.
A pattern is matched against the text without quotation marks, in any case; the row that names the
most numbers is used.
"""

from __future__ import annotations

import re
from typing import Any

from mull.neutral.blocks import Value
from mull.neutral.patterns import pattern

__all__ = ["TOO_LONG", "Overflow", "read_overflow"]

_N = r"[\d,_]{1,12}"
_WINDOW, _INPUT, _HELD, _ASKED = (
    rf"(?P<{name}>{_N})" for name in "window input held asked".split()
)

_TEXTS: tuple[tuple[str, str], ...] = (
    (
        rf"request \({_HELD} tokens\) exceeds the available context size \({_WINDOW} tokens\)",
        "ggml-org/llama.cpp server, b10068 and b11549",
    ),
    (r"exceeds? the available context size|exceed_context_size_error", "ggml-org/llama.cpp server"),
    (
        rf"maximum context length (is|of) {_WINDOW}( tokens)?.{{0,120}}"
        rf"(requested|for|of|has|contains)( about)? {_N} (total )?tokens.{{0,20}}?"
        rf"[(:] ?{_HELD} (tokens )?(in the messages|of text input|in your prompt|from the input)"
        rf".{{0,80}}?[,;] ?(and )?{_ASKED} ",
        "OpenAI; DeepSeek; OpenRouter",
    ),
    (
        rf"maximum context length of {_WINDOW} tokens\. you requested a total of {_N} tokens: "
        rf"{_HELD} tokens from the input messages and {_ASKED} tokens for the completion",
        "sgl-project/sglang",
    ),
    (
        rf"maximum context length is {_WINDOW} tokens.{{0,60}}(resulted in|request has|"
        rf"prompt contains( at least)?) {_HELD}( input)? tokens",
        "OpenAI; vllm-project/vllm",
    ),
    (
        rf"too large: {_ASKED}\. this models maximum context length is {_WINDOW} tokens and your "
        rf"request has {_HELD} input tokens",
        "vllm-project/vllm, max_tokens beside the request",
    ),
    (
        rf"maximum context length is {_WINDOW} tokens.{{0,40}}requested {_ASKED} output tokens and "
        rf"your prompt contains( at least)? {_HELD} input tokens",
        "vllm-project/vllm 0.32",
    ),
    (
        rf"max_(completion_|output_)?tokens ?= ?{_ASKED} cannot be greater than "
        rf"max_model_len(=| )(max_total_tokens=)?{_WINDOW}",
        "vllm-project/vllm 0.32",
    ),
    (
        rf"prompt \(length {_HELD}\) is longer than the maximum model length of {_WINDOW}",
        "vllm-project/vllm",
    ),
    (rf"maximum context length (is|of) {_WINDOW}", "OpenAI and servers like it"),
    (
        rf"input tokens exceed the configured limit of {_INPUT} tokens.{{0,40}}resulted in {_HELD}",
        "OpenAI Chat Completions, gpt-5",
    ),
    (r"exceeds? the context window|context_length_exceeded", "OpenAI Responses"),
    (rf"prompt is too long: {_HELD} tokens > {_WINDOW} maximum", "Anthropic Messages"),
    (
        rf"exceed context limit: {_HELD} \+ {_ASKED} > {_WINDOW}",
        "Anthropic Messages; docker/docker-agent#569",
    ),
    (
        rf"prompt is too long: {_HELD}, model maximum context length: {_WINDOW}",
        "Fireworks",
    ),
    (r"prompt is too long|request_too_large", "Anthropic Messages"),
    (
        rf"input token count( of)? \(?{_HELD}\)? exceeds the maximum number of tokens allowed "
        rf"\(?{_INPUT}",
        "Gemini generateContent; Vertex",
    ),
    (
        rf"prompt contains {_HELD} tokens.{{0,40}}too large for model with {_WINDOW} maximum",
        "Mistral",
    ),
    (
        rf"prompt too long; exceeded max context length by (?P<over>{_N}) tokens",
        "ollama/ollama",
    ),
    (
        rf"input length \({_HELD} tokens\) exceeds (the )?(maximum )?context length \({_WINDOW}",
        "ollama/ollama",
    ),
    (r"input length exceeds (the )?(maximum )?context length", "ollama/ollama"),
    (r"input is too long for requested model", "Amazon Bedrock"),
    (r"too many input tokens|input tokens exceeded", "Amazon Bedrock"),
    (
        rf"maximum prompt length is {_INPUT} but the request contains {_HELD} tokens",
        "xAI",
    ),
    (rf"current length is {_HELD} while limit is {_WINDOW}", "Cerebras"),
    (r"please reduce the length of the (messages|input|prompt)", "Groq and servers like vLLM"),
    (
        rf"exceeded model token limit: {_WINDOW} \(requested: {_HELD}\)",
        "Moonshot",
    ),
    (r"exceeded model token limit", "Moonshot"),
    (
        rf"prompt token count of {_HELD} exceeds the limit of {_INPUT}",
        "GitHub Copilot",
    ),
    (rf"n_keep \({_HELD}\) ?>= ?n_ctx \({_WINDOW}\)", "LM Studio"),
    (
        rf"keep the first {_HELD} tokens when context the overflows.{{0,80}}of only {_WINDOW}",
        "LM Studio",
    ),
    (r"greater than the context length", "LM Studio"),
    (
        rf"input \({_HELD} tokens\) is longer than the models context length \({_WINDOW}",
        "sgl-project/sglang",
    ),
    (
        rf"inputs tokens \+ max_new_tokens must be <= {_WINDOW}\. given: {_HELD} inputs tokens and "
        rf"{_ASKED} max_new_tokens",
        "huggingface/text-generation-inference; Together",
    ),
    (
        rf"tokens in (this|the) prompt cannot exceed {_INPUT} .{{0,20}}has {_HELD}",
        "Cohere",
    ),
    (rf"range of input length should be \[\d+, ?{_INPUT}\]", "Alibaba Cloud"),
    (r"context window exceeds limit", "MiniMax"),
    (r"prompt exceeds max length", "Z.AI"),
    (r"model_context_window_exceeded|model_max_prompt_tokens_exceeded", "Z.AI; GitHub Copilot"),
    (r"conversation is too long|too many tokens in (the )?prompt", "servers of any kind"),
)
_VAGUE = r"context[_ ]length|context limit|context window|maximum context"
"""Words about length, though perhaps not about this request."""

TOO_LONG = "|".join((*(re.sub(r"\?P<\w+>", "?:", text) for text, _ in _TEXTS), _VAGUE))
"""All of them as one pattern, for the table of failure meanings."""

_PATTERNS = tuple(pattern(text, re.IGNORECASE) for text, _ in _TEXTS)
_BODY = {"n_ctx": "window", "n_prompt_tokens": "held"}
"""What llama.cpp reports beside its text."""


class Overflow(Value, frozen=True):
    """The numbers that a rejection for length names; None is missing. The `share` is what the
    account may send at once, whatever the model's window.
    """

    window: int | None = None
    input: int | None = None
    held: int | None = None
    asked: int | None = None
    share: int | None = None

    @property
    def limit(self) -> int | None:
        """The maximum tokens of a request."""
        return self.input or self.window


def read_overflow(said: str, body: Any = None) -> Overflow | None:
    """The numbers in a rejection for length; None if it is not one.

    `said` is its text as `mull.policy.failure.plain` returns it, `body` the error as received.
    """
    named = [found.groupdict() for row in _PATTERNS if (found := row.search(said))]
    if not named:
        return None
    best = max(named, key=lambda groups: sum(map(bool, groups.values())))
    numbers = {name: _number(text) for name, text in best.items()}
    over = numbers.pop("over", None)
    error = body.get("error", body) if isinstance(body, dict) else None
    for key, name in _BODY.items():
        value = error.get(key) if isinstance(error, dict) else None
        if isinstance(value, int) and value > 0:
            numbers[name] = value
    overflow = Overflow(**{name: number for name, number in numbers.items() if number})
    if over and overflow.window and not overflow.held:
        return Overflow(overflow.window, held=overflow.window + over)
    return overflow


def _number(text: str | None) -> int | None:
    digits = re.sub(r"\D", "", text or "")
    return int(digits) if digits else None
