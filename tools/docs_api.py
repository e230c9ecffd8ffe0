"""The reference of the library's public names, by subject, from their source.

Names stand in the order of `mull._PUBLIC`. The page is made without running anything of the
library, so it is the same under every version of Python.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from tools.docs_html import slug
from tools.docs_source import (
    ERRORS,
    HOME,
    PUBLIC,
    Function,
    Named,
    attributes_of,
    bases_of,
    documented_fields,
    member_shape,
    members_of,
    public_names,
    shape_of,
)

__all__ = ["SUBJECTS", "documented", "page"]

SUBJECTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "Asking": (
        "One question or a conversation, blocking or on your own event loop.",
        (
            "mull.agent.asking",
            "mull.agent.complete",
            "mull.agent.library",
            "mull.agent.options",
            "mull.agent.given",
            "mull.agent.media",
            "mull.agent.results",
            "mull.agent.streams",
            "mull.agent.reach",
        ),
    ),
    "Batches": (
        "Many questions at once, also by the batch APIs of providers: see [batches](../batch.md).",
        ("mull.agent.batch.front", "mull.agent.batch.items", "mull.agent.batch.values"),
    ),
    "Limits and retries": (
        "How long to wait, and how often to retry.",
        ("mull.client.exchange", "mull.client.retry"),
    ),
    "Connections": (
        "What carries requests: mull's own HTTP client, another one, or a transport of yours.",
        ("mull.client.connections", "mull.client.http", "mull.client.transport"),
    ),
    "Engines": (
        "What conversations share: settings, keys and connections.",
        ("mull.agent.engine", "mull.agent.setup"),
    ),
    "Serving": (
        "The [gateway](../gateway.md) as a part of your own application.",
        ("mull.gateway.mounted",),
    ),
    "Sessions": (
        "Stored conversations, and where they are stored.",
        (
            "mull.agent.opening",
            "mull.agent.session",
            "mull.store.sessions.sqlite",
            "mull.store.sessions.memory",
            "mull.store.sessions.values",
        ),
    ),
    "Tools and approval": (
        "Tools that work on a folder, MCP servers, and approval.",
        (
            "mull.agent.functions",
            "mull.agent.approving",
            "mull.agent.toolbox",
            "mull.agent.tools.approve",
            "mull.agent.trust",
            "mull.agent.instructions",
            "mull.agent.tools.tool",
            "mull.agent.tools.background",
            "mull.agent.tools.todo",
            "mull.agent.mcp.servers",
            "mull.agent.mcp.given",
            "mull.store.mcp",
        ),
    ),
    "Messages and blocks": (
        "Messages, in one form for all providers.",
        ("mull.neutral.messages", "mull.neutral.blocks", "mull.neutral.usage"),
    ),
    "Events": (
        "What a stream yields. Ignore the events you do not need.",
        ("mull.neutral.events", "mull.neutral.assemble"),
    ),
    "History": ("Every message, and what happened to it.", ("mull.history.log",)),
    "Settings": (
        "The layers of settings; each [setting](settings.md) has one key.",
        ("mull.settings.layers", "mull.settings.presets"),
    ),
    "Models": (
        "From a name to a model at an endpoint, and what is known about both.",
        ("mull.catalog.resolve", "mull.neutral.target", "mull.neutral.thinking"),
    ),
    "Requests and counts": (
        "What would be sent, what it contains, and why.",
        (
            "mull.policy.prepare",
            "mull.neutral.request",
            "mull.neutral.parameters",
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
    "Errors": (
        "Every error that mull raises on purpose.",
        ("mull.neutral.errors", "mull.neutral.rate_limit"),
    ),
}
_SECTION = re.compile(r"^(Raises|Args|Returns):$", re.MULTILINE)
_ENTRY = re.compile(r"^(?:    )?(\w+): ")


def page() -> str:
    """The whole page."""
    anchors = _anchors()
    lines = [
        "# API reference",
        "",
        "Every public name of `mull`, by subject. [The library](../library.md) explains them with"
        " examples; [testing](../testing.md) covers `mull.testing`.",
        "",
    ]
    for subject, (_, modules) in SUBJECTS.items():
        names = ", ".join(f"[`{one.name}`](#{anchors[one.name]})" for one in public_names(modules))
        lines.append(f"- **[{subject}](#{slug(subject)})**: {names}")
    for subject, (line, modules) in SUBJECTS.items():
        lines += ["", f"## {subject}", "", line]
        for one in public_names(modules):
            lines += ["", f"### {one.name}", "", *_section(one, anchors)]
    return "\n".join(lines)


def documented() -> dict[str, str]:
    """Each public name, and each public member as `Class.member`, with its docstring or ""."""
    found: dict[str, str] = {}
    for one in public_names(tuple(PUBLIC)):
        found[one.name] = one.doc
        if isinstance(one.node, ast.ClassDef):
            for member in members_of(one.node, one.module):
                found[f"{one.name}.{member.name}"] = ast.get_docstring(member) or ""
    return found


def _section(one: Named, anchors: Mapping[str, str]) -> Iterator[str]:
    yield "```python"
    yield from shape_of(one)
    yield "```"
    yield ""
    members = members_of(one.node, one.module) if isinstance(one.node, ast.ClassDef) else []
    elsewhere = {name: at for name, at in anchors.items() if name not in _own(one, members)}
    yield _prose(one.doc, elsewhere)
    if not isinstance(one.node, ast.ClassDef):
        return
    fields = dict(documented_fields(one.node))
    others = {name: at for name, at in elsewhere.items() if name not in fields}
    if fields:
        yield ""
    for name, doc in fields.items():
        yield f"- `{name}`: {_prose(doc, others)}"
    bases = [base for base in bases_of(one.node, one.module) if base in HOME]
    if bases and members and one.module != ERRORS:
        named = ", ".join(f"[`{base}`](#{anchors[base]})" for base in bases)
        yield f"\nIncludes everything in {named}."
    if attributes := attributes_of(one):
        yield "\nAttributes: " + ", ".join(f"`{name}`" for name in attributes) + "."
    for member in filter(ast.get_docstring, members):
        yield "\n" + _shown(member_shape(member, one.module))
        yield "\n" + _prose(ast.get_docstring(member) or "", elsewhere)


def _own(one: Named, members: Sequence[Function]) -> set[str]:
    """What a docstring means by these is the name itself or a member: no link."""
    return {one.name, *(member.name for member in members)}


def _shown(shape: str) -> str:
    return f"**`{shape}`**" if "\n" not in shape else f"```python\n{shape}\n```"


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


@cache
def _anchors() -> dict[str, str]:
    """Where each name's heading is; headings that differ by case alone are numbered."""
    seen: dict[str, int] = {}
    anchors: dict[str, str] = {}
    _count(slug("API reference"), seen)
    for subject, (_, modules) in SUBJECTS.items():
        _count(slug(subject), seen)
        for one in public_names(modules):
            anchors[one.name] = _count(slug(one.name), seen)
    return anchors


def _count(name: str, seen: dict[str, int]) -> str:
    number = seen.get(name, 0)
    seen[name] = number + 1
    return f"{name}-{number}" if number else name
