"""Answers that are values: a type or a JSON schema becomes the requested format, and the model's
answer is parsed, validated, and requested again if it does not match.

Any type that pydantic or msgspec can describe works: a pydantic model, a msgspec Struct, a
dataclass, a TypedDict, or a combination. Endpoints enforce only objects, so any other value is sent
as the single member of an object.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mull.neutral.blocks import ToolResultBlock
from mull.neutral.errors import LocalError, MisfitError
from mull.neutral.messages import Message, user
from mull.neutral.request import AnswerFormat
from mull.policy.answer_format import answer_value, tool_name
from mull.policy.json_schema import first_misfit, resolve
from mull.policy.json_schema_faults import first_fault
from mull.policy.partial_json import partial_value

__all__ = ["Shape", "shape_of"]

_MEMBER = "value"
_LONGEST = 60
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_DEFINITIONS = ("$defs", "definitions")


class Shape:
    """The form that an answer must have.

    `format` is what is requested. `read` returns the value, as the given type if there was one;
    `plain` returns it as JSON data.
    """

    def __init__(
        self,
        schema: Mapping[str, Any],
        name: str,
        convert: Callable[[Any], Any] = lambda value: value,
        plain: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        self._schema = dict(schema)
        self._convert = convert
        self.plain = plain
        meant = resolve(schema, schema)
        self._is_wrapped = meant.get("type") != "object"
        asked = _wrapped(self._schema) if self._is_wrapped else _rooted(meant, schema)
        self.format: AnswerFormat = AnswerFormat(
            asked, _NOT_IN_NAMES.sub("_", name)[:64].strip("_") or "answer"
        )

    def read(self, message: Message) -> Any:
        """The value of an answer.

        Raises:
            MisfitError: there is none, or it does not match; says where.
        """
        try:
            value = self._unwrapped(answer_value(message, self.format))
            misfit = first_misfit(value, self._schema)
            if misfit is not None:
                raise ValueError(misfit)
            return self._convert(value)
        except (ValueError, RecursionError) as error:  # also from msgspec and pydantic
            raise MisfitError(f"the answer does not match the schema: {_why(error)}") from None

    def _unwrapped(self, value: Any) -> Any:
        """The wrapped value; a model may omit the object around it."""
        if self._is_wrapped and isinstance(value, dict) and value.keys() == {_MEMBER}:
            return value[_MEMBER]
        return value

    def partial(self, message: Message) -> Any:
        """The value as far as it has arrived, as JSON data; None while there is nothing of it."""
        for call in message.tool_calls:
            if call.name == tool_name(self.format):
                return self._unwrapped(call.input or partial_value(call.arguments or ""))
        return self._unwrapped(partial_value(message.text))

    def correction(self, message: Message, misfit: MisfitError) -> Message:
        """The message to a model whose answer does not match."""
        said = f"{str(misfit).capitalize()}. Answer again, with nothing but the whole JSON value."
        calls = [call for call in message.tool_calls if call.name == tool_name(self.format)]
        if not calls:
            return user(said)
        results = (ToolResultBlock(call.id, said, is_error=True) for call in calls)
        return Message(role="tool", blocks=tuple(results))

    def receipt(self, message: Message) -> Message | None:
        """The result that closes the call an answer was given by; None if it was not a call."""
        calls = [call for call in message.tool_calls if call.name == tool_name(self.format)]
        results = tuple(ToolResultBlock(call.id, "The answer was taken.") for call in calls)
        return Message(role="tool", blocks=results) if results else None


def shape_of(kind: Any, name: str | None = None) -> Shape:
    """The form of a type, or of a JSON schema.

    Raises:
        LocalError: it describes no form; says why.
    """
    if isinstance(kind, Shape):
        return kind
    if isinstance(kind, Mapping):
        if (fault := first_fault(kind)) is not None:
            raise LocalError(f"the schema is not valid: {fault}")
        return Shape(kind, name or str(kind.get("title") or "answer"))
    called = name or str(getattr(kind, "__name__", None) or repr(kind)[:_LONGEST])
    made = _of_pydantic(kind, called) if _is_pydantic(kind) else _of_msgspec(kind, called)
    return made


def _is_pydantic(kind: Any) -> bool:
    return hasattr(kind, "__pydantic_core_schema__")


def _of_pydantic(kind: Any, name: str) -> Shape:
    from pydantic import TypeAdapter  # type: ignore[import-not-found,unused-ignore]
    from pydantic.errors import (  # type: ignore[import-not-found,unused-ignore]
        PydanticUserError,
    )

    try:
        adapter: Any = TypeAdapter(kind)
        schema = adapter.json_schema()
    except PydanticUserError as error:
        raise LocalError(f"{name} cannot be a schema: {error.message}") from None
    return Shape(
        schema, name, adapter.validate_python, lambda value: adapter.dump_python(value, mode="json")
    )


def _of_msgspec(kind: Any, name: str) -> Shape:
    try:
        schema = msgspec.json.schema(kind)
    except (TypeError, RuntimeError) as error:
        if "pydantic" in sys.modules:  # something made of pydantic's models
            return _of_pydantic(kind, name)
        why = str(error).rpartition("\n")[2]
        raise LocalError(f"{name} cannot be a schema: {why}") from None
    return Shape(schema, name, lambda value: msgspec.convert(value, kind), msgspec.to_builtins)


def _rooted(meant: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as an object itself, if it was a reference to one: endpoints require that."""
    return {**meant, **{key: schema[key] for key in _DEFINITIONS if key in schema}}


def _wrapped(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object that contains the value. Its definitions stay where they are."""
    inner = {key: value for key, value in schema.items() if key not in _DEFINITIONS}
    definitions = {key: schema[key] for key in _DEFINITIONS if key in schema}
    return {
        "type": "object",
        "properties": {_MEMBER: inner},
        "required": [_MEMBER],
        "additionalProperties": False,
        **definitions,
    }


def _why(error: Exception) -> str:
    """What a validation found, in a few lines."""
    if hasattr(error, "errors") and callable(error.errors):  # pydantic's
        return "; ".join(
            f"{'.'.join(map(str, one['loc'])) or '$'}: {one['msg']}" for one in error.errors()[:5]
        )
    return str(error)
