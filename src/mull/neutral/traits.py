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
    """The traits of one dialect. Fields of requests are named by their path in the body, such as
    `text.format` or `tools[].cache_control`.
    """

    usual_writer: WriterName
    """The thinking format that most servers of the dialect accept."""
    takes: Literal["fields", "items", "signed", "parts"]
    """The form in which thinking is sent back: fields of a message, separate items, signed blocks,
    or parts with signatures.
    """
    silence: Literal["pings", "summary", "asked", "switch", "thoughts"]
    """What a stream sends while the model thinks: `pings`; thinking (`thoughts`); thinking only if
    any was `asked` for, only in a `summary`, or depending on the thinking `switch`.
    """
    key_header: Literal["bearer", "x-api-key", "x-goog-api-key"] = "bearer"
    """Where an API key goes: `bearer` is the Authorization header."""
    needs_limit: Literal["always", "budget"] | None = None
    """Which requests are rejected without max_tokens: all, or those with a thinking budget."""
    off_forbids_thoughts: bool = False
    """Whether a request that does not think must not contain thinking."""
    needs_carriers_only: bool = False
    """Whether readable thinking is accepted back but of no use in a tool chain, so that only
    carriers have to be sent.
    """
    needs_follower: Literal["any", "own"] | None = None
    """Thinking is rejected at the end of an answer (tailcallhq/forgecode#2107) or, if it is
    encrypted, before anything but its `own` follower (vercel/ai#7099).
    """
    takes_fillers: bool = False
    """Whether a placeholder may replace missing thinking."""
    marks_calls: bool = False
    """Whether an unsigned call is marked by its sender as not the model's own."""
    api: str | None = None
    """The name of the API in words for the user, if its provider has several."""
    tools_api: Dialect | None = None
    """The dialect of the API that accepts tools together with reasoning; None if this one does."""
    buffer: int | None = None
    """The output tokens that the provider recommends to allow for thinking and answer; None if it
    recommends none.
    """
    closes_objects: bool = False
    """Whether a schema is enforced only if every object in it names all its members."""
    needs_schema: bool = False
    """Whether a schema is enforced, but not JSON without one."""
    strict_tools: Literal["whole", "closed"] | None = None
    """Which schemas of tools are enforced on request: those in which every object is `closed`, or
    only those that require every member too (`whole`). None enforces no schema.
    """
    tool_names: str = "[a-zA-Z0-9_-]{1,64}"
    """The pattern of tool names that endpoints accept, as published by the strictest of them."""
    answer_ids: str = ""
    """The prefix of the ids that a server gives its answers, such as `msg_`."""
    call_ids: str = "call_"
    """The prefix of the ids that a server gives tool calls, such as `toolu_`."""
    envelope: Literal["signature", "encrypted"] = "signature"
    """The carrier that clients return unread, in which a server can store what it must get back."""
    signs_calls: bool = False
    """Whether a server puts that carrier on tool calls."""
    parameters: Mapping[ParameterName, tuple[str, ...]] = {}
    """The parameters that the dialect knows and their places in the body: the first is written, all
    are read, and a place with a `!` prefix has the opposite meaning.
    """
    ranges: Mapping[ParameterName, tuple[float, float]] = {}
    """The allowed values of parameters: least and most."""
    thinking_ranges: Mapping[ParameterName, tuple[float, float] | tuple[()]] = {}
    """The values allowed while the model thinks; an empty range allows none."""
    defaults: Mapping[ParameterName, Any] = {}
    """The values that parameters have if a request omits them."""
    id_length: int | None = None
    """The most characters that the name of a user or a cache may have; None is no limit."""
    blank_stops: bool = True
    """Whether a stop sequence may consist of spaces alone."""
    headers: frozenset[str] = frozenset()
    """The request headers by which clients control the model."""
    unserved: frozenset[str] = frozenset()
    """Fields that make a server refuse the request: its answer would lack what the client would
    read in it, such as several answers.
    """
    attended: frozenset[str] = frozenset()
    """Fields whose purpose mull attends to itself, so that they are sent on only to the provider's
    own server.
    """
    usual: Mapping[str, Any] = {}
    """Values of fields that mean the same as omitting them."""
    unneeded: frozenset[str] = frozenset()
    """Fields that mean nothing to a server of another dialect, or that mull itself attends to:
    leaving them out needs no note.
    """
