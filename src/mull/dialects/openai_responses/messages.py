"""Encodes messages as input items, in the order in which the endpoint sent or expects them.

Policy has kept the reasoning that the endpoint can use (encrypted, or with its raw text), each with
the item that followed it. An item whose preceding reasoning is not sent loses its id, because an
endpoint that knows the id requires the reasoning too (vercel/ai#7099). Every message is encoded
independently, so a longer history starts with the items of the shorter one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, TypeAlias

import msgspec

from mull.dialects.openai_responses import DIALECT
from mull.dialects.openai_responses.shapes import (
    FREE_CALL,
    free_text,
    is_free_call,
    is_same_item,
    kept_rest,
    unpack_part,
    unpack_parts,
)
from mull.neutral.assemble import read_object
from mull.neutral.blocks import (
    Block,
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    own_keys,
)
from mull.neutral.messages import Message
from mull.neutral.request import Note
from mull.neutral.target import Target

__all__ = ["InputItems", "item_groups"]

_Item: TypeAlias = dict[str, Any]

CALL_ID_LIMIT = 64
RESULTS = ("function_call_output", f"{FREE_CALL}_output")
"""Types of results: of calls with an object as input, and of calls with a text."""
_CALLS = ("custom_tool_call", "tool_search_call", "shell_call", "apply_patch_call")
"""Items other than `function_call` that the client answers and that need no id of their own."""
_to_json = msgspec.json.Encoder().encode

_NOTES = (
    ("unpaired", "history", "{n} item{s} of hosted tools not sent: their reasoning is left out"),
    ("unsendable", "history", "{n} attachment{s} not sent: this API does not accept such media"),
    ("errors", "history", "{n} failed tool result{s} sent as text: this API has no error flag"),
)


class InputItems:
    """The input of a request, and notes about what it could not contain."""

    def __init__(self, target: Target) -> None:
        self.items: list[_Item] = []
        self._target = target
        self._system_role = "developer" if target.compat.system_role == "developer" else "system"
        self._left = dict.fromkeys((name for name, _, _ in _NOTES), 0)
        self._calls_left: set[str] = set()
        self._free_calls: set[str] = set()

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes about what was left out, if anything."""
        return tuple(
            Note(about, text.format(n=n, s="" if n == 1 else "s"), warning=name == "unsendable")
            for name, about, text in _NOTES
            if (n := self._left[name])
        )

    def add_system(self, text: str) -> None:
        """Add a system prompt as a separate item."""
        self.items += self._given(self._system_role, [TextBlock(text)])

    def add(self, message: Message) -> None:
        """Add the items of one message."""
        if message.role == "assistant":
            self.items += self._answer(message)
        else:
            inside = self._target.compat.system_inside
            role = self._system_role if (message.role, inside) == ("system", "system") else "user"
            self.items += self._given(role, message.blocks)

    def _given(self, role: str, blocks: Sequence[Block]) -> Iterator[_Item]:
        """Items from a user, a program or a tool."""
        content: list[_Item] = []
        for block in blocks:
            if isinstance(block, ToolResultBlock):
                if content:
                    yield {"type": "message", "role": role, "content": content}
                    content = []
                yield self._result(block)
            elif isinstance(block, TextBlock):
                content.append({"type": "input_text", "text": block.text})
            elif isinstance(block, MediaBlock):
                content += self._media(block)
            elif isinstance(block, OpaqueBlock) and not _is_output(block):
                content.append(block.data)
            elif isinstance(block, OpaqueBlock) and block.data.get("call_id") in self._calls_left:
                self._left["unpaired"] += 1
            elif isinstance(block, OpaqueBlock):
                yield block.data
        if content:
            yield {"type": "message", "role": role, "content": content}

    def _result(self, block: ToolResultBlock) -> _Item:
        self._left["errors"] += block.is_error
        output: str | list[_Item] = block.output
        if block.media:
            texts = [{"type": "input_text", "text": block.output}] if block.output else []
            output = [*texts, *(part for one in block.media for part in self._media(one))]
        return {
            "type": RESULTS[block.call_id in self._free_calls],
            "call_id": _fitting(block.call_id),
            "output": output,
        }

    def _media(self, block: MediaBlock) -> list[_Item]:
        data = f"data:{block.media_type};base64,{block.data}" if block.data else None
        if block.media_type.startswith("image/") and (address := data or block.url):
            return [{"type": "input_image", "image_url": address, "detail": "auto"}]
        if block.media_type.startswith(("audio/", "video/")):
            self._left["unsendable"] += 1
            return []
        if data:
            name = block.name or "file"
            return [{"type": "input_file", "filename": name, "file_data": data}]
        if block.url:
            return [{"type": "input_file", "file_url": block.url}]
        self._left["unsendable"] += 1
        return []

    def _answer(self, message: Message) -> list[_Item]:
        """The items of an answer; `paired` means that the reasoning before an item is sent."""
        items: list[_Item] = []
        paired = False
        for group in item_groups(message.blocks):
            block = group[0]
            if isinstance(block, ThinkingBlock):
                reasoning = _reasoning([one for one in group if isinstance(one, ThinkingBlock)])
                paired = reasoning is not None
                items += [reasoning] if reasoning else []
            elif isinstance(block, TextBlock):
                texts = [one for one in group if isinstance(one, TextBlock)]
                items += _message(texts, with_id=paired)
            elif isinstance(block, ToolCallBlock):
                items.append(self._call(block, with_id=paired))
            elif isinstance(block, OpaqueBlock):
                items += self._opaque(block, message, paired=paired)
            elif isinstance(block, MediaBlock):
                self._left["unsendable"] += 1
        return items

    def _call(self, block: ToolCallBlock, *, with_id: bool) -> _Item:
        arguments = block.arguments
        if arguments is None:
            arguments = _to_json(block.input).decode()
        own = _sent(own_keys(block.wire, DIALECT), with_id=with_id)
        item: _Item = {"call_id": _fitting(block.id), "name": block.name}
        if is_free_call(own):
            self._free_calls.add(block.id)
            return {**item, "input": free_text(arguments), **own}
        self._free_calls.discard(block.id)
        finished = own.get("arguments")  # if the finished item differs from its deltas
        if isinstance(finished, str) and read_object(finished) is not None:
            arguments = finished
        item = {"type": "function_call", **item, "arguments": arguments}
        return item | {key: value for key, value in own.items() if key not in item}

    def _opaque(self, block: OpaqueBlock, message: Message, *, paired: bool) -> list[_Item]:
        """A call that the client answers can be sent without its id. A hosted tool's item cannot,
        so it is sent only with its reasoning."""
        thought = message.usage is None or message.usage.reasoning != 0
        if paired or not thought or not self._target.facts.reasoning:
            return [block.data]
        if block.data.get("type") in _CALLS:
            return [_sent(block.data, with_id=False)]
        self._left["unpaired"] += 1
        if isinstance(call_id := block.data.get("call_id"), str):
            self._calls_left.add(call_id)
        return []


