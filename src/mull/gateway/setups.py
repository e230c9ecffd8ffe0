"""How to point each known client at a gateway: one row for each client.

Where a client takes what it needs from the environment or its arguments, one function serves both
ways. A client with an editor's settings page can only be configured by hand.

`mull serve --print-setup` prints these rows, `mull serve run` starts clients with them, and the
gateway's page lists them. This module does no I/O: a row is a function of the gateway's address,
the model's name, its context window and the token.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

__all__ = [
    "HOME",
    "NO_TOKEN",
    "SETUPS",
    "TOKEN_VARIABLE",
    "Reach",
    "Setup",
    "Wiring",
    "setup_lines",
]

TOKEN_VARIABLE = "MULL_TOKEN"
"""The environment variable in which a client's user keeps the token for the gateway."""
NO_TOKEN = "none"
"""A placeholder key for clients that require one, if the gateway does not."""
HOME = "{home}"
"""Stands for the folder of a client's files in its variables and arguments."""
_WINDOW = 128_000
"""The window for clients that require one, if it is unknown."""


class Reach(NamedTuple):
    """The address of a gateway and the model to request from it. `window` and `output` are the
    model's limits in tokens, if known; `token` is None if the gateway requires none. `told` is
    what the client said about itself (`Setup.asks`)."""

    url: str
    model: str
    window: int | None = None
    output: int | None = None
    token: str | None = None
    told: str = ""

    @property
    def answer(self) -> int:
        """The longest answer to request, for clients that reserve room for it in the window."""
        most = (self.window or _WINDOW) // 4
        return min(self.output or most, most)

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
    and arguments to put before the user's own. What a program reads only from files is written to
    a folder of mull's own: `files` each time, `first` if it is not there, so that the program may
    change it. `HOME` in a variable or an argument is that folder."""

    variables: Mapping[str, str] = {}
    arguments: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    files: Mapping[str, str] = {}
    first: Mapping[str, str] = {}


class Setup(NamedTuple):
    """A client program or library: how to install it, how to configure it for one run, and the
    lines that configure it permanently, if they differ. What the program prints with the arguments
    `asks` is needed to configure it."""

    title: str
    install: str
    program: str | None = None
    wire: Callable[[Reach], Wiring] | None = None
    lines: Callable[[Reach], list[str]] | None = None
    asks: tuple[str, ...] = ()


def setup_lines(setup: Setup, reach: Reach) -> list[str]:
    """The lines to paste so that the client uses this gateway. They refer to the token by its
    variable and never contain it."""
    if setup.lines is not None:
        return setup.lines(reach)
    assert setup.wire is not None
    return [*_exports(setup.wire(reach)), str(setup.program)]


def _exports(wiring: Wiring) -> Iterator[str]:
    if wiring.removed:
        yield f"unset {' '.join(wiring.removed)}"
    for name, value in wiring.variables.items():
        if HOME not in value:
            yield f"export {name}={_shell(value)}"


def _shell(value: str) -> str:
    """The value quoted for a shell, which still expands the token's variable."""
    shown = f"${TOKEN_VARIABLE}"
    return f'"{shown}"' if value == shown else shlex.quote(value)


_CLAUDE_CODE_CLOUDS = tuple(
    f"CLAUDE_CODE_USE_{cloud}"
    for cloud in (
        *("BEDROCK", "VERTEX", "FOUNDRY", "MANTLE"),
        *("ANTHROPIC_AWS", "ANTHROPIC_GOOGLE_CLOUD", "GATEWAY"),
    )
)
"""With one of these Claude Code ignores the base URL (all that 2.1.325 knows, 2026-11-19)."""


