"""Builds the documentation as a website: `python -m tools.docs_site [FOLDER]`, `make docs`.

The site is plain files that need no server: pages, one style sheet, one script, and the search
index as a second script, because a page opened from disk may not fetch anything. PAGES is the
table of contents. A page that is missing from it, or a link that leads nowhere, is an error.
"""

from __future__ import annotations

import argparse
import json
import posixpath
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from html import escape, unescape
from pathlib import Path

from mull._version import __version__
from tools.docs_html import Rendered, relative, render
from tools.docs_look import SCRIPT, STYLE

__all__ = ["PAGES", "broken_links", "build", "main", "unlisted"]

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "site"
PAGES: Mapping[str, Mapping[str, str]] = {
    "Start": {
        "README.md": "Overview",
        "docs/tutorial.md": "Tutorial",
        "docs/tour.md": "Library tour",
        "docs/glossary.md": "Glossary",
    },
    "Guides": {
        "docs/terminal.md": "Terminal",
        "docs/ask.md": "mull ask",
        "docs/batch.md": "Batches",
        "docs/sweep.md": "What thinking buys",
        "docs/tools.md": "Tools",
        "docs/mcp.md": "MCP servers",
        "docs/sessions.md": "Sessions",
        "docs/export.md": "Export and import",
        "docs/compression.md": "Compression",
        "docs/configuration.md": "Configuration",
        "docs/library.md": "Library",
        "docs/examples.md": "Six programs",
        "docs/coming-from.md": "Coming from another library",
        "docs/gateway.md": "Gateway",
        "docs/adapters.md": "Adapters",
        "docs/testing.md": "Testing your client",
    },
    "How to": {
        "docs/how-to/README.md": "All how-to guides",
        "docs/how-to/kimi-deepseek-tool-calls.md": "Kimi and DeepSeek tool calls",
        "docs/how-to/claude-signatures.md": "Claude signatures",
        "docs/how-to/gemini-thought-signatures.md": "Gemini thought signatures",
        "docs/how-to/local-servers.md": "Local servers",
        "docs/how-to/bedrock-and-vertex.md": "Bedrock and Vertex",
        "docs/how-to/switching-models.md": "Switching models",
        "docs/how-to/long-sessions.md": "Long sessions",
    },
    "Reference": {
        "docs/reference/cli.md": "Command line",
        "docs/reference/commands.md": "Slash commands and keys",
        "docs/reference/settings.md": "Settings",
        "docs/reference/api.md": "Python API",
        "docs/stream-json.md": "JSON output",
    },
    "Quality": {
        "docs/fidelity.md": "Reasoning fidelity",
        "fidelity/README.md": "The fidelity suite",
        "docs/reliability.md": "Reliability",
        "docs/security.md": "Security",
        "docs/accuracy.md": "Token count accuracy",
        "docs/performance.md": "Performance",
        "docs/embedded-model.md": "The embedded model",
        "docs/terminal-comparison.md": "The terminal beside others",
        "docs/reference/cases.md": "Test cases",
    },
    "Project": {
        "docs/architecture.md": "Architecture",
        "docs/decisions.md": "Decisions",
        "docs/documents/000-domain-model.md": "Domain model",
        "docs/documents/001-feature-specification.md": "Feature specification",
        "docs/documents/002-extended-thinking.md": "Extended thinking",
        "docs/documents/003-reasoning-capture.md": "Reasoning capture",
        "docs/documents/004-thinking-levels.md": "Thinking levels",
        "CONTRIBUTING.md": "Contributing",
        "SECURITY.md": "Reporting a vulnerability",
        "CHANGELOG.md": "Changelog",
    },
}
_HREF = re.compile(r'\b(?:href|src)="([^"]*)"')
_ID = re.compile(r'\bid="([^"]*)"')


def page_file(source: str) -> str:
    """Where a page lies on the site."""
    special = {"README.md": "index", "SECURITY.md": "security-policy"}
    if source in special:
        return f"{special[source]}.html"
    path = source.removeprefix("docs/").removesuffix(".md")
    folder, name = posixpath.split(path)
    return posixpath.join(folder, "index" if name == "README" else name.lower()) + ".html"


def unlisted(root: Path = ROOT) -> set[str]:
    """Pages of the documentation that the table of contents lacks."""
    found = {path.relative_to(root).as_posix() for path in (root / "docs").rglob("*.md")}
    return found - set(_sources())


