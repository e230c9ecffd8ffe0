"""What a tool takes: one struct is both the schema that the model sees and the check of its call.

A call that does not fit comes back to the model with the field, what is wrong with it, and the
shape that was expected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from mull.agent.tools.tool import ToolFailure
from mull.neutral.blocks import ToolCallBlock

__all__ = ["input_of", "read_arguments", "schema_of"]

A = TypeVar("A", bound=msgspec.Struct)


def schema_of(arguments: type[msgspec.Struct], texts: Mapping[str, str] = {}) -> dict[str, Any]:
    """The JSON schema; `texts` describe fields that do not describe themselves.

    Raises:
        TypeError: a field has a type that JSON cannot express.
    """
    (schema,), parts = msgspec.json.schema_components((arguments,), ref_template="#/$defs/{name}")
    own = parts.pop(schema["$ref"].rpartition("/")[2]) if "$ref" in schema else schema
    own.pop("title", None)
    own.pop("description", None)  # the struct's docstring is for readers of the code
    for name, text in texts.items():
        if name in own["properties"]:
            own["properties"][name].setdefault("description", text)
    return {**own, "$defs": parts} if parts else own


def input_of(call: ToolCallBlock, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The call's arguments as an object.

    Raises:
        ToolFailure: the model wrote something else.
    """
    if call.input or not (call.arguments or "").strip():
        return call.input
    try:
        return msgspec.json.decode(call.arguments or "", type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        said = f"the arguments are not a JSON object: {(call.arguments or '')[:200]}"
        raise ToolFailure(f"{said}\nexpected: {_shape(schema)}") from None


def read_arguments(
    given: Mapping[str, Any], arguments: type[A], schema: Mapping[str, Any], *, strict: bool = True
) -> A:
    """The values, checked. Not strict takes `"10"` for a number and null for what was left out.

    Raises:
        ToolFailure: they do not fit; says where, and what would.
    """
    if not strict:
        given = {name: value for name, value in given.items() if value is not None}
    try:
        return msgspec.convert(given, arguments, strict=strict)
    except msgspec.ValidationError as error:
        raise ToolFailure(f"wrong arguments: {error}\nexpected: {_shape(schema)}") from None


def _shape(schema: Mapping[str, Any]) -> str:
    """`{"path": string, "offset"?: integer}`: what may be left out has a question mark."""
    required = schema.get("required", ())
    fields = (
        f'"{name}"{"" if name in required else "?"}: {_kind(said)}'
        for name, said in schema.get("properties", {}).items()
    )
    return "{" + ", ".join(fields) + "}"


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(msgspec.json.encode(value).decode() for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(_kind(one) for one in schema["anyOf"])
    if schema.get("type") == "array":
        return f"[{_kind(schema.get('items') or {})}, …]"
    limits = [
        f"{sign} {schema[key]}"
        for key, sign in (("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<="))
        if key in schema
    ]
    kind = str(schema.get("type") or ("object" if "$ref" in schema else "any"))
    return " ".join([kind, *limits])
