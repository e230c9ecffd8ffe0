"""A model for the OpenAI Agents SDK: `Agent(model=MullModel("moonshotai/kimi-k2.5"))`.

The whole answer is in the `encrypted_content` of its reasoning item, so that runs, handoffs and
sessions keep its reasoning. `MullProvider` finds models by name for a `RunConfig`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Unpack
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from mull.adapters import answers
from mull.adapters.answers import Piece, Pieces
from mull.agent.complete import complete_stream_async
from mull.agent.options import CompleteOptions
from mull.dialects.serving import answer_writer, read_history
from mull.dialects.writer import About
from mull.logs import log_warning
from mull.neutral.blocks import TextBlock
from mull.neutral.events import (
    Event,
    Finished,
    Started,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageReported,
)
from mull.neutral.extras import missing
from mull.neutral.messages import Dialect, Message
from mull.settings.layers import with_own

try:
    from agents.items import ModelResponse
    from agents.models.chatcmpl_converter import Converter
    from agents.models.interface import ModelTracing
    from agents.usage import Usage
    from openai.types.responses import ResponseStreamEvent
    from pydantic import TypeAdapter

    from agents import Model, ModelProvider, ModelSettings, UserError, generation_span
except ImportError as error:
    raise ImportError(missing("openai-agents", error)) from error

__all__ = ["MullModel", "MullProvider"]

_SAME = """temperature top_p frequency_penalty presence_penalty tool_choice parallel_tool_calls
max_tokens verbosity metadata extra_body extra_headers extra_query timeout""".split()
_DIALECT: Dialect = "openai-responses"
_event: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


class MullModel(Model):
    """A model of any provider, by its name in mull. The options are those of `mull.complete`."""

    def __init__(self, model: str, **options: Unpack[CompleteOptions]) -> None:
        self.model = model
        self._options = options

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Send one request and wait for the answer."""
        async for event in self.stream_response(*args, **kwargs):
            last = event
        response = last.response
        usage = Usage(requests=1)
        if response.usage is not None:
            usage = Usage(
                requests=1,
                input_tokens=response.usage.input_tokens,
                input_tokens_details=response.usage.input_tokens_details,
                output_tokens=response.usage.output_tokens,
                output_tokens_details=response.usage.output_tokens_details,
                total_tokens=response.usage.total_tokens,
            )
        return ModelResponse(output=response.output, usage=usage, response_id=None)

    async def stream_response(
        self,
        system_instructions: str | None,
        input: str | list[Any],
        model_settings: ModelSettings,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        tracing: ModelTracing,
        **state: Any,
    ) -> AsyncIterator[Any]:
        """Send one request and get the answer as it arrives."""
        if kept := [name for name, value in state.items() if value is not None]:
            raise UserError(f"mull keeps no state at a provider: {', '.join(kept)} cannot be used")
        asked = self._asked(model_settings)
        asked |= {"messages": _read(input), "system": system_instructions}
        asked["tools"] = [Converter.tool_to_openai(tool) for tool in tools]
        asked["tools"] += [Converter.convert_handoff_tool(handoff) for handoff in handoffs]
        if output_schema is not None and not output_schema.is_plain_text():
            asked["schema"] = output_schema.json_schema()
        with generation_span(model=self.model, disabled=tracing.is_disabled()) as span:
            if tracing.include_data():
                span.span_data.input = [{"role": "user", "content": str(input)}]
            async for event in _events(self.model, asked):
                yield event
            if tracing.include_data():
                span.span_data.output = [event.response.model_dump(mode="json")]

    def _asked(self, given: ModelSettings) -> dict[str, Any]:
        asked: dict[str, Any] = {"model": self.model, **self._options}
        said = ((name, getattr(given, name)) for name in _SAME)
        asked |= {name: value for name, value in said if value is not None}
        effort = given.reasoning.effort if given.reasoning is not None else None
        if effort is not None:
            before, own = asked.get("settings") or {}, {"reasoning.effort": effort}
            asked["model"], asked["settings"] = with_own(asked["model"], before, own)
        return asked | (given.extra_args or {})


