"""pydantic-ai: an agent runs the tool loop, its message history is passed on."""

import os

from openai import AsyncOpenAI
from pydantic_ai import Agent, ModelMessagesTypeAdapter
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, UserPromptPart

from line import answer, last_turns, serve

os.environ |= {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1"}
BUDGET = {"type": "enabled", "budget_tokens": 2000}


def model_of(at):
    """The model class that pydantic-ai recommends for a provider, and its settings."""
    name, url = at["model"], at["url"]
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)
    match at["provider"]:
        case "anthropic":
            from anthropic import AsyncAnthropic
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            reach = AsyncAnthropic(base_url=url, api_key="x", max_retries=0)
            model = AnthropicModel(name, provider=AnthropicProvider(anthropic_client=reach))
            adaptive = {"anthropic_thinking": {"type": "adaptive"}}
            budget = {"anthropic_thinking": BUDGET, "max_tokens": 8000}
            return model, adaptive if "-5-5" in name else budget
        case "openai":
            from pydantic_ai.models.openai import OpenAIResponsesModel
            from pydantic_ai.providers.openai import OpenAIProvider

            settings = {"openai_reasoning_summary": "auto", "openai_store": False}
            settings["openai_include_encrypted_reasoning"] = True
            return OpenAIResponsesModel(
                name, provider=OpenAIProvider(openai_client=client)
            ), settings
        case "gemini":
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            provider = GoogleProvider(api_key="x", base_url=url)
            thinking = {"google_thinking_config": {"include_thoughts": True}}
            return GoogleModel(name, provider=provider), thinking
        case "bedrock":
            from pydantic_ai.models.bedrock import BedrockConverseModel
            from pydantic_ai.providers.bedrock import BedrockProvider

            provider = BedrockProvider(base_url=url, region_name="us-east-1")
            fields = {"bedrock_additional_model_requests_fields": {"thinking": BUDGET}}
            return BedrockConverseModel(name, provider=provider), {**fields, "max_tokens": 8000}
        case "openrouter":
            from pydantic_ai.models.openrouter import OpenRouterModel
            from pydantic_ai.providers.openrouter import OpenRouterProvider

            model = OpenRouterModel(name, provider=OpenRouterProvider(openai_client=client))
            return model, {"openrouter_reasoning": {"effort": "medium"}}
        case "mistral":
            from mistralai.client import Mistral
            from pydantic_ai.models.mistral import MistralModel
            from pydantic_ai.providers.mistral import MistralProvider

            reach = Mistral(api_key="x", server_url=url)
            return MistralModel(name, provider=MistralProvider(mistral_client=reach)), {}
    return compatible(at, name, client), {}


def compatible(at, name, client):
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.deepseek import DeepSeekProvider
    from pydantic_ai.providers.moonshotai import MoonshotAIProvider
    from pydantic_ai.providers.openai import OpenAIProvider

    kinds = {"deepseek": DeepSeekProvider, "kimi": MoonshotAIProvider}
    provider = kinds.get(at["provider"], OpenAIProvider)(openai_client=client)
    return OpenAIChatModel(name, provider=provider)


async def drain(_, events):
    async for _event in events:
        pass


class Client:
    def __init__(self, case):
        self.streams, self.history = case["call"] == "streaming", []
        self.tool = case["tool"]

    def ask(self, at, text):
        model, settings = model_of(at)
        agent = Agent(model, model_settings=settings)

        @agent.tool_plain
        def look(at: str) -> str:
            """Look at something."""
            return self.tool["result"]

        options = {"event_stream_handler": drain} if self.streams else {}
        result = agent.run_sync(text, message_history=self.history, **options)
        self.history = result.all_messages()
        for message in result.new_messages():
            if isinstance(message, ModelResponse):
                yield self.told(message)

    def told(self, message):
        text = "".join(part.content for part in message.parts if isinstance(part, TextPart))
        thoughts = [part.content for part in message.parts if isinstance(part, ThinkingPart)]
        counted = message.usage.output_reasoning_tokens
        cut = message.finish_reason == "length"
        return answer(text, "\n\n".join(thoughts), reasoning_tokens=counted, incomplete=cut)

    def resume(self):
        stored = ModelMessagesTypeAdapter.dump_json(self.history)
        self.history = ModelMessagesTypeAdapter.validate_json(stored)

    def keep(self, turns):
        def is_question(one):
            return any(isinstance(part, UserPromptPart) for part in one.parts)

        self.history = last_turns(self.history, is_question, turns)


serve(Client)
