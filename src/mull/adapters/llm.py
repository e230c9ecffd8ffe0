"""A plugin for llm: `llm -m mull/moonshotai/kimi-k2.5 "Why is the sky blue?"`.

It offers every model that mull finds a key for as `mull/PROVIDER/MODEL`, and the model of mull's
own configuration as `mull`. The whole answer is in the metadata of a reasoning part, which llm
stores in its database, so that `llm -c` and tool calls keep its reasoning.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from mull.adapters import answers
from mull.logs import log_warning
from mull.neutral.blocks import Block, MediaBlock, TextBlock, ToolResultBlock
from mull.neutral.errors import MullError
from mull.neutral.extras import missing
from mull.neutral.messages import Message, Role

try:
    import llm
    from llm.parts import (
        AttachmentPart,
        ReasoningPart,
        StreamEvent,
        TextPart,
        ToolCallPart,
        ToolResultPart,
    )
    from pydantic import Field
except ImportError as error:
    raise ImportError(missing("llm", error)) from error

if TYPE_CHECKING:
    from mull.agent.results import Result

__all__ = ["AsyncMullModel", "MullModel", "register_models"]

_KEPT = "mull"
_KINDS = {
    "image": ("image/png", "image/jpeg", "image/webp", "image/gif"),
    "pdf": ("application/pdf",),
    "audio": ("audio/wav", "audio/mpeg"),
    "video": ("video/mp4", "video/webm"),
}
_SETTINGS = {"reasoning_effort": "reasoning.effort", "thinking_budget": "reasoning.maxTokens"}


@llm.hookimpl
def register_models(register: Any) -> None:
    """Offer the models that can be used now."""
    from mull.agent import shared
    from mull.agent.usable import usable_models

    try:
        names = usable_models(shared.engine())
    except MullError as error:  # llm's other models must go on working
        log_warning(f"llm has no models of mull: {error}")
        return
    for name in (None, *names):
        register(MullModel(name), AsyncMullModel(name))


class _Shared:
    """What both kinds of models have."""

    can_stream = supports_schema = supports_tools = True
    needs_key = key = None
    model_id: str

    class Options(llm.Options):  # type: ignore[misc,unused-ignore]
        """What `-o` takes. The descriptions are what `llm models --options` prints."""

        reasoning_effort: str | None = Field(description="How much to think", default=None)
        """A level of mull, such as `low` or `none`; None leaves it to the settings."""
        thinking_budget: int | None = Field(description="Tokens for thinking", default=None)
        """The setting `reasoning.maxTokens`; None leaves it to the settings."""
        max_tokens: int | None = Field(description="Tokens of the answer", default=None)
        """Thinking counts as a part of the answer."""
        temperature: float | None = Field(description="0 is the least random", default=None)
        """Most providers accept 0 to 2, some only 0 to 1."""
        top_p: float | None = Field(description="Nucleus sampling, 0 to 1", default=None)
        """The share of likely tokens that the next one is chosen from."""
        top_k: int | None = Field(description="Sample from this many tokens", default=None)
        """How many of the most likely tokens the next one is chosen from."""
        seed: int | None = Field(description="For repeatable answers", default=None)
        """Left out for providers that know no seed."""
        stop: str | None = Field(description="Text that ends the answer", default=None)
        """Only one text can be given."""

    def __init__(self, name: str | None) -> None:
        self._name = name
        self.model_id = "mull" if name is None else f"mull/{name}"

    def get_key(self, explicit_key: str | None = None) -> str | None:
        """The key given with `--key`; otherwise mull finds it."""
        return explicit_key or self.key

    @property
    def attachment_types(self) -> frozenset[str]:
        """What the model takes as attachments, by the catalog."""
        from mull.agent import shared

        try:
            taken = shared.engine().target(self._name).facts.input
        except MullError:  # no model is configured: a request says so
            return frozenset()
        return frozenset(kind for name in taken for kind in _KINDS.get(name, ()))

    def _asked(self, prompt: Any, key: str | None) -> dict[str, Any]:
        options = prompt.options.model_dump(exclude_none=True)
        settings = {key: options.pop(name) for name, key in _SETTINGS.items() if name in options}
        messages = [read for message in prompt.messages for read in _read(message)]
        tools = [
            {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
            for tool in prompt.tools
        ]
        asked = {"messages": messages, "model": self._name, "key": key, "tools": tools}
        return {**asked, "settings": settings, "schema": prompt.schema, **options}


class MullModel(_Shared, llm.KeyModel):
    """A model of mull's for llm's synchronous calls and its command."""

    def execute(
        self, prompt: Any, stream: bool, response: Any, conversation: Any, key: str | None = None
    ) -> Iterator[StreamEvent]:
        """Send one request and tell llm of the answer as it arrives."""
        from mull.agent.complete import complete_stream

        pieces = answers.Pieces(whole=prompt.schema is not None)
        try:
            with complete_stream(**self._asked(prompt, key)) as events:
                for event in events:
                    yield from _told(pieces.take(event))
                yield from _end(pieces, events.result, response)
        except MullError as error:
            raise llm.ModelError(str(error)) from error


class AsyncMullModel(_Shared, llm.AsyncKeyModel):
    """A model of mull's for llm's asynchronous calls."""

    async def execute(
        self, prompt: Any, stream: bool, response: Any, conversation: Any, key: str | None = None
    ) -> AsyncIterator[StreamEvent]:
        """Send one request and tell llm of the answer as it arrives."""
        from mull.agent.complete import complete_stream_async

        pieces = answers.Pieces(whole=prompt.schema is not None)
        try:
            async with complete_stream_async(**self._asked(prompt, key)) as events:
                async for event in events:
                    for told in _told(pieces.take(event)):
                        yield told
                for told in _end(pieces, events.result, response):
                    yield told
        except MullError as error:
            raise llm.ModelError(str(error)) from error


def _told(pieces: Iterable[answers.Piece]) -> Iterator[StreamEvent]:
    kinds = {"thinking": "reasoning", "text": "text"}
    for piece in pieces:
        if piece.kind != "call":
            yield StreamEvent(kinds[piece.kind], piece.text, part_index=piece.at)
            continue
        if piece.id:
            yield StreamEvent("tool_call_name", piece.name, piece.at, piece.id)
        yield StreamEvent("tool_call_args", piece.text, piece.at)


def _end(pieces: answers.Pieces, result: Result, response: Any) -> Iterator[StreamEvent]:
    yield from _told(pieces.end(result))
    for call in answers.open_calls(result.messages):
        arguments = call.input or ({"_raw": call.arguments} if call.arguments else {})
        response.add_tool_call(llm.ToolCall(call.name, arguments, call.id))
    kept = {_KEPT: answers.pack(result, pieces.text)}
    yield StreamEvent("reasoning", "", provider_metadata=kept)
    usage = result.usage
    if usage is not None:
        details = {} if usage.reasoning is None else {"reasoning_tokens": usage.reasoning}
        response.set_usage(input=usage.input, output=usage.output, details=details or None)
    response.set_resolved_model(result.model)
    response.response_json = answers.facts_of(result)


def _read(message: Any) -> Iterator[Message]:
    """A message of llm's in mull's form."""
    parts = message.parts
    if message.role == "assistant":
        yield from _read_answer(parts)
        return
    results = [_result(part) for part in parts if isinstance(part, ToolResultPart)]
    if results:
        yield Message(role="tool", blocks=tuple(results))
    blocks: list[Block] = []
    for part in parts:
        if isinstance(part, TextPart) and part.text:
            blocks.append(TextBlock(part.text))
        elif isinstance(part, AttachmentPart):
            blocks.append(_media(part.attachment))
    if blocks:
        role: Role = "system" if message.role == "system" else "user"
        yield Message(role=role, blocks=tuple(blocks))


def _read_answer(parts: list[Any]) -> list[Message]:
    text = "".join(part.text for part in parts if isinstance(part, TextPart))
    calls = [
        answers.call_of(part.tool_call_id or "", part.name, part.arguments)
        for part in parts
        if isinstance(part, ToolCallPart)
    ]
    for part in parts:
        kept = (part.provider_metadata or {}).get(_KEPT)
        if kept is not None:
            return answers.unpack(kept, text, calls)
    thoughts = [part.text for part in parts if isinstance(part, ReasoningPart)]
    return [answers.foreign_answer(thoughts, text, calls)]


def _result(part: Any) -> ToolResultBlock:
    media = tuple(map(_media, part.attachments))
    failed = part.exception is not None
    return ToolResultBlock(part.tool_call_id or "", part.output or "", failed, media)


def _media(attachment: Any) -> MediaBlock:
    if attachment.url:
        return answers.media_of(attachment.resolve_type(), None, attachment.url)
    return answers.media_of(attachment.resolve_type(), attachment.base64_content(), None)
