"""The grammar (GBNF) of one whole turn, for a llama.cpp server whose model mull knows.

A turn is a thought, if the prompt opens one, and then an answer, a call or a document. No thought
holds a `<`, and other text only before a number, written out or escaped: so the marks of thoughts,
calls and turns, and what a model makes of them that may not write them (`< Tool_call>`), appear
only where the grammar itself puts them. The server's own grammar for calls begins at the first call
and leaves everything before it free.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from mull.dialects.inline_calls import HERMES
from mull.neutral.errors import ConfigError
from mull.neutral.request import AnswerFormat, NamedTool, Tool, ToolChoice
from mull.neutral.target import TurnForm

__all__ = ["turn_grammar"]

_TEXT = r"""
thought ::= line? ("\n" line)* ("\n" "\n"?)?
line ::= [^<\n]+
answer ::= [^<\n\r\t ] ([^<] | sign)*
sign ::= "<" "="? " "? "-"? [0-9]
"""
_JSON = r"""
value ::= object | array | string | number | boolean | null
object ::= "{" (pair (", " pair)*)? "}"
pair ::= string ": " value
array ::= "[" (value (", " value)*)? "]"
string ::= "\"" char* "\""
char ::= [^"\\<\x00-\x1F] | sign | "\\" ["\\bfnrt]
number ::= integer ("." [0-9]{1,15})?
integer ::= "-"? ("0" | [1-9] [0-9]{0,14})
boolean ::= "true" | "false"
null ::= "null"
"""
_NAMED = frozenset(("value", "object", "string", "number", "integer", "boolean", "null"))


def turn_grammar(
    form: TurnForm,
    tools: Sequence[Tool] = (),
    choice: ToolChoice | None = None,
    wanted: AnswerFormat | None = None,
    *,
    thinks: bool = True,
) -> str:
    """The grammar of a turn that may call these tools, or must, and otherwise answers as wanted.

    A prompt that opens no thought leaves the turn free to open one, unless it never `thinks`.

    Raises:
        ConfigError: a schema is nested too deeply, or references in it lead on and on.
    """
    rules = _Rules()
    if isinstance(choice, NamedTool):
        tools = [tool for tool in tools if tool.name == choice.name]
    try:
        turns = [_document(rules, wanted)] if wanted is not None else ["answer"]
        calls = " | ".join(_call(rules, tool) for tool in tools)
    except RecursionError:
        raise ConfigError("a schema is nested too deeply for a grammar") from None
    if tools:
        call = f'{_literal(HERMES[0])} "\\n" ({calls}) "\\n" {_literal(HERMES[1])}'
        turns = [call] if choice not in (None, "auto") else [*turns, call]
    prompt, opening = _literal(form.prompt), _literal(form.open)
    thought = f'({opening} thought ({_closing(form)}) "\\n\\n")?' if thinks else ""
    root = f"root ::= {prompt} {thought} turn\nturn ::= {' | '.join(turns)}\n"
    json = _JSON.lstrip() if tools or wanted is not None else ""
    return root + rules.text + json + _TEXT.lstrip()


def _closing(form: TurnForm) -> str:
    """What closes a thought, by tokens: the server's budget looks for exactly these, and a closing
    tag spelt otherwise would be followed by another. A budget that ends within the tag writes it
    once more from its beginning.
    """
    tokens = [f"<[{token}]>" for token in form.close]
    return " | ".join(" ".join((*tokens[:begun], *tokens)) for begun in range(len(tokens)))


def _document(rules: _Rules, wanted: AnswerFormat) -> str:
    return "object" if wanted.schema is None else rules.of(wanted.schema, wanted.schema)


def _call(rules: _Rules, tool: Tool) -> str:
    parameters = tool.parameters or {"type": "object", "properties": {}}
    head = _literal('{"name": ' + _dump(tool.name) + ', "arguments": ')
    return f'{head} {rules.of(parameters, parameters)} "}}"'


class _Rules:
    """The rules of JSON schemas. What a grammar cannot express, or this one does not, is free."""

    def __init__(self) -> None:
        self._named: dict[str, str] = {}
        self._references: dict[tuple[int, str], str] = {}

    @property
    def text(self) -> str:
        return "".join(f"{name} ::= {rule}\n" for name, rule in self._named.items())

    def of(self, schema: Any, root: dict[str, Any]) -> str:
        """The expression for a schema, whose references point into the root."""
        if not isinstance(schema, dict):
            return "value"
        if isinstance(reference := schema.get("$ref"), str):
            return self._reference(reference, root)
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(values, list) and values:
            return _either(_literal(_dump(value)) for value in values)
        kind = schema.get("type", "object" if "properties" in schema else None)
        choices = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(kind, list) and not choices:  # each once: they may be nested
            choices = [{**schema, "type": one} for one in dict.fromkeys(map(str, kind))]
        if isinstance(choices, list) and choices:
            return _either(self.of(one, root) for one in choices)
        return self._of_kind(kind, schema, root)

    def _of_kind(self, kind: Any, schema: dict[str, Any], root: dict[str, Any]) -> str:
        members = schema.get("properties")
        if kind == "object" and isinstance(members, dict):
            return self._object(schema, members, root)
        if kind == "array":
            item = self._rule(self.of(schema.get("items"), root))
            return f'"[" ({item} (", " {item})*)? "]"'
        return kind if isinstance(kind, str) and kind in _NAMED else "value"

    def _object(self, schema: dict[str, Any], members: dict[str, Any], root: dict[str, Any]) -> str:
        """The members in their order, with or without those that are not required."""
        pairs = [
            self._rule(f"{_literal(_dump(name) + ': ')} {self._rule(self.of(member, root))}")
            for name, member in members.items()
        ]
        required = schema.get("required")
        names = set(map(str, required)) if isinstance(required, list) else ()
        needed = [name in names for name in members]
        after = [
            f'", " {pair}' if must else f'(", " {pair})?'
            for pair, must in zip(pairs, needed, strict=True)
        ]
        if True in needed:
            first = needed.index(True)
            before = [f'({pair} ", ")?' for pair in pairs[:first]]
            inside = " ".join((*before, pairs[first], *after[first + 1 :]))
        else:
            starts, rest = list[str](), ""
            for pair, following in zip(reversed(pairs), reversed(after), strict=True):
                starts.append(f"{pair} {rest}".rstrip())
                rest = self._rule(f"{following} {rest}".rstrip())
            inside = f"({' | '.join(reversed(starts))})?" if starts else ""
        return f'"{{" {inside} "}}"'

    def _reference(self, reference: str, root: dict[str, Any]) -> str:
        key = id(root), reference
        if key not in self._references:
            self._references[key] = name = self._name()
            self._named[name] = "value"
            self._named[name] = self.of(_resolve(reference, root), root)
        return self._references[key]

    def _rule(self, expression: str) -> str:
        """The expression, by a name if it is not one."""
        if expression in _NAMED or expression in self._named:
            return expression
        name = self._name()
        self._named[name] = expression
        return name

    def _name(self) -> str:
        return f"part-{len(self._named)}"


def _resolve(reference: str, root: dict[str, Any]) -> Any:
    """What a reference within the schema points to; None if nothing."""
    found: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) and step else found
    return found if reference.startswith("#") else None


def _either(choices: Iterable[str]) -> str:
    return f"({' | '.join(choices)})"


def _dump(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _literal(text: str) -> str:
    """The text, and nothing else."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r") + '"'
