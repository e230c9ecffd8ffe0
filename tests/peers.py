"""Other libraries as they are, without an adapter: `python tests/peers.py NAME URL...`."""

from __future__ import annotations

import asyncio
import json
import sys

from adapter_talk import price

MODEL = "kimi-k2-thinking"
PARAMETERS = {"type": "object", "properties": {"item": {"type": "string"}}}


def langchain_openai(url: str) -> None:
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model=MODEL, base_url=f"{url}/v1", api_key="k", max_retries=0)
    create_agent(model, [price]).invoke({"messages": [("user", "What?")]})


def openai_agents(url: str) -> None:
    from openai import AsyncOpenAI

    from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, function_tool

    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
    model = OpenAIChatCompletionsModel(MODEL, client)
    agent = Agent("clerk", model=model, tools=[function_tool(price)])
    asyncio.run(Runner.run(agent, "What?", run_config=RunConfig(tracing_disabled=True)))


def openai(url: str) -> None:
    from openai import OpenAI

    client = OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
    tool = {"type": "function", "function": {"name": "price", "parameters": PARAMETERS}}
    messages = [{"role": "user", "content": "What?"}]
    while True:
        said = client.chat.completions.create(model=MODEL, messages=messages, tools=[tool])
        answer = said.choices[0].message
        if not answer.tool_calls:
            return
        calls = [call.model_dump() for call in answer.tool_calls]
        messages.append({"role": "assistant", "content": answer.content, "tool_calls": calls})
        for call in answer.tool_calls:
            result = price(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def llm(url: str) -> None:
    import llm

    models = llm.user_dir() / "extra-openai-models.yaml"
    models.write_text(
        f"- model_id: kimi\n  model_name: {MODEL}\n  api_base: {url}/v1\n  supports_tools: true\n"
    )
    llm.get_model("kimi").chain("What?", tools=[price], key="k").text()


def pydantic_ai(one: str, other: str) -> None:
    """A conversation that begins at one provider and goes on at another."""
    from pydantic_ai import Agent
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.anthropic import AnthropicProvider
    from pydantic_ai.providers.openai import OpenAIProvider

    first = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=f"{one}/v1", api_key="k"))
    history = Agent(first, tools=[price]).run_sync("What?").all_messages()
    anthropic = AnthropicProvider(base_url=other, api_key="k")
    second = AnthropicModel("claude-sonnet-5", provider=anthropic)
    Agent(second, tools=[price]).run_sync("More?", message_history=history)


if __name__ == "__main__":
    globals()[sys.argv[1].replace("-", "_")](*sys.argv[2:])
