"""Whether the servers of models keep a thought: `python -m tools.fidelity_servers vllm`.

A server of a model has no upstream whose bytes could be scripted. What can be asked of it: does a
thought that a client sends back reach the prompt, and does a new one come out apart from the
answer? llama.cpp and vLLM are asked in their three APIs, with the chat templates that model
families ship. The model says fixed words, so only the server and the template decide, and the
prompt is the one that the model got.
"""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from tools import llama_server, vllm_server
from tools.chat_templates import templates
from tools.fidelity import write
from tools.fidelity_results import SERVERS, Served, stamp

THOUGHT = "The river bends twice before the mill."
NEW, ANSWER = "Look at it again.", "It is a mill."
TAGS = "<think>", "</think>"
CHANNELS = (
    "<|channel|>analysis<|message|>",
    "<|end|><|start|>assistant<|channel|>final<|message|>",
)


class Family(NamedTuple):
    """How a family writes a thought; for vLLM the parsers of its thoughts and of its calls, and
    what writes its prompt if not the template.
    """

    marks: tuple[str, str] = TAGS
    parsers: tuple[str, str] | None = None
    tokenizer: str = "auto"


FAMILIES = {
    "Qwen-Qwen3-0.6B": Family(parsers=("qwen3", "hermes")),
    "Qwen3.5-4B": Family(parsers=("qwen3", "qwen3_coder")),
    "GLM-4.6": Family(parsers=("glm45", "glm45")),
    "GLM-4.7-Flash": Family(parsers=("glm47", "glm47")),
    "deepseek-ai-DeepSeek-V3.2": Family(
        parsers=("deepseek_v3", "deepseek_v32"), tokenizer="deepseek_v32"
    ),
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": Family(parsers=("nemotron_v3", "qwen3_coder")),
    "HuggingFaceTB-SmolLM3-3B": Family(parsers=("qwen3", "hermes")),
    "MiniMax-M2": Family(parsers=("minimax_m2", "minimax_m2")),
    "openai-gpt-oss-120b": Family(marks=CHANNELS),
}
"""By the name of the template. vLLM writes gpt-oss's prompt without one, in tokens that the model
without weights does not have.
"""
THINKING = '{"thinking": true, "enable_thinking": true}'


class Server(NamedTuple):
    """A server that runs."""

    url: str
    last_prompt: Callable[[], str]


Start: TypeAlias = Callable[[str], AbstractContextManager[Server]]
"""Starts a server whose model says these words, or anything."""


def main() -> int:
    """Ask one server with every template, and keep what was found."""
    parser = ArgumentParser(prog="python -m tools.fidelity_servers", description=__doc__)
    parser.add_argument("server", choices=sorted(ASK))
    name = parser.parse_args().server
    told, found = ASK[name](templates())
    kept = {}
    for template, answers in found:
        kept[template] = answers
        print(f"{template}: {answers}", flush=True)
    served = Served(told, kept, *stamp())
    data = msgspec.json.format(msgspec.json.encode(served), indent=1) + b"\n"
    (SERVERS / f"{name}.json").write_bytes(data)
    write()
    return 0


Answers: TypeAlias = Mapping[str, tuple[str, ...]]
Found: TypeAlias = Iterator[tuple[str, Answers]]


def ask_llama(folder: Path) -> tuple[str, Found]:
    """The version of llama.cpp's server, and what it does with each template."""

    @contextmanager
    def start(template: Path, words: str) -> Iterator[Server]:
        with llama_server.running(template, words) as url:
            yield Server(url, partial(llama_server.last_prompt, url))

    def found() -> Found:
        for name, family in FAMILIES.items():
            yield name, asked(partial(start, folder / f"{name}.jinja"), family.marks)

    return version("xllamacpp"), found()


def ask_vllm(folder: Path) -> tuple[str, Found]:
    """The version of vLLM, and what it does with each template that it renders."""
    python = vllm_server.environment()

    @contextmanager
    def say(server: vllm_server.Vllm, words: str) -> Iterator[Server]:
        server.say(words)
        yield Server(server.url, server.last_prompt)

    def found() -> Found:
        for name, family in FAMILIES.items():
            if family.parsers is None:
                continue
            template, options = folder / f"{name}.jinja", vllm_options(family)
            with vllm_server.running(python, template, options) as server:
                answers = asked(partial(say, server), family.marks)
                yield name, {**answers, "parser": family.parsers[:1]}

    return vllm_server.installed(python), found()


def vllm_options(family: Family) -> list[str]:
    assert family.parsers is not None
    thoughts, calls = family.parsers
    options = ["--reasoning-parser", thoughts, "--tool-call-parser", calls]
    options += ["--tokenizer-mode", family.tokenizer]
    return [*options, "--default-chat-template-kwargs", THINKING]


