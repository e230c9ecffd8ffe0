"""What each library does, in a process of its own: `library_runner.py NAME TASK URL`.

It needs nothing but the library that it is about. The last line that it prints is JSON: CPU and
clock seconds, and the peak of its memory in MB.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from importlib import metadata

REQUESTS = 1000
ROUNDS = 50
QUESTION = [{"role": "user", "content": "What is twice 2?"}]
CITY = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "people": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name", "people", "tags"],
    "additionalProperties": False,
}
DOUBLE = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
}


def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


class Mull:
    """mull itself."""

    package = "mull-reasoning"

    def __init__(self, url: str) -> None:
        import mull

        self._mull = mull
        self._given = {"base_url": url, "key": "k", "dialect": "openai-chat"}
        self._model = "openai/gpt-4o"

    async def ask(self) -> str:
        result = await self._mull.complete_async("What is twice 2?", self._model, **self._given)
        return result.text

    async def use_tool(self) -> str:
        talk = self._mull.Conversation(self._model, tools=[double], **self._given)
        return (await talk.ask_async("What is twice 2?")).text

    async def structured(self) -> object:
        import msgspec

        class City(msgspec.Struct):
            name: str
            people: int
            tags: list[str]

        self.City = getattr(self, "City", City)
        talk = self._mull.complete_async("A city.", self._model, schema=self.City, **self._given)
        return (await talk).value.people


def _pydantic_city() -> type:
    from pydantic import BaseModel

    class City(BaseModel):
        name: str
        people: int
        tags: list[str]

    return City


class OpenAI:
    """The openai SDK, with a loop of one's own for tools."""

    package = "openai"

    def __init__(self, url: str) -> None:
        from openai import AsyncOpenAI

        self._client = AsyncOpenAI(base_url=url, api_key="k", timeout=120, max_retries=0)
        self._make = self._client.chat.completions.create

    async def ask(self) -> str:
        response = await self._make(model="gpt-4o", messages=QUESTION)
        return response.choices[0].message.content

    async def use_tool(self) -> str:
        function = {"name": "double", "description": double.__doc__, "parameters": DOUBLE}
        tools, messages = [{"type": "function", "function": function}], [*QUESTION]
        while True:
            response = await self._make(model="gpt-4o", messages=messages, tools=tools)
            message = response.choices[0].message
            if not message.tool_calls:
                return message.content
            messages.append(message)
            for call in message.tool_calls:
                value = str(double(**json.loads(call.function.arguments)))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": value})

    async def structured(self) -> object:
        self.City = getattr(self, "City", None) or _pydantic_city()
        parse = self._client.chat.completions.parse
        response = await parse(model="gpt-4o", messages=QUESTION, response_format=self.City)
        return response.choices[0].message.parsed.people


class Anthropic:
    """The anthropic SDK, likewise."""

    package = "anthropic"

    def __init__(self, url: str) -> None:
        from anthropic import AsyncAnthropic

        base = url.removesuffix("/v1")
        self._client = AsyncAnthropic(base_url=base, api_key="k", timeout=120, max_retries=0)
        self._given = {"model": "claude-haiku-4-5", "max_tokens": 1000}

    async def ask(self) -> str:
        message = await self._client.messages.create(messages=QUESTION, **self._given)
        return message.content[0].text

    async def use_tool(self) -> str:
        tool = {"name": "double", "description": double.__doc__, "input_schema": DOUBLE}
        messages = [*QUESTION]
        while True:
            answer = await self._client.messages.create(
                messages=messages, tools=[tool], **self._given
            )
            calls = [block for block in answer.content if block.type == "tool_use"]
            if not calls:
                return answer.content[0].text
            messages.append({"role": "assistant", "content": answer.content})
            results = [
                {"type": "tool_result", "tool_use_id": one.id, "content": str(double(**one.input))}
                for one in calls
            ]
            messages.append({"role": "user", "content": results})

    async def structured(self) -> object:
        self.City = getattr(self, "City", None) or _pydantic_city()
        parse = self._client.messages.parse
        answer = await parse(messages=QUESTION, output_format=self.City, **self._given)
        return answer.parsed_output.people


class LiteLLM:
    """litellm, likewise."""

    package = "litellm"

    def __init__(self, url: str) -> None:
        import litellm

        self._make = litellm.acompletion
        self._given = {"model": "openai/gpt-4o", "api_base": url, "api_key": "k"}

    async def ask(self) -> str:
        response = await self._make(messages=QUESTION, **self._given)
        return response.choices[0].message.content

    async def use_tool(self) -> str:
        function = {"name": "double", "description": double.__doc__, "parameters": DOUBLE}
        tools, messages = [{"type": "function", "function": function}], [*QUESTION]
        while True:
            response = await self._make(messages=messages, tools=tools, **self._given)
            message = response.choices[0].message
            if not message.tool_calls:
                return message.content
            messages.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls:
                value = str(double(**json.loads(call.function.arguments)))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": value})

    async def structured(self) -> object:
        self.City = getattr(self, "City", None) or _pydantic_city()
        response = await self._make(messages=QUESTION, response_format=self.City, **self._given)
        return self.City.model_validate_json(response.choices[0].message.content).people


class PydanticAI:
    """pydantic-ai."""

    package = "pydantic-ai-slim"

    def __init__(self, url: str) -> None:
        from pydantic_ai import Agent, NativeOutput
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        model = OpenAIChatModel("gpt-4o", provider=OpenAIProvider(base_url=url, api_key="k"))
        self._plain = Agent(model)
        self._tool = Agent(model, tools=[double])
        self._typed = Agent(model, output_type=NativeOutput(_pydantic_city()))

    async def ask(self) -> str:
        return (await self._plain.run("What is twice 2?")).output

    async def use_tool(self) -> str:
        return (await self._tool.run("What is twice 2?")).output

    async def structured(self) -> object:
        return (await self._typed.run("A city.")).output.people


LIBRARIES = {
    "mull": Mull,
    "openai": OpenAI,
    "anthropic": Anthropic,
    "litellm": LiteLLM,
    "pydantic-ai": PydanticAI,
}


async def _work(library: object, task: str) -> None:
    if task == "first":
        assert await library.ask() == "Four."
    elif task == "concurrent":
        answers = await asyncio.gather(*(library.ask() for _ in range(REQUESTS)))
        assert answers == ["Four."] * REQUESTS
    else:
        do = library.use_tool if task == "tool" else library.structured
        for _ in range(ROUNDS):
            assert await do() in ("Four.", 134000)


async def _warm(library: object, task: str) -> None:
    await library.ask()
    if task == "tool":
        await library.use_tool()
    if task == "structured":
        await library.structured()


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def _measured(kind: type, task: str, url: str) -> dict[str, float]:
    """A first request includes everything since the process began; the others are warm."""
    since = 0.0, time.perf_counter()
    library = kind(url)
    if task != "first":
        await _warm(library, task)
        since = _cpu(), time.perf_counter()
    await _work(library, task)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"cpu": _cpu() - since[0], "wall": time.perf_counter() - since[1], "peak": peak}


if __name__ == "__main__":
    name, task, url = sys.argv[1:]
    kind = LIBRARIES[name]
    found = asyncio.run(_measured(kind, task, url))
    print(json.dumps({"version": metadata.version(kind.package), **found}))
