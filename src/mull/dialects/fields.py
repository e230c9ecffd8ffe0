"""The fields of a request's body, taken one by one, so that the remaining ones are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from mull.dialects.foreign import as_list, as_object, as_text, kind_of
from mull.neutral.errors import ConfigError
from mull.neutral.request import AnswerFormat, NamedTool, Tool, ToolChoice
from mull.neutral.thinking import as_level

__all__ = [
    "Fields",
    "answer_format",
    "choice_of",
    "first_keys",
    "template_thinking",
    "tool_choice",
    "tool_of",
]


class Fields:
    """A body while it is read. A path is a key, or keys separated by dots."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._held = dict(body)
        self._opened: set[str] = set()
        self.rest: dict[str, Any] = {}

    @classmethod
    def of(cls, body: bytes) -> Fields:
        """The fields of a JSON body.

        Raises:
            ConfigError: it is not a JSON object.
        """
        try:
            return cls(as_object(msgspec.json.decode(body), "the body"))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ConfigError(f"the body is not JSON: {error}") from None

    def has_any(self, keys: frozenset[str]) -> bool:
        """Whether any of these keys is left in the body itself."""
        return not keys.isdisjoint(self._held)

    def take(self, *paths: str) -> Any:
        """The value at the first of these paths that exists; null counts as missing."""
        for path in paths:
            outer, last = _steps(path)
            holder: Any = self._held
            for name, opened in outer:
                inner = holder.get(name)
                if not isinstance(inner, dict):
                    break
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

    def level(self, *paths: str) -> str | None:
        """A known effort; an unknown one is left to those who know it."""
        for path in paths:
            if (word := self.text(path)) is not None:
                if as_level(word) is not None:
                    return word
                self.leave(path, word)
        return None

    def list(self, *paths: str) -> list[Any]:
        """A list; a missing one is empty."""
        value = self.take(*paths)
        return [] if value is None else as_list(value, paths[0])

    def texts(self, *paths: str) -> tuple[str, ...]:
        """Texts, or a single text."""
        value = self.take(*paths)
        given = [value] if isinstance(value, str) else value or []
        return tuple(as_text(one, paths[0]) for one in as_list(given, paths[0]))

    def leave(self, path: str, value: Any) -> None:
        """Keep a value that was taken but has no field."""
        self.rest[path] = value

    def leave_keys(self, given: Mapping[str, Any], where: str, *known: str) -> None:
        """Keep the unknown keys of an object."""
        for key, value in given.items():
            if key not in known and value is not None:
                self.leave(f"{where}.{key}", value)

    def left(self) -> dict[str, Any]:
        """Everything that was not taken, by path."""
        return {**dict(self._flat(self._held, "")), **self.rest}

    def _flat(self, held: Mapping[str, Any], before: str) -> Iterable[tuple[str, Any]]:
        for name, value in held.items():
            path = f"{before}{name}"
            if path in self._opened:
                yield from self._flat(value, f"{path}.")
            else:
                yield path, value


@cache  # paths stand in the code
def _steps(path: str) -> tuple[Sequence[tuple[str, str]], str]:
    """The keys on the way to a value, each with its own path, and its last key."""
    *outer, last = path.split(".")
    return tuple((name, ".".join(outer[: at + 1])) for at, name in enumerate(outer)), last


def first_keys(*paths: str) -> frozenset[str]:
    """The keys in the body itself with which these paths begin."""
    return frozenset(path.partition(".")[0] for path in paths)


_TEMPLATE = "chat_template_kwargs"
_TEMPLATE_KEYS = first_keys(_TEMPLATE)


def template_thinking(fields: Fields) -> tuple[bool | None, str | None]:
    """What a chat template is told about thinking: on or off, and how much. Off takes
    precedence.
    """
    if not fields.has_any(_TEMPLATE_KEYS):
        return None, None
    switches = [fields.flag(f"{_TEMPLATE}.{name}") for name in ("enable_thinking", "thinking")]
    said = [switch for switch in switches if switch is not None]
    return all(said) if said else None, fields.level(f"{_TEMPLATE}.reasoning_effort")


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


def tool_choice(fields: Fields, named: Callable[[Any], str | None]) -> dict[str, Any]:
    """What OpenAI's `tool_choice` says: a word, or an object in which `named` finds the name of a
    tool, or which lists those that are allowed."""
    given = fields.take("tool_choice")
    if (name := named(given)) is not None:
        fields.leave_keys(given, "tool_choice", "type", "name", "function", "custom")
        return {"tool_choice": NamedTool(name)}
    if (choice := choice_of(given)) is not None:
        return {"tool_choice": choice}
    match given:
        case {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [*listed]}} | {
            "type": "allowed_tools",
            "mode": mode,
            "tools": [*listed],
        }:
            names = tuple(name for one in listed if (name := named(one)) is not None)
            if (choice := choice_of(mode)) is not None and names and len(names) == len(listed):
                own = {"tool_choice": given}
                return {"tool_choice": choice, "allowed": names, "own": own}
    if given is not None:
        fields.leave("tool_choice", given)
    return {}


def answer_format(fields: Fields, place: str, inner: str = "") -> AnswerFormat | None:
    """OpenAI's answer format; its schema is in the object itself, or in a nested one."""
    if not fields.has_any(first_keys(place)):
        return None
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
    """A function from its own object; `schema` is the key of its parameters. Keys other than the
    `known` ones are left.
    """
    name = as_text(given.get("name"), f"{where}.name")
    described = given.get("description")
    parameters = given.get(schema)
    strict = given.get("strict")
    if isinstance(strict, bool):
        known = (*known, "strict")
    fields.leave_keys(given, where, "name", "description", schema, *known)
    return Tool(
        name,
        "" if described is None else as_text(described, f"{where}.description"),
        {} if parameters is None else as_object(parameters, f"{where}.{schema}"),
        strict=strict is True,
    )
