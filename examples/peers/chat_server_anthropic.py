"""The same with the anthropic SDK."""

import json
from collections.abc import AsyncIterator
from typing import Any

from anthropic import AsyncAnthropic
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

app = FastAPI()
client = AsyncAnthropic()
chats: dict[str, list[dict[str, Any]]] = {}


@app.get("/chats/{name}")
async def ask(name: str, question: str) -> StreamingResponse:
    chat = chats.setdefault(name, [])
    return StreamingResponse(answer(chat, question), media_type="text/event-stream")


async def answer(chat: list[dict[str, Any]], question: str) -> AsyncIterator[str]:
    asked = [*chat, {"role": "user", "content": question}]
    async with client.messages.stream(
        model="claude-haiku-4-5",
        max_tokens=32000,
        thinking={"type": "enabled", "budget_tokens": 10000},
        messages=asked,
    ) as stream:
        async for event in stream:
            if event.type == "thinking":
                yield f"event: thinking\ndata: {json.dumps(event.thinking)}\n\n"
            elif event.type == "text":
                yield f"event: text\ndata: {json.dumps(event.text)}\n\n"
        message = await stream.get_final_message()
    chat[:] = [*asked, {"role": "assistant", "content": message.content}]
