"""What a dialect itself demands, whoever speaks it. An endpoint's own ways are in its compat.

One row per dialect, so that whoever decides asks for a trait and not for a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from mull.neutral.blocks import Value
from mull.neutral.messages import Dialect
from mull.neutral.thinking import WriterName

__all__ = ["TRAITS", "Traits"]


class Traits(Value, frozen=True):
    """The traits of one dialect.

    `usual_writer` is the shape for thinking that most of its servers take, `key_header` where a
    key goes. `needs_limit`: a request without max_tokens is refused. `thinks_at_one`: its models
    think at temperature 1 only. `off_forbids_thoughts`: a request that does not think must not
    hold thoughts. `needs_carriers_only`: readable thoughts are taken back, but are of no use in a
    tool chain. `needs_follower`: a thought at the end of an answer is refused
    (tailcallhq/forgecode#2107).
    """

    usual_writer: WriterName
    key_header: Literal["bearer", "x-api-key", "x-goog-api-key"] = "bearer"
    needs_limit: bool = False
    thinks_at_one: bool = False
    off_forbids_thoughts: bool = False
    needs_carriers_only: bool = False
    needs_follower: bool = False


TRAITS: Mapping[Dialect, Traits] = MappingProxyType(
    {
        "openai-chat": Traits("openai-effort"),
        "openai-responses": Traits("responses", needs_follower=True),
        "anthropic": Traits(
            "anthropic-budget",
            key_header="x-api-key",
            needs_limit=True,
            thinks_at_one=True,
            off_forbids_thoughts=True,
            needs_follower=True,
        ),
        "gemini": Traits("gemini-budget", key_header="x-goog-api-key", needs_carriers_only=True),
    }
)
