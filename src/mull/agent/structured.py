"""Answers that are values: a type or a JSON schema becomes the requested format, and the model's
answer is parsed, validated, and requested again if it does not match.

Any type that pydantic or msgspec can describe works: a pydantic model, a msgspec Struct, a
dataclass, a TypedDict, or a combination. Endpoints enforce only objects, so any other value is sent
as the single member of an object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, get_args

import msgspec
from msgspec.structs import replace

from mull.agent.given import expressed
from mull.agent.schema_types import described
from mull.dialects.schemas import moved, pruned
from mull.neutral.blocks import TextBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.errors import LocalError, MisfitError
from mull.neutral.messages import Message, user
from mull.neutral.request import AnswerFormat
from mull.policy.answer_format import tool_name
from mull.policy.answer_value import answer_value
from mull.policy.json_schema import first_misfit, resolve
from mull.policy.json_schema_faults import first_fault
from mull.policy.partial_json import PartialJson

__all__ = ["PartialAnswer", "Shape", "shape_of"]

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
        self._is_wrapped = not _is_object(resolve(schema, schema))
        asked = _wrapped(self._schema) if self._is_wrapped else _rooted(self._schema)
        self.format: AnswerFormat = AnswerFormat(
            asked, _NOT_IN_NAMES.sub("_", name)[:64].strip("_") or "answer"
        )

    def read(self, message: Message) -> Any:
        """The value of an answer.

        Raises:
            MisfitError: there is none, or it does not match; says where.
        """
        try:
            return self._convert(self._matching(answer_value(message, self.format)))
        except (ValueError, RecursionError) as error:  # also from msgspec and pydantic
            raise MisfitError(f"the answer does not match the schema: {_why(error)}") from None

    def _matching(self, value: Any) -> Any:
        """The value that matches the schema, without the object around it; a model may omit
        that.
        """
        inner = self.unwrapped(value)
        misfit = first_misfit(inner, self._schema)
        if misfit is None:
            return inner
        if inner is not value and first_misfit(value, self._schema) is None:
            return value
        raise ValueError(misfit)

    def unwrapped(self, value: Any) -> Any:
        """The value without the object around it, if there is one."""
        if self._is_wrapped and isinstance(value, dict) and value.keys() == {_MEMBER}:
            return value[_MEMBER]
        return value

    def so_far(self, value: Any) -> Any:
        """The incomplete value without the object around it; None while it may be part of that."""
        if not self._is_wrapped:
            return value if isinstance(value, dict) else None
        return None if value == {} else self.unwrapped(value)

    def correction(self, message: Message, misfit: MisfitError) -> Message:
        """The message to a model whose answer does not match."""
        why = str(misfit)
        said = f"{why[:1].upper()}{why[1:]}. Answer again, with nothing but the whole JSON value."
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

    def as_text(self, message: Message) -> Message:
        """The answer with the call it was given by as text, which needs no result and can be sent
        to any model.
        """
        if not any(call.name == tool_name(self.format) for call in message.tool_calls):
            return message
        blocks = tuple(
            TextBlock(block.arguments or msgspec.json.encode(block.input).decode())
            if isinstance(block, ToolCallBlock) and block.name == tool_name(self.format)
            else block
            for block in message.blocks
        )
        return replace(message, blocks=blocks)


class PartialAnswer:
    """The value of an answer while it arrives, as JSON data."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._reading = PartialJson()

    def of(self, message: Message) -> Any:
        """The value as far as it is certain; None while there is nothing of it."""
        shape = self._shape
        if message.status == "complete":
            try:
                return shape.unwrapped(answer_value(message, shape.format))
            except ValueError:
                return None
        return shape.so_far(self._reading.read(message.text))


def shape_of(kind: Any, name: str | None = None) -> Shape:
    """The form of a type, or of a JSON schema.

    Raises:
        LocalError: it describes no form; says why.
    """
    if isinstance(kind, Shape):
        return kind
    if isinstance(kind, Mapping):
        schema, called = _bare(expressed(kind, "the schema"))
        try:
            if (fault := first_fault(schema)) is not None:
                raise LocalError(f"the schema is not valid: {fault}")
            return Shape(schema, name or called or str(schema.get("title") or "answer"))
        except RecursionError:
            raise LocalError("the schema is nested too deeply") from None
    is_class = isinstance(kind, type) and not get_args(kind)
    made = described(kind, kind.__name__ if is_class else repr(kind)[:_LONGEST])
    called = name or (kind.__name__ if is_class else "answer")
    return Shape(made.schema, called, made.convert, made.plain)


def _bare(given: Mapping[str, Any]) -> tuple[Mapping[str, Any], str | None]:
    """The schema itself and its name, also from what OpenAI's API takes as a `response_format`."""
    inner = given.get("json_schema", given) if given.get("type") == "json_schema" else given
    if isinstance(inner, Mapping) and isinstance(inner.get("schema"), Mapping) and "name" in inner:
        return inner["schema"], str(inner["name"])
    return given, None


def _is_object(schema: Mapping[str, Any]) -> bool:
    return bool(schema.get("type", "object" if "properties" in schema else None) == "object")


def _rooted(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as an object itself, if it was a reference to one: endpoints require that."""
    definitions = {key: schema[key] for key in _DEFINITIONS if key in schema}
    return pruned({"type": "object", **resolve(schema, schema), **definitions})


def _wrapped(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object that contains the value. Its definitions stay where they are."""
    inner = {key: value for key, value in schema.items() if key not in _DEFINITIONS}
    definitions = {key: schema[key] for key in _DEFINITIONS if key in schema}
    return moved(
        {
            "type": "object",
            "properties": {_MEMBER: inner},
            "required": [_MEMBER],
            "additionalProperties": False,
            **definitions,
        },
        f"#/properties/{_MEMBER}",
    )


def _why(error: Exception) -> str:
    """What a validation found, in a few lines."""
    if hasattr(error, "errors") and callable(error.errors):  # pydantic's
        return "; ".join(
            f"{'.'.join(map(str, one['loc'])) or '$'}: {one['msg']}" for one in error.errors()[:5]
        )
    return str(error)
