"""A chat model for LangChain: `ChatMull("moonshotai/kimi-k2.5")`.

The whole answer is in `additional_kwargs["mull"]` of each AIMessage, so that `messages_to_dict`,
checkpoints and langgraph keep its reasoning. The reasoning as text is in
`additional_kwargs["reasoning_content"]`, and so in the message's `content_blocks`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from mull.adapters import answers
from mull.adapters.answers import Piece, Pieces
from mull.agent.complete import (
    complete,
    complete_async,
    complete_stream,
    complete_stream_async,
)
from mull.agent.options import CompleteOptions, check_names
from mull.agent.results import Result
from mull.neutral.blocks import Block, MediaBlock, TextBlock, ToolResultBlock
from mull.neutral.errors import LocalError
from mull.neutral.extras import missing
from mull.neutral.messages import Message, Role
from mull.neutral.usage import Usage

try:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import (
        AIMessage,
        AIMessageChunk,
        BaseMessage,
        ToolMessage,
    )
    from langchain_core.output_parsers import JsonOutputParser, PydanticOutputParser
    from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
    from langchain_core.runnables import Runnable, RunnableMap, RunnablePassthrough
    from langchain_core.utils.function_calling import (
        convert_to_json_schema,
        convert_to_openai_tool,
    )
    from pydantic import Field, field_serializer, model_validator
except ImportError as error:
    raise ImportError(missing("langchain", error)) from error

__all__ = ["ChatMull"]

_KEPT = "mull"
_SECRET = frozenset(
    {"key", "keys", "headers", "extra_headers", "extra_query", "base_url", "engine"}
)


class ChatMull(BaseChatModel):
    """A model of any provider, by its name in mull.

    Keywords that `mull.complete` takes can be given here, for all requests, or with `bind`; keys
    are found as mull finds them, unless `key` is given.
    """

    model: str
    options: dict[str, Any] = Field(default_factory=dict, repr=False)
    """The keywords for `mull.complete`."""

    def __init__(self, model: str | None = None, **given: Any) -> None:
        super().__init__(**(given if model is None else {"model": model, **given}))

    @model_validator(mode="before")
    @classmethod
    def _sort(cls, given: dict[str, Any]) -> dict[str, Any]:
        names = CompleteOptions.__optional_keys__ - cls.model_fields.keys()
        check_names(given, names | cls.model_fields.keys(), "ChatMull")
        options = {name: value for name, value in given.items() if name in names}
        fields = {name: value for name, value in given.items() if name not in names}
        return {**fields, "options": {**fields.get("options", {}), **options}}

    @field_serializer("options")
    def _shown(self, options: dict[str, Any]) -> dict[str, Any]:
        return {name: one for name, one in options.items() if name not in _SECRET}

    @property
    def _llm_type(self) -> str:
        return "mull"

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        shown = {name: one for name, one in self.options.items() if name not in _SECRET}
        return {"model": self.model, **shown}

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: Any = None, strict: Any = None, **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        """Offer tools: functions, LangChain tools, pydantic models or JSON schemas."""
        if isinstance(tool_choice, Mapping):
            tool_choice = tool_choice.get("function", tool_choice).get("name")
        choice = {"any": "required", True: "required", False: None}.get(tool_choice, tool_choice)
        return self.bind(
            tools=[convert_to_openai_tool(tool) for tool in tools], tool_choice=choice, **kwargs
        )

    def with_structured_output(
        self,
        schema: Any,
        *,
        include_raw: bool = False,
        method: Any = None,
        strict: Any = None,
        **kwargs: Any,
    ) -> Runnable[Any, Any]:
        """Answers as values; their reasoning is kept.

        `method` and `strict` are accepted for compatibility: mull uses what the provider supports.
        """
        asked = self.bind(schema=convert_to_json_schema(schema), **kwargs)
        is_model = isinstance(schema, type) and hasattr(schema, "model_validate")
        parser = PydanticOutputParser(pydantic_object=schema) if is_model else JsonOutputParser()
        if not include_raw:
            return asked | parser
        parse = RunnablePassthrough.assign(
            parsed=(lambda both: both["raw"]) | parser, parsing_error=lambda _: None
        )
        failed = RunnablePassthrough.assign(parsed=lambda _: None)
        return RunnableMap(raw=asked) | parse.with_fallbacks(
            [failed], exception_key="parsing_error"
        )

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return _chat_result(complete(**self._asked(messages, stop, kwargs)))

    async def _agenerate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return _chat_result(await complete_async(**self._asked(messages, stop, kwargs)))

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        asked = self._asked(messages, stop, kwargs)
        pieces = Pieces(whole=asked.get("schema") is not None)
        with complete_stream(**asked) as stream:
            for event in stream:
                yield from map(_chunk, pieces.take(event))
            yield from _last_chunks(pieces, stream.result)

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        asked = self._asked(messages, stop, kwargs)
        pieces = Pieces(whole=asked.get("schema") is not None)
        async with complete_stream_async(**asked) as stream:
            async for event in stream:
                for piece in pieces.take(event):
                    yield _chunk(piece)
            for chunk in _last_chunks(pieces, stream.result):
                yield chunk

    def _asked(self, messages: Iterable[BaseMessage], stop: Any, kwargs: Any) -> dict[str, Any]:
        asked = {**kwargs, "stop": stop} if stop else {**kwargs}
        wanted = asked.pop("response_format", None)  # agents of LangChain give it in OpenAI's form
        if wanted is not None:
            asked["schema"] = wanted.get("json_schema", wanted).get("schema", wanted)
        read = [read for message in messages for read in _read(message)]
        return {"model": self.model, **self.options, **asked, "messages": read}


def _read(message: BaseMessage) -> list[Message]:
    """A message of LangChain's in mull's form; that of an answer may be several."""
    if isinstance(message, ToolMessage):
        blocks = _blocks(message)
        text = "".join(block.text for block in blocks if isinstance(block, TextBlock))
        media = tuple(block for block in blocks if isinstance(block, MediaBlock))
        is_error = message.status == "error"
        result = ToolResultBlock(message.tool_call_id, text, is_error, media)
        return [Message(role="tool", blocks=(result,))]
    if not isinstance(message, AIMessage):
        named = getattr(message, "role", message.type)  # a ChatMessage has any role
        role: Role = "system" if named in ("system", "developer") else "user"
        return [Message(role=role, blocks=_blocks(message))]
    calls = [
        answers.call_of(call["id"] or "", call["name"] or "", call["args"])
        for call in (*message.tool_calls, *message.invalid_tool_calls)
    ]
    kept = message.additional_kwargs.get(_KEPT)
    if kept:
        return answers.unpack(kept, message.text, calls)
    thoughts = [one["reasoning"] for one in message.content_blocks if one["type"] == "reasoning"]
    return [answers.foreign_answer(thoughts, message.text, calls)]


def _blocks(message: BaseMessage) -> tuple[Block, ...]:
    """The content of a message of the user, the system or a tool.

    Raises:
        LocalError: it contains a block that mull cannot send.
    """
    blocks: list[Block] = []
    for block in message.content_blocks:
        kind: Any = block["type"]
        if kind in ("text", "text-plain"):
            blocks += [TextBlock(block["text"])] if block.get("text") else []
        elif block.get("base64") or block.get("url"):
            media = (block.get("mime_type"), block.get("base64"), block.get("url"))
            blocks.append(answers.media_of(*media))
        else:
            raise LocalError(f"mull cannot send the content block {kind!r} of a {message.type}")
    return tuple(blocks)


def _chat_result(result: Result) -> ChatResult:
    text = answers.shown_text(result)
    calls: dict[str, list[Any]] = {"tool_calls": [], "invalid_tool_calls": []}
    for call in answers.open_calls(result.messages):
        row: dict[str, Any] = {"id": call.id, "name": call.name, "args": call.input}
        if call.arguments is not None and not call.input:
            row |= {"args": call.arguments, "error": "the arguments are not a JSON object"}
        calls["invalid_tool_calls" if "error" in row else "tool_calls"].append(row)
    end = _end(result, text)
    if result.thinking:
        end["additional_kwargs"]["reasoning_content"] = result.thinking
    return ChatResult(generations=[ChatGeneration(message=AIMessage(text, **calls, **end))])


def _chunk(piece: Piece) -> ChatGenerationChunk:
    if piece.kind == "thinking":
        message = AIMessageChunk("", additional_kwargs={"reasoning_content": piece.text})
    elif piece.kind == "text":
        message = AIMessageChunk(piece.text)
    else:
        row = {"index": piece.at, "args": piece.text}
        row |= {"id": piece.id or None, "name": piece.name or None}
        message = AIMessageChunk("", tool_call_chunks=[row])
    return ChatGenerationChunk(message=message)


def _last_chunks(pieces: Pieces, result: Result) -> Iterator[ChatGenerationChunk]:
    yield from map(_chunk, pieces.end(result))
    end = _end(result, pieces.text)
    yield ChatGenerationChunk(message=AIMessageChunk("", chunk_position="last", **end))


def _end(result: Result, text: str) -> dict[str, Any]:
    """What is known when an answer is complete."""
    about = {"model_name": result.model, "model_provider": "mull", **answers.facts_of(result)}
    about["finish_reason"] = result.message.stop_reason
    return {
        "additional_kwargs": {_KEPT: answers.pack(result, text)},
        "response_metadata": about,
        "usage_metadata": _usage(result.usage),
    }


def _usage(usage: Usage | None) -> dict[str, Any] | None:
    if usage is None or usage.input is None or usage.output is None:
        return None
    read = {"cache_read": usage.cache_read, "cache_creation": usage.cache_write}
    counted = {"input_tokens": usage.input, "output_tokens": usage.output}
    return {
        **counted,
        "total_tokens": usage.input + usage.output,
        "input_token_details": {name: n for name, n in read.items() if n is not None},
        "output_token_details": {} if usage.reasoning is None else {"reasoning": usage.reasoning},
    }
