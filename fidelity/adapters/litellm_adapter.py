"""litellm: completion() with one history for all models, responses() for OpenAI alone."""

import json

import litellm

from apis import STATELESS, outputs_for, read_response
from line import Talk, answer, serve

litellm.suppress_debug_info = litellm.drop_params = True
PREFIXES = {"kimi": "moonshot", "vllm": "hosted_vllm", "llama.cpp": "openai"}
PREFIXES |= {"compatible": "openai", "openai": "openai/responses", "bedrock": "bedrock/converse"}
# https://docs.litellm.ai/docs/reasoning_content
BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 8000}
EFFORT = {"reasoning_effort": "medium"}
ASKS = {"anthropic": BUDGET, "bedrock": BUDGET, "openai": EFFORT, "gemini": EFFORT}
ASKS |= {"openrouter": EFFORT, "deepseek": {"thinking": {"type": "enabled"}}}
# https://docs.litellm.ai/docs/response_api
RESPONDS = STATELESS | {"reasoning": {"effort": "medium", "summary": "auto"}}


class Client(Talk):
    def __init__(self, case):
        super().__init__(case)
        self.responds = {at["dialect"] for at in case["endpoints"].values()} == {"openai-responses"}

    def ask(self, at, text):
        plain = at["provider"] in ("anthropic", "gemini", "bedrock")
        options = {"api_base": at["url"] + ("" if plain else "/v1"), "api_key": "x"}
        options |= {"max_retries": 0, "stream": self.streams}
        self.history.append({"role": "user", "content": text})
        options["model"] = f"{PREFIXES.get(at['provider'], at['provider'])}/{at['model']}"
        if self.responds:
            options |= {"model": f"openai/{at['model']}", **RESPONDS}
        else:
            options |= EFFORT if "-5-5" in at["model"] else ASKS.get(at["provider"], {})
            options |= {"stream_options": {"include_usage": True}} if self.streams else {}
        tool = {"strict": False, **self.tool} if self.responds else {"function": self.tool}
        options["tools"] = [{"type": "function", **tool}]
        while results := (yield from (self.respond if self.responds else self.complete)(options)):
            self.history += results

    def complete(self, options):
        response = litellm.completion(messages=self.history, **options)
        if self.streams:
            response = litellm.stream_chunk_builder(list(response), messages=self.history)
        message, details = response.choices[0].message, response.usage.completion_tokens_details
        self.history.append(message)
        thinking = getattr(message, "reasoning_content", None)
        counted = details.reasoning_tokens if details else None
        cut = response.choices[0].finish_reason == "length"
        yield answer(message.content, thinking, reasoning_tokens=counted, incomplete=cut)
        result = {"role": "tool", "content": self.result}
        return [{**result, "tool_call_id": call.id} for call in message.tool_calls or ()]

    def respond(self, options):
        response = litellm.responses(input=self.history, **options)
        items, report = read_response(response, self.streams)
        self.history += items
        yield report
        return outputs_for(items, self.result)

    def resume(self):
        stored = [one if isinstance(one, dict) else one.model_dump() for one in self.history]
        self.history = json.loads(json.dumps(stored))


serve(Client)
