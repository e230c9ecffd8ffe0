"""How to point each known client at a gateway: one row for each client.

`mull serve --print-setup` prints these rows, `mull serve run` starts clients with them, and the
gateway's page lists them. This module does no I/O: a row is a function of the gateway's address,
the model's name, its context window and the token.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

__all__ = ["NO_TOKEN", "SETUPS", "TOKEN_VARIABLE", "Reach", "Setup", "Wiring", "setup_lines"]

TOKEN_VARIABLE = "MULL_TOKEN"
"""The environment variable in which a client's user keeps the token for the gateway."""
NO_TOKEN = "none"
"""A placeholder key for clients that require one, if the gateway does not."""


class Reach(NamedTuple):
    """The address of a gateway and the model to request from it. `window` and `output` are the
    model's limits in tokens, if known; `token` is None if the gateway requires none."""

    url: str
    model: str
    window: int | None = None
    output: int | None = None
    token: str | None = None

    @property
    def key(self) -> str:
        """The token, or a placeholder."""
        return self.token or NO_TOKEN

    def limits(self, window: str, output: str) -> dict[str, str]:
        """Environment variables with these names for the limits that are known."""
        known = {window: self.window, output: self.output}
        return {name: str(value) for name, value in known.items() if value}

    @property
    def v1(self) -> str:
        """The base URL as OpenAI's clients expect it."""
        return f"{self.url}/v1"


class Wiring(NamedTuple):
    """How to point a program at a gateway for one run: environment variables to set and to remove,
    and arguments to put before the user's own. A program that reads its login only from a file gets
    a home directory of its own with these `files`; the variable named by `home` points to it."""

    variables: Mapping[str, str] = {}
    arguments: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    home: str | None = None
    files: Mapping[str, str] = {}


class Setup(NamedTuple):
    """A client program or library: how to install it, how to configure it for one run, and the
    lines that configure it permanently, if they differ."""

    title: str
    install: str
    program: str | None = None
    wire: Callable[[Reach], Wiring] | None = None
    lines: Callable[[Reach], list[str]] | None = None


def setup_lines(setup: Setup, reach: Reach) -> list[str]:
    """The lines to paste so that the client uses this gateway. They refer to the token by its
    variable and never contain it."""
    if setup.lines is not None:
        return setup.lines(reach)
    assert setup.wire is not None
    return [*_exports(setup.wire(reach)), str(setup.program)]


def _exports(wiring: Wiring) -> Iterator[str]:
    for name in wiring.removed:
        yield f"unset {name}"
    for name, value in wiring.variables.items():
        yield f"export {name}={_shell(value)}"


def _shell(value: str) -> str:
    """The value quoted for a shell, which still expands the token's variable."""
    shown = f"${TOKEN_VARIABLE}"
    return f'"{shown}"' if value == shown else shlex.quote(value)


def _claude_code(reach: Reach) -> Wiring:
    tiers = ("OPUS", "SONNET", "HAIKU")  # it uses smaller models for titles and summaries
    variables = {
        "ANTHROPIC_BASE_URL": reach.url,
        "ANTHROPIC_AUTH_TOKEN": reach.key,
        "ANTHROPIC_MODEL": reach.model,
        **{f"ANTHROPIC_DEFAULT_{tier}_MODEL": reach.model for tier in tiers},
        **_claude_code_limits(reach),
    }
    # user settings override the environment, and this overrides user settings
    shown = {name: value for name, value in variables.items() if value != reach.token}
    settings = json.dumps({"env": shown})
    return Wiring(variables, ("--settings", settings), removed=("ANTHROPIC_API_KEY",))


_CLAUDE_CODE_OUTPUT = 32_000
"""The longest answer Claude Code requests from a model it does not know."""
_CLAUDE_CODE_SUMMARY = 20_000
"""The most it keeps free for a summary; less if the longest answer is shorter."""
_CLAUDE_CODE_MARGIN = 13_000
"""What it keeps free besides: it summarizes the conversation as soon as less is left."""


