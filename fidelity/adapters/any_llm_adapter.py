"""any-llm: completion(), or for Claude and OpenAI messages() and responses(), as they came.

What those two return is passed through unchanged, so that reasoning can be replayed:
https://docs.mozilla.ai/any-llm/ and the docstring of any_llm.responses
"""

from any_llm import completion, messages, responses

import apis
from line import NotClaimed, Talk, serve

PROVIDERS = {"kimi": "moonshot", "llama.cpp": "llamacpp", "compatible": "openai"}
PLAIN = ("anthropic", "bedrock", "gemini", "mistral")
BUDGET = {"type": "enabled", "budget_tokens": 2000}


class Client(Talk):
    def __init__(self, case):
        super().__init__(case)
        spoken = {at["dialect"] for at in case["endpoints"].values()}
        if len(spoken) > 1 and "openai-responses" in spoken:
            raise NotClaimed("completion(), which serves all models, does not use Responses")
        if case["kind"] == "tags":
            raise NotClaimed("returns the content as the server sent it")
        native = {"anthropic": self.message, "bedrock-converse": self.message}
        native["openai-responses"] = self.respond
        self.once = native.get(*spoken, self.complete) if len(spoken) == 1 else self.complete

    def ask(self, at, text):
        provider = PROVIDERS.get(at["provider"], at["provider"])
        url = at["url"] + ("" if provider in PLAIN else "/v1")
        options = {"model": at["model"], "provider": provider, "api_base": url}
        options |= {} if provider == "bedrock" else {"api_key": "x"}
        self.history.append({"role": "user", "content": text})
        while results := (yield from self.once(options | {"stream": self.streams})):
            self.history += results

    def complete(self, options):
        """One history for all models: https://docs.mozilla.ai/any-llm/"""
        options["tools"] = [{"type": "function", "function": self.tool}]
        if options["provider"] in ("anthropic", "gemini", "openrouter"):
            options |= {"reasoning_effort": "medium", "max_tokens": 20000}
        if self.streams and options["provider"] not in PLAIN:
            options["stream_options"] = {"include_usage": True}
        given = completion(messages=self.history, **options)
        message, report = apis.read_chat(given, self.streams, ["reasoning"])
        self.history.append(message)
        yield report
        calls = [call["id"] for call in message.get("tool_calls") or ()]
        result = {"role": "tool", "content": self.result}
        return [{**result, "tool_call_id": call} for call in calls]

    def respond(self, options):
        options |= apis.STATELESS | {"reasoning": {"effort": "medium", "summary": "auto"}}
        tools = [{"type": "function", **self.tool}]
        response = responses(input_data=self.history, tools=tools, **options)
        items, report = apis.read_response(response, self.streams)
        self.history += items
        yield report
        return apis.outputs_for(items, self.result)

    def message(self, options):
        schema = {key: self.tool[key] for key in ("name", "description")}
        options["tools"] = [{**schema, "input_schema": self.tool["parameters"]}]
        options["thinking"] = {"type": "adaptive"} if "-5-5" in options["model"] else BUDGET
        given = messages(messages=self.history, max_tokens=8000, **options)
        blocks, report = apis.read_message(
            apis.message_of(given) if self.streams else given.model_dump(exclude_none=True)
        )
        self.history.append({"role": "assistant", "content": blocks})
        yield report
        return apis.results_for(blocks, self.result)


serve(Client)
