"""pydantic-ai: an agent runs the tool loop, its message history is passed on."""

from anthropic import AsyncAnthropic
from mistralai.client import Mistral
from openai import AsyncOpenAI
from pydantic_ai import Agent, ModelMessagesTypeAdapter
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, UserPromptPart
from pydantic_ai.models import infer_model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers import infer_provider_class
from pydantic_ai.providers.openai import OpenAIProvider

from line import answer, last_turns, reasoning_field, serve

AWS = {"region_name": "us-east-1", "aws_access_key_id": "x", "aws_secret_access_key": "x"}
PREFIXES = dict.fromkeys(("vllm", "llama.cpp", "compatible"), "openai-chat")
PREFIXES |= {"gemini": "google", "kimi": "moonshotai"}
# https://ai.pydantic.dev/thinking/
BUDGET = {"type": "enabled", "budget_tokens": 2000}
ADAPTIVE = {"anthropic_thinking": {"type": "adaptive"}}
STATELESS = {"openai_store": False, "openai_include_encrypted_reasoning": True}
SETTINGS = {
    "anthropic": {"anthropic_thinking": BUDGET, "max_tokens": 8000},
    "openai": {"openai_reasoning_summary": "auto", **STATELESS},
    "gemini": {"google_thinking_config": {"include_thoughts": True}},
    "bedrock": {"bedrock_additional_model_requests_fields": {"thinking": BUDGET}},
    "openrouter": {"openrouter_reasoning": {"effort": "medium"}},
}
# Another field has to be named: https://ai.pydantic.dev/api/profiles/#pydantic_ai.profiles.openai
FOUND = ("reasoning", "reasoning_content")


def about(name, url):
    claude = AsyncAnthropic(base_url=url, api_key="x", max_retries=0)
    other = AsyncOpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)
    return {
        "anthropic": {"anthropic_client": claude},
        "gemini": {"api_key": "x", "base_url": url},
        "bedrock": {"base_url": url, **AWS},
        "mistral": {"mistral_client": Mistral(api_key="x", server_url=url)},
    }.get(name, {"openai_client": other})


def model_of(at, field):
    name, reach = at["model"], about(at["provider"], at["url"])
    if field not in FOUND:
        profile = OpenAIModelProfile(openai_chat_thinking_field=field)
        return OpenAIChatModel(name, provider=OpenAIProvider(**reach), profile=profile)
    prefix = PREFIXES.get(at["provider"], at["provider"])
    return infer_model(f"{prefix}:{name}", lambda kind: infer_provider_class(kind)(**reach))


async def drain(_, events):
    [_ async for _ in events]


class Client:
    def __init__(self, case):
        self.options = {"event_stream_handler": drain} if case["call"] == "streaming" else {}
        self.tool, self.history, self.field = case["tool"], [], reasoning_field(case)

    def look(self, at: str) -> str:
        """Look at something."""
        return self.tool["result"]

    def ask(self, at, text):
        settings = ADAPTIVE if "-5-5" in at["model"] else SETTINGS.get(at["provider"], {})
        agent = Agent(model_of(at, self.field), model_settings=settings, tools=[self.look])
        result = agent.run_sync(text, message_history=self.history, **self.options)
        self.history = result.all_messages()
        return [self.told(one) for one in result.new_messages() if isinstance(one, ModelResponse)]

    def told(self, message):
        text = "".join(part.content for part in message.parts if isinstance(part, TextPart))
        parts = [part for part in message.parts if isinstance(part, ThinkingPart)]
        raw = [(part.provider_details or {}).get("raw_content", ()) for part in parts]
        thoughts = [one.content or "".join(rest) for one, rest in zip(parts, raw, strict=True)]
        counted, cut = message.usage.output_reasoning_tokens, message.finish_reason == "length"
        return answer(text, "\n\n".join(thoughts), reasoning_tokens=counted, incomplete=cut)

    def resume(self):
        stored = ModelMessagesTypeAdapter.dump_json(self.history)
        self.history = ModelMessagesTypeAdapter.validate_json(stored)

    def keep(self, turns):
        asked = {id(one) for one in self.history if isinstance(one.parts[0], UserPromptPart)}
        self.history = last_turns(self.history, lambda one: id(one) in asked, turns)


serve(Client)
