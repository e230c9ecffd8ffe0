"""Measures the grain of the code in src/: files, functions, imports, names, comments.

`python -m tools.house` (`make house`) prints a table; `--list` prints the places behind a figure.
No limit is enforced: a figure says where to look.
"""

from __future__ import annotations

import ast
import io
import statistics
import sys
import tokenize
from argparse import ArgumentParser
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

__all__ = ["House", "main", "measure"]

ROOT = Path(__file__).parent.parent
LARGE = 8
"""A record of so many fields explains each of them where it stands."""


@dataclass
class House:
    """What the files of some packages add up to."""

    lines: list[int]
    """The length of each file, with blank lines and comments."""
    code: int
    """Lines that are neither blank, comment nor docstring."""
    comments: int
    """Lines that hold a comment and nothing else, or end in one."""
    functions: int
    importers: dict[str, str]
    """Modules that only one other imports, and that one."""
    once: list[str]
    """Private functions with one call and no other use in their file."""
    inner: list[str]
    """Imports inside functions."""
    shared: dict[str, list[str]]
    """Class names that stand for several classes, and the modules that define them."""
    records: list[str]
    """Classes with at least `LARGE` annotated fields."""
    undocumented: list[str]
    """Those of them in which a field has no docstring of its own."""

    def rows(self) -> Iterator[tuple[str, str]]:
        """The table."""
        yield "code lines", f"{self.code:,}"
        yield "files; median lines", f"{len(self.lines)}; {statistics.median(self.lines):.0f}"
        yield "functions", f"{self.functions:,}"
        yield "modules with one importer", str(len(self.importers))
        yield "private functions used once", str(len(self.once))
        yield "imports inside functions", str(len(self.inner))
        yield "class names shared by several classes", str(len(self.shared))
        documented = len(self.records) - len(self.undocumented)
        yield "records that document each field", f"{documented} of {len(self.records)}"
        yield "comments per 100 lines", f"{100 * self.comments / sum(self.lines):.1f}"


def measure(packages: Sequence[Path]) -> House:
    """The figures of all files below these folders, which lie in one source folder."""
    files = sorted(path for package in packages for path in package.rglob("*.py"))
    trees = {_module(path): ast.parse(path.read_bytes()) for path in files}
    texts = [path.read_text(encoding="utf-8") for path in files]
    comments, code = zip(*map(_lines, texts, trees.values()), strict=True)
    classes = defaultdict(list)
    records, undocumented, once, inner = [], [], [], []
    functions = 0
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(module)
                fields = [at for at, one in enumerate(node.body) if isinstance(one, ast.AnnAssign)]
                if len(fields) >= LARGE:
                    records.append(f"{module}.{node.name}")
                    if not all(_is_documented(node.body, at) for at in fields):
                        undocumented.append(f"{module}.{node.name}")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions += 1
                inner += [
                    f"{module}:{one.lineno}"
                    for one in ast.walk(node)
                    if isinstance(one, ast.Import | ast.ImportFrom)
                ]
        once += [f"{module}.{name}" for name in _called_once(tree)]
    return House(
        lines=[text.count("\n") for text in texts],
        code=sum(code),
        comments=sum(comments),
        functions=functions,
        importers=_importers(trees),
        once=once,
        inner=sorted(set(inner)),
        shared={name: where for name, where in sorted(classes.items()) if len(where) > 1},
        records=records,
        undocumented=undocumented,
    )


def _module(path: Path) -> str:
    name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
    return name.removesuffix(".__init__")


def _lines(text: str, tree: ast.AST) -> tuple[int, int]:
    """How many lines of a file hold a comment, and how many hold code."""
    beside: set[int] = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            beside.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    comments: set[int] = set()
    code: set[int] = set()
    blank = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in blank:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(comments), len(code - beside)


def _is_documented(body: Sequence[ast.stmt], at: int) -> bool:
    """Whether a text stands below this field."""
    after = body[at + 1] if at + 1 < len(body) else None
    return isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)


def _called_once(tree: ast.Module) -> Iterator[str]:
    """Private functions of a file that it names once beside their definition, to call them."""
    private = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("_")
    }
    nodes = list(ast.walk(tree))
    named = Counter(node.id for node in nodes if isinstance(node, ast.Name))
    called = {
        node.func.id
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    yield from (name for name in sorted(private & called) if named[name] == 1)


def _importers(trees: dict[str, ast.Module]) -> dict[str, str]:
    """Modules that exactly one other module imports, and that one."""
    by: defaultdict[str, set[str]] = defaultdict(set)
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                named = [one.name for one in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                named = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
            else:
                continue
            for name in named:
                if name in trees and name != module:
                    by[name].add(module)
    packages = {
        first for first, second in pairwise(sorted(trees)) if second.startswith(f"{first}.")
    }
    return {
        name: next(iter(found))
        for name, found in sorted(by.items())
        if len(found) == 1 and name not in packages
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table, or the places behind one of its figures."""
    parser = ArgumentParser(prog="python -m tools.house", description=__doc__)
    places = ["importers", "once", "inner", "shared", "undocumented"]
    parser.add_argument("--list", choices=places, help="the places behind a figure")
    options = parser.parse_args(argv)
    house = measure([path for path in (ROOT / "src").iterdir() if path.is_dir()])
    if options.list:
        found = getattr(house, options.list)
        lines = (
            (
                f"{name}  {', '.join(where) if isinstance(where, list) else where}"
                for name, where in found.items()
            )
            if isinstance(found, dict)
            else found
        )
        print("\n".join(lines))
        return 0
    for name, value in house.rows():
        print(f"{name:<40}{value:>12}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
