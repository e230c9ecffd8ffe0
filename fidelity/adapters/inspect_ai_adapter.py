"""inspect-ai: its model interface, with the chat messages that it returned."""

import asyncio
import os

from inspect_ai.model import (
    ChatMessage,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    get_model,
)
from inspect_ai.tool import ToolInfo, ToolParams
from pydantic import TypeAdapter

from line import NotClaimed, answer, last_turns, serve

NAMES = {"gemini": "google", "kimi": "openai-api/kimi", "zai": "openai-api/zai"}
NAMES |= {"vllm": "openai-api/vllm", "llama.cpp": "openai-api/llama"}
NAMES |= {"compatible": "openai-api/acme", "deepseek": "deepseek", "mistral": "mistral"}
for service in ("KIMI", "ZAI", "VLLM", "LLAMA", "ACME", "DEEPSEEK", "OPENROUTER"):
    os.environ[f"{service}_API_KEY"] = "x"


class Client:
    def __init__(self, case):
        apis = {at["provider"] for at in case["endpoints"].values()}
        if case["kind"] in ("framing", "cut"):
            raise NotClaimed("does not stream")
        if apis & {"bedrock", "mistral"}:
            raise NotClaimed("needs packages for this provider that cannot live beside the others")
        self.tool, self.history = case["tool"], []

    def ask(self, at, text):
        return asyncio.run(self.run(at, text))

    async def run(self, at, text):
        plain = at["dialect"] in ("anthropic", "gemini")
        budget = {"reasoning_tokens": 2000, "max_tokens": 8000}
        budget = budget if "4-5" in at["model"] or at["dialect"] == "gemini" else {}
        steered = at["provider"] in ("anthropic", "openrouter") and not budget
        effort = {"reasoning_effort": "medium"} if steered else {}
        options = (
            {"responses_api": True, "responses_store": False} if at["provider"] == "openai" else {}
        )
        model = get_model(
            f"{NAMES.get(at['provider'], at['provider'])}/{at['model']}",
            base_url=at["url"] + ("" if plain else "/v1"),
            api_key="x",
            memoize=False,
            config=GenerateConfig(reasoning_history="all", max_retries=0, **budget, **effort),
            **options,
        )
        schema = ToolParams.model_validate(self.tool["parameters"])
        tool = ToolInfo(name="look", description=self.tool["description"], parameters=schema)
        self.history.append(ChatMessageUser(content=text))
        answers = []
        while True:
            output = await model.generate(self.history, tools=[tool])
            self.history.append(output.message)
            answers.append(self.told(output))
            if not output.message.tool_calls:
                return answers
            for call in output.message.tool_calls:
                result = self.tool["result"]
                self.history.append(
                    ChatMessageTool(content=result, tool_call_id=call.id, function="look")
                )

    def told(self, output):
        content = output.message.content
        parts = [] if isinstance(content, str) else content
        thoughts = [part for part in parts if part.type == "reasoning"]
        texts = [part.summary if part.redacted else part.reasoning for part in thoughts]
        counted = output.usage and output.usage.reasoning_tokens
        cut = output.stop_reason == "max_tokens"
        thinking = "\n\n".join(filter(None, texts))
        return answer(output.message.text, thinking, reasoning_tokens=counted, incomplete=cut)

    def resume(self):
        kind = TypeAdapter(list[ChatMessage])
        self.history = kind.validate_json(kind.dump_json(self.history))

    def keep(self, turns):
        self.history = last_turns(self.history, lambda one: one.role == "user", turns)


serve(Client)
