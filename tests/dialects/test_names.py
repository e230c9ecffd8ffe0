"""A dialect is named where it lives, and nowhere else: whoever decides asks for a trait of it, or
asks the dialect itself. So another one is a package, and its name for type checkers."""

import ast
from pathlib import Path
from typing import get_args

import pytest

import mull
from mull.dialects.registry import DIALECTS
from mull.dialects.traits import TRAITS, package_of
from mull.neutral.messages import Dialect

ROOT = Path(mull.__file__).parent
NAMING = {
    "adapters/openai_agents.py": "the two APIs between which the Agents SDK stands",
    "dialects/batch_api.py": "a batch API that is called like its provider",
    "dialects/registry.py": "the codec of each, for type checkers",
    "neutral/target.py": "the same, for type checkers",
    "neutral/messages.py": "the list of names, for type checkers",
    "dialects/openai_chat/__init__.py": "the other API of its provider",
    "gateway/setups.py": "clients, some of which are called like a dialect",
    "neutral/former.py": "what the four first ones wrote once",
}


def names_in(file):
    """The dialects that a module names in a string of its own."""
    strings = (node.value for node in ast.walk(ast.parse(file.read_text())) if is_text(node))
    return {text for text in strings if text in get_args(Dialect)}


def is_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


@pytest.mark.sweep
def test_no_dialect_is_named_where_it_does_not_live():
    named = {}
    for file in ROOT.rglob("*.py"):
        path = file.relative_to(ROOT).as_posix()
        if path.startswith("testing/"):  # plays providers, which have names of their own
            continue
        found = names_in(file)
        if (parts := path.split("/"))[0] == "dialects" and len(parts) > 2:
            found -= {parts[1].replace("_", "-")}
        if found and path not in NAMING:
            named[path] = found
    assert named == {}


def test_every_dialect_has_its_package_and_its_traits():
    assert set(DIALECTS) == set(TRAITS) == set(get_args(Dialect))
    assert all(names_in(ROOT / path) for path in NAMING)


def imported(file):
    """What a module imports, by its full name."""
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.ImportFrom(module=str(module), level=0):
                yield module
            case ast.Import():
                yield from (alias.name for alias in node.names)


@pytest.mark.sweep
def test_no_dialect_knows_another():
    packages = {dialect: package_of(dialect) for dialect in DIALECTS}
    for dialect, package in packages.items():
        others = tuple(name for name in packages.values() if name != package)
        for file in (ROOT / "dialects" / dialect.replace("-", "_")).rglob("*.py"):
            assert not [name for name in imported(file) if name.startswith(others)], file
