"""Libraries that others wrote, each in a tool conversation with a strict server.

    PYTHONPATH=src python tests/strict_clients.py [NAME ...]

Prints a line of JSON for each: what was refused and doubted, how much went out and came back. It
runs in an environment of its own, where these libraries are; the judge
of the same name makes it.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

from mull.testing import Call, Say, StrictServer, Think

TURN = [
    [Think("I have to look."), Call("look", {"at": "door"})],
    [Think("Twice."), Call("look", {"at": "a"}), Call("look", {"at": "b"})],
    [Think("Enough."), Say("It is a door.")],
]
PARAMETERS = {"type": "object", "properties": {"at": {"type": "string"}}}
BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 4000}
Talk = Callable[[str], object]


def tool_runner(url: str) -> object:
    """The Anthropic SDK's own loop, which keeps its history in a message thread."""
    import anthropic

    @anthropic.beta_tool
    def look(at: str = "") -> str:
        """Look there."""
        return "r"

    client = anthropic.Anthropic(api_key="x", base_url=url, max_retries=0)
    asked: Any = {"messages": [{"role": "user", "content": "go"}], "tools": [look], **BUDGET}
    client.beta.messages.tool_runner(model="claude-sonnet-4-5", **asked).until_done()
    return client.models.list().data


def responses(**options: Any) -> Talk:
    """The OpenAI SDK with `previous_response_id`, which needs what is stored."""

    def talk(url: str) -> None:
        import openai

        client = openai.OpenAI(api_key="x", base_url=url, max_retries=0)
        tool = {"type": "function", "name": "look", "parameters": PARAMETERS, "strict": False}
        asked: Any = {"model": "gpt-5", "tools": [tool], **options}
        for question in ("go", "again"):
            given: Any = question
            while given:
                answer = client.responses.create(input=given, **asked)
                asked["previous_response_id"] = answer.id
                given = [
                    {"type": "function_call_output", "call_id": item.call_id, "output": "r"}
                    for item in answer.output
                    if item.type == "function_call"
                ]
        assert client.responses.retrieve(answer.id).output_text == "It is a door."
        client.responses.delete(answer.id)

    return talk


def items(url: str) -> None:
    """The OpenAI SDK with its items given back as they came, stored by default."""
    import openai

    client = openai.OpenAI(api_key="x", base_url=url, max_retries=0)
    tool: Any = {"type": "function", "name": "look", "parameters": PARAMETERS, "strict": False}
    history: list[Any] = [{"role": "user", "content": "go"}]
    while history[-1].get("type") != "done":
        answer = client.responses.create(model="gpt-5", input=history, tools=[tool])
        history += answer.output
        results = [
            {"type": "function_call_output", "call_id": item.call_id, "output": "r"}
            for item in answer.output
            if item.type == "function_call"
        ]
        history += results or [{"type": "done"}]


def litellm(model: str, *, stream: bool = False, **more: Any) -> Talk:
    def talk(url: str) -> None:
        import litellm

        tool = {"type": "function", "function": {"name": "look", "parameters": PARAMETERS}}
        history: list[Any] = []
        for question in ("go", "again"):
            history.append({"role": "user", "content": question})
            while history[-1]["role"] != "assistant":
                asked: Any = {"messages": history, "tools": [tool], "stream": stream, **more}
                answer = litellm.completion(model=model, api_base=url, api_key="x", **asked)
                if stream:
                    answer = litellm.stream_chunk_builder(list(answer), messages=history)
                message = answer.choices[0].message
                history.append(message)
                history += [
                    {"role": "tool", "tool_call_id": call.id, "content": "r"}
                    for call in message.tool_calls or ()
                ]

    return talk


def pydantic(make: Callable[[str], tuple[Any, Any]]) -> Talk:
    def talk(url: str) -> None:
        from pydantic_ai import Agent

        model, settings = make(url)
        agent = Agent(model, model_settings=settings)

        @agent.tool_plain
        def look(at: str = "") -> str:
            """Look there."""
            return "r"

        history = agent.run_sync("go").all_messages()
        agent.run_sync("again", message_history=history)

    return talk


def pydantic_openrouter(url: str) -> tuple[Any, Any]:
    import openai
    from pydantic_ai.models.openrouter import OpenRouterModel
    from pydantic_ai.providers.openrouter import OpenRouterProvider

    client = openai.AsyncOpenAI(base_url=url, api_key="x")
    model = OpenRouterModel(
        "anthropic/claude-sonnet-4.5", provider=OpenRouterProvider(openai_client=client)
    )
    return model, {"openrouter_reasoning": {"effort": "high"}}


