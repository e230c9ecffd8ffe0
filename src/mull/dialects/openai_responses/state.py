"""State in the Responses API: which response a request continues, what to store, and which fields
of a request its response repeats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from mull.dialects.fields import Fields
from mull.dialects.foreign import as_list, as_text, objects
from mull.dialects.openai_responses.asked import take_items
from mull.dialects.writer import encode
from mull.neutral.blocks import Value
from mull.neutral.errors import ConfigError, RefusedError

__all__ = [
    "Item",
    "State",
    "Summary",
    "compacted",
    "compaction_item",
    "listed",
    "page_of",
    "read_state",
    "recent",
    "reference_id",
    "user_items",
    "with_thoughts",
    "without_thoughts",
]

Item: TypeAlias = dict[str, Any]
"""One item of an input or an output."""

_REFERENCE = "item_reference"
_INCLUDED = ("reasoning.encrypted_content", "message.input_image.image_url")
"""Values of `include` that are accepted because their data is always included."""
_TRIGGER = "compaction_trigger"
_COMPACTIONS = ("compaction", "compaction_summary")
_GIVEN = ("user", "system", "developer")
_SUMMARY = "[The conversation so far is summarised here.]\n\n{}"
_DEFAULT_LIMIT, _MOST_LISTED = 20, 100
_PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "compaction": "cmp",
}
_ECHOED: Mapping[str, Any] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "safety_identifier": None,
    "service_tier": None,
    "store": True,
    "temperature": None,
    "tool_choice": "auto",
    "top_logprobs": 0,
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}
"""The fields of a request that its response repeats, with their defaults."""


class State(Value, frozen=True):
    """The fields of a request that concern state. `items` are those of this request alone;
    `compacts` requests a compaction instead of an answer, `threshold` one before the answer if the
    conversation has more tokens."""

    items: list[Item]
    previous: str | None = None
    store: bool = True
    generate: bool = True
    compacts: bool = False
    threshold: int | None = None
    echo: dict[str, Any] = {}


def read_state(body: Mapping[str, Any], fields: Fields) -> State:
    """The state fields of a request. They are removed from `fields`, the fields of the body.

    Raises:
        ConfigError: a field is invalid.
        RefusedError: the request uses an unsupported feature.
    """
    _refuse_unsupported(fields)
    given = [item for _, item in objects(take_items(fields), "input")]
    items = [item for item in given if item.get("type") != _TRIGGER]
    previous, store = fields.text("previous_response_id"), fields.flag("store")
    warms_up = fields.flag("prompt_cache_options.prewarm")
    generate = fields.flag("generate")
    if names := [name for name in fields.texts("include") if name not in _INCLUDED]:
        fields.leave("include", names)
    return State(
        items,
        previous,
        store is not False,
        generate is not False and not warms_up,
        len(items) < len(given),
        _threshold(fields),
        _echo(body, store is not False),
    )


def _refuse_unsupported(fields: Fields) -> None:
    if fields.take("background"):
        raise _unsupported("background", "stream the response, or wait for it")
    if fields.take("conversation") is not None:
        raise _unsupported("conversation", "continue with previous_response_id")


def _unsupported(name: str, instead: str) -> RefusedError:
    text = f"{name} is not supported by this server: {instead}"
    return RefusedError(text, status=400, text=text, code="unsupported_parameter")


def _threshold(fields: Fields) -> int | None:
    """The number of tokens above which to compact the conversation, if requested."""
    found: int | None = None
    if given := as_list(fields.take("context_management") or [], "context_management"):
        fields.leave("context_management", given)  # for the provider that has it
    for place, entry in objects(given, "context_management"):
        wanted = Fields(entry)
        if wanted.text("type") == "compaction":
            found = wanted.whole("compact_threshold")
            entry = wanted.left()
        fields.leave_keys(entry, place)  # what only that provider can do
    return found


def _echo(body: Mapping[str, Any], store: bool) -> dict[str, Any]:
    given = {name: value for name in _ECHOED if (value := body.get(name)) is not None}
    reasoning, text, tools = (body.get(name) for name in ("reasoning", "text", "tools"))
    return {
        **_ECHOED,
        **given,
        "store": store,
        "reasoning": {
            "effort": None,
            "summary": None,
            **(reasoning if isinstance(reasoning, dict) else {}),
        },
        "text": {"format": {"type": "text"}, **(text if isinstance(text, dict) else {})},
        "tools": [_tool(tool) for _, tool in objects(as_list(tools or [], "tools"), "tools")],
    }


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    """A tool as responses repeat it; `strict` is false unless the request set it."""
    if tool.get("type") != "function":
        return tool
    return {"description": None, "parameters": None, **tool, "strict": bool(tool.get("strict"))}


def compaction_item(item_id: str, sealed: str) -> dict[str, Any]:
    """The item that replaces a conversation; `sealed` is its encrypted summary."""
    return {"id": item_id, "type": "compaction", "encrypted_content": sealed}


class Summary(NamedTuple):
    """A decrypted summary, and the provider's own item for what came before the summarised part."""

    text: str
    before: Item | None = None