def build(folder: Path, root: Path = ROOT) -> list[str]:
    """Write the site into a folder, in place of an earlier one, and return its broken links.

    Raises:
        FileExistsError: the folder holds something other than an earlier site.
    """
    if (folder / "site.css").is_file():
        shutil.rmtree(folder)
    elif folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} holds other files: choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(root / "docs/images", folder / "images")
    (folder / "site.css").write_text(STYLE, encoding="utf-8")
    (folder / "site.js").write_text(SCRIPT, encoding="utf-8")
    index: list[list[str]] = []
    sources = list(_sources())
    for at, source in enumerate(sources):
        text = (root / source).read_text(encoding="utf-8")
        rendered = render(text, partial(_address, source))
        around = (sources[at - 1] if at else None, *sources[at + 1 : at + 2])
        path = folder / page_file(source)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_page(source, rendered, around), encoding="utf-8")
        index += _index(source, rendered)
    listed = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    (folder / "search.js").write_text(f"window.searchIndex={listed}\n", encoding="utf-8")
    return list(broken_links(folder))


def broken_links(folder: Path) -> Iterator[str]:
    """Links between files of the site that lead to no file or no heading."""
    pages = {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.html"))}
    ids = {path: set(_ID.findall(text)) for path, text in pages.items()}
    for path, text in pages.items():
        for link in dict.fromkeys(map(unescape, _HREF.findall(text))):
            if link.startswith(("http:", "https:", "mailto:")):
                continue
            file, _, anchor = link.partition("#")
            target = (path.parent / file).resolve() if file else path
            if not target.is_file() or (anchor and anchor not in ids.get(target, ())):
                yield f"{path.relative_to(folder).as_posix()}: {link}"


def _sources() -> Iterator[str]:
    for group in PAGES.values():
        yield from group


def _address(source: str, address: str) -> str:
    """A relative address in a source file as an address on the site."""
    path, hash_sign, anchor = address.partition("#")
    if not path:
        return address
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    target = page_file(target) if target.endswith(".md") else target.removeprefix("docs/")
    return relative(target, page_file(source)) + hash_sign + anchor


def _page(source: str, rendered: Rendered, around: Sequence[str | None]) -> str:
    file = page_file(source)
    top = relative(".", file)
    title = rendered.title if source == "README.md" else f"{rendered.title} · mull"
    return f"""<!doctype html>
<html lang="en" data-top="{top}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<link rel="stylesheet" href="{top}/site.css">
<script src="{top}/site.js"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the text</a>
<header>
<a class="home" href="{top}/index.html">mull</a> <small>{__version__}</small>
<input id="search" type="search" placeholder="Search ( / )" aria-label="Search" autocomplete="off">
<button id="theme" type="button" aria-label="Switch between light and dark">◐</button>
</header>
<ol id="found" hidden></ol>
<div class="columns">
<details class="menu" open><summary>Contents</summary>
<nav aria-label="Contents">
{_navigation(source)}
</nav></details>
<main id="content">
{rendered.html}
{_neighbours(file, around)}
</main>
</div>
</body>
</html>
"""


def _navigation(current: str) -> str:
    lines: list[str] = []
    for group, pages in PAGES.items():
        lines.append(f"<h2>{group}</h2><ul>")
        for source, name in pages.items():
            here = ' aria-current="page"' if source == current else ""
            address = relative(page_file(source), page_file(current))
            lines.append(f'<li><a href="{address}"{here}>{name}</a></li>')
        lines.append("</ul>")
    return "\n".join(lines)


def _neighbours(file: str, around: Sequence[str | None]) -> str:
    names = {source: name for group in PAGES.values() for source, name in group.items()}
    links = [
        f'<a rel="{rel}" href="{relative(page_file(source), file)}">'
        f"{arrow.format(names[source])}</a>"
        for rel, arrow, source in zip(("prev", "next"), ("← {}", "{} →"), around, strict=False)
        if source
    ]
    return f'<footer class="neighbours">{"".join(links)}</footer>'


def _index(source: str, rendered: Rendered) -> Iterator[list[str]]:
    """What can be found in a page: address, page, heading and text of each section."""
    file = page_file(source)
    for number, (heading, text) in enumerate(rendered.sections):
        address = file if number == 0 else f"{file}#{heading.id}"
        yield [address, rendered.title, heading.text, text]


def main(argv: Sequence[str] | None = None) -> int:
    """Build the website of the documentation and check its links."""
    parser = argparse.ArgumentParser(prog="python -m tools.docs_site", description=main.__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=SITE, help="default: site/")
    options = parser.parse_args(argv)
    problems = [f"not in the table of contents: {page}" for page in sorted(unlisted())]
    problems += [f"broken link: {link}" for link in build(options.folder)]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"wrote {options.folder / 'index.html'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
