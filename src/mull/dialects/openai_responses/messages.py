"""Encodes messages as input items, in the order in which the endpoint sent or expects them.

Policy has kept the reasoning that the endpoint can use (encrypted, or with its raw text), each with
the item that followed it. An item whose preceding reasoning is not sent loses its id, because an
endpoint that knows the id requires the reasoning too (vercel/ai#7099). Every message is encoded
independently, so a longer history starts with the items of the shorter one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

from mull.dialects.extras import Extras, lost_note, written_with
from mull.dialects.openai_responses import DIALECT
from mull.dialects.openai_responses.shapes import (
    INPUT_ITEMS,
    RESULTS,
    free_text,
    is_free_call,
    is_same_item,
    kept_rest,
    stands_alone,
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

__all__ = ["InputItems", "item_groups", "write_media", "write_result"]

_Item: TypeAlias = dict[str, Any]

CALL_ID_LIMIT = 64
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
        self._lost: list[str] = []

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes about what was left out, if anything."""
        notes = [lost_note(self._lost)] if self._lost else []
        notes += (
            Note(about, text.format(n=n, s="" if n == 1 else "s"), warning=name != "errors")
            for name, about, text in _NOTES
            if (n := self._left[name])
        )
        return tuple(notes)

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
            self.items += self._given(role, message.blocks, Extras(DIALECT, message).keys)

    def _given(
        self, role: str, blocks: Sequence[Block], keys: Mapping[str, Any] = MappingProxyType({})
    ) -> Iterator[_Item]:
        """Items from a user, a program or a tool; `keys` are other keys of a message."""
        content: list[_Item] = []
        for block in blocks:
            if isinstance(block, ToolResultBlock):
                if content:
                    yield {"type": "message", "role": role, "content": content, **keys}
                    content = []
                yield self._result(block)
            elif isinstance(block, TextBlock):
                part = {"type": "input_text", "text": block.text}
                content.append(written_with(part, block.wire, DIALECT))
            elif isinstance(block, MediaBlock):
                content += self._media(block)
            elif isinstance(block, OpaqueBlock) and not _is_item(block):
                content.append(block.data)
            elif isinstance(block, OpaqueBlock) and self._lost_its_call(block):
                self._left["unpaired"] += 1
            elif isinstance(block, OpaqueBlock):
                if content:
                    yield {"type": "message", "role": role, "content": content, **keys}
                    content = []
                yield block.data
        if content or (keys and not blocks):
            yield {"type": "message", "role": role, "content": content, **keys}

    def _lost_its_call(self, block: OpaqueBlock) -> bool:
        call_id = block.data.get("call_id")
        return isinstance(call_id, str) and call_id in self._calls_left

    def _result(self, block: ToolResultBlock) -> _Item:
        self._left["errors"] += block.is_error
        self._left["unsendable"] += sum(write_media(one) is None for one in block.media)
        kind = RESULTS[block.call_id in self._free_calls]
        result = {**write_result(block), "type": kind, "call_id": _fitting(block.call_id)}
        return written_with(result, block.wire, DIALECT)

    def _media(self, block: MediaBlock) -> list[_Item]:
        part = write_media(block)
        self._left["unsendable"] += part is None
        return [] if part is None else [written_with(part, block.wire, DIALECT)]

    def _answer(self, message: Message) -> list[_Item]:
        """The items of an answer; `paired` means that the reasoning before an item is sent."""
        items: list[_Item] = []
        extras = Extras(DIALECT, message)
        paired = False
        for group in item_groups(message.blocks):
            block = group[0]
            if isinstance(block, ThinkingBlock):
                reasoning = _reasoning([one for one in group if isinstance(one, ThinkingBlock)])
                paired = reasoning is not None
                items += [_with_extras(reasoning, extras, "reasoning")] if reasoning else []
                if not reasoning:
                    extras.skip("reasoning")
            elif isinstance(block, TextBlock):
                texts = [one for one in group if isinstance(one, TextBlock)]
                written = _message(texts, with_id=paired)
                items += [_with_extras(one, extras, "message") for one in written]
            elif isinstance(block, ToolCallBlock):
                call = self._call(block, with_id=paired)
                items.append(extras.write(call, "function_call"))
            elif isinstance(block, OpaqueBlock):
                items += self._opaque(block, message, paired=paired)
            elif isinstance(block, MediaBlock):
                self._left["unsendable"] += 1
        self._lost += extras.lost()
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
        so it is sent only with its reasoning; other items are always sent, and those of an answer
        whose origin is unknown: then nothing that belonged to them was left out."""
        if message.origin is None or stands_alone(block) or not _is_hosted(block):
            return [block.data]
        thought = message.usage is None or message.usage.reasoning != 0
        if paired or not thought or not self._target.facts.reasoning:
            return [block.data]
        if block.data.get("type") in _CALLS:
            return [_sent(block.data, with_id=False)]
        self._left["unpaired"] += 1
        if isinstance(call_id := block.data.get("call_id"), str):
            self._calls_left.add(call_id)
        return []


def _is_item(block: OpaqueBlock) -> bool:
    """Whether it is a separate item rather than part of a message."""
    kind = str(block.data.get("type"))
    return stands_alone(block) or kind.endswith("_output") or kind in INPUT_ITEMS


def _is_hosted(block: OpaqueBlock) -> bool:
    """Whether it is the item of a hosted tool, made by the reasoning before it. Of an unknown item
    nobody can say so."""
    kind = str(block.data.get("type"))
    return kind.endswith("_call") or kind.startswith("mcp_") or "call_id" in block.data


def _with_extras(item: _Item, extras: Extras, kind: str) -> _Item:
    """An item of an answer, with what its client added to it and to its parts."""
    written = extras.write(item, kind)
    for key in ("summary", "content"):
        if key in item:  # a client may have added one of its own
            parts = extras.parts_of(kind)
            written[key] = [extras.write(part, parts) for part in written[key]]
    return written


def write_result(block: ToolResultBlock) -> _Item:
    """A result with what every client writes in it."""
    output: str | list[_Item] = block.output
    if block.media:
        texts = [{"type": "input_text", "text": block.output}] if block.output else []
        shown = ((write_media(one), one.wire) for one in block.media)
        output = [*texts, *(written_with(part, wire, DIALECT) for part, wire in shown if part)]
    return {"type": RESULTS[0], "call_id": block.call_id, "output": output}


def write_media(block: MediaBlock) -> _Item | None:
    """The part of an attachment; None if this API has none for it."""
    data = f"data:{block.media_type};base64,{block.data}" if block.data else None
    if block.media_type.startswith("image/") and (address := data or block.url):
        return {"type": "input_image", "image_url": address, "detail": "auto"}
    if block.media_type.startswith(("audio/", "video/")):
        return None
    if data:
        return {"type": "input_file", "filename": block.name or "file", "file_data": data}
    return {"type": "input_file", "file_url": block.url} if block.url else None


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