def compacted(
    items: Sequence[Item], read: Callable[[str], Summary | None], room: int | None = None
) -> list[Item]:
    """The items with the last compaction in place of the items that it summarises.

    `read` decrypts a summary; a compaction that it cannot decrypt stays unchanged. Messages to the
    model before the compaction stay too: clients include those that they want to keep. `room`
    limits the bytes of the user's messages among them.
    """
    for at in reversed(range(len(items))):
        item = items[at]
        sealed = item.get("encrypted_content") if item.get("type") in _COMPACTIONS else None
        summary = read(sealed) if isinstance(sealed, str) else None
        if summary is not None:
            before = _fitting([one for one in items[:at] if _is_given(one)], room)
            earlier = [] if summary.before is None else [summary.before]
            parts = [{"type": "input_text", "text": _SUMMARY.format(summary.text)}]
            message = {"type": "message", "role": "user", "content": parts}
            return [*earlier, *before, message, *items[at + 1 :]]
    return list(items)


def _fitting(items: Sequence[Item], room: int | None) -> list[Item]:
    """The items without the user's oldest messages that do not fit; the newest is always kept."""
    if room is None:
        return list(items)
    kept: list[Item] = []
    is_newest = True
    for item in reversed(items):
        if item.get("role") == "user":
            room -= len(encode(item))
            if room < 0 and not is_newest:
                continue
            is_newest = False
        kept.append(item)
    return kept[::-1]


def _is_given(item: Item) -> bool:
    return item.get("type", "message") == "message" and item.get("role") in _GIVEN


def recent(items: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """The items before the user's last message, and those from it on; if no item before it is an
    answer, all items are in the first list."""
    for at in reversed(range(len(items))):
        if _is_given(items[at]) and items[at].get("role") == "user":
            if all(map(_is_given, items[:at])):
                break
            return list(items[:at]), list(items[at:])
    return list(items), []


def user_items(items: Sequence[Item], answer_id: str, room: int) -> list[Item]:
    """The user's messages among the items as a compacted conversation lists them: the newest ones
    that fit in `room` bytes."""
    messages = [item for item in listed(items, answer_id) if item["type"] == "message"]
    return _fitting([item for item in messages if item.get("role") == "user"], room)


def listed(items: Sequence[Item], answer_id: str) -> list[Item]:
    """Input items in their listed form: each with an id, its text in parts, and a status."""
    return [_listed(item, at, answer_id) for at, item in enumerate(items)]


def _listed(item: Item, at: int, answer_id: str) -> Item:
    kind = item.get("type")
    kind = kind if isinstance(kind, str) else "message"
    name = f"{_PREFIXES.get(kind, 'item')}_{answer_id.removeprefix('resp_')}_in_{at}"
    held = {key: value for key, value in item.items() if value is not None}
    full = {"id": name, **held, "type": kind}
    if kind == "message":
        full["content"] = _parts(item.get("content"), item.get("role") == "assistant")
    if kind == "message" or kind.endswith(("_output", "_call")):
        full.setdefault("status", "completed")
    return full


def _parts(content: Any, is_answer: bool) -> Any:
    if not isinstance(content, str):
        return content
    if is_answer:
        return [{"type": "output_text", "text": content, "annotations": []}]
    return [{"type": "input_text", "text": content}]


def page_of(items: list[Item], query: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """One page of a list of items, newest first unless the query says otherwise.

    Raises:
        ConfigError: the query is invalid.
    """
    order = _one(query, "order", "desc")
    if order not in ("asc", "desc"):
        raise ConfigError("order must be asc or desc")
    limit = _one(query, "limit", str(_DEFAULT_LIMIT))
    if not (limit.isdecimal() and len(limit) < 10 and 1 <= int(limit) <= _MOST_LISTED):
        raise ConfigError(f"limit must be from 1 to {_MOST_LISTED}")
    ordered = items if order == "asc" else items[::-1]
    if after := _one(query, "after", ""):
        places = [at for at, item in enumerate(ordered) if item["id"] == after]
        if not places:
            raise ConfigError(f"after: no item has the id {after!r:.80}")
        ordered = ordered[places[0] + 1 :]
    shown = ordered[: int(limit)]
    return {
        "object": "list",
        "data": shown,
        "first_id": shown[0]["id"] if shown else None,
        "last_id": shown[-1]["id"] if shown else None,
        "has_more": len(ordered) > len(shown),
    }


def _one(query: Mapping[str, Sequence[str]], name: str, default: str) -> str:
    return next(iter(query.get(name, ())), default)


def without_thoughts(output: Iterable[Item]) -> list[Item]:
    """Output items with the content of reasoning items removed."""
    return [
        {"id": item.get("id"), "type": "reasoning", "summary": []}
        if item.get("type") == "reasoning"
        else item
        for item in output
    ]


def with_thoughts(output: Iterable[Item], written: Iterable[Item]) -> list[Item]:
    """Output items with the content of reasoning items restored from `written`, as far as it is
    there."""
    thoughts = (item for item in written if item.get("type") == "reasoning")
    return [
        {**next(thoughts, item), "id": item.get("id")} if item.get("type") == "reasoning" else item
        for item in output
    ]


def reference_id(item: Item) -> str | None:
    """The id of the item that this item refers to, if it is a reference."""
    if item.get("type") == _REFERENCE or item.keys() == {"id"}:
        return as_text(item.get("id"), f"the id of an {_REFERENCE}")
    return None
