"""inspect-ai: its model interface, with the chat messages that it returned."""

import asyncio

import inspect_ai.model as ai
from inspect_ai.tool import ToolInfo
from pydantic import TypeAdapter

from line import Talk, answer, serve

# https://inspect.aisi.org.uk/providers.html; any OpenAI-compatible service is openai-api/NAME
NAMES = {"gemini": "google", "kimi": "moonshot", "zai": "openai-api/zai"}
NAMES |= {"llama.cpp": "openai-api/llama", "compatible": "openai-api/acme"}
# https://inspect.aisi.org.uk/providers.html#anthropic-on-aws-bedrock
NAMES["bedrock"] = "anthropic/bedrock"
OPTIONS = {"openai": {"responses_api": True, "responses_store": False}}
OPTIONS["mistral"] = {"conversation_api": False}
# All reasoning is kept: https://inspect.aisi.org.uk/reasoning.html#reasoning-history
KEEPING = {"reasoning_history": "all", "reasoning_summary": "auto", "max_retries": 0}


async def show(event):
    """Display what streams; the output is complete without it."""


class Client(Talk):
    def ask(self, at, text):
        return asyncio.run(self.run(self.model_of(at), text))

    def model_of(self, at):
        name, provider = at["model"], at["provider"]
        steer = {"reasoning_effort": "medium"} if provider in ("anthropic", "openrouter") else {}
        if "4-5" in name or provider == "gemini":
            steer = {"reasoning_tokens": 2000, "max_tokens": 8000}
        plain = provider in ("anthropic", "bedrock", "gemini", "mistral")
        return ai.get_model(
            f"{NAMES.get(provider, provider)}/{name}",
            base_url=at["url"] + ("" if plain else "/v1"),
            api_key="x",
            memoize=False,
            config=ai.GenerateConfig(**KEEPING, **steer),
            **OPTIONS.get(provider, {}),
        )

    async def run(self, model, text):
        tool, handler = ToolInfo.model_validate(self.tool), show if self.streams else None
        self.history.append(ai.ChatMessageUser(content=text))
        answers = []
        while True:
            output = await model.generate(self.history, tools=[tool], on_stream=handler)
            self.history.append(output.message)
            answers.append(self.told(output))
            if not output.message.tool_calls:
                return answers
            for call in output.message.tool_calls:
                about = {"tool_call_id": call.id, "function": "look"}
                self.history.append(ai.ChatMessageTool(content=self.result, **about))

    def told(self, output):
        parts = output.message.content if isinstance(output.message.content, list) else []
        thoughts = [part for part in parts if part.type == "reasoning"]
        texts = [part.summary if part.redacted else part.reasoning for part in thoughts]
        counted = output.usage and output.usage.reasoning_tokens
        about = {"reasoning_tokens": counted, "incomplete": output.stop_reason == "max_tokens"}
        return answer(output.message.text, "\n\n".join(filter(None, texts)), **about)

    def resume(self):
        kind = TypeAdapter(list[ai.ChatMessage])
        self.history = kind.validate_json(kind.dump_json(self.history))


serve(Client)
