"""What a dialect itself requires, whoever speaks it. An endpoint's own behaviour is in its compat.

Each dialect's package has its own, so that decisions depend on a trait and not on a name.
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

    `usual_writer` is the thinking format that most of its servers accept, `key_header` where a key
    goes. `takes` is the form in which thinking is sent back: fields of a message, separate items,
    signed blocks, or parts with signatures. `silence` is what a stream sends while a model thinks:
    `pings`; thinking (`thoughts`), only if any thinking was `asked` for, only in a `summary`, or
    depending on the thinking `switch`. `needs_limit`: a request without max_tokens is rejected, or
    one with a budget is. `off_forbids_thoughts`: a request that does not think must not contain
    thinking. `needs_carriers_only`: readable thinking is accepted back, but is of no use in a tool
    chain. `needs_follower`: thinking at the end of an answer is rejected
    (tailcallhq/forgecode#2107), or, if encrypted, before anything but its `own` follower
    (vercel/ai#7099). `takes_fillers`: a placeholder may replace missing thinking.
    `marks_calls`: an unsigned call is marked by its sender as not the model's own. `api` is the
    name of the API if its provider has several, and `tools_api` the dialect of the one that accepts
    tools with reasoning, if that is another; `buffer` is the recommended number of output tokens.
    `closes_objects`: it enforces a schema only if every object names all its members.
    `needs_schema`: it enforces a schema, and nothing less than one. `strict_tools`: it enforces
    the schema of a tool on request, if every object of it is `closed`, or if every member is
    required too. `tool_names` is the pattern of
    the names that its endpoints accept, as published by the strictest of them. For a server:
    `answer_ids` and `call_ids` are the prefixes of the ids of answers and calls, `envelope` is the
    carrier that clients return unread, and with `signs_calls` it is on calls.

    `parameters` are the parameters that the dialect knows and their places in the body: the first
    is written, all are read, and a place with a `!` prefix has the opposite meaning. `ranges` are
    their allowed values, `thinking_ranges` those allowed beside thinking (an empty one: none), and
    `defaults` their values if they are omitted. `id_length` is the maximum length of the name of a
    user or a cache; without `blank_stops` a stop sequence must contain more than spaces. `headers`
    are those by which clients control the model. What else is in a request is sent to servers of
    the dialect, except for the `attended` fields, unless the server is the provider's own: mull
    does what they ask for. A request with `unserved` fields is refused: its answer would lack what
    the client would read in it, such as more answers. `usual` are values of fields that mean the
    same as omitting them, and `unneeded` the fields that mean nothing to a server of another
    dialect, or that mull itself attends to.
    """

    usual_writer: WriterName
    takes: Literal["fields", "items", "signed", "parts"]
    silence: Literal["pings", "summary", "asked", "switch", "thoughts"]
    key_header: Literal["bearer", "x-api-key", "x-goog-api-key"] = "bearer"
    needs_limit: Literal["always", "budget"] | None = None
    off_forbids_thoughts: bool = False
    needs_carriers_only: bool = False
    needs_follower: Literal["any", "own"] | None = None
    takes_fillers: bool = False
    marks_calls: bool = False
    api: str | None = None
    tools_api: Dialect | None = None
    buffer: int | None = None
    closes_objects: bool = False
    needs_schema: bool = False
    strict_tools: Literal["whole", "closed"] | None = None
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
    headers: frozenset[str] = frozenset()
    unserved: frozenset[str] = frozenset()
    attended: frozenset[str] = frozenset()
    usual: Mapping[str, Any] = {}
    unneeded: frozenset[str] = frozenset()
