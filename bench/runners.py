"""A client of the road's measurement, in a process of its own: `python runners.py NAME`.

It prints its version. Then, for every line `DIALECT URL WAY` on standard input, it asks once, reads
the whole answer, and prints the CPU seconds that took and how many pieces it handed over; a line
that it cannot serve gets the reason. WAY is `sync` or `async`; `document` asks for a long answer in
one piece, and `sentence` for a short one, several times. It runs in whatever environment has the
library, so it imports nothing of the bench except for the limit's sake; each client hands over
everything that it makes of an answer.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

REQUESTS = 20
"""How many are measured together where an answer is one sentence."""
QUESTION = [{"role": "user", "content": "q"}]
AWS = {
    "AWS_ACCESS_KEY_ID": "k",
    "AWS_SECRET_ACCESS_KEY": "k",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
Ask = Callable[[], Any]
Make = Callable[[str], Ask]
_loop = asyncio.new_event_loop()


def blocking(ask: Callable[[], Any]) -> Ask:
    """A blocking step out of an asynchronous one, on one event loop for all of them."""
    return lambda: _loop.run_until_complete(ask())


def counted(make: Callable[[str], Callable[[], Iterable[Any]]]) -> Make:
    """The pieces of a blocking stream, counted."""

    def made(url: str) -> Ask:
        ask = make(url)
        return lambda: sum(1 for _ in ask())

    return made


def counted_async(make: Callable[[str], Callable[[], Any]]) -> Make:
    """The pieces of an asynchronous stream, counted; it may have to be awaited first."""

    def made(url: str) -> Ask:
        ask = make(url)

        async def read() -> int:
            stream = ask()
            if not hasattr(stream, "__aiter__"):
                stream = await stream
            count = 0
            async for _ in stream:
                count += 1
            return count

        return blocking(read)

    return made


def _request(url: str) -> tuple[tuple[str, int], bytes]:
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    head = f"POST {parts.path}/x HTTP/1.1\r\nhost: {parts.netloc}\r\ncontent-length: 0\r\n\r\n"
    return (parts.hostname or "", parts.port or 80), head.encode()


def _limits() -> Any:
    sys.path.append(str(Path(__file__).parent.parent))
    from bench import limits

    return limits


def limit(dialect: str) -> Make:
    """A blocking socket, and the limit of reading."""

    def made(url: str) -> Ask:
        import socket

        limits, (place, request) = _limits(), _request(url)
        link = socket.create_connection(place)

        def read() -> int:
            answer = limits.Answer(dialect)
            link.sendall(request)
            while not answer.done:
                answer.feed(link.recv(limits.READ))
            return int(answer.count)

        return read

    return made


class Reading(asyncio.Protocol):
    """Reads an answer where the event loop hands its bytes over: nobody waits in between."""

    def __init__(self) -> None:
        self.answer: Any
        self.whole: asyncio.Future[None]

    def data_received(self, data: bytes) -> None:
        """asyncio: bytes came."""
        self.answer.feed(data)
        if self.answer.done:
            self.whole.set_result(None)


def limit_async(dialect: str) -> Make:
    """The same on an event loop."""

    def made(url: str) -> Ask:
        limits, (place, request) = _limits(), _request(url)
        transport, reading = _loop.run_until_complete(_loop.create_connection(Reading, *place))

        async def read() -> int:
            reading.answer, reading.whole = limits.Answer(dialect), _loop.create_future()
            transport.write(request)
            await reading.whole
            return int(reading.answer.count)

        return blocking(read)

    return made


def limit_document(dialect: str) -> Make:
    """A blocking socket, and one value decoded from what it brings."""

    def made(url: str) -> Ask:
        import socket

        limits, (place, request) = _limits(), _request(url)
        link = socket.create_connection(place)

        def read() -> int:
            link.sendall(request)
            return int(limits.document(dialect, link))

        return read

    return made


def _mull(dialect: str, url: str) -> dict[str, Any]:
    from mull import Engine

    return {"base_url": url, "dialect": dialect, "engine": Engine(isolated=True)}


def mull(dialect: str) -> Make:
    """`mull.stream`: events, the folded message, the turn; its thread included."""

    def made(url: str) -> Ask:
        from mull import stream

        given = _mull(dialect, url)

        def read() -> int:
            going = stream("q", "openai-compatible/m", **given)
            count = sum(1 for _ in going)
            return count if going.result.message.tool_calls else 0

        return read

    return made


def mull_async(dialect: str) -> Make:
    """`mull.stream_async`: the same on the caller's event loop."""

    def made(url: str) -> Ask:
        from mull import stream_async

        given = _mull(dialect, url)

        async def read() -> int:
            count = 0
            going = stream_async("q", "openai-compatible/m", **given)
            async for _ in going:
                count += 1
            return count if going.result.message.tool_calls else 0

        return blocking(read)

    return made


