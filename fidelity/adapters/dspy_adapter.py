"""dspy: its language model, called with messages made of what it returned."""

import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import dspy

from line import NotClaimed, answer, last_turns, serve

PREFIXES = {"kimi": "moonshot", "vllm": "hosted_vllm", "llama.cpp": "openai"}
PREFIXES |= {"compatible": "openai"}
BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 8000}


class Client:
    def __init__(self, case):
        if case["kind"] in ("framing", "cut"):
            raise NotClaimed("does not stream")
        if any(at["dialect"] == "bedrock-converse" for at in case["endpoints"].values()):
            raise NotClaimed("needs boto3, which it does not ask for")
        self.tool, self.history = case["tool"], []

    def ask(self, at, text):
        plain = at["dialect"] in ("anthropic", "gemini")
        options = {"api_base": at["url"] + ("" if plain else "/v1"), "api_key": "x", "cache": False}
        options |= {"num_retries": 0, "max_tokens": 20000, "temperature": 1.0}
        if at["dialect"] == "openai-responses":
            options["model_type"] = "responses"
        elif plain or at["provider"] == "openrouter":
            options["reasoning_effort"] = "medium"
        name = f"{PREFIXES.get(at['provider'], at['provider'])}/{at['model']}"
        model = dspy.LM(name, **options)
        function = {key: self.tool[key] for key in ("name", "description", "parameters")}
        self.history.append({"role": "user", "content": text})
        while True:
            tools = [{"type": "function", "function": function}]
            given = model(messages=self.history, tools=tools)[0]
            given = given if isinstance(given, dict) else {"text": given}
            calls = [self.plain(call) for call in given.get("tool_calls") or ()]
            message = {"role": "assistant", "content": given.get("text") or None}
            if given.get("reasoning_content"):
                message["reasoning_content"] = given["reasoning_content"]
            self.history.append({**message, **({"tool_calls": calls} if calls else {})})
            usage = (model.history[-1].get("usage") or {}).get("completion_tokens_details") or {}
            counted = dict(usage).get("reasoning_tokens")
            thinking = given.get("reasoning_content")
            yield answer(message["content"], thinking, reasoning_tokens=counted)
            if not calls:
                return
            for call in calls:
                result = {"role": "tool", "tool_call_id": call["id"]}
                self.history.append({**result, "content": self.tool["result"]})

    def plain(self, call):
        return call if isinstance(call, dict) else call.model_dump(exclude_none=True)

    def resume(self):
        self.history = json.loads(json.dumps(self.history))

    def keep(self, turns):
        self.history = last_turns(self.history, lambda one: one["role"] == "user", turns)


serve(Client)
