"""any-llm's completion: messages are given back as they came; one history for all models."""

import json

from any_llm import completion

from line import NotClaimed, answer, join, last_turns, serve

PROVIDERS = {"kimi": "moonshot", "llama.cpp": "llamacpp", "compatible": "openai"}


class Client:
    def __init__(self, case):
        apis = {at["dialect"] for at in case["endpoints"].values()}
        if "openai-responses" in apis:
            raise NotClaimed("its completions do not use the Responses API")
        if "bedrock-converse" in apis:
            raise NotClaimed("its Bedrock provider takes no address")
        if case["kind"] == "tags":
            raise NotClaimed("returns the content as the server sent it")
        self.tool, self.streams, self.history = case["tool"], case["call"] == "streaming", []

    def ask(self, at, text):
        provider = PROVIDERS.get(at["provider"], at["provider"])
        plain = provider in ("anthropic", "gemini", "mistral")
        function = {key: self.tool[key] for key in ("name", "description", "parameters")}
        options = {
            "model": at["model"],
            "provider": provider,
            "api_base": at["url"] + ("" if plain else "/v1"),
            "api_key": "x",
            "tools": [{"type": "function", "function": function}],
            "stream": self.streams,
        }
        if provider in ("anthropic", "gemini", "openrouter"):
            options |= {"reasoning_effort": "medium", "max_tokens": 20000}
        if self.streams and not plain:
            options["stream_options"] = {"include_usage": True}
        self.history.append({"role": "user", "content": text})
        while True:
            response = completion(messages=self.history, **options)
            if self.streams:
                message, usage, ending = self.joined(list(response))
            else:
                choice, usage = response.choices[0], response.usage
                message = choice.message.model_dump(exclude_none=True)
                ending = choice.finish_reason
            message["role"] = "assistant"
            self.history.append(message)
            yield self.told(message, usage, ending)
            if not message.get("tool_calls"):
                return
            for call in message["tool_calls"]:
                result = {"role": "tool", "tool_call_id": call["id"]}
                self.history.append({**result, "content": self.tool["result"]})

    def joined(self, chunks):
        choices = [choice for chunk in chunks for choice in chunk.choices]
        message = join(choice.delta.model_dump(exclude_none=True) for choice in choices)
        usage = next((chunk.usage for chunk in reversed(chunks) if chunk.usage), None)
        ending = next((one.finish_reason for one in reversed(choices) if one.finish_reason), None)
        return message, usage, ending

    def told(self, message, usage, ending):
        thinking = message.get("reasoning")
        thinking = thinking.get("content") if isinstance(thinking, dict) else thinking
        details = usage and usage.completion_tokens_details
        counted = details.reasoning_tokens if details else None
        cut = ending in (None, "length")
        return answer(message.get("content"), thinking, reasoning_tokens=counted, incomplete=cut)

    def resume(self):
        self.history = json.loads(json.dumps(self.history))

    def keep(self, turns):
        self.history = last_turns(self.history, lambda one: one["role"] == "user", turns)


serve(Client)
