"""kosong: generate() over its messages."""

import asyncio

import kosong
from kosong.chat_provider.kimi import Kimi
from kosong.contrib.chat_provider.anthropic import Anthropic
from kosong.contrib.chat_provider.google_genai import GoogleGenAI
from kosong.contrib.chat_provider.openai_legacy import OpenAILegacy
from kosong.contrib.chat_provider.openai_responses import OpenAIResponses
from kosong.message import Message, TextPart, ThinkPart
from kosong.tooling import Tool

from line import NotClaimed, answer, last_turns, reasoning_field, serve

# "To support OpenAI-compatible APIs that inject reasoning content in a extra field, reasoning_key
# can be set": https://github.com/MoonshotAI/kimi-cli/tree/main/packages/kosong
KEYS = {"vllm": "reasoning", "openrouter": "reasoning"}


def provider_of(at, streams, key):
    about = {"model": at["model"], "api_key": "x", "stream": streams}
    match at["dialect"]:
        case "anthropic":
            made = Anthropic(**about, base_url=at["url"], default_max_tokens=8000, max_retries=0)
            return made.with_thinking("medium")
        case "gemini":
            return GoogleGenAI(**about, base_url=at["url"]).with_thinking("medium")
        case "openai-responses":
            made = OpenAIResponses(**about, base_url=at["url"] + "/v1", max_retries=0)
            return made.with_thinking("medium")
        case "bedrock-converse":
            raise NotClaimed("has no Bedrock provider")
    url = {"base_url": at["url"] + "/v1", "max_retries": 0}
    if at["provider"] == "kimi":
        return Kimi(**about, **url).with_thinking("high")
    return OpenAILegacy(**about, **url, reasoning_key=KEYS.get(at["provider"], key))


class Client:
    def __init__(self, case):
        if case["kind"] == "tags":
            raise NotClaimed("returns the content as the server sent it")
        if case["kind"] == "counted":
            raise NotClaimed("does not report reasoning tokens")
        self.tool, self.streams, self.history = case["tool"], case["call"] == "streaming", []
        self.key = reasoning_field(case)

    def ask(self, at, text):
        provider = provider_of(at, self.streams, self.key)
        self.history.append(Message(role="user", content=text))
        tool = Tool(**{key: self.tool[key] for key in ("name", "description", "parameters")})
        while True:
            result = asyncio.run(kosong.generate(provider, "", [tool], self.history))
            message = result.message
            self.history.append(message)
            text = "".join(part.text for part in message.content if isinstance(part, TextPart))
            thoughts = [part.think for part in message.content if isinstance(part, ThinkPart)]
            yield answer(text, "\n\n".join(thoughts))
            if not message.tool_calls:
                return
            for call in message.tool_calls:
                found = self.tool["result"]
                self.history.append(Message(role="tool", content=found, tool_call_id=call.id))
            provider = provider_of(at, self.streams, self.key)

    def resume(self):
        stored = [one.model_dump_json(exclude_none=True) for one in self.history]
        self.history = [Message.model_validate_json(one) for one in stored]

    def keep(self, turns):
        self.history = last_turns(self.history, lambda one: one.role == "user", turns)


serve(Client)
