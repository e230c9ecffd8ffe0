"""The OpenAI Agents SDK: the runner runs the tools, to_input_list() is passed on."""

import asyncio
import json

from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from agents.models.openai_responses import OpenAIResponsesModel
from openai import AsyncOpenAI
from openai.types.shared import Reasoning

from agents import Agent, ModelSettings, Runner, function_tool, set_tracing_disabled
from line import NotClaimed, answer, last_turns, serve

set_tracing_disabled(True)
STATELESS = ModelSettings(
    store=False,
    response_include=["reasoning.encrypted_content"],
    reasoning=Reasoning(summary="auto"),
)


@function_tool
def look(at: str) -> str:
    """Look at something."""
    return "nothing there"


class Client:
    def __init__(self, case):
        apis = {at["dialect"] for at in case["endpoints"].values()}
        if not apis <= {"openai-chat", "openai-responses"}:
            raise NotClaimed("speaks the APIs of OpenAI; others go through litellm")
        if case["kind"] == "tags":
            raise NotClaimed("returns the content as the server sent it")
        self.streams, self.history = case["call"] == "streaming", []

    def ask(self, at, text):
        return asyncio.run(self.run(at, text))

    async def run(self, at, text):
        client = AsyncOpenAI(base_url=at["url"] + "/v1", api_key="x", max_retries=0)
        if at["dialect"] == "openai-responses":
            model = OpenAIResponsesModel(at["model"], openai_client=client)
            settings = STATELESS
        else:
            replay = {"should_replay_reasoning_content": lambda context: True}
            model = OpenAIChatCompletionsModel(at["model"], openai_client=client, **replay)
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
        return [self.told(response) for response in result.raw_responses]

    def told(self, response):
        items = [item for item in response.output if item.type == "reasoning"]
        texts = [part.text for item in items for part in (item.content or item.summary)]
        said = [item for item in response.output if item.type == "message"]
        text = "".join(getattr(part, "text", "") for item in said for part in item.content)
        counted = response.usage.output_tokens_details.reasoning_tokens
        return answer(text, "\n\n".join(texts), reasoning_tokens=counted)

    def resume(self):
        self.history = json.loads(json.dumps(self.history))

    def keep(self, turns):
        self.history = last_turns(self.history, lambda one: one.get("role") == "user", turns)


serve(Client)
