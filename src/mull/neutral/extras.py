"""The optional extras: which package each feature needs, and the command that installs it.

mull itself brings msgspec alone. Whatever else a feature needs is imported where the feature
starts, and `missing` is what the user is told if that fails. pyproject.toml says which versions.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

from mull.neutral.blocks import Value

__all__ = [
    "ADAPTERS",
    "DISTRIBUTION",
    "EXTRAS",
    "Extra",
    "install_command",
    "is_installed",
    "missing",
]


DISTRIBUTION = "mull-reasoning"
"""What installers call mull: `mull` on the package index is somebody else's project."""


class Extra(Value, frozen=True):
    """A feature, the package that it needs, and the module that it imports."""

    feature: str
    package: str
    module: str


EXTRAS = {
    "terminal": Extra("the terminal assistant", "prompt_toolkit", "prompt_toolkit"),
    "tokens": Extra("an exact token count", "splintr-rs", "splintr"),
    "serve": Extra("mull serve", "granian", "granian"),
    "mcp": Extra("an MCP server", "mcp", "mcp"),
    "postgres": Extra("a PostgreSQL store", "asyncpg", "asyncpg"),
    "otel": Extra(
        "exporting spans",
        "opentelemetry-exporter-otlp-proto-http",
        "opentelemetry.exporter.otlp.proto.http",
    ),
    "vertex": Extra("the login of a Google service account", "cryptography", "cryptography"),
    "highlight": Extra("highlighting code in every language", "pygments", "pygments"),
    "local": Extra("the embedded model", "xllamacpp", "xllamacpp"),
}
ADAPTERS = {
    "httpx": Extra("mull.adapters.httpx", "httpx", "httpx"),
    "langchain": Extra("mull.adapters.langchain", "langchain-core", "langchain_core"),
    "llm": Extra("mull.adapters.llm", "llm", "llm"),
    "openai-agents": Extra("mull.adapters.openai_agents", "openai-agents", "agents"),
    "pydantic-ai": Extra("mull.adapters.pydantic_ai", "pydantic-ai-slim", "pydantic_ai"),
}
"""The same for the adapters to other libraries: nobody misses them who does not use the library."""


def is_installed(extra: str) -> bool:
    """Whether the module of an extra can be found; it is not imported."""
    return _is_found(EXTRAS[extra].module)


def _is_found(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # a package above it is missing, or was made unimportable
        return False


def missing(extra: str, error: ImportError | None = None) -> str:
    """What is missing for a feature, and what to run; `error` is what importing it raised."""
    row = EXTRAS.get(extra) or ADAPTERS[extra]
    problem = "is not installed"
    if error is not None and not _is_absent(row.module, error):
        problem = f"cannot be imported ({error})"
    return f"{row.feature} needs {row.package}, which {problem}: run {install_command(extra)}"


def _is_absent(module: str, error: ImportError) -> bool:
    """Whether the module itself is missing, rather than too old, damaged or without its own
    dependencies."""
    return isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")


def install_command(extra: str) -> str:
    """The command that installs an extra into the environment of this process. Installers take
    what is missing from the metadata of the mull that is installed, wherever that came from.
    """
    from shlex import quote

    folders = sys.prefix.replace("\\", "/").rstrip("/").split("/")
    if "pipx" in folders:
        installer = f"pipx runpip {quote(folders[-1])} install"
    elif _is_found("pip"):
        installer = f"{quote(sys.executable)} -m pip install"
    else:  # an environment that uv made
        installer = f"uv pip install --python {quote(sys.executable)}"
    return f"{installer} '{DISTRIBUTION}[{extra}]'"
