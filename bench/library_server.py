"""An endpoint for the libraries, in a process of its own: Chat Completions and Messages.

`python -m bench.library_server` prints its port and answers until its standard input is closed.
Every answer takes as long as the path says (`/100/v1/…` is 100 ms), so that a thousand requests are
under way at once. Tools that are offered are called once; an answer with a schema is JSON.
`GET /count` tells how many connections and requests there were since the last time.
"""

from __future__ import annotations

import asyncio
import json
import sys

CITY = json.dumps({"name": "Bern", "people": 134000, "tags": ["capital", "old town"]})
USAGE = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
counted = {"connections": 0, "requests": 0}


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of one connection."""
    counted["connections"] += 1
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            length = [line for line in head.lower().split("\r\n") if "content-length:" in line]
            body = await reader.readexactly(int(length[0].partition(":")[2])) if length else b""
            path = head.split(" ", 2)[1]
            if path.endswith("/count"):
                counted["connections"] -= 1  # this one
                answer, kind = json.dumps(counted), "application/json"
                counted.update(connections=0, requests=0)
            else:
                counted["requests"] += 1
                await asyncio.sleep(int(path.split("/")[1]) / 1000)
                answer, kind = respond(path, json.loads(body))
            data = answer.encode()
            head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(data)}"
            writer.write(head.encode() + b"\r\n\r\n" + data)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


def respond(path: str, body: dict) -> tuple[str, str]:
    """The body of a response and its type."""
    is_messages = path.endswith("/messages")
    wants_json = "response_format" in body or "output_config" in body or "output_format" in body
    answered = json.dumps(body["messages"]).count("tool_call_id") or "tool_result" in json.dumps(
        body["messages"]
    )
    calls = bool(body.get("tools")) and not answered
    text = CITY if wants_json else "Four."
    make = _messages if is_messages else _chat
    return make(body, text, calls)


def _chat(body: dict, text: str, calls: bool) -> tuple[str, str]:
    call = {
        "index": 0,
        "id": "call_1",
        "type": "function",
        "function": {"name": "double", "arguments": '{"number": 2}'},
    }
    said = {"role": "assistant", **({"tool_calls": [call]} if calls else {"content": text})}
    finish = "tool_calls" if calls else "stop"
    top = {"id": "c", "created": 1, "model": body["model"]}
    if not body.get("stream"):
        choice = {"index": 0, "message": {"content": None, **said}, "finish_reason": finish}
        whole = {**top, "object": "chat.completion", "choices": [choice], "usage": USAGE}
        return json.dumps(whole), "application/json"
    chunks = [
        {"choices": [{"index": 0, "delta": said, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": USAGE},
    ]
    made = [{**top, "object": "chat.completion.chunk", **chunk} for chunk in chunks]
    return _events(made) + "data: [DONE]\n\n", "text/event-stream"


def _messages(body: dict, text: str, calls: bool) -> tuple[str, str]:
    call = {"type": "tool_use", "id": "toolu_1", "name": "double", "input": {"number": 2}}
    block = call if calls else {"type": "text", "text": text}
    whole = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [block],
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 9},
    }
    return json.dumps(whole), "application/json"


def _events(values: list[dict]) -> str:
    return "".join(f"data: {json.dumps(value)}\n\n" for value in values)


async def main() -> None:
    """Listen on loopback until nobody wants it any more."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