def _is_output(block: OpaqueBlock) -> bool:
    """Whether it is a separate item, the result of a call, rather than part of a message."""
    return str(block.data.get("type")).endswith("_output")


def item_groups(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Groups of blocks that came from one item: the summary and raw text of a reasoning item, or
    the parts of a message."""
    group: list[Block] = []
    for block in blocks:
        if group and not _is_same_item(group[-1], block):
            yield group
            group = []
        group.append(block)
    if group:
        yield group


def _is_same_item(before: Block, block: Block) -> bool:
    if isinstance(before, ThinkingBlock) and isinstance(block, ThinkingBlock):
        return is_same_item(before, block)
    if isinstance(before, TextBlock) and isinstance(block, TextBlock):
        item_id = own_keys(block.wire, DIALECT).get("id")
        return item_id is not None and own_keys(before.wire, DIALECT).get("id") == item_id
    return False


def _reasoning(blocks: Sequence[ThinkingBlock]) -> _Item | None:
    """The reasoning item as it was received; None if the endpoint could not use it.

    Raw text is returned to the servers that send it (llama.cpp, vLLM, DeepSeek); OpenAI, which
    rejects raw text, sends none. A status is never sent. A summary or an id alone is useless to an
    endpoint that was told not to store anything (anomalyco/opencode#7724).
    """
    item: _Item = {"type": "reasoning"}
    parts: dict[str, list[_Item]] = {"summary": [], "raw": []}
    encrypted: str | None = None
    for block in blocks:
        item.update(kept_rest(own_keys(block.wire, DIALECT)))
        if block.id is not None:
            item["id"] = block.id
        parts[block.kind] += unpack_parts(block)
        encrypted = block.encrypted if block.encrypted is not None else encrypted
    item["summary"] = parts["summary"]
    if encrypted is not None:
        item["encrypted_content"] = encrypted
    if any(block.thought for block in blocks if block.kind == "raw"):
        item["content"] = parts["raw"]
    return item if encrypted or "content" in item else None


def _message(blocks: Sequence[TextBlock], *, with_id: bool) -> list[_Item]:
    kept = [own_keys(block.wire, DIALECT) for block in blocks]
    if len(blocks) == 1 and not blocks[0].text and not kept[0]:
        return []
    written = [unpack_part(block.text, own) for block, own in zip(blocks, kept, strict=True)]
    parts = [part for part in written if part is not None]
    item: _Item = {"type": "message", "role": "assistant"}
    rest = {key: value for key, value in kept[0].items() if key not in ("part", "status")}
    own = _sent(rest, with_id=with_id)
    if "id" in own:
        item["status"] = kept[0].get("status", "completed")
    return [{**item, **own, "content": parts}]


def _sent(kept: _Item, *, with_id: bool) -> _Item:
    return {key: value for key, value in kept.items() if with_id or key != "id"}


def _fitting(call_id: str) -> str:
    """The id for a call and its result; an id too long for this API is always shortened to the same
    id."""
    if len(call_id) <= CALL_ID_LIMIT:
        return call_id
    return f"{call_id[:39]}-{sha256(call_id.encode('utf-8', 'replace')).hexdigest()[:24]}"
