"""Clients of four APIs in a few lines each, on plain dicts, that use nothing of mull.

Each sends back what it was given, after `keep` has had its way with it: the identity for a
faithful client, anything else for one that loses or changes something.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from mull.testing import Call, Say, Think

Keep = Callable[[Any], Any]


class Refusal(Exception):
    """The server said no: its status and body."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(status, body)
        self.status, self.body = status, body


def post(url: str, body: Any) -> bytes:
    """The bytes of the answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=60) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        with error:
            raise Refusal(error.code, json.loads(error.read())) from None


def same(value: Any) -> Any:
    return value


class Client:
    """A conversation that runs until the model answers without a call."""

    def __init__(self, url: str, keep: Keep = same, **more: Any) -> None:
        self.url, self.keep, self.more = url, keep, more
        self.history: list[Any] = []

    def ask(self, text: str) -> str:
        self.history.append(self.question(text))
        while True:
            answer = json.loads(post(self.url + self.path(), self.body()))
            calls = self.take(answer)
            if not calls:
                return self.text(answer)
            self.answer_calls(calls)

    def path(self) -> str:
        raise NotImplementedError

    def edit(self, keep: Keep) -> None:
        """Change the answers that are already in the history."""
        raise NotImplementedError


class Chat(Client):
    def edit(self, keep):
        self.history = [keep(m) if m["role"] == "assistant" else m for m in self.history]

    def path(self):
        return "/chat/completions"

    def body(self):
        return {"model": "m", "messages": self.history, **self.more}

    def question(self, text):
        return {"role": "user", "content": text}

    def take(self, answer):
        message = answer["choices"][0]["message"]
        self.history.append(self.keep(message))
        return message.get("tool_calls", [])

    def answer_calls(self, calls):
        self.history += [
            {"role": "tool", "tool_call_id": call["id"], "content": "r"} for call in calls
        ]

    def text(self, answer):
        return answer["choices"][0]["message"]["content"]


class Messages(Client):
    def edit(self, keep):
        self.history = [
            {**m, "content": keep(m["content"])} if m["role"] == "assistant" else m
            for m in self.history
        ]

    def path(self):
        return "/v1/messages"

    def body(self):
        thinking = {"type": "enabled", "budget_tokens": 2000}
        plan = {"max_tokens": 4000, "thinking": thinking, **self.more}
        return {"model": "m", "messages": self.history, **plan}

    def question(self, text):
        return {"role": "user", "content": text}

    def take(self, answer):
        self.history.append({"role": "assistant", "content": self.keep(answer["content"])})
        return [block for block in answer["content"] if block["type"] == "tool_use"]

    def answer_calls(self, calls):
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": "r"} for call in calls
        ]
        self.history.append({"role": "user", "content": results})

    def text(self, answer):
        return "".join(block.get("text", "") for block in answer["content"])


class Contents(Client):
    def edit(self, keep):
        self.history = [
            {**c, "parts": keep(c["parts"])} if c["role"] == "model" else c for c in self.history
        ]

    def path(self):
        return "/v1beta/models/m:generateContent"

    def body(self):
        config = {"thinkingConfig": {"includeThoughts": True}}
        return {"contents": self.history, "generationConfig": config, **self.more}

    def question(self, text):
        return {"role": "user", "parts": [{"text": text}]}

    def take(self, answer):
        content = answer["candidates"][0]["content"]
        self.history.append({"role": "model", "parts": self.keep(content["parts"])})
        return [part["functionCall"] for part in content["parts"] if "functionCall" in part]

    def answer_calls(self, calls):
        parts = [
            {"functionResponse": {"id": c["id"], "name": c["name"], "response": {}}} for c in calls
        ]
        self.history.append({"role": "user", "parts": parts})

    def text(self, answer):
        parts = answer["candidates"][0]["content"]["parts"]
        return "".join(part["text"] for part in parts if not part.get("thought"))


class Responses(Client):
    def edit(self, keep):
        self.history = keep(self.history)

    def path(self):
        return "/v1/responses"

    def body(self):
        wanted = {"store": False, "include": ["reasoning.encrypted_content"]}
        wanted |= {"reasoning": {"summary": "auto"}, **self.more}
        return {"model": "m", "input": self.history, **wanted}

    def question(self, text):
        return {"type": "message", "role": "user", "content": text}

    def take(self, answer):
        self.history += self.keep(answer["output"])
        return [item for item in answer["output"] if item["type"] == "function_call"]

    def answer_calls(self, calls):
        self.history += [
            {"type": "function_call_output", "call_id": call["call_id"], "output": "r"}
            for call in calls
        ]

    def text(self, answer):
        said = [item for item in answer["output"] if item["type"] == "message"]
        return "".join(part["text"] for item in said for part in item["content"])


def openrouter(url: str, keep: Keep = same, **more: Any) -> Chat:
    return Chat(url, keep, **{"reasoning": {"effort": "high"}, **more})


CLIENTS: dict[str, Callable[..., Client]] = {
    "anthropic": Messages,
    "anthropic-bound": Messages,
    "deepseek": Chat,
    "gemini": Contents,
    "kimi": Chat,
    "openai": Responses,
    "openrouter": openrouter,
}


CHAIN = [
    [Think("first "), Call("look", {"at": "a"})],
    [Think("second"), Say("Hm."), Think("third"), Call("look"), Call("look", {"at": "c"})],
    [Think("hidden", hidden=True), Call("look", {"at": "d"})],
    [Call("look", {"at": "e"})],
    [Think("last"), Say("Done.")],
]
"""One turn: a call, parallel calls, a hidden thought, no thought, an answer."""
TWO_TURNS = CHAIN * 2


def without(*kinds):
    return lambda blocks: [block for block in blocks if block["type"] not in kinds]


def but(kind, **changed):
    """A copy of an answer in which every piece of a kind is changed."""
    return lambda blocks: [{**b, **changed} if b["type"] == kind else b for b in blocks]


def less(*keys):
    return lambda message: {key: value for key, value in message.items() if key not in keys}


def with_fillers(message):
    """Kimi wants reasoning with every call, also where its model had none."""
    return {**message, "reasoning_content": message["reasoning_content"] or " "}