def mull_document(dialect: str) -> Make:
    """`mull.complete`, whose endpoint answers in one piece."""

    def made(url: str) -> Ask:
        from mull import complete

        given = _mull(dialect, url)
        return lambda: len(complete("q", "openai-compatible/m", **given).text)

    return made


def _openai(url: str) -> Any:
    from openai import OpenAI

    return OpenAI(api_key="k", base_url=url, max_retries=0)


def _openai_async(url: str) -> Any:
    from openai import AsyncOpenAI

    return AsyncOpenAI(api_key="k", base_url=url, max_retries=0)


def openai_chat(client: Any) -> Callable[[], Any]:
    """The SDK's chunks."""
    make = client.chat.completions.create
    return lambda: make(model="m", messages=QUESTION, stream=True)


def openai_responses(client: Any) -> Callable[[], Any]:
    """The SDK's events."""
    make = client.responses.create
    return lambda: make(model="m", input="q", stream=True)


def openai_document(url: str) -> Ask:
    """The SDK's completion."""
    make = _openai(url).chat.completions.create
    return lambda: len(make(model="m", messages=QUESTION).choices[0].message.content)


def _anthropic(url: str) -> Any:
    from anthropic import Anthropic

    return Anthropic(api_key="k", base_url=url, max_retries=0)


def _anthropic_async(url: str) -> Any:
    from anthropic import AsyncAnthropic

    return AsyncAnthropic(api_key="k", base_url=url, max_retries=0)


def anthropic(client: Any) -> Callable[[], Any]:
    """The SDK's events, without its snapshots."""
    make = client.messages.create
    return lambda: make(model="m", max_tokens=9, messages=QUESTION, stream=True)


def anthropic_document(url: str) -> Ask:
    """The SDK's message."""
    make = _anthropic(url).messages.create
    return lambda: len(make(model="m", max_tokens=9, messages=QUESTION).content[-1].text)


def _genai(url: str) -> Any:
    from google import genai

    return genai.Client(api_key="k", http_options=genai.types.HttpOptions(base_url=url))


def genai(url: str) -> Callable[[], Any]:
    """The SDK's chunks."""
    client = _genai(url)  # it closes when nobody has it
    return lambda: client.models.generate_content_stream(model="m", contents="q")


def genai_async(url: str) -> Callable[[], Any]:
    """The same, asynchronous."""
    client = _genai(url)
    return lambda: client.aio.models.generate_content_stream(model="m", contents="q")


def genai_document(url: str) -> Ask:
    """The SDK's response."""
    client = _genai(url)
    return lambda: len(client.models.generate_content(model="m", contents="q").text)


def boto3(url: str) -> Callable[[], Any]:
    """Amazon's SDK: what it makes of its event stream."""
    os.environ |= AWS
    from boto3 import client

    make = client("bedrock-runtime", endpoint_url=url).converse_stream
    asked = [{"role": "user", "content": [{"text": "q"}]}]
    return lambda: make(modelId="m", messages=asked)["stream"]


def _litellm(provider: str, name: str) -> Callable[[str], Callable[[], Any]]:
    def made(url: str) -> Callable[[], Any]:
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it is fetched
        import litellm

        litellm.telemetry = False
        call = {"model": f"{provider}/m", "api_base": url, "api_key": "k", "stream": True}
        return lambda: getattr(litellm, name)(messages=QUESTION, **call)

    return made


def _pydantic_model(dialect: str, url: str) -> Any:
    if dialect == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        return AnthropicModel(
            "m", provider=AnthropicProvider(anthropic_client=_anthropic_async(url))
        )
    if dialect == "gemini":
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        return GoogleModel("m", provider=GoogleProvider(client=_genai(url)))
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    kind = OpenAIChatModel if dialect == "openai-chat" else OpenAIResponsesModel
    return kind("m", provider=OpenAIProvider(openai_client=_openai_async(url)))


def pydantic_ai(dialect: str) -> Make:
    """pydantic-ai's events, without an agent around them."""

    def made(url: str) -> Ask:
        from pydantic_ai import ModelRequest
        from pydantic_ai.direct import model_request_stream

        model = _pydantic_model(dialect, url)

        async def read() -> int:
            asked = [ModelRequest.user_text_prompt("q")]
            async with model_request_stream(model, asked) as stream:
                return len([None async for _ in stream])

        return blocking(read)

    return made


def langchain(dialect: str, name: str) -> Callable[[str], Callable[[], Any]]:
    """langchain's message chunks."""

    def made(url: str) -> Callable[[], Any]:
        if dialect == "anthropic":
            from langchain_anthropic import ChatAnthropic

            model: Any = ChatAnthropic(model="m", base_url=url, api_key="k", max_tokens=9)
        elif dialect == "gemini":
            from langchain_google_genai import ChatGoogleGenerativeAI

            model = ChatGoogleGenerativeAI(model="m", base_url=url, google_api_key="k")
        else:
            from langchain_openai import ChatOpenAI

            responses = dialect == "openai-responses"
            model = ChatOpenAI(model="m", base_url=url, api_key="k", use_responses_api=responses)
        return lambda: getattr(model, name)("q")

    return made


