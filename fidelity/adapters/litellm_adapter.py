"""litellm's completion: messages are given back as they came; one history for all models."""

import json
import os

import litellm

from line import answer, last_turns, serve

litellm.suppress_debug_info = True
litellm.drop_params = True
os.environ |= {
    "AWS_ACCESS_KEY_ID": "x",
    "AWS_SECRET_ACCESS_KEY": "x",
    "AWS_REGION_NAME": "us-east-1",
}
PREFIXES = {"kimi": "moonshot", "vllm": "hosted_vllm", "llama.cpp": "openai"}
PREFIXES |= {"compatible": "openai", "openai": "openai/responses", "bedrock": "bedrock/converse"}
BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 8000}
EFFORT = {"reasoning_effort": "medium"}
ASKS = {"anthropic": BUDGET, "bedrock": BUDGET, "openai": EFFORT, "gemini": EFFORT}
ASKS |= {"openrouter": EFFORT, "deepseek": {"thinking": {"type": "enabled"}}}


class Client:
    def __init__(self, case):
        self.tool, self.streams, self.history = case["tool"], case["call"] == "streaming", []

    def ask(self, at, text):
        name = f"{PREFIXES.get(at['provider'], at['provider'])}/{at['model']}"
        plain = at["provider"] in ("anthropic", "gemini", "bedrock")
        function = {key: self.tool[key] for key in ("name", "description", "parameters")}
        options = {
            "model": name,
            "api_base": at["url"] + ("" if plain else "/v1"),
            "api_key": "x",
            "tools": [{"type": "function", "function": function}],
            "max_retries": 0,
            "stream": self.streams,
            **ASKS.get(at["provider"], {}),
        }
        if at["provider"] == "anthropic" and "-5-5" in at["model"]:
            options |= EFFORT | {"thinking": None}
        if self.streams:
            options["stream_options"] = {"include_usage": True}
        self.history.append({"role": "user", "content": text})
        while True:
            response = litellm.completion(messages=self.history, **options)
            if self.streams:
                response = litellm.stream_chunk_builder(list(response), messages=self.history)
            message = response.choices[0].message
            self.history.append(message)
            yield self.told(response, message)
            if not message.tool_calls:
                return
            for call in message.tool_calls:
                result = {"role": "tool", "tool_call_id": call.id, "content": self.tool["result"]}
                self.history.append(result)

    def told(self, response, message):
        details = response.usage.completion_tokens_details
        counted = details.reasoning_tokens if details else None
        thinking = getattr(message, "reasoning_content", None)
        cut = response.choices[0].finish_reason == "length"
        return answer(message.content, thinking, reasoning_tokens=counted, incomplete=cut)

    def resume(self):
        stored = [one if isinstance(one, dict) else one.model_dump() for one in self.history]
        self.history = json.loads(json.dumps(stored))

    def keep(self, turns):
        self.history = last_turns(self.history, lambda one: one["role"] == "user", turns)


serve(Client)
