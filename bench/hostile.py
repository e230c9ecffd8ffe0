"""Large but legal requests: what they cost, and what other clients wait for meanwhile.

`python -m bench.hostile growth` prints the CPU time of reading and preparing each shape of request
at n, 2n and 4n parts: about 4 in the last column is linear, 16 is quadratic. `python -m
bench.hostile` starts a gateway, and measures how long small requests take beside each of the worst
shapes, as a ratio to what they take alone in the same run.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.gateway import upstream
from bench.serving.process import Measured, free_port
from mull.agent.engine import Engine
from mull.dialects.registry import encode_request
from mull.dialects.serving import decode_request
from mull.gateway.envelope import Envelopes
from mull.gateway.memory import InProcess
from mull.gateway.relay import Client
from mull.gateway.routes import Routes
from mull.gateway.service import Gateway
from mull.neutral.messages import Dialect
from mull.store.serve import ServeConfig, ServedModel

__all__ = ["ALL", "DIALECTS", "MARKS", "PATHS", "TARGETS", "Worker", "body"]

Step = tuple[str, Any]
Steps = Sequence[Step]
TARGETS: dict[str, str] = {
    "openai-chat": "moonshotai/kimi-k2.5",
    "openai-responses": "openai/gpt-5",
    "anthropic": "anthropic/claude-sonnet-4-5",
    "gemini": "google/gemini-3-pro-preview",
}
DIALECTS: tuple[Dialect, ...] = ("openai-chat", "openai-responses", "anthropic", "gemini")
PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/{}:generateContent",
}


def _calls(n: int, name: Callable[[int], str] = "call_{:06}".format) -> Step:
    return "answer", [("call", name(at), f"tool_{at % 7}") for at in range(n)]


def _results(n: int, name: Callable[[int], str] = "call_{:06}".format, step: int = 1) -> Step:
    return "results", [(name(at), f"tool_{at % 7}", "done") for at in range(n)][::step]


_ASK: Step = ("user", "q")
MARKS = (
    *("<think>", "</think>", "<think>a</think>", "</think><think>", "<think><think>a</think>"),
    *("<|channel|>", "<|channel|>analysis<|message|>a<|end|>", "<|start|>assistant<|message|>"),
    *("<tool_call>", '<tool_call>{"name":"f"}</tool_call>', "<tool_call>a</tool_call>"),
    *("<|tool_calls_section_begin|>", "<|tool_call_begin|>f:0<|tool_call_end|>", "[TOOL_CALLS]"),
    *("```", "`", "`<think>`", "<", "{", "\\"),
)

SHAPES: dict[str, Callable[[int], Steps]] = {
    "results in order": lambda n: [_ASK, _calls(n), _results(n)],
    "results reversed": lambda n: [_ASK, _calls(n), _results(n, step=-1)],
    "results without ids": lambda n: [_ASK, _calls(n), _results(n, lambda _: "")],
    "results under other ids": lambda n: [_ASK, _calls(n), _results(n, "other_{}".format)],
    "results under a prefix": lambda n: [_ASK, _calls(n, "a_{}".format), _results(n, "a".format)],
    "calls of one id": lambda n: [_ASK, _calls(n, "same".format), _results(n, "same".format)],
    "calls without results": lambda n: [_ASK, _calls(n), _ASK],
    "results without calls": lambda n: [_ASK, _results(n)],
    "results after a message": lambda n: [_ASK, _calls(n), _ASK, _results(n, step=-1)],
    "each result after a message": lambda n: [
        _ASK,
        _calls(n),
        *(one for at in range(n) for one in (("results", [(f"call_{at:06}", "t", "x")]), _ASK)),
    ],
    "a call at a time": lambda n: [
        _ASK,
        *(
            one
            for at in range(n)
            for one in (
                ("answer", [("call", f"call_{at}", "t")]),
                ("results", [(f"call_{at}", "t", "x")]),
            )
        ),
    ],
    "calls in many answers, results last": lambda n: [
        _ASK,
        *(("answer", [("call", f"call_{at:06}", "t")]) for at in range(n)),
        _results(n, step=-1),
    ],
    "turns": lambda n: [_ASK, *(("answer", [("text", "a")]), ("user", "b")) * n],
    "turns with thoughts": lambda n: [
        _ASK,
        *(("answer", [("thought", "hm", "c2ln"), ("text", "a")]), ("user", "b")) * n,
    ],
    "questions": lambda n: [_ASK] * n,
    "answers": lambda n: [_ASK, *[("answer", [("text", "a")])] * n, _ASK],
    "empty answers": lambda n: [_ASK, *[("answer", [])] * n, _ASK],
    "instructions": lambda n: [_ASK, *[("system", "s")] * n, _ASK],
    "instructions between": lambda n: [*[_ASK, ("system", "s")] * n, _ASK],
    "texts in an answer": lambda n: [_ASK, ("answer", [("text", f"a{i}") for i in range(n)]), _ASK],
    "thoughts in an answer": lambda n: [
        _ASK,
        ("answer", [*(("thought", f"t{at}", "c2ln") for at in range(n)), ("text", "a")]),
        _ASK,
    ],
    "thoughts between calls": lambda n: [
        _ASK,
        (
            "answer",
            [
                one
                for at in range(n)
                for one in (("thought", "t", "c2ln"), ("call", f"c_{at}", "t"), ("text", "x"))
            ],
        ),
        _results(n, "c_{}".format),
    ],
    "parts in a question": lambda n: [("users", [f"part {at}" for at in range(n)])],
    "a long question": lambda n: [("user", "word " * 20 * n)],
    "a long id": lambda n: [
        _ASK,
        ("answer", [("call", "i-" * 20 * n, "t")]),
        ("results", [("i-" * 20 * n, "t", "x")]),
    ],
    "a long name": lambda n: [
        _ASK,
        ("answer", [("call", "i", "n.-" * 20 * n)]),
        ("results", [("i", "n.-" * 20 * n, "x")]),
    ],
    "blanks in an answer": lambda n: [_ASK, ("answer", [("text", " \n" * 20 * n)]), _ASK],
    **{
        f"{mark} in an answer": lambda n, mark=mark: [
            _ASK,
            ("answer", [("text", mark * 10 * n)]),
            _ASK,
        ]
        for mark in MARKS
    },
    "ends of calls in a string": lambda n: [
        _ASK,
        ("answer", [("text", '<tool_call>{"' + "</tool_call>" * 10 * n)]),
        _ASK,
    ],
    **{
        f"{mark} with words": lambda n, mark=mark: [
            _ASK,
            ("answer", [("text", f"{mark} a\n" * 5 * n)]),
            _ASK,
        ]
        for mark in MARKS
    },
}
"""What is said, by the number of its parts."""
_SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
TOOLS: dict[str, Callable[[int], list[tuple[str, dict[str, Any]]]]] = {
    "tools": lambda n: [(f"tool_{at}", _SCHEMA) for at in range(n)],
    "tools of one name": lambda n: [("tool", _SCHEMA) for _ in range(n)],
    "tools with odd names": lambda n: [(f"tool {at}!", _SCHEMA) for at in range(n)],
    "tools of one odd name": lambda n: [("tool !", _SCHEMA) for _ in range(n)],
    "a wide schema": lambda n: [
        (
            "tool",
            {
                "type": "object",
                "properties": {f"p{at}": {"type": "string"} for at in range(n)},
                "required": [f"p{at}" for at in range(n)],
            },
        )
    ],
    "a schema of references": lambda n: [
        (
            "tool",
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/d0"}},
                "$defs": {
                    f"d{at}": {
                        "type": "object",
                        "properties": {"x": {"$ref": f"#/$defs/d{at + 1}"}},
                    }
                    for at in range(n)
                },
            },
        )
    ],
    "a schema that doubles": lambda n: [
        (
            "tool",
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/d0"}},
                "$defs": {
                    f"d{at}": {
                        "type": "object",
                        "properties": {
                            "x": {"$ref": f"#/$defs/d{at + 1}"},
                            "y": {"$ref": f"#/$defs/d{at + 1}"},
                        },
                    }
                    for at in range(n)
                },
            },
        )
    ],
    "a schema of choices": lambda n: [
        (
            "tool",
            {"type": "object", "anyOf": [{"type": "string", "const": f"{i}"} for i in range(n)]},
        )
    ],
}
"""The tools of a request, by their number or size."""
FIELDS: dict[str, Callable[[int], dict[str, Any]]] = {
    "unknown fields": lambda n: {f"x{at}": at for at in range(n)},
    "stop texts": lambda n: {
        "stop": [f"s{at}" for at in range(n)],
        "stop_sequences": [f"s{at}" for at in range(n)],
        "generationConfig": {"stopSequences": [f"s{at}" for at in range(n)]},
    },
    "metadata": lambda n: {"metadata": {f"k{at}": "v" for at in range(n)}},
    "a format": lambda n: {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "f", "schema": TOOLS["a wide schema"](n)[0][1]},
        },
        "text": {
            "format": {
                "type": "json_schema",
                "name": "f",
                "schema": TOOLS["a wide schema"](n)[0][1],
            }
        },
        "output_config": {
            "format": {"type": "json_schema", "schema": TOOLS["a wide schema"](n)[0][1]}
        },
        "generationConfig": {
            "responseMimeType": "application/json",
            "responseJsonSchema": TOOLS["a wide schema"](n)[0][1],
        },
    },
    "allowed tools": lambda n: {
        "tool_choice": {
            "type": "allowed_tools",
            "mode": "auto",
            "allowed_tools": {
                "mode": "auto",
                "tools": [
                    {"type": "function", "function": {"name": f"tool_{i}"}} for i in range(n)
                ],
            },
            "tools": [{"type": "function", "name": f"tool_{at}"} for at in range(n)],
        },
        "toolConfig": {
            "functionCallingConfig": {
                "mode": "ANY",
                "allowedFunctionNames": [f"tool_{at}" for at in range(n)],
            }
        },
    },
}
"""Other fields; each dialect reads its own of them."""


def _chat(steps: Steps) -> dict[str, Any]:
    said: list[dict[str, Any]] = []
    for kind, what in steps:
        if kind == "answer":
            texts = [{"type": "text", "text": part[1]} for part in what if part[0] == "text"]
            calls = [
                {"id": p[1], "type": "function", "function": {"name": p[2], "arguments": "{}"}}
                for p in what
                if p[0] == "call"
            ]
            thought = "".join(part[1] for part in what if part[0] == "thought")
            one: dict[str, Any] = {"role": "assistant", "content": texts or None}
            if len(texts) == 1:
                one["content"] = texts[0]["text"]
            one |= {"tool_calls": calls} if calls else {}
            said.append(one | ({"reasoning_content": thought} if thought else {}))
        elif kind == "results":
            for name, tool, text in what:
                own = {"tool_call_id": name} if name else {"name": tool}
                said.append({"role": "tool", "content": text, **own})
        elif kind == "users":
            said.append({"role": "user", "content": [{"type": "text", "text": t} for t in what]})
        else:
            said.append({"role": kind, "content": what})
    return {"messages": said}


def _responses(steps: Steps) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    for kind, what in steps:
        if kind == "answer":
            for part in what:
                if part[0] == "text":
                    items.append({"type": "message", "role": "assistant", "content": part[1]})
                elif part[0] == "thought":
                    shown = [{"type": "summary_text", "text": part[1]}]
                    sealed = {"encrypted_content": part[2], "summary": shown}
                    items.append({"type": "reasoning", "id": f"rs_{len(items)}", **sealed})
                else:
                    called = {"call_id": part[1], "name": part[2], "arguments": "{}"}
                    items.append({"type": "function_call", **called})
        elif kind == "results":
            items += [
                {"type": "function_call_output", "call_id": name or tool, "output": text}
                for name, tool, text in what
            ]
        elif kind == "users":
            parts = [{"type": "input_text", "text": text} for text in what]
            items.append({"type": "message", "role": "user", "content": parts})
        else:
            items.append({"type": "message", "role": kind, "content": what})
    return {"input": items, "store": False}


def _messages(steps: Steps) -> dict[str, Any]:
    said: list[dict[str, Any]] = []
    for kind, what in steps:
        if kind == "answer":
            blocks: list[dict[str, Any]] = []
            for part in what:
                if part[0] == "text":
                    blocks.append({"type": "text", "text": part[1]})
                elif part[0] == "thought":
                    blocks.append({"type": "thinking", "thinking": part[1], "signature": part[2]})
                else:
                    blocks.append({"type": "tool_use", "id": part[1], "name": part[2], "input": {}})
            said.append({"role": "assistant", "content": blocks})
        elif kind == "results":
            results = [
                {"type": "tool_result", "tool_use_id": name or tool, "content": text}
                for name, tool, text in what
            ]
            said.append({"role": "user", "content": results})
        elif kind == "users":
            parts = [
                {"type": "text", "text": t, "cache_control": {"type": "ephemeral"}} for t in what
            ]
            said.append({"role": "user", "content": parts})
        else:
            said.append({"role": kind, "content": what})
    return {"messages": said, "max_tokens": 1000}


def _contents(steps: Steps) -> dict[str, Any]:
    said: list[dict[str, Any]] = []
    for kind, what in steps:
        if kind == "answer":
            parts: list[dict[str, Any]] = []
            for part in what:
                if part[0] == "text":
                    parts.append({"text": part[1]})
                elif part[0] == "thought":
                    sealed = {"thought": True, "thoughtSignature": part[2]}
                    parts.append({"text": part[1], **sealed})
                else:
                    call = {"id": part[1], "name": part[2], "args": {}}
                    parts.append({"functionCall": call})
            said.append({"role": "model", "parts": parts})
        elif kind == "results":
            given = [
                {"name": tool, "response": {"output": text}, **({"id": name} if name else {})}
                for name, tool, text in what
            ]
            said.append({"role": "user", "parts": [{"functionResponse": one} for one in given]})
        else:
            texts = what if kind == "users" else [what]
            said.append({"role": "user", "parts": [{"text": text} for text in texts]})
    return {"contents": said}


_WRITE: dict[Dialect, Callable[[Steps], dict[str, Any]]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _messages,
    "gemini": _contents,
}


def _tools(dialect: Dialect, tools: Sequence[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    match dialect:
        case "openai-chat":
            return [
                {"type": "function", "function": {"name": name, "parameters": schema}}
                for name, schema in tools
            ]
        case "openai-responses":
            return [{"type": "function", "name": n, "parameters": schema} for n, schema in tools]
        case "anthropic":
            return [{"name": name, "input_schema": schema} for name, schema in tools]
    declared = [{"name": name, "parametersJsonSchema": schema} for name, schema in tools]
    return [{"functionDeclarations": declared}]


ALL = (*SHAPES, *TOOLS, *FIELDS)


def body(dialect: Dialect, shape: str, n: int, model: str = "m") -> bytes:
    """A request of this shape with n parts."""
    made = _WRITE[dialect](SHAPES[shape](n) if shape in SHAPES else [_ASK])
    if shape in TOOLS:
        made["tools"] = _tools(dialect, TOOLS[shape](n))
    if shape in FIELDS:
        made |= FIELDS[shape](n)
        if shape == "allowed tools":
            made["tools"] = _tools(dialect, TOOLS["tools"](n))
    return json.dumps({"model": model, **made}).encode()


class Worker:
    """Reads requests and prepares them as the gateway does, without a network."""

    def __init__(self) -> None:
        self._engine = Engine(isolated=True)
        served = {
            name: ServedModel(model, base_url="http://127.0.0.1:9")
            for name, model in TARGETS.items()
        }
        config = ServeConfig(models=served)
        routes = Routes(self._engine, config)
        self._gateway = Gateway(self._engine, routes, InProcess(), Envelopes(b"k" * 32))
        self._loop = asyncio.new_event_loop()

    def work(self, dialect: Dialect, data: bytes, model: str) -> bytes:
        """The request upstream."""
        path = PATHS[dialect].format(model)
        asked = decode_request(dialect, data, path, {})
        job = self._loop.run_until_complete(self._gateway.job(Client(dialect), asked, data))
        return encode_request(job.prepared.request, job.prepared.target).body

    def close(self) -> None:
        """Close the gateway."""
        self._loop.run_until_complete(self._gateway.close())
        self._loop.close()


def growth() -> None:
    """Print the CPU time of each shape at three sizes."""
    worker = Worker()
    for dialect in DIALECTS:
        worker.work(dialect, body(dialect, "turns", 1, dialect), dialect)
    for shape in ALL:
        for dialect in DIALECTS:
            spent, size = [], 0
            for n in (_FEW, 2 * _FEW, 4 * _FEW):
                data = body(dialect, shape, n, dialect)
                size, before = len(data), time.process_time()
                worker.work(dialect, data, dialect)
                spent.append(time.process_time() - before)
            told = " ".join(f"{seconds:7.3f}" for seconds in spent)
            times = spent[-1] / spent[0]
            print(f"{times:5.1f} {told} s {size / 1e6:6.2f} MB  {dialect}, {shape}", flush=True)
    worker.close()


_FEW = 1_000
ATTACKS: dict[str, tuple[str, int]] = {
    "15,000 calls, results reversed (2 MB)": ("results reversed", 15_000),
    "60,000 calls, results reversed (9 MB, refused)": ("results reversed", 60_000),
    "20,000 messages": ("turns", 9_999),
    "300,000 messages (refused)": ("turns", 150_000),
    "one text of 30 MB": ("a long question", 300_000),
    "1,000,000 tags in an answer": ("<think> in an answer", 100_000),
}
"""Requests that are sent one after the other while others are measured."""


class Waits(NamedTuple):
    """What small requests wait for, in milliseconds."""

    p50: float
    p99: float
    longest: float


def _post(port: int, data: bytes) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    headers = {"content-type": "application/json"}
    connection.request("POST", PATHS["openai-chat"], data, headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def _waits(port: int, until: Callable[[], bool]) -> Waits:
    """What small requests wait for, one every 20 ms, until it is enough."""
    small = body("openai-chat", "turns", 1, "small")
    seconds: list[float] = []
    while len(seconds) < 20 or not until():
        began = time.perf_counter()
        assert _post(port, small) == 200
        seconds.append(time.perf_counter() - began)
        time.sleep(0.02)
    ordered = sorted(seconds)
    p99 = ordered[int(len(ordered) * 0.99)]
    return Waits(*(one * 1e3 for one in (statistics.median(ordered), p99, ordered[-1])))


def _gateway(home: Path, small: str, large: str) -> Measured:
    """A gateway with an upstream for each kind, so that they meet in the gateway alone."""
    port, config = free_port(), home / "serve.toml"
    named = (
        f'[serve.models.{name}]\nmodel = "moonshotai/kimi-k2.5"\nbase_url = "{url}/short/v1"\n'
        for name, url in (("small", small), ("large", large))
    )
    config.write_text(f'[serve]\nlisten = "127.0.0.1:{port}"\n' + "".join(named))
    env = os.environ | {"HOME": str(home), "XDG_DATA_HOME": str(home)}
    command = [sys.executable, "-m", "mull", "serve", "--config", str(config)]
    return Measured(command, port, env)


def latency() -> Iterator[tuple[str, Waits, float]]:
    """What small requests wait for beside each attack, and the seconds that one attack takes."""
    with tempfile.TemporaryDirectory() as home, upstream() as url, upstream() as other:
        server = _gateway(Path(home), url, other)
        try:
            port = server.port
            for _ in range(50):
                _post(port, body("openai-chat", "turns", 1, "small"))
            end = time.monotonic() + _SECONDS
            yield "alone", _waits(port, lambda: time.monotonic() > end), 0.0
            for name, (shape, n) in ATTACKS.items():
                data, taken = body("openai-chat", shape, n, "large"), list[float]()
                over = threading.Event()

                def attack(
                    data: bytes = data, taken: list[float] = taken, over: threading.Event = over
                ) -> None:
                    end = time.monotonic() + _SECONDS
                    while time.monotonic() < end:
                        began = time.monotonic()
                        _post(port, data)
                        taken.append(time.monotonic() - began)
                    over.set()

                thread = threading.Thread(target=attack)
                thread.start()
                yield name, _waits(port, over.is_set), statistics.median(taken)
                thread.join()
        finally:
            server.end()


_SECONDS = 5.0


def main() -> None:
    """Measure what the arguments say."""
    if sys.argv[1:] == ["growth"]:
        growth()
        return
    alone: Waits | None = None
    for name, waits, taken in latency():
        alone = alone or waits
        told = "  ".join(
            f"{word} {now:8.1f} ms ({now / before:5.1f}×)"
            for word, now, before in zip(Waits._fields, waits, alone, strict=True)
        )
        print(f"{told}  beside {name}, {taken:.2f} s each", flush=True)


if __name__ == "__main__":
    main()
