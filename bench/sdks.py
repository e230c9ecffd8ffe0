"""The vendors' own SDKs reading the same bytes over a transport without a network.

They are not dependencies: what is not installed is left out (`make bench` installs them).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec


def _openai_chat(body: bytes) -> None:
    import httpx2 as httpx
    from openai import OpenAI

    client = OpenAI(api_key="-", http_client=httpx.Client(transport=_answering(body)))
    messages = [{"role": "user", "content": "q"}]
    stream = client.chat.completions.create(model="m", messages=messages, stream=True)
    for _ in stream:
        pass


def _openai_responses(body: bytes) -> None:
    import httpx2 as httpx
    from openai import OpenAI

    client = OpenAI(api_key="-", http_client=httpx.Client(transport=_answering(body)))
    for _ in client.responses.create(model="m", input="q", stream=True):
        pass


def _anthropic(body: bytes) -> None:
    import httpx2 as httpx
    from anthropic import Anthropic

    client = Anthropic(api_key="-", http_client=httpx.Client(transport=_answering(body)))
    messages = [{"role": "user", "content": "q"}]
    with client.messages.stream(model="m", max_tokens=9, messages=messages) as stream:
        for _ in stream:
            pass


def _gemini(body: bytes) -> None:
    import httpx2 as httpx
    from google import genai
    from google.genai import types

    options = types.HttpOptions(httpx_client=httpx.Client(transport=_answering(body)))
    client = genai.Client(api_key="-", http_options=options)
    for _ in client.models.generate_content_stream(model="m", contents="q"):
        pass


def _answering(body: bytes):
    import httpx2 as httpx

    headers = {"content-type": "text/event-stream"}

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers=headers, content=body)

    return httpx.MockTransport(answer)


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


SDKS: dict[str, Callable[[bytes], None]] = {}
if _installed("openai"):
    SDKS |= {"openai-chat": _openai_chat, "openai-responses": _openai_responses}
if _installed("anthropic"):
    SDKS["anthropic"] = _anthropic
if _installed("google.genai"):
    SDKS["gemini"] = _gemini