def any_llm(provider: str, name: str) -> Callable[[str], Callable[[], Any]]:
    """any-llm's chunks."""

    def made(url: str) -> Callable[[], Any]:
        import any_llm as library

        call = {"model": "m", "provider": provider, "api_base": url, "api_key": "k"}
        return lambda: getattr(library, name)(messages=QUESTION, stream=True, **call)

    return made


def often(make: Make) -> Make:
    """So many requests in a row: one of them alone is too short to measure."""

    def made(url: str) -> Ask:
        ask = make(url)
        return lambda: min(ask() for _ in range(REQUESTS))

    return made


class Client(NamedTuple):
    """What measures one library: the peer whose environment has it, its package, and what it does
    by dialect and way."""

    peer: str
    package: str
    ways: dict[tuple[str, str], Make]


DIALECTS = ("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock-converse")
_PROVIDERS = {"openai-chat": "openai", "anthropic": "anthropic", "gemini": "gemini"}
"""What any-llm and litellm call whoever speaks these."""
_ROWS: list[tuple[str, str, str, Make]] = [
    *(("limit", one, "sync", limit(one)) for one in DIALECTS),
    *(("limit", one, "async", limit_async(one)) for one in DIALECTS),
    *(("limit", one, "document", limit_document(one)) for one in DIALECTS),
    *(("limit", one, "sentence", often(limit_document(one))) for one in DIALECTS),
    *(("mull", one, "sync", mull(one)) for one in DIALECTS),
    *(("mull", one, "async", mull_async(one)) for one in DIALECTS),
    *(("mull", one, "document", mull_document(one)) for one in DIALECTS),
    *(("mull", one, "sentence", often(mull_document(one))) for one in DIALECTS),
    ("openai", "openai-chat", "sync", counted(lambda url: openai_chat(_openai(url)))),
    ("openai", "openai-chat", "async", counted_async(lambda url: openai_chat(_openai_async(url)))),
    ("openai", "openai-chat", "document", openai_document),
    ("openai", "openai-chat", "sentence", often(openai_document)),
    ("openai", "openai-responses", "sync", counted(lambda url: openai_responses(_openai(url)))),
    (
        "openai",
        "openai-responses",
        "async",
        counted_async(lambda url: openai_responses(_openai_async(url))),
    ),
    ("anthropic", "anthropic", "sync", counted(lambda url: anthropic(_anthropic(url)))),
    (
        "anthropic",
        "anthropic",
        "async",
        counted_async(lambda url: anthropic(_anthropic_async(url))),
    ),
    ("anthropic", "anthropic", "document", anthropic_document),
    ("anthropic", "anthropic", "sentence", often(anthropic_document)),
    ("google-genai", "gemini", "sync", counted(genai)),
    ("google-genai", "gemini", "async", counted_async(genai_async)),
    ("google-genai", "gemini", "document", genai_document),
    ("google-genai", "gemini", "sentence", often(genai_document)),
    ("boto3", "bedrock-converse", "sync", counted(boto3)),
    *(("pydantic-ai", one, "async", pydantic_ai(one)) for one in DIALECTS[:4]),
    *(("langchain", one, "sync", counted(langchain(one, "stream"))) for one in DIALECTS[:4]),
    *(
        ("langchain", one, "async", counted_async(langchain(one, "astream")))
        for one in DIALECTS[:4]
    ),
    *(
        (name, dialect, way, count(make(provider, call)))
        for name, make in (("any-llm", any_llm), ("litellm", _litellm))
        for dialect, provider in _PROVIDERS.items()
        for way, call, count in (
            ("sync", "completion", counted),
            ("async", "acompletion", counted_async),
        )
    ),
]
_PACKAGES = {
    "limit": ("mull", ""),
    "mull": ("mull", ""),
    "boto3": ("langchain", "boto3"),
    "pydantic-ai": ("pydantic-ai", "pydantic-ai-slim"),
    "langchain": ("langchain", "langchain-core"),
    "any-llm": ("any-llm", "any-llm-sdk"),
}
CLIENTS: dict[str, Client] = {}
for _name, _dialect, _way, _make in _ROWS:
    _fresh = Client(*_PACKAGES.get(_name, (_name, _name)), {})
    CLIENTS.setdefault(_name, _fresh).ways[_dialect, _way] = _make


def main(name: str) -> None:
    """Serve what comes in."""
    client, asks = CLIENTS[name], dict[str, Ask]()
    told, sys.stdout = sys.stdout, sys.stderr  # some libraries print
    version = importlib.metadata.version(client.package) if client.package else ""
    print(version, file=told, flush=True)
    for line in sys.stdin:
        dialect, url, way = line.split()
        try:
            if line not in asks:
                asks[line] = client.ways[dialect, way](url)
            began = time.process_time()
            count = asks[line]()
            print(time.process_time() - began, count, file=told, flush=True)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            print("broken", said.splitlines()[0][:300], file=told, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
