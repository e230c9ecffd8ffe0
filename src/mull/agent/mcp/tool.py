"""A server's tools as any other tools that a model may call: names, calls, and what is answered.

A tool is called `mcp__SERVER__tool`, in characters that all APIs take. A name depends on server and
tool alone, never on what else is offered, so it stays the same for the prompt cache, for a stored
history and for what a person has approved. Where characters must be replaced or cut, a hash of the
true name keeps two tools from becoming one.

Of an answer, text is joined, images and documents become media, structured content is shown as
JSON unless the text says the same. What is too large for a conversation is cut, and the cut says
how much.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec

from mull.agent.mcp.server import Server
from mull.agent.tools.tool import (
    Outcome,
    PreparedCall,
    Preview,
    ToolContext,
    ToolFailure,
    input_of,
    json_subject,
)
from mull.neutral.blocks import MediaBlock, ToolCallBlock
from mull.neutral.errors import RemoteError
from mull.neutral.request import Tool
from mull.policy.approval import Asked

__all__ = ["MOST_CHARACTERS", "McpTool", "cut", "offered_tools", "outcome_of", "tool_name"]

MOST_TOOLS = 200
"""Tools of one server that are offered; more would fill the context before the first word."""
_LONGEST_DESCRIPTION = 8_000
_LARGEST_SCHEMA = 64_000
_SHOWN = 4_000

_PREFIX = "mcp__"
_LONGEST = 64
"""What the strictest API takes (OpenAI and Anthropic)."""
_HASH = 8
_REFUSED = re.compile(r"[^A-Za-z0-9_-]")

MOST_CHARACTERS = 64_000
"""The longest text that a result may have."""
MOST_MEDIA = 5_000_000
"""The most characters of one attachment; Anthropic takes images up to 5 MB."""
_MOST_ATTACHMENTS = 20
_SENT = ("image/", "audio/", "application/pdf")


class McpTool:
    """One tool of one server."""

    def __init__(self, server: Server, listed: dict[str, Any]) -> None:
        self._server = server
        self._name: str = listed["name"]
        hints = listed.get("annotations") or {}
        schema = {key: value for key, value in listed["inputSchema"].items() if key != "$schema"}
        self.definition = Tool(
            tool_name(server.name, self._name),
            cut(listed.get("description") or hints.get("title") or "", _LONGEST_DESCRIPTION),
            {"type": "object", **schema},
        )
        only_reads = hints.get("readOnlyHint") is True
        self._destroys = hints.get("destructiveHint") is True
        trusted = self._name in server.config.read_only
        self.changes = not trusted and (self._destroys or not only_reads)
        self.source = f"mcp:{server.name}"

    def prepare(self, call: ToolCallBlock) -> PreparedCall:
        """The server, the tool and what it is to be given; the server checks what that is.

        Raises:
            ToolFailure: the arguments are no object.
        """
        given = input_of(call, self.definition.parameters)
        asked = Asked(self.definition.name, self.changes, json_subject(given))

        async def ask(context: ToolContext) -> Outcome:
            try:
                return outcome_of(await self._server.call(self._name, given, context.emit))
            except RemoteError as error:
                raise ToolFailure(str(error)) from None

        return PreparedCall(call, self.source, asked, self._preview(given), ask)

    def _preview(self, given: dict[str, Any]) -> Preview:
        name = "".join(char if char.isprintable() else "?" for char in self._name[:100])
        title = f"{self._server.name}: {name}{' (may destroy something)' * self._destroys}"
        if not given:
            return Preview(title)
        return Preview(title, cut(msgspec.json.format(msgspec.json.encode(given)).decode(), _SHOWN))


def offered_tools(server: Server) -> tuple[list[McpTool], list[str]]:
    """The tools of a server that are offered, by name, and what there is to say of the others."""
    wanted, read_only = server.config.tools, server.config.read_only
    listed = {tool["name"]: tool for tool in reversed(server.listed)}
    asked_for = dict.fromkeys((*(wanted or ()), *read_only))
    notes = [f"it has no tool {name}" for name in asked_for if name not in listed]
    names = sorted(name for name in listed if wanted is None or name in wanted)
    huge = [name for name in names if _is_huge(listed[name]["inputSchema"])]
    notes += [f"{tool_name(server.name, name)} is left out: its schema is large" for name in huge]
    fitting = [name for name in names if name not in huge]
    if len(fitting) > MOST_TOOLS:
        notes.append(f"{MOST_TOOLS} of its {len(fitting)} tools are offered: choose with tools")
    return [McpTool(server, listed[name]) for name in fitting[:MOST_TOOLS]], notes


def _is_huge(schema: dict[str, Any]) -> bool:
    return len(msgspec.json.encode(schema)) > _LARGEST_SCHEMA


def tool_name(server: str, tool: str) -> str:
    """The name by which a model calls this tool of this server."""
    plain = f"{_PREFIX}{server}__{_REFUSED.sub('_', tool)}"
    if plain == f"{_PREFIX}{server}__{tool}" and len(plain) <= _LONGEST and tool:
        return plain
    mark = sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{plain[: _LONGEST - _HASH - 1]}_{mark}"


def outcome_of(result: Mapping[str, Any]) -> Outcome:
    """What the result of a `tools/call`, as its JSON, comes to."""
    texts: list[str] = []
    media: list[MediaBlock] = []
    for part in result.get("content") or []:
        found = _part(part)
        if isinstance(found, str):
            texts.append(found)
        elif len(media) < _MOST_ATTACHMENTS:
            media.append(found)
        else:
            texts.append(f"[{found.media_type} left out: {_MOST_ATTACHMENTS} attachments are sent]")
    structured = result.get("structuredContent")
    if structured is not None and not _is_said(structured, texts):
        texts.append(msgspec.json.encode(structured).decode())
    is_error = bool(result.get("isError"))
    output = cut("\n".join(texts))
    if not output and not media:
        output = "the tool failed and gave no reason" if is_error else "(no output)"
    return Outcome(output, is_error, tuple(media))


def cut(text: str, most: int = MOST_CHARACTERS) -> str:
    """The text, or its beginning and end with what was left out between them."""
    if len(text) <= most:
        return text
    tail = most // 4
    head = most - tail
    left_out = len(text) - most
    return f"{text[:head]}\n[… {left_out:,} of {len(text):,} characters cut …]\n{text[-tail:]}"


def _part(part: Mapping[str, Any]) -> str | MediaBlock:
    match part:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image" | "audio", "data": str(data)}:
            return _media(str(part.get("mimeType") or "image/png"), data)
        case {"type": "resource", "resource": dict(resource)}:
            return _resource(resource)
        case {"type": "resource_link", "uri": str(uri)}:
            named = (str(part[key]) for key in ("title", "description") if part.get(key))
            return f"resource: {' – '.join([uri, *named])}"
        case _:
            return f"[content of the kind {str(part.get('type'))[:40]!r}, not shown]"


def _resource(resource: Mapping[str, Any]) -> str | MediaBlock:
    uri = str(resource.get("uri") or "")
    if isinstance(text := resource.get("text"), str):
        return f"{uri}:\n{text}" if uri else text
    kind = str(resource.get("mimeType") or "application/octet-stream")
    data = str(resource.get("blob") or "")
    if kind.startswith(_SENT):
        return _media(kind, data, uri or None)
    return f"[{uri}: {kind}, {_bytes(data):,} bytes, not shown]"


def _media(kind: str, data: str, name: str | None = None) -> str | MediaBlock:
    if len(data) > MOST_MEDIA:
        return f"[{kind} of {_bytes(data):,} bytes left out: too large to be sent]"
    return MediaBlock(kind, data=data, name=name)


def _bytes(data: str) -> int:
    return len(data) * 3 // 4 - data[-2:].count("=")


def _is_said(structured: Any, texts: list[str]) -> bool:
    """Whether the text holds the structured content already, as the protocol asks servers to.

    The Python SDK wraps what is no object in `result` and writes a list as one text per item.
    """
    wrapped = structured if isinstance(structured, dict) and set(structured) == {"result"} else {}
    wanted = [structured, *wrapped.values()]
    said = [_value(text) for text in texts]
    return bool(texts) and any(value == said or value in said or value in texts for value in wanted)


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError):
        return text
