"""dspy: dspy.LM with requests and the messages of its responses."""

import dspy
from dspy import lm15
from dspy._vendor.lm15.serde import messages_from_json, messages_to_json
from dspy.lm15 import Message

from line import NotClaimed, answer, last_turns, serve

PREFIXES = {"kimi": "moonshot/", "zai": "zai:", "llama.cpp": "compatible/", "vllm": "compatible/"}
# A server is declared with its rules: https://dspy.ai/3.4.0/tutorials/custom_lm_engines/
# dspy's own entry for vLLM sends thoughts back as text; a declared one sends them as they came.
lm15.register_provider(
    lm15.ProviderDefinition.chat(
        lm15.AccessPolicy(
            provider="compatible", base_url="http://127.0.0.1/v1", env_keys=("NONE",)
        ),
        compat=lm15.OpenAIChatCompat(thinking_replay="native"),
    )
)


class Ask(dspy.Module):
    def forward(self, request):
        return dspy.Prediction(response=dspy.settings.lm(request))


class Client:
    def __init__(self, case):
        if case["kind"] == "tags":
            raise NotClaimed("returns the content as the server sent it")
        about = {key: case["tool"][key] for key in ("name", "description", "parameters")}
        self.tool, self.result = lm15.FunctionTool(**about), case["tool"]["result"]
        self.streams, self.history = case["call"] == "streaming", []

    def ask(self, at, text):
        plain = at["dialect"] in ("anthropic", "gemini")
        name = PREFIXES.get(at["provider"], at["provider"] + "/") + at["model"]
        kind = "responses" if at["dialect"] == "openai-responses" else "chat"
        url = at["url"] + ("" if plain else "/v1")
        lm = dspy.LM(name, model_type=kind, api_base=url, api_key="x", cache=False, num_retries=0)
        config = lm15.Config(max_tokens=20000, reasoning=lm15.Reasoning("medium", summary="auto"))
        self.history.append(Message.user(text))
        # Requests and responses, not messages=, which is deprecated (same page)
        while True:
            request = lm15.Request(lm.model, tuple(self.history), tools=(self.tool,), config=config)
            with dspy.context(lm=lm):
                response = self.streamed(request) if self.streams else Ask()(request).response
            self.history.append(response.message)
            yield self.told(response)
            calls = response.tool_calls
            if not calls:
                return
            self.history.append(Message.tool({call.id: self.result for call in calls}))

    def streamed(self, request):
        for one in dspy.streamify(Ask(), async_streaming=False)(request=request):
            if isinstance(one, dspy.Prediction):
                return one.response

    def told(self, response):
        thoughts = [part.text for part in response.message.parts_of(lm15.ThinkingPart)]
        text = "".join(part.text for part in response.message.parts_of(lm15.TextPart))
        counted, cut = response.usage.reasoning_tokens, response.finish_reason == "length"
        return answer(text, "\n\n".join(thoughts), reasoning_tokens=counted, incomplete=cut)

    def resume(self):
        self.history = list(messages_from_json(messages_to_json(self.history)))

    def keep(self, turns):
        self.history = last_turns(self.history, lambda one: one.role == "user", turns)


serve(Client)
