"""A server with a small window: counts as its own tokenizer does, refuses what is too long, reports
what it read, and tells its window as the servers do that people run themselves."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from mull.testing.server import Recorded, Reply, ScriptedServer

FRAME, AROUND = 21, 5
"""Tokens that its template adds to a request, and to each message."""
ASKS_FOR_SUMMARY = "nothing else."


class SmallServer:
    """`says` makes the answer to a body: text, or calls; `summary` that to a request for a summary.

    A token is so many characters; `tells` is whether the server says how large its window is.
    """

    def __init__(
        self,
        window: int = 2048,
        *,
        says: Callable[[dict[str, Any]], str | list[dict[str, Any]]] = lambda body: "yes",
        summary: Reply | str = "what was said before",
        characters: float = 3.0,
        tells: bool = True,
        model: str = "small",
    ) -> None:
        self.window, self.says, self.summary = window, says, summary
        self.characters, self.tells, self.model = characters, tells, model
        self.counts: list[int] = []
        self.refused: list[int] = []
        self.summaries = 0
        self.tokenized = 0
        self.last: dict[str, Any] = {}
        self._lock = threading.Lock()
        self.server = ScriptedServer(self._reply)

    def __enter__(self) -> SmallServer:
        self.server.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.server.__exit__(*error)

    @property
    def url(self) -> str:
        return f"{self.server.url}/v1"

    def tokens(self, text: str) -> int:
        return round(len(text) / self.characters + 0.5) if text else 0

    def count(self, body: dict[str, Any]) -> int:
        """What a body holds: its messages and tools as the template would write them."""
        held = FRAME + sum(AROUND + self.tokens(_text(one)) for one in body["messages"])
        return held + sum(self.tokens(json.dumps(tool)) for tool in body.get("tools") or ())

    def _reply(self, asked: Recorded) -> Reply:
        with self._lock:
            self.server.requests.clear()  # thousands of them come
            if asked.method == "GET":
                return self._told(asked.path)
            if asked.path == "/tokenize":
                self.tokenized += 1
                return Reply.json({"tokens": [1] * self.tokens(asked.json["content"])})
            if asked.path != "/v1/chat/completions":
                return Reply.json({"error": {"message": "no such path"}}, 404)
            return self._answer(asked.json)

    def _told(self, path: str) -> Reply:
        if path == "/v1/models":
            meta = {"n_ctx": self.window, "n_ctx_train": 8192} if self.tells else None
            row = {"id": self.model, "object": "model", "owned_by": "llamacpp", "meta": meta}
            return Reply.json({"object": "list", "data": [row]})
        if path == "/props" and self.tells:
            return Reply.json({"default_generation_settings": {"n_ctx": self.window}})
        return Reply.json({"error": {"message": "File Not Found"}}, 404)

    def _answer(self, body: dict[str, Any]) -> Reply:
        held, self.last = self.count(body), body
        self.counts.append(held)
        if held >= self.window:
            self.refused.append(held)
            text = (
                f"request ({held} tokens) exceeds the available context size ({self.window} tokens)"
            )
            error = {"code": 400, "message": f"{text}, try increasing it"}
            more = {"type": "exceed_context_size_error", "n_prompt_tokens": held}
            return Reply.json({"error": {**error, **more, "n_ctx": self.window}}, 400)
        if _text(body["messages"][-1]).endswith(ASKS_FOR_SUMMARY):
            self.summaries += 1
            return self.summary if isinstance(self.summary, Reply) else chat(self.summary, held)
        return chat(self.says(body), held)


def chat(said: str | list[dict[str, Any]], held: int) -> Reply:
    """A streamed answer: text, or calls given by name and arguments."""
    if isinstance(said, str):
        delta: dict[str, Any] = {"content": said}
    else:
        delta = {"tool_calls": [_call(at, one) for at, one in enumerate(said)]}
    finish = "stop" if isinstance(said, str) else "tool_calls"
    usage = {"prompt_tokens": held, "completion_tokens": 9, "total_tokens": held + 9}
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage}
    return Reply.events({"choices": [{"index": 0, "delta": delta}]}, end, "[DONE]")


def _call(at: int, one: dict[str, Any]) -> dict[str, Any]:
    function = {"name": one["name"], "arguments": json.dumps(one.get("input", {}))}
    return {
        "index": at,
        "id": one.get("id", f"call_{at}"),
        "type": "function",
        "function": function,
    }


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content)
    calls = message.get("tool_calls")
    return content + (message.get("reasoning_content") or "") + (json.dumps(calls) if calls else "")
