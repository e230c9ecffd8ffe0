"""`python history_peer.py WHO TURNS ROUNDS`: one library makes the next request of a conversation.

Run with the interpreter that has the library; imports mull only where mull is measured. Prints
JSON: seconds of the processor for the first request and for those after it, the peak of memory
beyond the conversation itself in MiB, and how many of the thoughts are in the request.
"""

from __future__ import annotations

import gc
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

THOUGHT_BYTES = 4096
_WORDS = ("weigh", "the", "step", "whether", "each", "follows", "from", "what", "was", "seen")
_CLAUDE = "claude-sonnet-4-5"
_Request = Callable[[], bytes]


@cache
def _pool() -> str:
    choose = random.Random(7)
    return " ".join(f"{choose.choice(_WORDS)} {choose.randrange(1000)}" for _ in range(150_000))


def thought(seed: int) -> str:
    """A thought of 4 kB that no other seed has."""
    start = random.Random(seed).randrange(len(_pool()) - THOUGHT_BYTES)
    head = f"{seed}: "
    return head + _pool()[start : start + THOUGHT_BYTES - len(head)]


def talk(turns: int) -> Iterator[tuple[str, str, str, str]]:
    """Question, thought, signature and answer of each turn."""
    for seed in range(turns):
        signed = f"{seed:08d}" + "c2ln" * 60
        yield f"question {seed}", thought(seed), signed, f"answer {seed}"


def _dumped(payload: Any) -> bytes:
    """As HTTP clients encode it."""
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()


def langchain(turns: int) -> _Request:
    """ChatAnthropic: messages to the body of a request."""
    from langchain_anthropic import ChatAnthropic
    from langchain_core.messages import AIMessage, HumanMessage

    thinking = {"type": "enabled", "budget_tokens": 4000}
    model = ChatAnthropic(model=_CLAUDE, api_key="x", max_tokens=9000, thinking=thinking)
    said: list[Any] = []
    for question, thought, signed, answer in talk(turns):
        block = {"type": "thinking", "thinking": thought, "signature": signed}
        said.append(HumanMessage(question))
        said.append(AIMessage(content=[block, {"type": "text", "text": answer}]))
    said.append(HumanMessage("next"))
    return lambda: _dumped(model._get_request_payload(said))


def pydantic_ai(turns: int) -> _Request:
    """AnthropicModel: messages to the messages of a request."""
    import asyncio

    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ThinkingPart
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    model = AnthropicModel(_CLAUDE, provider=AnthropicProvider(api_key="x"))
    said: list[Any] = []
    for question, thought, signed, answer in talk(turns):
        kept = ThinkingPart(content=thought, signature=signed, provider_name="anthropic")
        said.append(ModelRequest.user_text_prompt(question))
        said.append(ModelResponse(parts=[kept, TextPart(answer)], provider_name="anthropic"))
    said.append(ModelRequest.user_text_prompt("next"))
    loop, asked = asyncio.new_event_loop(), ModelRequestParameters()

    def request() -> bytes:
        system, messages = loop.run_until_complete(model._map_message(said, asked, {}))
        return _dumped({"model": _CLAUDE, "system": system or "", "messages": messages})

    return request


def litellm(turns: int) -> _Request:
    """AnthropicConfig: OpenAI's messages to the body of a request."""
    from litellm import AnthropicConfig

    said: list[Any] = []
    for question, thought, signed, answer in talk(turns):
        blocks = [{"type": "thinking", "thinking": thought, "signature": signed}]
        said.append({"role": "user", "content": question})
        said.append({"role": "assistant", "content": answer, "thinking_blocks": blocks})
    said.append({"role": "user", "content": "next"})
    config = AnthropicConfig()

    def request() -> bytes:
        given = {"max_tokens": 9000, "thinking": {"type": "enabled", "budget_tokens": 4000}}
        return _dumped(config.transform_request(_CLAUDE, list(said), given, {}, {}))

    return request


def openai_agents(turns: int) -> _Request:
    """Converter: items to the messages of a request."""
    from agents.models.chatcmpl_converter import Converter

    said: list[Any] = []
    for seed, (question, thought, _, answer) in enumerate(talk(turns)):
        summary = [{"type": "summary_text", "text": thought}]
        told = [{"type": "output_text", "text": answer, "annotations": []}]
        end = {"role": "assistant", "status": "completed", "content": told}
        made_by = {"provider_data": {"model": "kimi-k2-thinking"}}
        said.append({"role": "user", "content": question})
        said.append({"type": "reasoning", "id": f"r{seed}", "summary": summary, **made_by})
        said.append({"type": "message", "id": f"m{seed}", **end, **made_by})
    said.append({"role": "user", "content": "next"})
    how = {"model": "kimi-k2-thinking", "should_replay_reasoning_content": lambda _: True}
    return lambda: _dumped({"messages": Converter.items_to_messages(said, **how)})


def _mull(turns: int, model: str) -> _Request:
    """The first request is prepared from nothing; each one after it has one turn more."""
    from mull import (
        Log,
        Settings,
        TextBlock,
        ThinkingBlock,
        assistant,
        counter_for,
        prepare,
        resolve,
        user,
    )
    from mull.dialects.registry import encode_request

    target = resolve(model)
    signs = target.dialect == "anthropic"
    settings = Settings()
    settings.set("reasoning.includeInContext", True)
    settings.set("context.limit", 10**9)  # a full window would end the thinking
    snapshot, counter, log = settings.snapshot(), counter_for(target), Log()
    said = talk(turns)

    def grow(question: str, thought: str, signed: str, answer: str) -> None:
        kept = ThinkingBlock(thought, signature=signed)
        if not signs:
            kept = ThinkingBlock(thought, source_field="reasoning_content")
        log.append(user(question))
        log.append(assistant(kept, TextBlock(answer), origin=target.origin))

    for turn in islice(said, turns - 1):
        grow(*turn)
    last = next(said)

    def request() -> bytes:
        grow(*last)
        made = prepare(log, snapshot, target, counter=counter)
        return encode_request(made.request, made.target).body

    return request


def mull_anthropic(turns: int) -> _Request:
    """The dialect that most others are measured in."""
    return _mull(turns, f"anthropic/{_CLAUDE}")


def mull_chat(turns: int) -> _Request:
    """Chat Completions with `reasoning_content`."""
    return _mull(turns, "moonshotai/kimi-k2-thinking")


def _memory(field: str) -> float:
    """MiB of this process: now (`VmRSS`) or at most (`VmHWM`)."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith(field))


def measure(who: str, turns: int, rounds: int) -> dict[str, Any]:
    """One library with one conversation; a short one before it makes what is made once."""
    make: Callable[[int], _Request] = globals()[who.replace("-", "_")]
    make(2)()
    request = make(turns)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak
    before, start = _memory("VmRSS"), time.process_time()
    body = request()
    first, peak = time.process_time() - start, _memory("VmHWM") - before
    kept = body.count(b'"signature"') or body.count(b'"reasoning_content"')
    del body
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        request()
        seconds.append(time.process_time() - start)
    return {"first": first, "seconds": seconds, "peak": peak, "thoughts": kept}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], *map(int, sys.argv[2:4]))))