def _claude_code(reach: Reach) -> Wiring:
    tiers = ("FABLE", "OPUS", "SONNET", "HAIKU")  # it uses smaller ones for titles and summaries
    variables = {
        "ANTHROPIC_BASE_URL": reach.url,
        "ANTHROPIC_AUTH_TOKEN": reach.key,
        "ANTHROPIC_MODEL": reach.model,
        **{f"ANTHROPIC_DEFAULT_{tier}_MODEL": reach.model for tier in tiers},
        **_claude_code_limits(reach),
    }
    # user settings override the environment, and this overrides user settings
    shown = {name: value for name, value in variables.items() if value != reach.token}
    settings = json.dumps({"env": {**dict.fromkeys(_CLAUDE_CODE_CLOUDS, "0"), **shown}})
    removed = ("ANTHROPIC_API_KEY", "ANTHROPIC_UNIX_SOCKET", *_CLAUDE_CODE_CLOUDS)
    return Wiring(variables, ("--settings", settings), removed)


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
    settings, files = _codex_settings(reach), dict[str, str]()
    if catalog := _codex_catalog(reach):
        files["models.json"] = catalog
        settings["model_catalog_json"] = _text(f"{HOME}/models.json")
    given = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    # codex merges its own config.toml into this provider, which may name the variable
    return Wiring({TOKEN_VARIABLE: reach.key}, tuple(given), files=files)


_CODEX_PLAIN = {
    "description": "served by mull",
    "visibility": "list",
    "priority": 0,
    "upgrade": None,
    "availability_nux": None,
    "additional_speed_tiers": [],
    "service_tiers": [],
    "support_verbosity": False,
    "default_verbosity": None,
    "default_reasoning_summary": "auto",
    "default_reasoning_level": None,
}
"""What a model of another provider has in place of OpenAI's own."""
_CODEX_OWN = ("model_messages", "comp_hash", "default_service_tier")
_CODEX_MAKER = re.compile(r" based on GPT-\w+(\.\w+)*")


def _codex_catalog(reach: Reach) -> str | None:
    """codex's catalog with the served model in it; None if codex did not print its own.

    Without an entry codex warns that it has no metadata, and assumes 272,000 tokens at most. An
    entry needs codex's own instructions, and fields that differ from version to version: so it is
    made from an entry of that very codex, of a model with ordinary tools.
    """
    try:
        listed = json.loads(reach.told)["models"]
        like: dict[str, Any] = next(one for one in listed if not one.get("tool_mode"))
        instructions = _CODEX_MAKER.sub("", like["base_instructions"], count=1)
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration):
        return None
    window = {"context_window": reach.window, "max_context_window": reach.window}
    entry = {
        **{key: value for key, value in like.items() if key not in _CODEX_OWN},
        **_CODEX_PLAIN,
        **(window if reach.window else {}),
        "slug": reach.model,
        "display_name": reach.model,
        "base_instructions": instructions,
    }
    return json.dumps({"models": [entry]})


def _token(reach: Reach) -> dict[str, str]:
    return {TOKEN_VARIABLE: reach.token} if reach.token is not None else {}


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
            "GEMINI_CLI_HOME": HOME,
        },
        removed=("GOOGLE_API_KEY", "GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI"),
        first={".gemini/settings.json": json.dumps(_GEMINI_AUTH)},
    )


def _gemini_lines(reach: Reach) -> list[str]:
    return [
        f"# in ~/.gemini/settings.json: {json.dumps(_GEMINI_AUTH)}",
        *_exports(_gemini_cli(reach)),
        "gemini",
    ]


def _qwen_code(reach: Reach) -> Wiring:
    """The window is among the defaults, because the user's own settings are a file of the same
    kind."""
    variables = {
        "OPENAI_BASE_URL": reach.v1,
        "OPENAI_API_KEY": reach.key,
        "OPENAI_MODEL": reach.model,
    }
    files = {}
    if reach.window:
        variables["QWEN_CODE_SYSTEM_DEFAULTS_PATH"] = f"{HOME}/defaults.json"
        about = {"generationConfig": {"contextWindowSize": reach.window}}
        files["defaults.json"] = json.dumps({"model": about})
    return Wiring(variables, ("--auth-type", "openai"), files=files)


def _qwen_lines(reach: Reach) -> list[str]:
    wiring = _qwen_code(reach)
    known = [f"# in ~/.qwen/settings.json: {text}" for text in wiring.files.values()]
    return [*known, *_exports(wiring), "qwen --auth-type openai"]


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
    return Wiring({**_token(reach), "OPENCODE_CONFIG_CONTENT": json.dumps(config)})


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


def _pi_provider(reach: Reach, key: str | None) -> dict[str, Any]:
    about = {
        "id": reach.model,
        "name": reach.model,
        "reasoning": True,
        "input": ["text", "image"],
        "contextWindow": reach.window or _WINDOW,
        "maxTokens": reach.answer,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    }
    given = {} if key is None else {"apiKey": key}
    return {"baseUrl": reach.v1, "api": "openai-completions", **given, "models": [about]}


