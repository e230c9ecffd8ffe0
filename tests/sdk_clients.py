"""The vendors' own SDKs as clients of a gateway: a conversation with tools in each of four APIs.

Each answer becomes the history of the next request as the SDK itself writes it, after what the
client drops. `stream` chooses the SDK's stream and its own accumulator.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

TOOL = {"type": "object", "properties": {"at": {"type": "string"}}}
MODEL = "thinker"
RESULT = "r"


class Spent(NamedTuple):
    """What an SDK says of the tokens of an answer; `reasoning` is None where it does not say."""

    input: int
    output: int
    reasoning: int | None


class Answer(NamedTuple):
    """An answer as the SDK shows it."""

    thoughts: list[str]
    text: str
    calls: list[Any]
    spent: Spent


class SdkClient:
    """A conversation that runs until the model answers without a call."""

    def __init__(self, url: str, *, drops: bool, stream: bool) -> None:
        self.drops, self.stream = drops, stream
        self.history: list[Any] = []
        self.answers: list[Answer] = []
        self.ids: list[str] = []
        self.client = self.connect(url)

    def close(self) -> None:
        """Close the connections of the SDK."""
        self.client.close()

    def ask(self, text: str) -> str:
        self.history.append(self.question(text))
        while True:
            answer = self.answer()
            self.answers.append(answer)
            if not answer.calls:
                return answer.text
            self.ids += [self.id_of(call) for call in answer.calls]
            self.history += self.results(answer.calls)

    @property
    def thoughts(self) -> list[str]:
        return [thought for answer in self.answers for thought in answer.thoughts if thought]

    def connect(self, url: str) -> Any:
        raise NotImplementedError

    def question(self, text: str) -> Any:
        return {"role": "user", "content": text}

    def answer(self) -> Answer:
        raise NotImplementedError

    def id_of(self, call: Any) -> str:
        return str(call.id)

    def results(self, calls: Iterable[Any]) -> list[Any]:
        raise NotImplementedError


class OpenAiChat(SdkClient):
    def connect(self, url):
        from openai import OpenAI

        return OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)

    def answer(self):
        tools = [{"type": "function", "function": {"name": "look", "parameters": TOOL}}]
        wanted = {"model": MODEL, "messages": self.history, "tools": tools}
        if self.stream:
            from openai.lib.streaming.chat import ChatCompletionStreamState

            state = ChatCompletionStreamState()
            more = {"stream": True, "stream_options": {"include_usage": True}}
            for chunk in self.client.chat.completions.create(**wanted, **more):
                state.handle_chunk(chunk)
            done = state.get_final_completion()
        else:
            done = self.client.chat.completions.create(**wanted)
        message, usage = done.choices[0].message, done.usage
        dumped = message.model_dump(exclude_none=True)
        dumped.pop("parsed", None)
        for call in dumped.get("tool_calls", ()):
            call["function"].pop("parsed_arguments", None)
        kept = ("role", "content", "tool_calls")
        self.history.append({k: dumped[k] for k in kept if k in dumped} if self.drops else dumped)
        return Answer(
            [getattr(message, "reasoning_content", None) or ""],
            message.content or "",
            message.tool_calls or [],
            Spent(
                usage.prompt_tokens,
                usage.completion_tokens,
                details.reasoning_tokens if (details := usage.completion_tokens_details) else None,
            ),
        )

    def results(self, calls):
        return [{"role": "tool", "tool_call_id": call.id, "content": RESULT} for call in calls]


class OpenAiResponses(SdkClient):
    connect = OpenAiChat.connect

    def answer(self):
        wanted = {
            "model": MODEL,
            "input": self.history,
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"summary": "auto"},
            "tools": [{"type": "function", "name": "look", "parameters": TOOL, "strict": False}],
        }
        if self.stream:
            with self.client.responses.stream(**wanted) as events:
                done = events.get_final_response()
        else:
            done = self.client.responses.create(**wanted)
        items = [item for item in done.output if not (self.drops and item.type == "reasoning")]
        for item in items:
            dumped = item.model_dump(exclude_none=True, exclude={"parsed_arguments"})
            for part in dumped.get("content", ()):
                part.pop("parsed", None)
            self.history.append(dumped)
        thoughts = [
            "".join(part.text for part in item.summary)
            for item in done.output
            if item.type == "reasoning"
        ]
        usage = done.usage
        return Answer(
            thoughts,
            done.output_text,
            [item for item in done.output if item.type == "function_call"],
            Spent(
                usage.input_tokens,
                usage.output_tokens,
                usage.output_tokens_details.reasoning_tokens,
            ),
        )

    def id_of(self, call):
        return call.call_id

    def results(self, calls):
        return [
            {"type": "function_call_output", "call_id": call.call_id, "output": RESULT}
            for call in calls
        ]


class AnthropicMessages(SdkClient):
    def connect(self, url):
        from anthropic import Anthropic

        return Anthropic(base_url=url, api_key="none", max_retries=0)

    def answer(self):
        wanted = {
            "model": MODEL,
            "messages": self.history,
            "max_tokens": 4000,
            "thinking": {"type": "enabled", "budget_tokens": 2000},
            "tools": [{"name": "look", "input_schema": TOOL}],
        }
        if self.stream:
            with self.client.messages.stream(**wanted) as events:
                done = events.get_final_message()
        else:
            done = self.client.messages.create(**wanted)
        dropped = ("thinking", "redacted_thinking") if self.drops else ()
        blocks = [block.model_dump(exclude_none=True) for block in done.content]
        kept = [block for block in blocks if block["type"] not in dropped]
        self.history.append({"role": "assistant", "content": kept})
        return Answer(
            [block.thinking for block in done.content if block.type == "thinking"],
            "".join(block.text for block in done.content if block.type == "text"),
            [block for block in done.content if block.type == "tool_use"],
            Spent(done.usage.input_tokens, done.usage.output_tokens, None),
        )

    def results(self, calls):
        given = [
            {"type": "tool_result", "tool_use_id": call.id, "content": RESULT} for call in calls
        ]
        return [{"role": "user", "content": given}]


class GoogleContents(SdkClient):
    def connect(self, url):
        from google import genai

        return genai.Client(api_key="none", http_options={"base_url": url})

    def question(self, text):
        return {"role": "user", "parts": [{"text": text}]}

    def answer(self):
        config = {
            "thinking_config": {"include_thoughts": True},
            "automatic_function_calling": {"disable": True},
            "tools": [{"function_declarations": [{"name": "look", "parameters": TOOL}]}],
        }
        wanted = {"model": MODEL, "contents": self.history, "config": config}
        models = self.client.models
        chunks = (
            list(models.generate_content_stream(**wanted))
            if self.stream
            else [models.generate_content(**wanted)]
        )
        parts = [
            part
            for chunk in chunks
            for one in chunk.candidates or ()
            for part in (one.content.parts if one.content else None) or ()
        ]
        dumped = [part.model_dump(exclude_none=True) for part in parts]
        if self.drops:
            bare = [{k: v for k, v in one.items() if k != "thought_signature"} for one in dumped]
            dumped = [one for one in bare if one and not one.get("thought")]
        self.history.append({"role": "model", "parts": dumped})
        usage = chunks[-1].usage_metadata
        thought = usage.thoughts_token_count or 0
        return Answer(
            ["".join(part.text or "" for part in parts if part.thought)],
            "".join(part.text or "" for part in parts if not part.thought),
            [part.function_call for part in parts if part.function_call],
            Spent(usage.prompt_token_count, (usage.candidates_token_count or 0) + thought, thought),
        )

    def results(self, calls):
        given = [
            {"function_response": {"id": call.id, "name": call.name, "response": {"r": RESULT}}}
            for call in calls
        ]
        return [{"role": "user", "parts": given}]


SDK_CLIENTS = {
    "chat": OpenAiChat,
    "responses": OpenAiResponses,
    "messages": AnthropicMessages,
    "contents": GoogleContents,
}
