"""The fields of a request's body, taken one by one, so that what nobody took is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from mull.dialects.foreign import as_list, as_object, as_text, kind_of
from mull.neutral.errors import ConfigError
from mull.neutral.request import AnswerFormat, NamedTool, Tool, ToolChoice

__all__ = [
    "Fields",
    "answer_format",
    "choice_of",
    "template_thinking",
    "tool_choice",
    "tool_of",
]


class Fields:
    """A body while it is read. A path is a key, or keys with dots between them."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._held = dict(body)
        self._opened: set[str] = set()
        self.rest: dict[str, Any] = {}

    @classmethod
    def of(cls, body: bytes) -> Fields:
        """The fields of a body's JSON.

        Raises:
            ConfigError: it is no JSON object.
        """
        try:
            return cls(as_object(msgspec.json.decode(body), "the body"))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ConfigError(f"the body is not JSON: {error}") from None

    def take(self, *paths: str) -> Any:
        """What stands at the first of these paths that is there; null is nothing."""
        for path in paths:
            *outer, last = path.split(".")
            holder: Any = self._held
            for at, name in enumerate(outer):
                inner = holder.get(name)
                if not isinstance(inner, dict):
                    break
                opened = ".".join(outer[: at + 1])
                if opened not in self._opened:
                    self._opened.add(opened)
                    inner = holder[name] = dict(inner)
                holder = inner
            else:
                value = holder.pop(last, None)
                if value is not None:
                    return value
        return None

    def text(self, *paths: str) -> str | None:
        """A text."""
        value = self.take(*paths)
        return None if value is None else as_text(value, paths[0])

    def flag(self, *paths: str) -> bool | None:
        """True or false."""
        value = self.take(*paths)
        if value is None or isinstance(value, bool):
            return value
        raise ConfigError(f"{paths[0]} is {kind_of(value)}, not true or false")

    def whole(self, *paths: str) -> int | None:
        """A whole number."""
        value = self.take(*paths)
        if isinstance(value, float) and value.is_integer():
            return int(value)  # so some languages write every number
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise ConfigError(f"{paths[0]} is {kind_of(value)}, not a whole number")

    def number(self, *paths: str) -> float | None:
        """A number."""
        value = self.take(*paths)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(f"{paths[0]} is {kind_of(value)}, not a number")
        return value

    def list(self, *paths: str) -> list[Any]:
        """A list; none is an empty one."""
        value = self.take(*paths)
        return [] if value is None else as_list(value, paths[0])

    def texts(self, *paths: str) -> tuple[str, ...]:
        """Texts, or one text that stands by itself."""
        value = self.take(*paths)
        given = [value] if isinstance(value, str) else value or []
        return tuple(as_text(one, paths[0]) for one in as_list(given, paths[0]))

    def leave(self, path: str, value: Any) -> None:
        """Keep something that was taken and has no place."""
        self.rest[path] = value

    def left(self) -> dict[str, Any]:
        """All that nobody took, under its path."""
        return {**dict(self._flat(self._held, "")), **self.rest}

    def _flat(self, held: Mapping[str, Any], before: str) -> Iterable[tuple[str, Any]]:
        for name, value in held.items():
            path = f"{before}{name}"
            if path in self._opened:
                yield from self._flat(value, f"{path}.")
            else:
                yield path, value


def template_thinking(fields: Fields) -> tuple[bool | None, str | None]:
    """What a chat template is told of thinking: on or off, and how much. Off decides."""
    place = "chat_template_kwargs"
    switches = [fields.flag(f"{place}.{name}") for name in ("enable_thinking", "thinking")]
    said = [switch for switch in switches if switch is not None]
    return all(said) if said else None, fields.text(f"{place}.reasoning_effort")


def choice_of(word: Any) -> ToolChoice | None:
    """A choice among all tools, by its neutral word; None for any other."""
    match word:
        case "auto":
            return "auto"
        case "none":
            return "none"
        case "required":
            return "required"
    return None


def tool_choice(fields: Fields, named: Callable[[Any], str | None]) -> ToolChoice | None:
    """OpenAI's `tool_choice`: a word, or an object in which `named` finds the name of a tool."""
    given = fields.take("tool_choice")
    if (name := named(given)) is not None:
        return NamedTool(name)
    choice = choice_of(given)
    if choice is None and given is not None:
        fields.leave("tool_choice", given)
    return choice


def answer_format(fields: Fields, place: str, inner: str = "") -> AnswerFormat | None:
    """OpenAI's form of an answer; its schema stands in the object itself, or in one inside."""
    match fields.text(f"{place}.type"):
        case "json_schema":
            held = f"{place}.{inner}"
            schema = fields.take(f"{held}schema")
            name, strict = fields.text(f"{held}name"), fields.flag(f"{held}strict")
            return AnswerFormat(as_object(schema or {}, f"{held}schema"), name, strict)
        case "json_object":
            return AnswerFormat()
        case None | "text":
            return None
        case other:
            fields.leave(f"{place}.type", other)
    return None


def tool_of(fields: Fields, where: str, given: Mapping[str, Any], schema: str, *known: str) -> Tool:
    """A function from its own object; `schema` is the key of its parameters. Other keys than the
    `known` ones are left."""
    name = as_text(given.get("name"), f"{where}.name")
    described = given.get("description")
    parameters = given.get(schema)
    for key, value in given.items():
        if key not in ("name", "description", schema, *known) and value is not None:
            fields.leave(f"{where}.{key}", value)
    return Tool(
        name,
        "" if described is None else as_text(described, f"{where}.description"),
        {} if parameters is None else as_object(parameters, f"{where}.{schema}"),
    )
