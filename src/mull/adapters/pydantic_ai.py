"""A model for pydantic-ai: `Agent(MullModel("moonshotai/kimi-k2.5"))`.

The whole answer is in the `provider_details` of each ModelResponse, so that a stored history keeps
its reasoning. Thinking parts carry their signatures too, under the name of their provider.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Unpack

from mull.adapters import answers
from mull.adapters.answers import Pieces
from mull.agent.complete import complete_async, complete_stream_async
from mull.agent.options import CompleteOptions
from mull.agent.results import Result
from mull.agent.streams import AsyncStream
from mull.neutral.blocks import Block, MediaBlock, TextBlock, ThinkingBlock, ToolResultBlock
from mull.neutral.errors import LocalError, RefusedError, RemoteError
from mull.neutral.extras import missing
from mull.neutral.messages import Message
from mull.neutral.usage import Usage
from mull.settings.layers import with_own

try:
    from pydantic_ai import messages as parts
    from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
    from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
    from pydantic_ai.profiles import ModelProfile
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.usage import RequestUsage
except ImportError as error:
    raise ImportError(missing("pydantic-ai", error)) from error

__all__ = ["MullModel"]

_KEPT = "mull"
_SAME = """max_tokens temperature top_p top_k seed presence_penalty frequency_penalty
parallel_tool_calls timeout extra_headers extra_body""".split()
_FINISHES = {"stop": "stop", "length": "length", "tool_calls": "tool_call"}
_FINISHES |= {"content_filter": "content_filter"}


class MullModel(Model):
    """A model of any provider, by its name in mull. The options are those of `mull.complete`."""

    def __init__(
        self,
        model: str,
        *,
        model_settings: ModelSettings | None = None,
        **options: Unpack[CompleteOptions],
    ) -> None:
        super().__init__(
            settings=model_settings,
            profile=ModelProfile(
                supports_tools=True,
                supports_json_schema_output=True,
                supports_json_object_output=True,
                supports_thinking=True,
                default_structured_output_mode="native",
            ),
        )
        self._model = model
        self._options = options

    @property
    def model_name(self) -> str:
        """The name of the model in mull."""
        return self._model

    @property
    def system(self) -> str:
        """Who answers."""
        return "mull"

    async def request(
        self,
        messages: list[parts.ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> parts.ModelResponse:
        """Send one request and wait for the answer."""
        asked = self._asked(messages, model_settings, model_request_parameters)
        with _translated(self._model):
            result = await complete_async(**asked)
        text = answers.shown_text(result)
        found = [_thinking_part(block, result) for block in result.message.thinking]
        found += [parts.TextPart(text)] if text else []
        for call in answers.open_calls(result.messages):
            arguments = answers.arguments_of(call)
            found.append(parts.ToolCallPart(call.name, arguments, tool_call_id=call.id))
        return parts.ModelResponse(
            parts=found,
            usage=_usage(result.usage),
            model_name=result.model,
            provider_name=self.system,
            provider_details=_details(result, text),
            finish_reason=_FINISHES.get(result.message.stop_reason or ""),
        )

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[parts.ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncIterator[StreamedResponse]:
        """Send one request and get the answer as it arrives."""
        asked = self._asked(messages, model_settings, model_request_parameters)
        with _translated(self._model):
            async with complete_stream_async(**asked) as stream:
                pieces = Pieces(whole=asked.get("schema") is not None)
                yield _Streamed(model_request_parameters, _stream=stream, _pieces=pieces)

    def _asked(
        self,
        messages: list[parts.ModelMessage],
        model_settings: ModelSettings | None,
        parameters: ModelRequestParameters,
    ) -> dict[str, Any]:
        given, parameters = self.prepare_request(model_settings, parameters)
        settings: Mapping[str, Any] = given or {}
        asked: dict[str, Any] = {"messages": [one for said in messages for one in _read(said)]}
        asked |= {name: settings[name] for name in _SAME if name in settings}
        asked |= {"model": self._model, "stop": settings.get("stop_sequences")}
        instructions = self._get_instruction_parts(messages, parameters) or ()
        asked["system"] = "\n\n".join(one.content for one in instructions) or None
        # Not required just because only a tool can end the run: that would stop the thinking of
        # many models, and pydantic-ai asks again if none was called.
        asked["tool_choice"] = settings.get("tool_choice")
        asked["tools"] = [
            {"name": tool.name, "description": tool.description or ""}
            | {"parameters": tool.parameters_json_schema}
            for tool in (*parameters.function_tools, *parameters.output_tools)
        ]
        if parameters.output_mode == "native" and parameters.output_object is not None:
            asked["schema"] = parameters.output_object.json_schema
        thinking: Any = getattr(parameters, "thinking", None)
        if thinking is not None:
            key = "reasoning.enabled" if isinstance(thinking, bool) else "reasoning.effort"
            before = self._options.get("settings") or {}
            asked["model"], asked["settings"] = with_own(self._model, before, {key: thinking})
        said = {name: value for name, value in asked.items() if value not in (None, [])}
        return {**self._options, **said}


@dataclass
class _Streamed(StreamedResponse):
    """An answer that arrives."""

    _stream: AsyncStream = field(kw_only=True)
    _pieces: Pieces = field(kw_only=True)
    _started: datetime = field(default_factory=lambda: datetime.now(UTC), init=False)

    async def _get_event_iterator(self) -> AsyncIterator[parts.ModelResponseStreamEvent]:
        try:
            async for event in self._stream:
                for piece in self._pieces.take(event):
                    for one in self._events(piece):
                        yield one
            result = self._stream.result
            for piece in self._pieces.end(result):
                for one in self._events(piece):
                    yield one
            for one in self._signatures(result):
                yield one
            self.finish_reason = _FINISHES.get(result.message.stop_reason or "")
        finally:  # also an answer that was not read to its end is kept as far as it came
            self._usage = _usage(self._stream.result.usage)
            self.provider_details = _details(self._stream.result, self._pieces.text)

    def _events(self, piece: answers.Piece) -> Iterator[parts.ModelResponseStreamEvent]:
        manager, at = self._parts_manager, piece.at
        if piece.kind == "thinking":
            yield from manager.handle_thinking_delta(vendor_part_id=at, content=piece.text)
        elif piece.kind == "text":
            yield from manager.handle_text_delta(vendor_part_id=at, content=piece.text)
        else:
            yield from manager.handle_tool_call_delta_events(
                vendor_part_id=at,
                tool_name=piece.name or None,
                args=piece.text or None,
                tool_call_id=piece.id or None,
            )

    def _signatures(self, result: Result) -> Iterator[parts.ModelResponseStreamEvent]:
        if len(result.messages) > 1:  # corrected: the positions are those of several answers
            return
        for at, block in enumerate(result.message.blocks):
            if isinstance(block, ThinkingBlock) and (block.signature or block.encrypted):
                part = _thinking_part(block, result)
                yield from self._parts_manager.handle_thinking_delta(
                    vendor_part_id=at,
                    id=part.id,
                    signature=part.signature,
                    provider_name=part.provider_name,
                )

    async def close_stream(self) -> None:
        """Stop the request."""
        await self._stream.aclose()

    @property
    def model_name(self) -> str:
        """The model that answers."""
        return self._stream.result.model

    @property
    def provider_name(self) -> str:
        """Who answers."""
        return "mull"

    @property
    def provider_url(self) -> None:
        """There is none: mull knows the address."""

    @property
    def timestamp(self) -> datetime:
        """When the request was made."""
        return self._started


@contextmanager
def _translated(model: str) -> Iterator[None]:
    """Errors of an endpoint as pydantic-ai's own, so that its fallbacks see them."""
    try:
        yield
    except RefusedError as error:
        raise ModelHTTPError(error.status, model, str(error)) from error
    except RemoteError as error:
        raise ModelAPIError(model, str(error)) from error


