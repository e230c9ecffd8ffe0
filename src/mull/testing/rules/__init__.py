"""What real endpoints reject, as functions on request bodies.

Each check returns the provider's own words for the first rule a body breaks, or None. They cover
reasoning and tool pairs, not every field of an API.

There are two layers. `check_…` looks at a body alone. `check_…_replay` also knows what was issued
(`mull.testing.ledger`): whether what comes back is what was sent, byte for byte, in its place.
Checks of what is not known to be rejected are separate functions, and say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mull.neutral.messages import Dialect
from mull.testing.rules.anthropic import (
    check_anthropic,
    check_anthropic_chain,
    check_anthropic_replay,
    check_anthropic_rest,
)
from mull.testing.rules.bedrock import check_bedrock
from mull.testing.rules.chat import (
    check_chat,
    check_deepseek,
    check_details_replay,
    check_details_whole,
    check_field_replay,
    check_kimi,
    check_kimi_empty,
)
from mull.testing.rules.gemini import (
    check_gemini,
    check_gemini_calls,
    check_gemini_model,
    check_gemini_places,
    check_gemini_replay,
)
from mull.testing.rules.responses import (
    check_responses,
    check_responses_model,
    check_responses_order,
    check_responses_replay,
)

__all__ = [
    "check_anthropic",
    "check_anthropic_chain",
    "check_anthropic_replay",
    "check_anthropic_rest",
    "check_bedrock",
    "check_chat",
    "check_deepseek",
    "check_details_replay",
    "check_details_whole",
    "check_field_replay",
    "check_gemini",
    "check_gemini_calls",
    "check_gemini_model",
    "check_gemini_places",
    "check_gemini_replay",
    "check_kimi",
    "check_kimi_empty",
    "check_responses",
    "check_responses_model",
    "check_responses_order",
    "check_responses_replay",
    "refusal",
]

Body = Mapping[str, Any]


def refusal(dialect: Dialect, body: Body) -> str | None:
    """Why an endpoint of this dialect, with its strictest known rules, would reject the body."""
    return _CHECKS[dialect](body)


_CHECKS: Mapping[Dialect, Callable[[Body], str | None]] = {
    "anthropic": check_anthropic,
    "gemini": check_gemini,
    "openai-responses": check_responses,
    "openai-chat": check_chat,
    "bedrock-converse": check_bedrock,
}