def _pi(reach: Reach) -> Wiring:
    """An extension adds the provider, so that the user's own folder of pi stays in use."""
    provider = json.dumps(_pi_provider(reach, None))
    key = f"process.env.{TOKEN_VARIABLE} ?? {json.dumps(NO_TOKEN)}"
    extension = (
        "export default function (pi) {\n"
        f'  pi.registerProvider("mull", {{ ...{provider}, apiKey: {key} }});\n}}\n'
    )
    chosen = ("-e", f"{HOME}/mull.js", "--provider", "mull", "--model", reach.model)
    return Wiring(_token(reach), chosen, files={"mull.js": extension})


def _pi_lines(reach: Reach) -> list[str]:
    key = f"${TOKEN_VARIABLE}" if reach.token is not None else NO_TOKEN
    providers = {"providers": {"mull": _pi_provider(reach, key)}}
    return [
        f"# in ~/.pi/agent/models.json: {json.dumps(providers)}",
        f"pi --provider mull --model {shlex.quote(reach.model)}",
    ]


def _aider(reach: Reach) -> Wiring:
    """aider's own variables take precedence over those in a project's .env file."""
    model = f"openai/{reach.model}"
    about = {
        "litellm_provider": "openai",
        "mode": "chat",
        "max_input_tokens": reach.window or _WINDOW,
        "max_output_tokens": reach.answer,
        "max_tokens": reach.answer,
    }
    known = ("--model-metadata-file", f"{HOME}/models.json", "--no-show-model-warnings")
    return Wiring(
        {"AIDER_OPENAI_API_BASE": reach.v1, "AIDER_OPENAI_API_KEY": reach.key},
        ("--model", model, "--weak-model", model, *known),
        files={"models.json": json.dumps({model: about})},
    )


def _aider_lines(reach: Reach) -> list[str]:
    wiring = _aider(reach)
    model = shlex.quote(f"openai/{reach.model}")
    return [
        f"# in ~/.aider.model.metadata.json: {wiring.files['models.json']}",
        *_exports(wiring),
        f"aider --model {model} --weak-model {model}",
    ]


def _goose(reach: Reach) -> Wiring:
    return Wiring(
        {
            "GOOSE_PROVIDER": "openai",
            "GOOSE_MODEL": reach.model,
            "GOOSE_FAST_MODEL": reach.model,
            "OPENAI_HOST": reach.url,
            "OPENAI_BASE_PATH": "v1/chat/completions",
            "OPENAI_API_KEY": reach.key,
            **reach.limits("GOOSE_CONTEXT_LIMIT", "GOOSE_MAX_TOKENS"),
        },
        removed=("OPENAI_BASE_URL", "OPENAI_CUSTOM_HEADERS", "OPENAI_ORGANIZATION"),
    )


def _cline(reach: Reach) -> Wiring:
    """cline takes an address only from the settings in its data folder."""
    name = "openai-compatible"
    settings: dict[str, Any] = {"provider": name, "model": reach.model, "baseUrl": reach.v1}
    if reach.window:
        settings |= {"contextWindow": reach.window, "maxTokens": reach.answer}
    provider = {"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z"}
    chosen = {
        "version": 1,
        "lastUsedProvider": name,
        "modes": {},
        "providers": {name: {**provider, "tokenSource": "manual"}},
    }
    return Wiring(
        {"OPENAI_API_KEY": reach.key},
        ("--data-dir", HOME, "-P", name, "-m", reach.model),
        files={"settings/providers.json": json.dumps(chosen)},
    )


def _cline_lines(reach: Reach) -> list[str]:
    key = _shell(f"${TOKEN_VARIABLE}" if reach.token is not None else NO_TOKEN)
    model, url = shlex.quote(reach.model), shlex.quote(reach.v1)
    return [f"cline auth -p openai-compatible -k {key} -b {url} -m {model}", "cline"]


def _continue_config(reach: Reach) -> dict[str, Any]:
    secret = f"${{{{ secrets.{TOKEN_VARIABLE} }}}}"  # from the environment, or a file of Continue
    about = {
        "name": reach.model,
        "provider": "openai",
        "model": reach.model,
        "apiBase": reach.v1,
        "apiKey": NO_TOKEN if reach.token is None else secret,
        "roles": ["chat", "edit", "apply"],
        "capabilities": ["tool_use", "image_input"],
        "defaultCompletionOptions": {
            "contextLength": reach.window or _WINDOW,
            "maxTokens": reach.answer,
        },
    }
    return {"name": "mull", "version": "1.0.0", "schema": "v1", "models": [about]}


