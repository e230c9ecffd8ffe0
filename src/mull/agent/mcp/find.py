"""Tools of servers on demand: if there are many, the model searches for those it needs.

The definitions of fifty tools are thousands of tokens in every request. Above a number of tools or
tokens, the request contains `find_tools` instead of the servers' tools; what it finds is offered
from the next request on. A tool that was found stays, because removing it would invalidate the
prompt cache again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from mull.agent.mcp.results import cut
from mull.agent.tools.shown import one_line
from mull.agent.tools.tool import (
    Outcome,
    PreparedCall,
    Preview,
    RunnableTool,
    ToolContext,
    ToolFailure,
    input_of,
    json_subject,
    read_arguments,
    schema_of,
)
from mull.neutral.blocks import ToolCallBlock
from mull.neutral.patterns import pattern
from mull.neutral.request import Tool
from mull.policy.approval import Asked

__all__ = ["FIND_TOOLS", "OnDemand"]

FIND_TOOLS = "find_tools"
_MOST_FOUND = 8
_LONGEST_NAMES = 6_000
_BYTES_PER_TOKEN = 4
_WORDS = pattern(r"[^\W_]+")
_COMMON = frozenset(
    "a an and as at by for from in is it of on or that the this to tool with".split()
)


class OnDemand:
    """Which of the servers' tools are in the request."""

    def __init__(self) -> None:
        self._found: dict[str, None] = {}
        self._sizes: dict[str, tuple[Tool, int]] = {}

    def narrow(
        self, tools: Mapping[str, RunnableTool], most: int, most_tokens: int
    ) -> Mapping[str, RunnableTool]:
        """The tools, or `find_tools` instead of server tools that were not searched for yet."""
        served = {n: tool for n, tool in tools.items() if tool.source.startswith("mcp:")}
        if len(served) <= most and sum(map(self._tokens, served.values())) <= most_tokens:
            return tools
        own = {name: tool for name, tool in tools.items() if name not in served}
        found = {name: served[name] for name in self._found if name in served}
        return {**own, FIND_TOOLS: _FindTools(served, self), **found}

    def bring(self, names: Iterable[str]) -> None:
        """Offer these from now on."""
        self._found.update(dict.fromkeys(names))

    def _tokens(self, tool: RunnableTool) -> int:
        definition = tool.definition
        known = self._sizes.get(definition.name)
        if known is None or known[0] is not definition:
            size = len(msgspec.json.encode(definition)) // _BYTES_PER_TOKEN
            known = self._sizes[definition.name] = (definition, size)
        return known[1]


class _Arguments(Struct, frozen=True, forbid_unknown_fields=True):
    query: Annotated[
        str, Meta(description="words that describe what the tool does, or a tool's name")
    ]


_SCHEMA = schema_of(_Arguments)


class _FindTools:
    """The tool that finds tools. It contacts no server."""

    changes = False
    source = "built in"

    def __init__(self, tools: Mapping[str, RunnableTool], demand: OnDemand) -> None:
        self._tools = tools
        self._demand = demand
        self.definition = Tool(FIND_TOOLS, _description(tools), _SCHEMA)

    def prepare(self, call: ToolCallBlock) -> PreparedCall:
        """Search for tools by words.

        Raises:
            ToolFailure: there are no words.
        """
        given = input_of(call, _SCHEMA)
        query = read_arguments(given, _Arguments, _SCHEMA, strict=False).query
        if not query.strip():
            raise ToolFailure("describe in words what the tool should do")

        async def look(context: ToolContext) -> Outcome:
            found = _best(query, self._tools)
            if not found:
                return Outcome(f"no tool matches {query!r}; available: {_names(self._tools)}")
            self._demand.bring(tool.definition.name for tool in found)
            return Outcome(
                cut("\n\n".join(_shown(tool.definition) for tool in found))
                + "\n\nYou can call these tools now."
            )

        asked = Asked(FIND_TOOLS, False, json_subject(given))
        shown = one_line(" ".join(query.split()), 100)
        return PreparedCall(call, self.source, asked, Preview(f"find tools: {shown}"), look)


def _description(tools: Mapping[str, RunnableTool]) -> str:
    return (
        f"Find tools by what they do, or by name: there are {len(tools)} more than you "
        "see. You can call a tool only after finding it here. Search before you say "
        f"that something cannot be done. Available: {_names(tools)}"
    )


def _names(tools: Iterable[str]) -> str:
    return cut(", ".join(tools), _LONGEST_NAMES)


def _shown(tool: Tool) -> str:
    schema = msgspec.json.encode(tool.parameters).decode()
    return f"{tool.name}: {tool.description}\narguments: {schema}"


def _best(query: str, tools: Mapping[str, RunnableTool]) -> list[RunnableTool]:
    """The best matching tools: a word in the name counts for more than one in the text."""
    exact = [name for name in re.split(r"[\s,]+", query) if name in tools]
    if exact:
        return [tools[name] for name in dict.fromkeys(exact)][:_MOST_FOUND]
    words = {word.lower() for word in _WORDS.findall(query)} - _COMMON
    scored = [(_score(words, tool.definition), name) for name, tool in tools.items()]
    best = max((score for score, _ in scored), default=0)
    ranked = sorted((-score, name) for score, name in scored if score and 3 * score >= best)
    return [tools[name] for _, name in ranked[:_MOST_FOUND]]


def _score(words: set[str], tool: Tool) -> int:
    name = {word.lower() for word in _WORDS.findall(tool.name)}
    text = tool.description.lower()
    said = set(_WORDS.findall(text))
    score = 0
    for word in words:
        if word in name:
            score += 3
        elif word in said:
            score += 2
        elif len(word) > 2 and (word in tool.name.lower() or word in text):
            score += 1
    return score
