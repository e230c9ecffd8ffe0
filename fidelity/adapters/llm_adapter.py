"""llm: a chain runs the tools; the messages of its last response are the history."""

import os
import tempfile
from functools import partial
from types import SimpleNamespace

import httpx

GOOGLE = "https://generativelanguage.googleapis.com"
os.environ["LLM_USER_PATH"] = tempfile.mkdtemp()

import llm_gemini
import llm_mistral
from llm.default_plugins.openai_models import Chat, Responses
from llm.parts import Message, ReasoningPart
from llm_anthropic import ClaudeMessages
from mistralai.client import Mistral

from apis import is_cut, reasoning_tokens_in
from line import NotClaimed, Talk, answer, serve


def look(at: str) -> str:
    """Look at something."""
    return "nothing there"


def model_of(at):
    """The plugin of the provider, else a model as extra-openai-models.yaml declares one:
    https://llm.datasette.io/en/stable/other-models.html#openai-compatible-models
    """
    name, url = at["model"], at["url"] + "/v1"
    if at["dialect"] == "anthropic":
        adaptive = {"supports_adaptive_thinking": "-5-5" in name, "supports_thinking": True}
        return ClaudeMessages(name, base_url=at["url"], default_max_tokens=8000, **adaptive)
    if at["provider"] == "mistral":
        llm_mistral.MistralClient = partial(Mistral, server_url=at["url"])
        return llm_mistral.Mistral(name, name, False, False, True, False, True)
    if at["dialect"] == "gemini":
        here = lambda way, url, **more: httpx.stream(way, url.replace(GOOGLE, at["url"]), **more)  # noqa: E731
        llm_gemini.httpx = SimpleNamespace(stream=here)
        return llm_gemini.GeminiPro(name, thinking_levels=["low", "medium", "high"])
    about = {"model_name": name, "key": "x", "api_base": url, "supports_tools": True}
    if at["dialect"] == "openai-responses":
        return Responses(name, **about, reasoning=True, reasoning_summary=True)
    return Chat(name, **about)


class Client(Talk):
    def __init__(self, case):
        super().__init__(case)
        providers = {at["provider"] for at in case["endpoints"].values()}
        if "bedrock" in providers:
            raise NotClaimed("no plugin for Bedrock has both tools and reasoning")
        if "openrouter" in providers:
            raise NotClaimed("its OpenRouter plugin uses the Responses API, not Chat Completions")
        if case["kind"] == "tags":
            raise NotClaimed("returns the content as the server sent it")

    def ask(self, at, text):
        options = {"thinking": True} if at["dialect"] == "anthropic" else {}
        about = {"tools": [look], "stream": self.streams, "options": options, "key": "x"}
        # The history in messages, https://llm.datasette.io/en/stable/python-api.html
        chain = model_of(at).chain(text, messages=self.history, **about)
        for response in chain.responses():
            response.text()
            self.history = [*response.prompt.messages, *response.messages()]
            yield self.told(response)

    def told(self, response):
        parts = [part for message in response.messages() for part in message.parts]
        thoughts = [part.text for part in parts if isinstance(part, ReasoningPart) and part.text]
        about = {"reasoning_tokens": reasoning_tokens_in(response.token_details or {})}
        about["incomplete"] = is_cut(response.json() or {})
        return answer(response.text(), "\n\n".join(thoughts), **about)

    def resume(self):
        self.history = [Message.from_dict(one.to_dict()) for one in self.history]


serve(Client)
