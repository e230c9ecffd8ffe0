"""Decodes the events of a Responses stream, or one complete response, into neutral events.

An item is found by its id, then by its output index (GitHub Copilot uses a new id in every event),
and without either, as the last item of its kind (llama.cpp sends no indexes). Events whose sequence
number was already received are skipped, so a stream may resume at an earlier point. The finished
response supplies what no event of the stream contained.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec.structs import replace

from mull.dialects.decoder import Stage
from mull.dialects.extras import unread
from mull.dialects.openai_responses import DIALECT
from mull.dialects.openai_responses.closing import CUT, read_ending, read_failure, read_usage
from mull.dialects.openai_responses.items import Call, FreeCall, Item, Other, Reasoning, Said
from mull.dialects.openai_responses.shapes import FREE_CALL
from mull.dialects.sse import SseReader
from mull.neutral.blocks import ThinkingKind, wire_of
from mull.neutral.events import Event, Failed, Finished, Started, UsageReported
from mull.neutral.target import Target

__all__ = ["FRAMING", "ChunkInterpreter"]

FRAMING = SseReader

_RESPONSE = (
    *("id", "object", "created_at", "completed_at", "status", "error", "incomplete_details"),
    *("model", "output", "instructions", "previous_response_id", "conversation", "background"),
    *("store", "metadata", "tools", "tool_choice", "parallel_tool_calls", "temperature", "top_p"),
    *("top_logprobs", "max_output_tokens", "max_tool_calls", "truncation", "user", "reasoning"),
    *("text", "prompt_cache_key", "safety_identifier"),
)
"""The keys of a response that are read, or that repeat the request."""
_Act = Callable[[dict[str, Any]], list[Event]]
_Kind = TypeVar("_Kind", bound=Item)
_KINDS: dict[str, type[Item]] = {
    "reasoning": Reasoning,
    "message": Said,
    "function_call": Call,
    FREE_CALL: FreeCall,
}


class ChunkInterpreter:
    """Interprets the JSON of one answer. This API has only one field for reasoning, so there is no
    field name to choose."""

    def __init__(self, target: Target, field_name: str | None = None) -> None:
        self.stage: Stage = "open"
        self._items: list[Item] = []
        self._settled = 0
        self._by_id: dict[type[Item], dict[str, Item]] = {
            kind: {} for kind in (*_KINDS.values(), Other)
        }
        self._said = self._by_id[Said]
        self._by_index: dict[int, Item] = {}
        self._heard: dict[int, tuple[_Act | None, Any]] | None = {}
        self._id: str | None = None
        self._call_ids: set[str] = set()
        self._started = self._ended = False
        self._acts: dict[str, _Act] = {
            "response.output_text.delta": self._text,
            "response.output_text.done": self._text_done,
            "response.refusal.delta": self._refusal,
            "response.refusal.done": self._refusal_done,
            "response.reasoning_summary_text.delta": self._summary,
            "response.reasoning_summary_text.done": self._summary_done,
            "response.reasoning_summary_part.added": self._summary_part,
            "response.reasoning_summary_part.done": self._summary_part,
            "response.reasoning_text.delta": self._raw,
            "response.reasoning_text.done": self._raw_done,
            "response.reasoning.delta": self._raw,
            "response.reasoning.done": self._raw_done,
            "response.content_part.added": self._content_part,
            "response.content_part.done": self._content_part,
            "response.output_text.annotation.added": self._annotation,
            "response.function_call_arguments.delta": self._arguments,
            "response.function_call_arguments.done": self._arguments_done,
            "response.custom_tool_call_input.delta": self._input,
            "response.custom_tool_call_input.done": self._input_done,
            "response.output_item.added": self._item_added,
            "response.output_item.done": self._item_done,
            "response.created": self._created,
            "response.in_progress": self._created,
            "response.completed": lambda value: self._close(value, "completed"),
            "response.incomplete": lambda value: self._close(value, "incomplete"),
            "response.failed": lambda value: self._close(value, "failed"),
            "response.cancelled": lambda value: self._close(value, "cancelled"),
            "error": self._error,
        }

    def take(self, event: str | None, value: Any) -> list[Event]:
        """Events of one value of the stream."""
        if type(value) is not dict:
            return []
        kind = value.get("type") or event
        act = self._acts.get(kind) if isinstance(kind, str) else None
        number = value.get("sequence_number")
        if type(number) is int and self._heard is not None:
            said = act, value.get("delta")
            if number not in self._heard:
                self._heard[number] = said
            elif self._is_replay(number, said, value):
                return []
        return act(value) if act is not None else self._unknown(value)

    def whole(self, value: Any) -> list[Event]:
        """Events of one complete response."""
        self._ended = True
        if not isinstance(value, dict):
            return [Failed("the answer is not a Responses API object", "unreadable", body=value)]
        if not isinstance(value.get("output"), list) and not isinstance(value.get("status"), str):
            return [read_failure(value)]
        return [*self._start(value), *self._complete(value, "completed")]

    def end(self, done: bool) -> list[Event]:
        """Events at the end of the stream; without a terminal event the answer was cut off."""
        if self._ended:
            return self._flush()
        if done and self._items and all(item.done for item in self._items):
            return [Finished("tool_calls" if self._called else None)]
        return [*self._flush(), CUT]

    @property
    def _called(self) -> bool:
        return any(isinstance(item, Call) and item.name for item in self._items)

    @property
    def _refused(self) -> bool:
        return any(type(item) is Said and item.refused for item in self._items)

    def _is_replay(self, number: int, said: tuple[_Act | None, Any], value: dict[str, Any]) -> bool:
        assert self._heard is not None
        if self._heard[number] != said:
            self._heard = None  # different events share a number: numbers are unusable
            return False
        response = value.get("response")
        if said[0] is not self._acts["response.created"] or not isinstance(response, dict):
            return True
        if response.get("id") in (None, self._id):
            return True
        self._heard = {number: said}  # another response in this stream restarts the count
        self._by_index.clear()
        return False

    def _created(self, value: dict[str, Any]) -> list[Event]:
        response = value.get("response")
        return self._start(response) if isinstance(response, dict) else []

    def _start(self, response: dict[str, Any]) -> list[Event]:
        name, model = response.get("id"), response.get("model")
        self._id = name if isinstance(name, str) else None
        if self._started:
            return []
        self._started = True
        return [Started(self._id, model if isinstance(model, str) else None)]

    def _text(self, value: dict[str, Any]) -> list[Event]:
        delta = value.get("delta")
        if type(delta) is not str:
            return []
        item = self._said.get(value.get("item_id") or "")
        if type(item) is Said:
            return item.add(value.get("content_index") or 0, delta)
        item, events = self._find(Said, value)
        return events + item.add(value.get("content_index") or 0, delta)

    def _text_done(self, value: dict[str, Any]) -> list[Event]:
        text = value.get("text")
        if not isinstance(text, str):
            return []
        item, events = self._find(Said, value)
        return events + item.complete(value.get("content_index") or 0, text)

    def _refusal(self, value: dict[str, Any]) -> list[Event]:
        delta = value.get("delta")
        if not isinstance(delta, str):
            return []
        item, events = self._find(Said, value)
        return events + item.refuse(value.get("content_index") or 0, delta)

    def _refusal_done(self, value: dict[str, Any]) -> list[Event]:
        opened = self._refusal({**value, "delta": ""})
        return opened + self._text_done({**value, "text": value.get("refusal")})

    def _annotation(self, value: dict[str, Any]) -> list[Event]:
        item, events = self._find(Said, value)
        return events + item.annotate(value.get("content_index") or 0, value.get("annotation"))

    def _summary(self, value: dict[str, Any]) -> list[Event]:
        return self._think("summary", value.get("summary_index") or 0, value)

    def _raw(self, value: dict[str, Any]) -> list[Event]:
        return self._think("raw", value.get("content_index") or 0, value)

    def _think(self, kind: ThinkingKind, index: Any, value: dict[str, Any]) -> list[Event]:
        delta = value.get("delta")
        if type(delta) is not str:
            return []
        item = self._by_id[Reasoning].get(value.get("item_id") or "")
        if type(item) is Reasoning:
            return item.add(kind, index, delta)
        item, events = self._find(Reasoning, value)
        return events + item.add(kind, index, delta)

    def _summary_done(self, value: dict[str, Any]) -> list[Event]:
        return self._thought("summary", value.get("summary_index") or 0, value, value.get("text"))

    def _raw_done(self, value: dict[str, Any]) -> list[Event]:
        return self._thought("raw", value.get("content_index") or 0, value, value.get("text"))

    def _summary_part(self, value: dict[str, Any]) -> list[Event]:
        part = value.get("part")
        text = part.get("text") if isinstance(part, dict) else None
        return self._thought("summary", value.get("summary_index") or 0, value, text)

    def _thought(
        self, kind: ThinkingKind, index: Any, value: dict[str, Any], text: Any
    ) -> list[Event]:
        if not isinstance(text, str):
            return []
        item, events = self._find(Reasoning, value)
        return events + item.complete(kind, index, text)

    def _content_part(self, value: dict[str, Any]) -> list[Event]:
        part = value.get("part")
        if not isinstance(part, dict):
            return []
        if part.get("type") == "reasoning_text":
            return self._raw_done({**value, "text": part.get("text")})
        if part.get("type") == "refusal":
            return self._refusal_done({**value, "refusal": part.get("refusal")})
        return self._text_done({**value, "text": part.get("text")})

    def _arguments(self, value: dict[str, Any]) -> list[Event]:
        delta = value.get("delta")
        if type(delta) is not str:
            return []
        item, events = self._find(Call, value)
        return events + item.add(delta) if events else item.add(delta)

    def _arguments_done(self, value: dict[str, Any]) -> list[Event]:
        text = value.get("arguments")
        if not isinstance(text, str):
            return []
        item, events = self._find(Call, value)
        return events + item.complete(text)

    def _input(self, value: dict[str, Any]) -> list[Event]:
        delta = value.get("delta")
        if not isinstance(delta, str):
            return []
        item, events = self._find(FreeCall, value)
        return events + item.add(delta)

    def _input_done(self, value: dict[str, Any]) -> list[Event]:
        text = value.get("input")
        if not isinstance(text, str):
            return []
        item, events = self._find(FreeCall, value)
        return events + item.complete(text)

    def _item_added(self, value: dict[str, Any]) -> list[Event]:
        given = value.get("item")
        if not isinstance(given, dict):
            return []
        kind = _kind_of(given)
        known = self._by_id[kind].get(_id_of(given) or "")
        if known is not None and not known.done:
            return []
        item, events = self._new(kind, given, value.get("output_index"))
        return events + item.open()

    def _item_done(self, value: dict[str, Any]) -> list[Event]:
        given = value.get("item")
        if not isinstance(given, dict):
            return []
        kind = _kind_of(given)
        found, events = self._lookup(kind, _id_of(given), value.get("output_index")), list[Event]()
        if found is None or (found.done and found.last != given):
            found, events = self._new(kind, given, value.get("output_index"))
        if found.done:
            return []
        found.last = given
        return events + found.finish(given)

    def _find(self, kind: type[_Kind], value: dict[str, Any]) -> tuple[_Kind, list[Event]]:
        """The item that an event refers to, and its opening events if it is new."""
        item_id, index = value.get("item_id"), value.get("output_index")
        found = self._lookup(kind, item_id, index)
        if found is None and item_id is None and index is None:
            found = next((item for item in reversed(self._items) if type(item) is kind), None)
        if found is not None:
            assert isinstance(found, kind)
            return found, []
        made, events = self._new(kind, {"id": item_id}, index)
        assert isinstance(made, kind)
        return made, events + made.open()

    def _lookup(self, kind: type[Item], item_id: Any, index: Any) -> Item | None:
        found = self._by_id[kind].get(item_id) if isinstance(item_id, str) else None
        if found is None and type(index) is int:
            found = self._by_index.get(index)
        return found if type(found) is kind else None

    def _new(self, kind: type[Item], given: dict[str, Any], index: Any) -> tuple[Item, list[Event]]:
        """A new item, and the events that settle the items before it."""
        events = [event for item in self._items[self._settled :] for event in item.settle()]
        self._settled = len(self._items)
        item_id = _id_of(given)
        key = item_id or f"item {len(self._items)}"
        if item_id in self._by_id[kind]:
            key = f"{key} {len(self._items)}"
        item = kind(key, given)
        if isinstance(item, Call):
            item.taken = self._call_ids
        self._items.append(item)
        if item_id is not None:
            self._by_id[kind][item_id] = item
        if type(index) is int:
            self._by_index[index] = item
        return item, events

    def _close(self, value: dict[str, Any], word: str) -> list[Event]:
        response = value.get("response")
        return self._complete(response if isinstance(response, dict) else value, word)

    def _complete(self, response: dict[str, Any], word: str) -> list[Event]:
        self._ended, self.stage = True, "over"
        events = self._fill(response.get("output"))
        events += self._flush()
        usage = read_usage(response.get("usage"))
        if usage is not None:
            events.append(UsageReported(usage))
        ending = read_ending(response, word, called=self._called, refused=self._refused)
        if isinstance(ending, Finished):
            ending = replace(ending, wire=wire_of(DIALECT, unread(response, _RESPONSE)))
        return [*events, ending]

    def _fill(self, output: Any) -> list[Event]:
        """Events for what only the finished response contains. Items are matched by id, the others
        in order."""
        given = [item for item in output if isinstance(item, dict)] if type(output) is list else []
        pairs: list[tuple[Item | None, dict[str, Any]]] = []
        for item in given:
            pairs.append((self._by_id[_kind_of(item)].get(_id_of(item) or ""), item))
        matched = {id(found) for found, _ in pairs}
        left: dict[type[Item], deque[Item]] = {}
        for one in self._items:
            if id(one) not in matched:
                left.setdefault(type(one), deque()).append(one)
        events: list[Event] = []
        for found, item in pairs:
            if found is None:
                kind = _kind_of(item)
                if of_kind := left.get(kind):
                    found = of_kind.popleft()
                else:
                    found, more = self._new(kind, item, None)
                    events += more
            events += found.fill(item) if found.done else found.finish(item)
        return events

    def _flush(self) -> list[Event]:
        return [event for item in self._items if not item.done for event in item.flush()]

    def _error(self, value: dict[str, Any]) -> list[Event]:
        self._ended, self.stage = True, "closing"
        return [read_failure(value)]

    def _unknown(self, value: dict[str, Any]) -> list[Event]:
        if value.get("error"):
            return self._error(value)
        if isinstance(value.get("output"), list) and "type" not in value:
            return self.whole(value)
        return []


def _kind_of(item: dict[str, Any]) -> type[Item]:
    kind = item.get("type")
    return _KINDS.get(kind, Other) if isinstance(kind, str) else Other


def _id_of(item: dict[str, Any]) -> str | None:
    found = item.get("id")
    return found if isinstance(found, str) and found else None
