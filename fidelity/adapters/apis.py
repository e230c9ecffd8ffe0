"""What several adapters share: reading the objects of three APIs, which many libraries return.

Each reader takes an answer, or the chunks of a streamed one, and returns what goes into the history
and the report of it.
"""

import json

from line import answer, join

THOUGHTS = ("reasoning_content", "reasoning", "reasoning_text")
LIMITS = ("length", "max_tokens", "incomplete")
ENDINGS = ("response.completed", "response.incomplete")
# https://platform.openai.com/docs/guides/reasoning#encrypted-reasoning-items
STATELESS = {"store": False, "include": ["reasoning.encrypted_content"]}


def reasoning_tokens_in(usage):
    """The count of an answer of any API, from its usage as JSON."""
    details = usage.get("completion_tokens_details") or usage.get("output_tokens_details")
    if not details:
        return usage.get("thoughtsTokenCount")
    return details.get("reasoning_tokens", details.get("thinking_tokens"))


def is_cut(document):
    """Whether an answer of any API, as JSON, ended at a limit."""
    about = document | (document.get("candidates") or [{}])[0]
    found = (about.get(name) for name in ("finish_reason", "stop_reason", "finishReason", "status"))
    return next((reason.lower() for reason in found if reason), "") in LIMITS


def read_chat(given, streams, names=THOUGHTS):
    """A chat completion: its message, the deltas of a stream joined. `names` are the fields in
    which the library says that it returns reasoning; one that only passes on has the servers'.
    """
    given = list(given) if streams else [given]
    choices = [choice for one in given for choice in one.choices]
    parts = [choice.delta if streams else choice.message for choice in choices]
    message = join(part.model_dump(exclude_none=True) for part in parts) | {"role": "assistant"}
    thinking = next((message[name] for name in names if message.get(name)), None)
    if isinstance(thinking, dict):
        thinking = thinking.get("content")
    usage = next((one.usage for one in reversed(given) if one.usage), None)
    details = usage and usage.completion_tokens_details
    counted = details.reasoning_tokens if details else None
    endings = [choice.finish_reason for choice in choices if choice.finish_reason]
    cut = not endings or endings[-1] == "length"
    return message, answer(
        message.get("content"), thinking, reasoning_tokens=counted, incomplete=cut
    )


def read_response(response, streams=False):
    """A response of the Responses API: its items."""
    if streams:
        response = [event for event in response if event.type in ENDINGS].pop().response
    items = [
        one if isinstance(one, dict) else one.model_dump(exclude_none=True)
        for one in response.output
    ]
    said = [item for item in items if item["type"] == "message"]
    text = "".join(part.get("text", "") for item in said for part in item["content"])
    reasoning = [item for item in items if item["type"] == "reasoning"]
    parts = [part for item in reasoning for part in item.get("content") or item["summary"]]
    counted = response.usage and response.usage.output_tokens_details.reasoning_tokens
    cut = getattr(response, "status", None) == "incomplete"
    thinking = "\n\n".join(part["text"] for part in parts)
    return items, answer(text, thinking, reasoning_tokens=counted, incomplete=cut)


def outputs_for(items, result):
    """What the tool returned, for each call of a response."""
    calls = [item["call_id"] for item in items if item["type"] == "function_call"]
    return [{"type": "function_call_output", "call_id": call, "output": result} for call in calls]


def read_message(message):
    """A message of the Messages API: its content."""
    blocks = message["content"]
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    thoughts = [block["thinking"] for block in blocks if block["type"] == "thinking"]
    counted = reasoning_tokens_in(message.get("usage") or {})
    cut = message.get("stop_reason") in (None, "max_tokens")
    thinking = "\n\n".join(thoughts)
    return blocks, answer(text, thinking, reasoning_tokens=counted, incomplete=cut)


def results_for(blocks, result):
    """The user's message with what the tool returned for each call; nothing without calls."""
    calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": call, "content": result} for call in calls]
    return [{"role": "user", "content": results}] if results else []


def message_of(events):
    """The message of a stream of the Messages API."""
    deltas = []
    for event in events:
        about = event.model_dump(exclude_none=True)
        if about["type"] == "content_block_start":
            deltas.append({"content": [{**about["content_block"], "index": about["index"]}]})
        elif about["type"] == "content_block_delta":
            about["delta"].pop("type")
            deltas.append({"content": [{**about["delta"], "index": about["index"]}]})
        elif about["type"] == "message_delta":
            deltas.append({**about["delta"], "usage": about.get("usage") or {}})
    found = {"content": [], **join(deltas)}
    for block in found["content"]:
        del block["index"]
        if block["type"] == "tool_use":
            block["input"] = json.loads(block.pop("partial_json", "") or "{}")
    return found