def _continue(reach: Reach) -> Wiring:
    config = json.dumps(_continue_config(reach))  # JSON is YAML
    chosen = ("--config", f"{HOME}/config.yaml")
    return Wiring(_token(reach), chosen, files={"config.yaml": config})


def _continue_lines(reach: Reach) -> list[str]:
    config = json.dumps(_continue_config(reach), indent=2)
    said = "# as ~/.continue/config.yaml, or the models in it, for the editors and for cn"
    secret = f"# {TOKEN_VARIABLE}=... in ~/.continue/.env"
    return [said, *([secret] if reach.token is not None else []), *config.splitlines()]


def _zed_lines(reach: Reach) -> list[str]:
    about = {
        "name": reach.model,
        "display_name": reach.model,
        "max_tokens": reach.window or _WINDOW,
        "max_output_tokens": reach.answer,
        "capabilities": {"tools": True, "images": True, "parallel_tool_calls": True},
    }
    mull = {"api_url": reach.v1, "available_models": [about]}
    chosen = {
        "language_models": {"openai_compatible": {"mull": mull}},
        "agent": {"default_model": {"provider": "mull", "model": reach.model}},
    }
    key = f'"${TOKEN_VARIABLE}"' if reach.token is not None else NO_TOKEN
    return [
        f"// start Zed with the key: MULL_API_KEY={key} zed",
        "// in Zed's settings.json (command `zed: open settings file`)",
        *json.dumps(chosen, indent=2).splitlines(),
    ]


def _vscode_lines(reach: Reach) -> list[str]:
    about = {
        "id": reach.model,
        "name": reach.model,
        "url": f"{reach.v1}/chat/completions",
        "toolCalling": True,
        "vision": True,
        "thinking": True,
        "maxInputTokens": (reach.window or _WINDOW) - reach.answer,
        "maxOutputTokens": reach.answer,
    }
    group = {
        "name": "mull",
        "vendor": "customendpoint",
        "apiKey": "${input:mull}" if reach.token is not None else NO_TOKEN,
        "apiType": "chat-completions",
        "models": [about],
    }
    token = f"; enter the value of {TOKEN_VARIABLE} as the key" if reach.token is not None else ""
    return [
        f"// command `Chat: Manage Language Models`, Add Models, Custom Endpoint{token};",
        "// then in chatLanguageModels.json, which that opens:",
        *json.dumps([group], indent=2).splitlines(),
    ]


def _cursor_lines(reach: Reach) -> list[str]:
    key = f"the value of {TOKEN_VARIABLE}" if reach.token is not None else NO_TOKEN
    return [
        "# Cursor Settings > Models > API Keys; Cursor can be configured only there",
        f"OpenAI API Key            {key}",
        f"Override OpenAI Base URL  {reach.v1}",
        f"Add Custom Model          {reach.model}",
        "# Cursor's own servers send the requests, so they must be able to reach this address:",
        "# publish the gateway under a name with HTTPS, and require a token for it",
    ]


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
    "codex": Setup(
        "codex",
        "npm install -g @openai/codex",
        "codex",
        _codex,
        _codex_lines,
        asks=("debug", "models", "--bundled"),
    ),
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
    "pi": Setup("pi", "npm install -g @earendil-works/pi-coding-agent", "pi", _pi, _pi_lines),
    "aider": Setup("aider", "pip install aider-chat", "aider", _aider, _aider_lines),
    "goose": Setup("goose", "brew install block-goose-cli", "goose", _goose),
    "cline": Setup("Cline", "npm install -g cline", "cline", _cline, _cline_lines),
    "continue": Setup(
        "Continue", "npm install -g @continuedev/cli", "cn", _continue, _continue_lines
    ),
    "zed": Setup("Zed", "https://zed.dev/download", lines=_zed_lines),
    "vscode": Setup("VS Code", "https://code.visualstudio.com", lines=_vscode_lines),
    "cursor": Setup("Cursor", "https://cursor.com/downloads", lines=_cursor_lines),
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