def _claude_code_limits(reach: Reach) -> dict[str, str]:
    """Claude Code's variables for the model's limits. In a small window it would keep most of it
    free and summarize on every turn: there its answers are shorter, or it does not summarize."""
    window, output = "CLAUDE_CODE_MAX_CONTEXT_TOKENS", "CLAUDE_CODE_MAX_OUTPUT_TOKENS"
    if not reach.window or reach.window >= 4 * _CLAUDE_CODE_OUTPUT:
        return reach.limits(window, output)
    answer = min(reach.output or _CLAUDE_CODE_OUTPUT, reach.window // 4)
    limits = {window: str(reach.window), output: str(answer)}
    used = reach.window - min(answer, _CLAUDE_CODE_SUMMARY) - _CLAUDE_CODE_MARGIN
    return limits if used >= reach.window // 2 else {**limits, "DISABLE_AUTO_COMPACT": "1"}


def _text(value: str) -> str:
    """A TOML string: the same as in JSON, except for surrogates."""
    return json.dumps(value, ensure_ascii=False)


def _codex_settings(reach: Reach) -> dict[str, str]:
    """Keys of codex's config.toml, with their values in TOML."""
    provider = {"name": "mull", "base_url": reach.v1, "wire_api": "responses"}
    if reach.token is not None:
        provider["env_key"] = TOKEN_VARIABLE
    inline = ", ".join(f"{key} = {_text(value)}" for key, value in provider.items())
    window = {"model_context_window": str(reach.window)} if reach.window else {}
    return {
        "model": _text(reach.model),
        "model_provider": '"mull"',
        **window,
        "model_providers.mull": f"{{ {inline} }}",
    }


def _codex(reach: Reach) -> Wiring:
    given = [
        word for key, value in _codex_settings(reach).items() for word in ("-c", f"{key}={value}")
    ]
    token = {TOKEN_VARIABLE: reach.token} if reach.token is not None else {}
    return Wiring(token, tuple(given))


def _codex_lines(reach: Reach) -> list[str]:
    lines = [f"{key} = {value}" for key, value in _codex_settings(reach).items()]
    return ["# at the top of ~/.codex/config.toml", *lines]


_GEMINI_AUTH = {"security": {"auth": {"selectedType": "gemini-api-key"}}}


def _gemini_cli(reach: Reach) -> Wiring:
    return Wiring(
        {
            "GOOGLE_GEMINI_BASE_URL": reach.url,
            "GEMINI_API_KEY": reach.key,
            "GEMINI_MODEL": reach.model,
        },
        removed=("GOOGLE_API_KEY", "GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI"),
        home="GEMINI_CLI_HOME",
        files={".gemini/settings.json": json.dumps(_GEMINI_AUTH)},
    )


def _gemini_lines(reach: Reach) -> list[str]:
    return [
        f"# in ~/.gemini/settings.json: {json.dumps(_GEMINI_AUTH)}",
        *_exports(_gemini_cli(reach)),
        "gemini",
    ]


def _qwen_code(reach: Reach) -> Wiring:
    return Wiring(
        {
            "OPENAI_BASE_URL": reach.v1,
            "OPENAI_API_KEY": reach.key,
            "OPENAI_MODEL": reach.model,
        },
        ("--auth-type", "openai"),
    )


def _qwen_lines(reach: Reach) -> list[str]:
    return [*_exports(_qwen_code(reach)), "qwen --auth-type openai"]


def _opencode(reach: Reach) -> Wiring:
    about: dict[str, object] = {"name": reach.model, "reasoning": True, "tool_call": True}
    if reach.window:
        output = reach.output or reach.window // 2
        about["limit"] = {"context": reach.window, "output": output}
    key = f"{{env:{TOKEN_VARIABLE}}}" if reach.token is not None else NO_TOKEN
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "mull",
        "options": {"baseURL": reach.v1, "apiKey": key},
        "models": {reach.model: about},
    }
    chosen = f"mull/{reach.model}"
    config = {"provider": {"mull": provider}, "model": chosen, "small_model": chosen}
    token = {TOKEN_VARIABLE: reach.token} if reach.token is not None else {}
    return Wiring({**token, "OPENCODE_CONFIG_CONTENT": json.dumps(config)})


def _opencode_lines(reach: Reach) -> list[str]:
    content = _opencode(reach).variables["OPENCODE_CONFIG_CONTENT"]
    return [f"export OPENCODE_CONFIG_CONTENT={shlex.quote(content)}", "opencode"]


def _kimi_code(reach: Reach) -> Wiring:
    return Wiring(
        {
            "KIMI_MODEL_BASE_URL": reach.v1,
            "KIMI_MODEL_API_KEY": reach.key,
            "KIMI_MODEL_NAME": reach.model,
            **reach.limits("KIMI_MODEL_MAX_CONTEXT_SIZE", "KIMI_MODEL_MAX_OUTPUT_SIZE"),
        }
    )


def _python(imports: str, made: str) -> Callable[[Reach], list[str]]:
    """The lines of a Python program; `made` is a template with `{url}` and `{key}`."""

    def lines(reach: Reach) -> list[str]:
        needed = reach.token is not None
        key = f'os.environ["{TOKEN_VARIABLE}"]' if needed else f'"{NO_TOKEN}"'
        client = made.replace("{url}", reach.url).replace("{key}", key)
        return [
            *(["import os"] if needed else []),
            imports,
            f"client = {client}",
            f'# the model is "{reach.model}"',
        ]

    return lines


SETUPS: Mapping[str, Setup] = {
    "claude-code": Setup(
        "Claude Code", "npm install -g @anthropic-ai/claude-code", "claude", _claude_code
    ),
    "codex": Setup("codex", "npm install -g @openai/codex", "codex", _codex, _codex_lines),
    "gemini-cli": Setup(
        "Gemini CLI", "npm install -g @google/gemini-cli", "gemini", _gemini_cli, _gemini_lines
    ),
    "qwen-code": Setup(
        "Qwen Code", "npm install -g @qwen-code/qwen-code", "qwen", _qwen_code, _qwen_lines
    ),
    "opencode": Setup(
        "opencode", "npm install -g opencode-ai", "opencode", _opencode, _opencode_lines
    ),
    "kimi-code": Setup("Kimi Code", "npm install -g @moonshot-ai/kimi-code", "kimi", _kimi_code),
    "openai": Setup(
        "openai (Python)",
        "pip install openai",
        lines=_python("from openai import OpenAI", 'OpenAI(base_url="{url}/v1", api_key={key})'),
    ),
    "anthropic": Setup(
        "anthropic (Python)",
        "pip install anthropic",
        lines=_python(
            "from anthropic import Anthropic", 'Anthropic(base_url="{url}", api_key={key})'
        ),
    ),
    "google-genai": Setup(
        "google-genai (Python)",
        "pip install google-genai",
        lines=_python(
            "from google import genai",
            'genai.Client(api_key={key}, http_options={"base_url": "{url}"})',
        ),
    ),
}
"""All clients, by the name that `--print-setup` and `run` accept."""
