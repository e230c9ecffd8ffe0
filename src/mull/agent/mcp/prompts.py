"""Prompts of servers: messages with parameters, offered as commands `/server:name`.

A prompt comes from the server, so it is sent unchanged: nothing in it is looked up or expanded.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from mull.agent.mcp.results import cut, outcome_of
from mull.agent.mcp.server import Server
from mull.neutral.blocks import Block, TextBlock
from mull.neutral.errors import LocalError
from mull.neutral.messages import Message

__all__ = ["Prompt", "prompts_of"]

_MOST_PROMPTS = 100
_LONGEST_LINE = 200


class Prompt:
    """One prompt of one server."""

    def __init__(self, server: Server, listed: Mapping[str, Any]) -> None:
        self._server = server
        self._name = str(listed["name"])
        self.command = f"{server.name}:{self._name}"
        said = str(listed.get("description") or listed.get("title") or "a prompt from the server")
        self.line = "".join(filter(str.isprintable, " ".join(said.split())))[:_LONGEST_LINE]
        arguments = listed.get("arguments") or []
        self.arguments = tuple(str(one["name"]) for one in arguments)
        self._required = tuple(str(one["name"]) for one in arguments if one.get("required"))

    @property
    def usage(self) -> str:
        """What follows the command: `LANGUAGE [STYLE]`."""
        return " ".join(
            name.upper() if name in self._required else f"[{name.upper()}]"
            for name in self.arguments
        )

    async def message(self, text: str) -> Message:
        """The message to the model, with its parameters filled from the typed text.

        Raises:
            LocalError: arguments are missing, or there are too many.
            RemoteError: the server did not return the prompt.
        """
        result = await self._server.get_prompt(self._name, self.read(text))
        blocks: list[Block] = []
        for said in result.get("messages") or []:
            outcome = outcome_of({"content": [said.get("content") or {}]})
            prefix = "" if said.get("role") == "user" else "Assistant: "
            if outcome.text:
                blocks.append(TextBlock(cut(prefix + outcome.text)))
            blocks += outcome.media
        if not blocks:
            raise LocalError(f"the prompt {self.command} is empty")
        return Message(role="user", blocks=tuple(blocks))

    def read(self, text: str) -> dict[str, str]:
        """The arguments: words in order, or `name=value`; the last takes the rest.

        Raises:
            LocalError: arguments are missing, or there are too many.
        """
        given: dict[str, str] = {}
        places = list(self.arguments)
        words = _words(text)
        for at, word in enumerate(words):
            name, equals, value = word.partition("=")
            if equals and name in self.arguments:
                given[name] = value
                places = [place for place in places if place != name]
            elif len(places) == 1 and at + 1 < len(words):
                given[places.pop()] = " ".join(words[at:])
                break
            elif places:
                given[places.pop(0)] = word
            else:
                raise LocalError(f"too many arguments: /{self.command} {self.usage}".rstrip())
        missing = [name for name in self._required if name not in given]
        if missing:
            raise LocalError(f"missing {', '.join(missing)}: /{self.command} {self.usage}".rstrip())
        return given


def prompts_of(server: Server) -> list[Prompt]:
    """The prompts of a server that can be typed: names without spaces, each once."""
    listed = {str(one.get("name")): one for one in reversed(server.listing.prompts)}
    usable = (name for name in sorted(listed) if name and name.isprintable() and " " not in name)
    return [Prompt(server, listed[name]) for name in usable][:_MOST_PROMPTS]


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a lone apostrophe is not a quotation mark
        return text.split()
