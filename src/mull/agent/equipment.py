"""What the options of a conversation stand for: its endpoint, its tools and who decides on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mull.agent.given import check_reach, expressed
from mull.agent.options import ConversationOptions
from mull.agent.reach import Reach
from mull.client.connections import ConnectionOptions
from mull.neutral.errors import LocalError
from mull.neutral.request import RequestOptions

if TYPE_CHECKING:
    from mull.agent.approving import ApproveFunction
    from mull.agent.calls import Approve
    from mull.agent.engine import Engine
    from mull.agent.functions import AnyTool
    from mull.agent.mcp.given import GivenServers, McpGiven
    from mull.agent.tools.tool import RunnableTool

__all__ = [
    "admission_from",
    "connection_from",
    "reach_from",
    "servers_from",
    "tools_from",
    "with_tools",
]


def connection_from(options: ConversationOptions) -> dict[str, Any]:
    """How connections are made."""
    names = ConnectionOptions.__optional_keys__
    return {name: value for name, value in options.items() if name in names and value is not None}


def reach_from(options: ConversationOptions) -> Reach:
    """What was given for the provider of the first model."""
    base_url, headers = options.get("base_url"), options.get("headers")
    check_reach(base_url, headers)
    dialect, compat = options.get("dialect"), options.get("compat")
    compat = expressed(compat, "compat") if isinstance(compat, Mapping) else compat
    return Reach(options.get("key"), base_url, headers, dialect, compat)


def with_tools(options: RequestOptions, tools: Mapping[str, RunnableTool]) -> RequestOptions:
    """The options with the definitions of tools that can be run, beside those only offered."""
    if not tools:
        return options
    return replace(options, tools=(*options.tools, *(one.definition for one in tools.values())))


def tools_from(given: Iterable[AnyTool], *, guarded: bool) -> Mapping[str, RunnableTool]:
    """The tools by name; `guarded` ones are run only after approval.

    Raises:
        LocalError: one of them is not a tool; says why.
    """
    listed: object = given
    if not isinstance(listed, Iterable) or isinstance(listed, str | Mapping):
        raise LocalError(f"tools must be a list of functions, not {type(given).__name__}")
    tools = tuple(given)
    if not tools:
        return {}
    from mull.agent import functions

    return functions.tools_from(tools, guarded=guarded)


def admission_from(approve: ApproveFunction | None) -> Callable[[], Approve | None]:
    """What decides on the calls of a turn; None lets them all run."""
    if approve is None:
        return lambda: None
    from mull.agent.approving import approval

    return approval(approve)


def servers_from(given: McpGiven | None, engine: Engine) -> GivenServers | None:
    """The MCP servers, not started yet."""
    if given is None:
        return None
    from mull.agent.mcp.given import GivenServers

    return GivenServers(given, isolated=engine.setup.isolated)
