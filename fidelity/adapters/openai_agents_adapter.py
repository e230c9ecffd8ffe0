"""The OpenAI Agents SDK: the runner runs the tools, to_input_list() is passed on."""

import asyncio

import litellm
from agents.extensions.models.litellm_model import LitellmModel
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from agents.models.openai_responses import OpenAIResponsesModel
from openai import AsyncOpenAI
from openai.types.shared import Reasoning

from agents import Agent, ModelSettings, Runner, function_tool, set_tracing_disabled
from apis import read_response
from line import NotClaimed, Talk, serve

set_tracing_disabled(True)
# https://openai.github.io/openai-agents-python/models/
STATELESS = ModelSettings(
    store=False,
    response_include=["reasoning.encrypted_content"],
    reasoning=Reasoning(summary="auto"),
)
# Other APIs: https://openai.github.io/openai-agents-python/models/litellm/
litellm.drop_params = True  # models that its list does not have
NAMES = {"bedrock": "bedrock/converse"}
# The default replays to DeepSeek alone; the hook is how to replay to others.
REPLAY = {"should_replay_reasoning_content": lambda context: True}


@function_tool
def look(at: str) -> str:
    """Look at something."""
    return "nothing there"


class Client(Talk):
    def __init__(self, case):
        super().__init__(case)
        if case["kind"] == "tags":
            raise NotClaimed("returns the content as the server sent it")

    def ask(self, at, text):
        return asyncio.run(self.run(at, text))

    async def run(self, at, text):
        client = AsyncOpenAI(base_url=at["url"] + "/v1", api_key="x", max_retries=0)
        if at["dialect"] == "openai-responses":
            model = OpenAIResponsesModel(at["model"], openai_client=client)
            settings = STATELESS
        elif at["dialect"] != "openai-chat" or at["provider"] == "mistral":
            name = f"{NAMES.get(at['provider'], at['provider'])}/{at['model']}"
            url = at["url"] + ("/v1" if at["provider"] == "mistral" else "")
            model = LitellmModel(name, base_url=url, api_key="x")
            about = {"extra_args": {"max_retries": 0}, "max_tokens": 8000, "include_usage": True}
            settings = ModelSettings(reasoning=Reasoning(effort="medium"), **about)
        else:
            model = OpenAIChatCompletionsModel(at["model"], openai_client=client, **REPLAY)
            body = {"reasoning": {"effort": "medium"}} if at["provider"] == "openrouter" else None
            settings = ModelSettings(include_usage=True, extra_body=body)
        agent = Agent(name="a", model=model, model_settings=settings, tools=[look])
        given = [*self.history, {"role": "user", "content": text}]
        if self.streams:
            result = Runner.run_streamed(agent, given)
            async for _ in result.stream_events():
                pass
        else:
            result = await Runner.run(agent, given)
        self.history = result.to_input_list()
        return [report for _, report in map(read_response, result.raw_responses)]


serve(Client)
