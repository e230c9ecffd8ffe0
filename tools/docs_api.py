"""The reference of the library's public names, from their source as a type checker reads it.

Nothing is imported but the list of names: signatures, fields, defaults and docstrings come from the
syntax trees of the modules, so the page is the same under every version of Python. Names stand in
the order of `mull._PUBLIC`, by subject.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from inspect import cleandoc
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple, TypeAlias

import mull

__all__ = ["SUBJECTS", "documented", "page"]

SUBJECTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "Asking": (
        "One question, or a conversation; blocking, or on your own event loop.",
        ("mull.agent.library", "mull.agent.results", "mull.agent.streams", "mull.agent.reach"),
    ),
    "Limits and retries": (
        "How long to wait, and how often to ask again.",
        ("mull.client.exchange", "mull.client.retry"),
    ),
    "Engines": (
        "What conversations share: settings, keys and connections.",
        ("mull.agent.engine", "mull.agent.setup"),
    ),
    "Sessions": (
        "Conversations that are kept, and where they are kept.",
        (
            "mull.agent.opening",
            "mull.agent.session",
            "mull.store.sessions.sqlite",
            "mull.store.sessions.memory",
            "mull.store.sessions.values",
        ),
    ),
    "Tools and approval": (
        "Tools that work on a folder, servers of tools, and who allows what.",
        (
            "mull.agent.toolbox",
            "mull.agent.tools.approve",
            "mull.agent.tools.tool",
            "mull.agent.mcp.servers",
            "mull.store.mcp",
        ),
    ),
    "Messages and blocks": (
        "What is said, in one form for all providers.",
        ("mull.neutral.messages", "mull.neutral.blocks", "mull.neutral.usage"),
    ),
    "Events": (
        "What a stream yields. Pass over those that you have no use for.",
        ("mull.neutral.events", "mull.neutral.assemble"),
    ),
    "History": ("Everything that was said, and what became of it.", ("mull.history.log",)),
    "Settings": (
        "The layers that decide; [every setting](settings.md) has one key.",
        ("mull.settings.layers", "mull.settings.presets"),
    ),
    "Models": (
        "From a name to a model at an endpoint, and what is known of both.",
        ("mull.catalog.resolve", "mull.neutral.target", "mull.neutral.thinking"),
    ),
    "Requests and counts": (
        "What would be sent, what it holds, and why.",
        (
            "mull.policy.prepare",
            "mull.neutral.request",
            "mull.policy.meter",
            "mull.policy.parts",
            "mull.policy.tokens",
            "mull.tokenizers",
            "mull.policy.reasoning",
        ),
    ),
    "Codecs": (
        "The four wire formats, without any I/O.",
        ("mull.dialects.registry", "mull.dialects.decoder"),
    ),
    "Errors": ("Every error that mull raises on purpose.", ("mull.neutral.errors",)),
}
_PUBLIC: Mapping[str, str] = vars(mull)["_PUBLIC"]
_HOME = {name: module for module, names in _PUBLIC.items() for name in names.split()}
_SOURCE = Path(mull.__file__).parent
_KEYWORDS_OF = {"ConversationOptions": ("mull.agent.library", "Conversation")}
"""Keywords that stand for those of a constructor, with its defaults."""
_BASES = ("Protocol", "TypedDict")
_WIDTH = 88
_WORD = re.compile(r"[A-Za-z_]\w*")
_SECTION = re.compile(r"^(Raises|Args|Returns):$", re.MULTILINE)
_ENTRY = re.compile(r"^(?:    )?(\w+): ")

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_Made: TypeAlias = _Function | ast.ClassDef | ast.AnnAssign


class Named(NamedTuple):
    """A public name: where it stands and what it is."""

    name: str
    module: str
    node: _Made
    doc: str


def page() -> str:
    """The whole page."""
    anchors = _anchors()
    lines = [
        "# API reference",
        "",
        "Every public name of `mull`, by subject. [The library](../library.md) explains them by"
        " examples, [testing](../testing.md) has the names of `mull.testing`.",
        "",
    ]
    for subject, (_, modules) in SUBJECTS.items():
        names = ", ".join(f"[`{one.name}`](#{anchors[one.name]})" for one in _names(modules))
        lines.append(f"- **[{subject}](#{_slug(subject)})**: {names}")
    for subject, (line, modules) in SUBJECTS.items():
        lines += ["", f"## {subject}", "", line]
        for one in _names(modules):
            lines += ["", f"### {one.name}", "", *_section(one, anchors)]
    return "\n".join(lines)


def documented() -> dict[str, str]:
    """Each public name, and each public member as `Class.member`, with its docstring or ""."""
    found: dict[str, str] = {}
    for one in _names(tuple(_PUBLIC)):
        found[one.name] = one.doc
        if isinstance(one.node, ast.ClassDef):
            for member in _members(one.node):
                found[f"{one.name}.{member.name}"] = ast.get_docstring(member) or ""
    return found


def _names(modules: Sequence[str]) -> Iterator[Named]:
    for module in modules:
        made = _definitions(module)
        for name in _PUBLIC[module].split():
            yield Named(name, module, *made[name])


@cache
def _tree(module: str) -> ast.Module:
    path = _SOURCE.joinpath(*module.split(".")[1:])
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def _definitions(module: str) -> dict[str, tuple[_Made, str]]:
    """What the module defines, with its docstring; that of an alias stands below it."""
    found: dict[str, tuple[_Made, str]] = {}
    body = _tree(module).body
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
    return _quoted(_WORD.sub(lambda found: _alias(found[0], module), text))


def _alias(name: str, module: str) -> str:
    home, own = _imported(module).get(name, (module, name))
    if _HOME.get(own) == home:
        return name
    node = _definitions(home).get(own, (None, ""))[0] if home in _modules() else None
    if not isinstance(node, ast.AnnAssign) or ast.unparse(node.annotation) != "TypeAlias":
        return name
    return _spelt(node.value, home)


@cache
def _modules() -> frozenset[str]:
    paths = (path.relative_to(_SOURCE).with_suffix("") for path in _SOURCE.rglob("*.py"))
    return frozenset(".".join(("mull", *path.parts)).removesuffix(".__init__") for path in paths)


def _section(one: Named, anchors: Mapping[str, str]) -> Iterator[str]:
    yield "```python"
    yield from _shape(one)
    yield "```"
    yield ""
    members = _members(one.node) if isinstance(one.node, ast.ClassDef) else []
    elsewhere = {name: at for name, at in anchors.items() if name not in _own(one, members)}
    yield _prose(one.doc, elsewhere)
    if not isinstance(one.node, ast.ClassDef):
        return
    bases = [base for base in map(ast.unparse, one.node.bases) if base in _HOME]
    if bases and members:
        named = ", ".join(f"[`{base}`](#{anchors[base]})" for base in bases)
        yield f"\nHas all that {named} has."
    if attributes := _attributes(one):
        yield "\nAttributes: " + ", ".join(f"`{name}`" for name in attributes) + "."
    for member in filter(ast.get_docstring, members):
        is_property = _is_property(member)
        shape = _property(member, one.module) if is_property else _call(member, one.module)
        yield "\n" + _shown(shape)
        yield "\n" + _prose(ast.get_docstring(member) or "", elsewhere)


def _own(one: Named, members: Sequence[_Function]) -> set[str]:
    """What a docstring means by these is the name itself or a member: no link."""
    return {one.name, *(member.name for member in members)}


def _shown(shape: str) -> str:
    return f"**`{shape}`**" if "\n" not in shape else f"```python\n{shape}\n```"


def _shape(one: Named) -> Iterator[str]:
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
    bases = [base for base in map(ast.unparse, node.bases) if base in (*_HOME, *_BASES)]
    shown = f"class {node.name}({', '.join(bases)}):" if bases else f"class {node.name}:"
    fields = _fields(node)
    made = next((m for m in _functions(node) if m.name == "__init__"), None)
    if made is not None and _is_for_users(made, module):
        yield _call(made, module, node.name, returns=False)
    elif not fields:
        yield shown.rstrip(":")
    else:
        yield shown
        for field in fields:
            default = "" if field.value is None else f" = {_default(field.value)}"
            yield f"    {ast.unparse(field.target)}: {_spelt(field.annotation, module)}{default}"


def _is_for_users(made: _Function, module: str) -> bool:
    """Whether code outside can make one: a constructor that takes what is not public is not."""
    annotations = [one.annotation for one in (*made.args.args, *made.args.kwonlyargs)]
    words = {word for one in annotations if one for word in _WORD.findall(_spelt(one, module))}
    own = (_imported(module).get(word, (module, word)) for word in words)
    return not any(
        name in _definitions(home) and _HOME.get(name) != home
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


def _functions(node: ast.ClassDef) -> Iterator[_Function]:
    for member in node.body:
        if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
            yield member


def _members(node: ast.ClassDef) -> list[_Function]:
    return [member for member in _functions(node) if not member.name.startswith("_")]


def _is_property(node: _Function) -> bool:
    return any(ast.unparse(one).endswith("property") for one in node.decorator_list)


def _attributes(one: Named) -> list[str]:
    """Public attributes that the constructor sets and nothing else declares."""
    assert isinstance(one.node, ast.ClassDef)
    made = next((m for m in _functions(one.node) if m.name == "__init__"), None)
    found: dict[str, None] = {}
    for node in ast.walk(made) if made else ():
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                match target:
                    case ast.Attribute(value=ast.Name(id="self"), attr=name) if name[0] != "_":
                        found[name] = None
    return list(found)


def _property(node: _Function, module: str) -> str:
    return f"{node.name}: {_spelt(node.returns, module)}"


def _call(node: _Function, module: str, name: str = "", *, returns: bool = True) -> str:
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
        keywords += _unpacked(given.kwarg, module, {one.arg for one in given.kwonlyargs})
    if given.vararg is not None:
        yield f"*{_parameter(given.vararg, None, module)}"
    elif keywords and not keywords[0].startswith("**"):
        yield "*"
    yield from keywords


def _parameter(one: ast.arg, default: ast.expr | None, module: str) -> str:
    annotation = _spelt(one.annotation, module)
    return f"{one.arg}: {annotation}" + ("" if default is None else f" = {_default(default)}")


def _unpacked(kwarg: ast.arg, module: str, known: set[str]) -> Iterator[str]:
    """`**more: Unpack[Options]` as the keywords that a checker sees."""
    match kwarg.annotation:
        case ast.Subscript(value=ast.Name(id="Unpack"), slice=ast.Name(id=name)):
            home, own = _imported(module).get(name, (module, name))
            node = _definitions(home)[own][0]
            assert isinstance(node, ast.ClassDef)
            defaults = _defaults_of(own)
            for field in _fields(node):
                if (key := ast.unparse(field.target)) not in known:
                    yield f"{key}: {_spelt(field.annotation, home)} = {defaults.get(key, '...')}"
        case _:
            yield f"**{_parameter(kwarg, None, module)}"


def _defaults_of(options: str) -> dict[str, str]:
    if options not in _KEYWORDS_OF:
        return {}
    module, name = _KEYWORDS_OF[options]
    node = _definitions(module)[name][0]
    assert isinstance(node, ast.ClassDef)
    given = next(m for m in _functions(node) if m.name == "__init__").args
    pairs = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    return {one.arg: _default(default) for one, default in pairs if default is not None}


def _prose(doc: str, anchors: Mapping[str, str]) -> str:
    """A docstring as Markdown: sections as lists, public names as links."""
    said, *sections = _SECTION.split(doc)
    parts = [_flowing(said)]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        parts += [f"{title}:", "\n".join(map(_item, _entries(body)))]
    text = "\n\n".join(part for part in parts if part)
    return re.sub(
        r"`(\w+)`", lambda m: f"[{m[0]}](#{anchors[m[1]]})" if m[1] in anchors else m[0], text
    )


def _flowing(text: str) -> str:
    paragraphs = (" ".join(part.split()) for part in text.strip().split("\n\n"))
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def _item(entry: str) -> str:
    name, colon, text = entry.partition(": ")
    return f"- `{name}`: {text}" if colon else f"- {entry}"


def _entries(body: str) -> list[str]:
    """`Name: text` of a section, each on one line."""
    entries: list[str] = []
    for line in body.strip("\n").splitlines():
        if _ENTRY.match(line) or not entries:
            entries.append(line.strip())
        else:
            entries[-1] += f" {line.strip()}"
    return entries


def _slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@cache
def _anchors() -> dict[str, str]:
    """Where each name's heading is; headings that differ by case alone are numbered."""
    seen: dict[str, int] = {}
    anchors: dict[str, str] = {}
    _count(_slug("API reference"), seen)
    for subject, (_, modules) in SUBJECTS.items():
        _count(_slug(subject), seen)
        for one in _names(modules):
            anchors[one.name] = _count(_slug(one.name), seen)
    return anchors


def _count(slug: str, seen: dict[str, int]) -> str:
    number = seen.get(slug, 0)
    seen[slug] = number + 1
    return f"{slug}-{number}" if number else slug
