"""The coding agents whose requests are recorded: how each is run, and what the model does in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from mull.testing import Call, Say, Think
from mull.testing.script import Act

__all__ = ["CLIENTS", "Client", "Item", "Scripted"]


class Item(msgspec.Struct, frozen=True):
    """Something that a model answers with in one dialect alone, as it stands on the wire."""

    data: dict[str, Any]


Scripted: TypeAlias = Act | Item


class Client(msgspec.Struct, frozen=True):
    """How an agent is run and what the model does in it.

    `commands` ask the questions of one conversation. In these, in `variables`, in the text of
    `files` (in the home) and in what the model calls, `{url}`, `{question}`, `{home}` and
    `{project}` stand for what they say. `script` has the answers to requests that offer tools.
    """

    package: str
    commands: tuple[str, str]
    script: Sequence[Sequence[Scripted]]
    variables: Mapping[str, str] = {}
    files: Mapping[str, str] = {}


def _script(
    read: str, path: str, shell: Call, change: Scripted, *more: Sequence[Scripted]
) -> list[Sequence[Scripted]]:
    """A look at a file, three at once of which one fails, an answer; `more`; a change."""
    at = "{project}/"
    return [
        [Think("I have to read it first."), Call(read, {path: f"{at}notes.txt"})],
        [
            Think("Now all at once."),
            Say("Let me see."),
            shell,
            Call(read, {path: f"{at}picture.png"}),
            Call(read, {path: f"{at}missing.txt"}),
        ],
        [Think("That is all.", hidden=True), Say("Milk, bread and tea; a red dot.")],
        *more,
        [Think("One line more."), change],
        [Say("Coffee is on the list.")],
    ]


def _edit(name: str, path: str, old: str, new: str, **other: str) -> Call:
    given = {path: "{project}/notes.txt", old: "Tea.", new: "Tea.\nCoffee."}
    return Call(name, {**given, **other})


_LS = {"command": "ls", "description": "Lists files"}


def _opencode(package: str, model: str) -> Client:
    """opencode with a provider of this SDK."""
    facts = {"attachment": True, "modalities": {"input": ["text", "image"], "output": ["text"]}}
    provider = {
        "npm": package,
        "name": "Played",
        "options": {"baseURL": "{url}/v1", "apiKey": "none"},
        "models": {model: {"name": model, "reasoning": True, **facts}},
    }
    config = {"autoupdate": False, "share": "disabled", "provider": {"played": provider}}
    command = f"opencode run --auto -m played/{model}"
    return Client(
        "opencode-ai",
        (f"{command} {{question}} -f picture.png", f"{command} -c {{question}}"),
        _script(
            "read",
            "filePath",
            Call("bash", _LS),
            _edit("edit", "filePath", "oldString", "newString"),
        ),
        files={".config/opencode/opencode.json": msgspec.json.encode(config).decode()},
    )


_CLAUDE = "claude --model {model} --allowedTools Read,Bash,Edit,ToolSearch,WebSearch"


def _claude(model: str) -> Client:
    command = _CLAUDE.replace("{model}", model)
    return Client(
        "@anthropic-ai/claude-code",
        (f"{command} -p {{question}}", f"{command} -c -p {{question}}"),
        _script(
            "Read",
            "file_path",
            Call("Bash", _LS),
            _edit("Edit", "file_path", "old_string", "new_string"),
            [Call("ToolSearch", {"query": "select:WebSearch", "max_results": 1})],
            [Call("WebSearch", {"query": "coffee"})],
        ),
        {
            "ANTHROPIC_BASE_URL": "{url}",
            "ANTHROPIC_API_KEY": "none",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
        },
    )


_CODEX = """model_provider = "played"
model_reasoning_effort = "high"
model_reasoning_summary = "auto"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.played]
name = "Played"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "PLAYED_KEY"
"""
_PATCH = "*** Begin Patch\n*** Update File: notes.txt\n@@\n Tea.\n+Coffee.\n*** End Patch\n"
_SCHEMA = {
    "type": "object",
    "properties": {"done": {"type": "boolean"}},
    "required": ["done"],
    "additionalProperties": False,
}
_GEMINI = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False},
}
_EXEC = "codex exec --skip-git-repo-check -s danger-full-access -m gpt-5.5"
_GO = "gemini --skip-trust -y -m gemini-3-pro-preview"
_QWEN = "qwen --auth-type openai -y -m qwen3.6-plus"

CLIENTS: Mapping[str, Client] = {
    "claude-code": _claude("claude-opus-4-6"),
    "claude-code-budget": _claude("claude-sonnet-4-5"),
    "claude-code-foreign": _claude("kimi-k2.5"),
    "codex": Client(
        "@openai/codex",
        (
            f"{_EXEC} {{question}} -i picture.png",
            f"{_EXEC} resume --last --output-schema {{home}}/schema.json {{question}}",
        ),
        _script(
            "view_image",
            "path",
            Call("exec_command", {"cmd": "cat notes.txt"}),
            Item({"type": "custom_tool_call", "name": "apply_patch", "input": _PATCH}),
            [
                Think("What is there to help?"),
                Item(
                    {
                        "type": "web_search_call",
                        "status": "completed",
                        "action": {"type": "search", "query": "coffee"},
                    }
                ),
                Item(
                    {
                        "type": "tool_search_call",
                        "execution": "client",
                        "arguments": {"query": "agents", "limit": 2},
                        "status": "completed",
                    }
                ),
            ],
        ),
        {"PLAYED_KEY": "none", "CODEX_HOME": "{home}/.codex"},
        {".codex/config.toml": _CODEX, "schema.json": msgspec.json.encode(_SCHEMA).decode()},
    ),
    "gemini-cli": Client(
        "@google/gemini-cli",
        (f"{_GO} -p {{question}}", f"{_GO} --resume latest -p {{question}}"),
        _script(
            "read_file",
            "file_path",
            Call("list_directory", {"dir_path": "."}),
            _edit("replace", "file_path", "old_string", "new_string", instruction="Add coffee"),
            [Call("google_web_search", {"query": "coffee"})],
        ),
        {"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "none"},
        {".gemini/settings.json": msgspec.json.encode(_GEMINI).decode()},
    ),
    "qwen-code": Client(
        "@qwen-code/qwen-code",
        (f"{_QWEN} -p {{question}}", f"{_QWEN} -c -p {{question}}"),
        _script(
            "read_file",
            "file_path",
            Call("glob", {"pattern": "*"}),
            _edit("edit", "file_path", "old_string", "new_string"),
        ),
        {"OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_KEY": "none"},
    ),
    "opencode-chat": _opencode("@ai-sdk/openai-compatible", "kimi-k2.5"),
    "opencode-gemini": _opencode("@ai-sdk/google", "gemini-3-pro-preview"),
    "opencode-messages": _opencode("@ai-sdk/anthropic", "claude-opus-4-6"),
    "opencode-responses": _opencode("@ai-sdk/openai", "gpt-5.5"),
}
