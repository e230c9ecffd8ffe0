"""What a tool is called in a request: `mcp__SERVER__tool`, in characters that all APIs take.

A name depends on server and tool alone, never on what else is offered, so it stays the same for
the prompt cache, for a stored history and for what a person has approved. Where characters must
be replaced or cut, a hash of the true name keeps two tools from becoming one.
"""

from __future__ import annotations

import re
from hashlib import sha256

__all__ = ["PREFIX", "tool_name"]

PREFIX = "mcp__"
LONGEST = 64
"""What the strictest API takes (OpenAI and Anthropic)."""
_HASH = 8
_REFUSED = re.compile(r"[^A-Za-z0-9_-]")


def tool_name(server: str, tool: str) -> str:
    """The name by which a model calls this tool of this server."""
    plain = f"{PREFIX}{server}__{_REFUSED.sub('_', tool)}"
    if plain == f"{PREFIX}{server}__{tool}" and len(plain) <= LONGEST and tool:
        return plain
    mark = sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{plain[: LONGEST - _HASH - 1]}_{mark}"
