"""Public names as they stand in the source: what a type checker reads of them, as text.

Nothing is imported but the list of names. Aliases that are not public are written out, keywords
that a dictionary names are spelt out, and defaults that only a module knows are left open.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from inspect import cleandoc
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import NamedTuple, TypeAlias

import mull

__all__ = [
    "ERRORS", "HOME", "PUBLIC", "Function", "Named", "attributes_of", "bases_of",
    "documented_fields", "member_shape", "members_of", "public_names", "shape_of",
]  # fmt: skip

PUBLIC: Mapping[str, str] = vars(mull)["_PUBLIC"]
HOME = {name: module for module, names in PUBLIC.items() for name in names.split()}
ERRORS = "mull.neutral.errors"
_SOURCE = Path(mull.__file__).parent
_BASES = ("Protocol", "TypedDict", "Exception")
_WIDTH = 88
_WORD = re.compile(r"[A-Za-z_]\w*")
_OPEN = re.compile(r"(^|[^\w.])_|^\w+\(default_factory|^log_warning$|^[A-Z_]{2,}$")
"""Defaults that say nothing outside their module."""

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_Made: TypeAlias = Function | ast.ClassDef | ast.AnnAssign


class Named(NamedTuple):
    """A public name: where it stands and what it is."""

    name: str
    module: str
    node: _Made
    doc: str


def public_names(modules: Sequence[str]) -> Iterator[Named]:
    """The public names of these modules, in their order."""
    for module in modules:
        made = _definitions(module)
        for name in PUBLIC[module].split():
            yield Named(name, module, *made[name])


@cache
def _tree(module: str) -> ast.Module:
    path = _SOURCE.joinpath(*module.split(".")[1:])
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def _definitions(module: str) -> dict[str, tuple[_Made, str]]:
    """What the module defines, also for type checkers alone, with its docstring; that of an alias
    stands below it."""
    found: dict[str, tuple[_Made, str]] = {}
    tops = (top.body if isinstance(top, ast.If) else [top] for top in _tree(module).body)
    body = [node for nodes in tops for node in nodes]
    for node, after in zip_longest(body, body[1:]):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = node, ast.get_docstring(node) or ""
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            match after:
                case ast.Expr(value=ast.Constant(value=str(doc))):
                    found[node.target.id] = node, cleandoc(doc)
                case _:
                    found[node.target.id] = node, ""
    return found


@cache
def _imported(module: str) -> dict[str, tuple[str, str]]:
    """Where names of other modules of mull come from."""
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.walk(_tree(module))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mull.")
        for alias in node.names
    }


def _spelt(annotation: ast.expr | None, module: str) -> str:
    """An annotation with aliases that are no public names written out."""
    if annotation is None:
        return ""
    text = ast.unparse(annotation)
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        text = annotation.value
    text = text.replace("builtins.", "")  # a class with a method `list` has to say which it means
    return _quoted(_WORD.sub(lambda found: _alias(found[0], module), text))


def _alias(name: str, module: str) -> str:
    home, own = _imported(module).get(name, (module, name))
    if HOME.get(own) == home:
        return name
    node = _definitions(home).get(own, (None, ""))[0] if home in _modules() else None
    if not isinstance(node, ast.AnnAssign) or ast.unparse(node.annotation) != "TypeAlias":
        return name
    return _spelt(node.value, home)


@cache
def _modules() -> frozenset[str]:
    paths = (path.relative_to(_SOURCE).with_suffix("") for path in _SOURCE.rglob("*.py"))
    return frozenset(".".join(("mull", *path.parts)).removesuffix(".__init__") for path in paths)


def shape_of(one: Named) -> Iterator[str]:
    """What the name is, in lines of code."""
    match one.node:
        case ast.AnnAssign():
            yield _folded(f"{one.name} = ", _spelt(one.node.value, one.module))
        case ast.ClassDef():
            yield from _class(one.node, one.module)
        case _:
            yield _call(one.node, one.module)


def _folded(head: str, union: str) -> str:
    """A long union with one member a line."""
    if len(head + union) <= _WIDTH or "[" in union:
        return head + union
    return head + "(\n    " + "\n    | ".join(union.split(" | ")) + "\n)"


def _class(node: ast.ClassDef, module: str) -> Iterator[str]:
    bases = [base for base in bases_of(node, module) if base in (*HOME, *_BASES)]
    shown = f"class {node.name}({', '.join(bases)}):" if bases else f"class {node.name}:"
    fields = _fields(node)
    made = _constructor(node, module)
    if made is not None and module != ERRORS and _is_for_users(made, module):
        yield _call(made, module, node.name, returns=False)
    elif not fields:
        yield shown.rstrip(":")
    else:
        yield shown
        for field in fields:
            default = "" if field.value is None else f" = {_default(field.value)}"
            yield f"    {ast.unparse(field.target)}: {_spelt(field.annotation, module)}{default}"


def documented_fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """The fields with a docstring below them, and that docstring."""
    for field, below in pairwise(node.body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(doc))),
            ):
                yield name, cleandoc(doc)


def _is_for_users(made: Function, module: str) -> bool:
    """Whether code outside can make one: a constructor that takes what is not public is not."""
    annotations = [one.annotation for one in (*made.args.args, *made.args.kwonlyargs)]
    words = {word for one in annotations if one for word in _WORD.findall(_spelt(one, module))}
    own = (_imported(module).get(word, (module, word)) for word in words)
    return not any(
        name in _definitions(home) and HOME.get(name) != home
        for home, name in own
        if home in _modules()
    )


def _fields(node: ast.ClassDef) -> list[ast.AnnAssign]:
    return [field for field in node.body if isinstance(field, ast.AnnAssign)]


def _default(value: ast.expr) -> str:
    """A default as it is written; what only the module knows the name of is left open."""
    text = _quoted(ast.unparse(value))
    return (
        "..."
        if re.search(r"(^|[^\w.])_|^\w+\(default_factory|log_warning|^[A-Z_]{2,}$", text)
        else text
    )


def _quoted(code: str) -> str:
    return re.sub(r"'([^'\"\\]*)'", r'"\1"', code)


def _functions(node: ast.ClassDef) -> Iterator[Function]:
    for member in node.body:
        if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
            yield member


def _lineage(node: ast.ClassDef, module: str) -> Iterator[ast.ClassDef]:
    """The class and those of its bases that only its module knows."""
    yield node
    for base in map(ast.unparse, node.bases):
        found = _definitions(module).get(base, (None, ""))[0]
        if isinstance(found, ast.ClassDef) and base not in HOME:
            yield from _lineage(found, module)


def bases_of(node: ast.ClassDef, module: str) -> list[str]:
    """The bases, those of private ones in their place."""
    return [ast.unparse(base) for one in _lineage(node, module) for base in one.bases]


def _constructor(node: ast.ClassDef, module: str) -> Function | None:
    made = (m for one in _lineage(node, module) for m in _functions(one) if m.name == "__init__")
    return next(made, None)


def members_of(node: ast.ClassDef, module: str) -> list[Function]:
    """Methods and properties that are not private; those of private bases come first."""
    lineage = reversed([*_lineage(node, module)])
    found = {member.name: member for one in lineage for member in _functions(one)}
    return [member for name, member in found.items() if not name.startswith("_")]


def _is_property(node: Function) -> bool:
    return any(ast.unparse(one).endswith("property") for one in node.decorator_list)


def attributes_of(one: Named) -> list[str]:
    """Public attributes that the constructor sets and nothing else declares."""
    assert isinstance(one.node, ast.ClassDef)
    made = _constructor(one.node, one.module)
    found: dict[str, str] = {}
    for node in ast.walk(made) if made else ():
        match node:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)]):
                found.setdefault(name, name)
            case ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                found[name] = f"{name}: {_spelt(node.annotation, one.module)}"
    return [shown for name, shown in found.items() if not name.startswith("_")]


def member_shape(node: Function, module: str) -> str:
    """A method's signature, or a property with its type."""
    return _property(node, module) if _is_property(node) else _call(node, module)