class MullProvider(ModelProvider):
    """Finds models by their names in mull. The options are those of `mull.complete`; `model` is for
    agents that name none.
    """

    def __init__(self, model: str | None = None, **options: Unpack[CompleteOptions]) -> None:
        self._model = model
        self._options = options

    def get_model(self, model_name: str | None) -> Model:
        """The model with this name."""
        name = model_name or self._model
        if name is None:
            raise UserError("the agent names no model, and MullProvider was given none")
        return MullModel(name, **self._options)


async def _events(model: str, asked: dict[str, Any]) -> AsyncIterator[Any]:
    """The events of the Responses API for an answer; the last one has the whole response."""
    # The SDK takes items with the same id for the same item, so the ids that follow from this one
    # must be new.
    about = About(id=f"resp_{uuid4().hex}", model=model, source="openai-chat", echo=_ECHO)
    writer = answer_writer(_DIALECT, about)
    pieces = Pieces(whole=asked.get("schema") is not None)
    writer.feed(Started())
    async with complete_stream_async(**asked) as stream:
        async for event in stream:
            for piece in pieces.take(event):
                for told in _told(writer.feed(_as_event(piece))):
                    yield _event.validate_python(told)
        result = stream.result
    left: list[Event] = [_as_event(piece) for piece in pieces.end(result)]
    left += [UsageReported(result.usage)] if result.usage is not None else []
    left.append(Finished(result.message.stop_reason))
    for told in (told for event in left for told in _told(writer.feed(event))):
        if told["type"] in _LAST:
            _carry(told["response"], answers.pack(result, pieces.text))
        yield _event.validate_python(told)


_LAST = ("response.completed", "response.incomplete")
_ECHO = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}


def _as_event(piece: Piece) -> Event:
    if piece.kind == "thinking":
        return ThinkingDelta(piece.text, piece.at)
    if piece.kind == "text":
        return TextDelta(piece.text, piece.at)
    return ToolCallDelta(piece.at, piece.id or None, piece.name or None, piece.text)


def _told(frames: bytes) -> Iterator[dict[str, Any]]:
    for line in frames.split(b"\n"):
        if line.startswith(b"data:"):
            yield msgspec.json.decode(line.removeprefix(b"data:"))


def _carry(response: dict[str, Any], packed: str) -> None:
    """Put the answer into the first reasoning item; add one if there is none."""
    output: list[dict[str, Any]] = response["output"]
    items = [item for item in output if item["type"] == "reasoning"]
    if not items:
        items = [{"type": "reasoning", "id": f"rs_{response['id']}", "summary": []}]
        output[:0] = items
    items[0]["encrypted_content"] = packed


def _read(given: str | Sequence[Mapping[str, Any]]) -> list[Message]:
    """The history of a run in mull's form."""
    items = [{"role": "user", "content": given}] if isinstance(given, str) else list(given)
    messages: list[Message] = []
    others: list[Mapping[str, Any]] = []
    at = 0
    while at < len(items):
        packed = _packed(items[at])
        at += 1
        if packed is None:
            others.append(items[at - 1])
            continue
        start = at
        while at < len(items) and _is_output(items[at]):
            at += 1
        messages += [*_foreign(others), *_answer(packed, items[start:at])]
        others = []
    messages += _foreign(others)
    if messages and messages[0].role == "assistant" and messages[0].origin is None:
        # A handoff with a nested history puts the transcript in the assistant's name, and many
        # providers reject a history that does not start with the user.
        messages[0] = replace(messages[0], role="user", status=None)
    return messages


def _packed(item: Mapping[str, Any]) -> str | None:
    content = item.get("encrypted_content") if item.get("type") == "reasoning" else None
    return content if isinstance(content, str) and content.startswith("{") else None


def _is_output(item: Mapping[str, Any]) -> bool:
    if item.get("type", "message") == "message":
        return item.get("role") == "assistant"
    return item["type"] in ("function_call", "reasoning") and _packed(item) is None


def _answer(packed: str, items: Sequence[Mapping[str, Any]]) -> list[Message]:
    (now,) = _foreign(items) or [Message(role="assistant")]
    return answers.unpack(packed, now.text, now.tool_calls)


def _foreign(items: Sequence[Mapping[str, Any]]) -> list[Message]:
    found = read_history(_DIALECT, items, None)
    if found.rest:
        log_warning(f"not sent: {', '.join(found.rest)}")
    system = [Message(role="system", blocks=(TextBlock(found.system),))] if found.system else []
    return system + found.messages
