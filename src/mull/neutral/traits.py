"""What a dialect itself demands, whoever speaks it. An endpoint's own ways are in its compat.

Each dialect's package has its own, so that whoever decides asks for a trait and not for a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from mull.neutral.blocks import Value
from mull.neutral.messages import Dialect
from mull.neutral.parameters import ParameterName
from mull.neutral.thinking import WriterName

__all__ = ["Traits"]


class Traits(Value, frozen=True):
    """The traits of one dialect.

    `usual_writer` is the shape for thinking that most of its servers take, `key_header` where a
    key goes. `takes` is the form that thoughts go back in: fields of a message, items of their own,
    signed blocks, or parts with signatures. `silence` is what a stream tells while a model thinks:
    `pings`; thoughts (`thoughts`), only if any thinking was `asked` for, only in a `summary`, or as
    the `switch` for thinking lets one expect. `needs_limit`: a request without max_tokens is
    refused, or one with a budget is. `off_forbids_thoughts`: a request that does not think must
    not hold thoughts.
    `needs_carriers_only`: readable thoughts are taken back, but are of no use in a tool chain.
    `needs_follower`: a thought at the end of an answer is refused (tailcallhq/forgecode#2107).
    `takes_fillers`: something can stand in the place of a thought that is missing. `marks_calls`:
    an unsigned call is marked as not the model's own by whoever writes it. `api` is the name of the
    API where its provider has several, and `tools_api` the dialect of the one that takes tools with
    reasoning, where that is another; `buffer` is how many tokens of output are recommended.
    `closes_objects`: it holds an answer to a schema only where every object names all its members.
    `needs_schema`: it holds an answer to a schema, and to nothing less than one.
    `tool_names` is the pattern of the names that its endpoints take, as the strictest of them
    publish it. For a server: `answer_ids` and `call_ids` are how the ids of answers and calls
    begin, `envelope` is the carrier that clients return unread, and with `signs_calls` it stands on
    calls.

    `parameters` are the parameters that the dialect knows and their places in the body: the first
    is written, all are read, and a place with `!` before it says the opposite. `ranges` is what
    they may be, `thinking_ranges` what they may be beside thinking (an empty one: nothing), and
    `defaults` what they are where nothing is said. `id_length` is the longest name of a user or a
    cache; without `blank_stops` a text that ends the answer must hold more than spaces. `extras`
    are other fields that steer the model alone and so may go to another server of the dialect;
    `usual` are values of other fields that say no more than nothing does, and `unneeded` the fields
    of which nothing is lost where they go unread.
    """

    usual_writer: WriterName
    takes: Literal["fields", "items", "signed", "parts"]
    silence: Literal["pings", "summary", "asked", "switch", "thoughts"]
    key_header: Literal["bearer", "x-api-key", "x-goog-api-key"] = "bearer"
    needs_limit: Literal["always", "budget"] | None = None
    off_forbids_thoughts: bool = False
    needs_carriers_only: bool = False
    needs_follower: bool = False
    takes_fillers: bool = False
    marks_calls: bool = False
    api: str | None = None
    tools_api: Dialect | None = None
    buffer: int | None = None
    closes_objects: bool = False
    needs_schema: bool = False
    tool_names: str = "[a-zA-Z0-9_-]{1,64}"
    answer_ids: str = ""
    call_ids: str = "call_"
    envelope: Literal["signature", "encrypted"] = "signature"
    signs_calls: bool = False
    parameters: Mapping[ParameterName, tuple[str, ...]] = {}
    ranges: Mapping[ParameterName, tuple[float, float]] = {}
    thinking_ranges: Mapping[ParameterName, tuple[float, float] | tuple[()]] = {}
    defaults: Mapping[ParameterName, Any] = {}
    id_length: int | None = None
    blank_stops: bool = True
    extras: frozenset[str] = frozenset()
    usual: Mapping[str, Any] = {}
    unneeded: frozenset[str] = frozenset()