def _read(said: parts.ModelMessage) -> Iterator[Message]:
    """A message of pydantic-ai's in mull's form."""
    if isinstance(said, parts.ModelResponse):
        yield from _read_answer(said)
        return
    for part in said.parts:
        if isinstance(part, parts.SystemPromptPart):
            yield Message(role="system", blocks=(TextBlock(part.content),))
        elif isinstance(part, parts.UserPromptPart):
            content = [part.content] if isinstance(part.content, str) else part.content
            yield Message(role="user", blocks=tuple(_blocks(content)))
        elif isinstance(part, parts.ToolReturnPart):
            text, files = part.model_response_str_and_user_content()
            media = tuple(one for one in _blocks(files) if isinstance(one, MediaBlock))
            is_error = part.outcome in ("failed", "retried")
            result = ToolResultBlock(part.tool_call_id, text, is_error, media)
            yield Message(role="tool", blocks=(result,))
        else:
            raise LocalError(f"mull cannot send the part {part.part_kind!r} of a request")


def _read_answer(said: parts.ModelResponse) -> list[Message]:
    texts = [part.content for part in said.parts if isinstance(part, parts.TextPart)]
    calls = [
        answers.call_of(part.tool_call_id, part.tool_name, part.args)
        for part in said.parts
        if isinstance(part, parts.ToolCallPart)
    ]
    kept = (said.provider_details or {}).get(_KEPT)
    if kept is not None:
        return answers.unpack(kept, "".join(texts), calls)
    thoughts = [part.content for part in said.parts if isinstance(part, parts.ThinkingPart)]
    return [answers.foreign_answer(thoughts, "".join(texts), calls)]


def _blocks(content: Iterable[Any]) -> Iterator[Block]:
    for item in content:
        if isinstance(item, str | parts.TextContent):
            text = item if isinstance(item, str) else item.content
            yield from (TextBlock(text),) if text else ()
        elif isinstance(item, parts.BinaryContent):
            yield answers.media_of(item.media_type, item.base64, None)
        elif isinstance(item, parts.FileUrl):
            yield answers.media_of(item.media_type, None, item.url)
        elif not isinstance(item, parts.CachePoint):
            raise LocalError(f"mull cannot send {type(item).__name__} in a prompt")


def _thinking_part(block: ThinkingBlock, result: Result) -> parts.ThinkingPart:
    origin = result.message.origin
    signature = block.signature or block.encrypted
    return parts.ThinkingPart(
        block.thought,
        id=block.id,
        signature=signature,
        provider_name=origin.provider if origin is not None and signature else None,
    )


def _details(result: Result, text: str) -> dict[str, Any]:
    return {_KEPT: answers.pack(result, text), **answers.facts_of(result)}


def _usage(usage: Usage | None) -> RequestUsage:
    if usage is None:
        return RequestUsage()
    return RequestUsage(
        input_tokens=usage.input or 0,
        output_tokens=usage.output or 0,
        cache_read_tokens=usage.cache_read or 0,
        cache_write_tokens=usage.cache_write or 0,
        details={} if usage.reasoning is None else {"reasoning_tokens": usage.reasoning},
    )