def _property(node: Function, module: str) -> str:
    return f"{node.name}: {_spelt(node.returns, module)}"


def _call(node: Function, module: str, name: str = "", *, returns: bool = True) -> str:
    """A signature on one line, or one parameter a line where it is long."""
    start = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    head = f"{start}{name or node.name}("
    end = f") -> {_spelt(node.returns, module)}" if returns else ")"
    parts = list(_parameters(node.args, module))
    line = head + ", ".join(parts) + end
    if len(line) <= _WIDTH:
        return line
    return head + "".join(f"\n    {part}," for part in parts) + "\n" + end


def _parameters(given: ast.arguments, module: str) -> Iterator[str]:
    plain = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(plain) - len(given.defaults)) + list(given.defaults)
    for one, default in zip(plain, defaults, strict=True):
        if one.arg not in ("self", "cls"):
            yield _parameter(one, default, module)
    keywords = [
        _parameter(one, default, module)
        for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    ]
    if given.kwarg is not None:
        keywords.append(f"**{_parameter(given.kwarg, None, module)}")
    if given.vararg is not None:
        yield f"*{_parameter(given.vararg, None, module)}"
    elif keywords and not keywords[0].startswith("**"):
        yield "*"
    yield from keywords


def _parameter(one: ast.arg, default: ast.expr | None, module: str) -> str:
    annotation = _spelt(one.annotation, module)
    return f"{one.arg}: {annotation}" + ("" if default is None else f" = {_default(default)}")