ASK = {"llama.cpp": ask_llama, "vllm": ask_vllm}


def asked(start: Start, marks: tuple[str, str]) -> Answers:
    """The ways in which each question has a yes."""
    with start("") as server:
        prompts = {way: prompt(server, way, *request) for way, request in ways(marks).items()}
    opened = (prompts["reasoning_content"] or "").rstrip().endswith(marks[0])
    begin = "" if opened else marks[0]
    with start(f"{begin}{NEW}\n{marks[1]}\n\n{ANSWER}") as server:
        apart = tuple(api for api in READERS if READERS[api](server.url) == (NEW, ANSWER))
    returned = tuple(way for way, given in prompts.items() if thought(way) in (given or ""))
    refused = tuple(way for way, given in prompts.items() if given is None)
    return {"returned": returned, "refused": refused, "apart": apart}


def post(url: str, body: Mapping[str, Any]) -> tuple[int, Any]:
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


LOOK = {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
SHORT: dict[str, Any] = {"model": "m", "max_tokens": 1}
Request: TypeAlias = tuple[str, Mapping[str, Any]]


def ways(marks: tuple[str, str]) -> Mapping[str, Request]:
    """A tool chain with a thought, in every way in which clients send it back."""
    whole = {"content": [{"type": "reasoning_text", "text": THOUGHT}]}
    return {
        "reasoning_content": chat_chain(reasoning_content=THOUGHT),
        "reasoning": chat_chain(reasoning=THOUGHT),
        "tags": chat_chain(content=f"{marks[0]}{THOUGHT}{marks[1]}"),
        "thinking": messages_chain(),
        "item": responses_chain(**whole),
        "summary": responses_chain(summary=[{"type": "summary_text", "text": THOUGHT}]),
    }


def chat_chain(**thought: str) -> Request:
    chain = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": "", "tool_calls": [CALL], **thought},
        {"role": "tool", "tool_call_id": "call_1", "content": "a mill"},
    ]
    tools = [{"type": "function", "function": LOOK}]
    return "/v1/chat/completions", {**SHORT, "messages": chain, "tools": tools}


def messages_chain() -> Request:
    thinking = {"type": "thinking", "thinking": THOUGHT, "signature": ""}
    call = {"type": "tool_use", "id": "call_1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": "a mill"}
    chain = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": [thinking, call]},
        {"role": "user", "content": [result]},
    ]
    tools = [{"name": "look", "description": "Look.", "input_schema": LOOK["parameters"]}]
    return "/v1/messages", {**SHORT, "messages": chain, "tools": tools}


def responses_chain(**thought: object) -> Request:
    chain = [
        {"type": "message", "role": "user", "content": "Look."},
        {"type": "reasoning", "id": "rs_1", "encrypted_content": "", "summary": [], **thought},
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "a mill"},
    ]
    tools = [{"type": "function", **LOOK}]
    return "/v1/responses", {"model": "m", "max_output_tokens": 1, "input": chain, "tools": tools}


def thought(way: str) -> str:
    """A thought that no other request has: a server shows its last prompt, whosever it was."""
    return f"{THOUGHT} ({way})"


def prompt(server: Server, way: str, path: str, body: Mapping[str, Any]) -> str | None:
    """The chain as the model gets it; None if the server refuses it. That the model then writes
    something else than its template wants does not matter.
    """
    own = json.dumps(body).replace(THOUGHT, thought(way))
    status, _ = post(server.url + path, json.loads(own))
    is_refused = 400 <= status < 500
    return None if is_refused else server.last_prompt()


ASKED = [{"role": "user", "content": "Look."}]


def chat(url: str) -> tuple[str, str]:
    body = {"model": "m", "max_tokens": 80, "messages": ASKED}
    message = post(f"{url}/v1/chat/completions", body)[1]["choices"][0]["message"]
    thought = message.get("reasoning_content") or message.get("reasoning") or ""
    return thought.strip(), (message["content"] or "").strip()


def messages(url: str) -> tuple[str, str]:
    body = {"model": "m", "max_tokens": 80, "messages": ASKED}
    blocks = post(f"{url}/v1/messages", body)[1]["content"]
    thought = "".join(block.get("thinking") or "" for block in blocks)
    return thought.strip(), "".join(block.get("text") or "" for block in blocks).strip()


def responses(url: str) -> tuple[str, str]:
    body = {"model": "m", "max_output_tokens": 80, "input": ASKED}
    output = post(f"{url}/v1/responses", body)[1]["output"]
    texts = {item["type"]: "".join(part["text"] for part in item["content"]) for item in output}
    return texts.get("reasoning", "").strip(), texts.get("message", "").strip()


READERS = {"chat": chat, "Messages": messages, "Responses": responses}

if __name__ == "__main__":
    sys.exit(main())
