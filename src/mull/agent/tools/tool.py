"""What every tool offers, wherever it comes from: built in, a Python function, an MCP server.

The runner knows nothing of a tool but this. A tool describes itself to the model, says whether it
changes anything, shows a person what a call would do, and runs.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

from mull.neutral.blocks import ToolCallBlock, ToolResultBlock, Value
from mull.neutral.request import Tool

__all__ = ["Preview", "RunnableTool", "ToolContext", "ToolFailure"]


class Preview(Value, frozen=True):
    """What a call would do, for a person: one line, and a diff or the whole command below it."""

    title: str
    detail: str = ""
    kind: Literal["text", "diff", "command"] = "text"


class ToolContext(Protocol):
    """What a running tool may use."""

    def emit(self, text: str) -> None:
        """Show output while it comes."""


class RunnableTool(Protocol):
    """A tool that the model may call."""

    @property
    def definition(self) -> Tool:
        """Name, description and JSON schema, as the model gets them."""

    @property
    def changes(self) -> bool:
        """Whether a call may change anything; what is False runs without asking."""

    @property
    def source(self) -> str:
        """Where the tool comes from: `built in`, `function`, `mcp:NAME`."""

    def preview(self, input: dict[str, Any]) -> Preview:
        """What this call would do. Never raises and never changes anything."""

    async def run(self, call: ToolCallBlock, context: ToolContext) -> ToolResultBlock:
        """The call's result. Whatever goes wrong is an error result; only cancelling raises."""


class ToolFailure(Exception):
    """Why a call cannot be done, in words that the model can act on."""