def pydantic_openai(url: str) -> tuple[Any, Any]:
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIResponsesModel("gpt-5", provider=OpenAIProvider(api_key="x", base_url=url)), {}


def pydantic_gemini(url: str) -> tuple[Any, Any]:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    provider = GoogleProvider(api_key="x", base_url=url)
    thinking = {"google_thinking_config": {"include_thoughts": True}}
    return GoogleModel("gemini-3-pro-preview", provider=provider), thinking


def langchain(make: Callable[[str], Any]) -> Talk:
    def talk(url: str) -> None:
        from langchain_core.messages import HumanMessage, ToolMessage
        from langchain_core.tools import tool

        @tool
        def look(at: str = "") -> str:
            """Look there."""
            return "r"

        model = make(url).bind_tools([look])
        history: list[Any] = []
        for question in ("go", "again"):
            history.append(HumanMessage(question))
            while history[-1].type != "ai":
                answer = model.invoke(history)
                results = (ToolMessage("r", tool_call_id=call["id"]) for call in answer.tool_calls)
                history += [answer, *results]

    return talk


def langchain_openai(**options: Any) -> Callable[[str], Any]:
    def make(url: str) -> Any:
        from langchain_openai import ChatOpenAI

        about: Any = {"base_url": url, "api_key": "x", "max_retries": 0, **options}
        return ChatOpenAI(model="gpt-5", use_responses_api=True, **about)

    return make


def langchain_anthropic(url: str) -> Any:
    from langchain_anthropic import ChatAnthropic

    about: Any = {"base_url": url, "api_key": "x", "max_retries": 0, **BUDGET}
    return ChatAnthropic(model="claude-sonnet-4-5", **about)


def langchain_gemini(url: str) -> Any:
    from langchain_google_genai import ChatGoogleGenerativeAI

    about: Any = {"base_url": url, "google_api_key": "x", "max_retries": 1}
    return ChatGoogleGenerativeAI(model="gemini-3-pro-preview", include_thoughts=True, **about)


ENCRYPTED = {"store": False, "include": ["reasoning.encrypted_content"]}
CLAUDE = "anthropic/claude-sonnet-4-5"
CASES: dict[str, tuple[str, Talk]] = {
    "anthropic tool_runner": ("anthropic", tool_runner),
    "openai previous_response_id": ("openai", responses()),
    "openai items": ("openai", items),
    "litellm anthropic": ("anthropic", litellm(CLAUDE, **BUDGET)),
    "litellm anthropic stream": ("anthropic", litellm(CLAUDE, stream=True, **BUDGET)),
    "litellm gemini": ("gemini", litellm("gemini/gemini-3-pro-preview")),
    "litellm openai": ("openai", litellm("openai/responses/gpt-5", reasoning_effort="high")),
    "litellm openrouter": (
        "openrouter",
        litellm("openrouter/anthropic/claude-sonnet-4.5", reasoning_effort="high"),
    ),
    "pydantic-ai gemini": ("gemini", pydantic(pydantic_gemini)),
    "pydantic-ai openai": ("openai", pydantic(pydantic_openai)),
    "pydantic-ai openrouter": ("openrouter", pydantic(pydantic_openrouter)),
    "langchain anthropic": ("anthropic", langchain(langchain_anthropic)),
    "langchain gemini": ("gemini", langchain(langchain_gemini)),
    "langchain openai": ("openai", langchain(langchain_openai())),
    "langchain openai, not stored": ("openai", langchain(langchain_openai(**ENCRYPTED))),
    "langchain openai, previous": (
        "openai",
        langchain(langchain_openai(use_previous_response_id=True)),
    ),
}


def main() -> None:
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or CASES:
        provider, talk = CASES[name]
        error = None
        with StrictServer(provider, TURN * 2) as server:
            try:
                talk(server.url)
            except Exception as raised:
                error = repr(raised)[:500]
        told = {
            "name": name,
            "error": error,
            "refused": [[refused.reason, refused.certain] for refused in server.refusals],
            "doubts": [doubt.reason for doubt in server.doubts],
            "answered": server.answered,
            "issued": len(server.issued),
            "returned": [len(returned) for returned in server.returned],
        }
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
