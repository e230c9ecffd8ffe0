"""A chat over HTTP: thinking and answers arrive as server-sent events while the model works."""

import json
from collections.abc import AsyncIterator

from fastapi import FastAPI
from fastapi.responses import StreamingResponse

import mull

app = FastAPI()
chats: dict[str, mull.Conversation] = {}


@app.get("/chats/{name}")
async def ask(name: str, question: str) -> StreamingResponse:
    if name not in chats:
        chats[name] = mull.Conversation("anthropic/claude-haiku-4-5")
    return StreamingResponse(answer(chats[name], question), media_type="text/event-stream")


async def answer(chat: mull.Conversation, question: str) -> AsyncIterator[str]:
    async with chat.stream_async(question) as stream:
        async for event in stream:
            match event:
                case mull.ThinkingDelta(text=text) if text:
                    yield f"event: thinking\ndata: {json.dumps(text)}\n\n"
                case mull.TextDelta(text=text) if text:
                    yield f"event: text\ndata: {json.dumps(text)}\n\n"
