"""The tool names that models were trained on, and what they mean here.

Coding agents call the same few tools by different names, and models use the ones they learnt,
whatever they are offered. A call by such a name is converted to a call of the built-in tool first,
so rules, approvals and results are always about that tool. The conversion is in the tables below;
only calls of another shape have a function.

A tool of a server or a function that really has the name takes precedence.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from mull.agent.tools.tool import BUILT_IN, RunnableTool, ToolFailure, input_of
from mull.neutral.blocks import ToolCallBlock

__all__ = ["NAMES", "own_call", "own_name"]

Arguments: TypeAlias = dict[str, Any]

NAMES: Mapping[str, str] = {
    # Claude Code, Gemini CLI, codex, Kimi, Qwen Code, pi, opencode; without case and underscores
    "bash": "run", "shell": "run", "sh": "run", "terminal": "run", "exec": "run",
    "execcommand": "run", "executecommand": "run", "runcommand": "run", "runterminalcmd": "run",
    "runshellcommand": "run", "localshell": "run", "containerexec": "run", "shellcommand": "run",
    "readfile": "read", "cat": "read", "view": "read", "viewfile": "read", "viewimage": "read",
    "openfile": "read",
    "ls": "list", "glob": "list", "find": "list", "listdir": "list", "listdirectory": "list",
    "listfiles": "list", "findfiles": "list",
    "grep": "search", "rg": "search", "ripgrep": "search", "grepsearch": "search",
    "greptool": "search", "searchfilecontent": "search", "searchfiles": "search",
    "edit": "edit", "multiedit": "edit", "replace": "edit", "strreplace": "edit",
    "strreplacefile": "edit", "searchreplace": "edit", "editfile": "edit",
    "applypatch": "edit", "patch": "edit",
    "writefile": "write", "createfile": "write", "create": "write",
    "bashoutput": "jobs", "killshell": "jobs", "killbash": "jobs", "taskoutput": "jobs",
    "taskstop": "jobs",
    "todowrite": "todo", "todolist": "todo", "settodolist": "todo", "updateplan": "todo",
    "writetodos": "todo",
    "askuserquestion": "ask_user", "askuser": "ask_user", "askfollowupquestion": "ask_user",
}  # fmt: skip
"""Trained names and mull's own."""

_EDITORS = ("strreplaceeditor", "strreplacebasededittool", "texteditor")
"""One tool that reads, creates and edits; its `command` says which."""

_PATH = ("file_path", "filepath", "filename", "file", "absolute_path", "target_file", "filePath")
_FOLDER = ("dir_path", "directory", "dir", "folder", "target_directory", "relative_path")

_ARGUMENTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "run": {
        "command": ("cmd", "script", "commands"),
        "background": ("run_in_background", "is_background", "isBackground"),
        "timeout": ("timeout_seconds",),
    },
    "read": {
        "path": _PATH,
        "offset": ("line_offset", "start_line", "start"),
        "limit": ("n_lines", "max_lines", "num_lines"),
    },
    "list": {
        "path": (*_FOLDER, *_PATH),
        "pattern": ("glob", "glob_pattern", "include", "query"),
        "limit": ("head_limit", "max_results"),
    },
    "search": {
        "pattern": ("query", "regex", "regexp", "q"),
        "path": (*_FOLDER, *_PATH),
        "glob": ("include", "include_pattern", "file_pattern"),
        "ignore_case": ("-i", "case_insensitive", "ignoreCase"),
        "context": ("-C", "-A", "-B", "context_lines"),
        "limit": ("head_limit", "max_results", "max_matches"),
    },
    "edit": {
        "path": _PATH,
        "old": ("old_string", "old_str", "oldText", "old_text", "search", "oldString"),
        "new": ("new_string", "new_str", "newText", "new_text", "newString"),
        "replace_all": ("replaceAll", "allow_multiple"),
        "edits": ("edit", "replacements"),
        "patch": ("input", "patch_text", "patchText", "diff"),
    },
    "write": {"path": _PATH, "content": ("contents", "file_text", "text", "file_content")},
    "jobs": {"id": ("bash_id", "shell_id", "task_id", "job_id"), "wait": ("timeout",)},
    "todo": {"items": ("todos", "plan", "list")},
    "ask_user": {"question": ("prompt",), "options": ("choices",)},
}
"""mull's names of arguments, and those of others."""

_ITEMS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "edits": _ARGUMENTS["edit"],
    "items": {"text": ("content", "step", "title", "description", "task")},
}
"""The same for members of lists."""

_IGNORED: Mapping[str, Collection[str]] = {
    "run": ("description", "justification", "sandbox_permissions", "with_escalated_permissions",
            "yield_time_ms", "max_output_tokens", "login", "tty", "shell", "prefix_rule",
            "dangerouslyDisableSandbox", "explanation"),
    "read": ("explanation", "detail"),
    "list": ("ignore", "respect_git_ignore", "case_sensitive", "recursive", "explanation",
             "file_filtering_options", "include_dirs"),
    "search": ("output_mode", "-n", "multiline", "type", "explanation", "literal", "-o"),
    "edit": ("expected_replacements", "instruction", "explanation", "description"),
    "write": ("explanation", "description", "mode"),
    "jobs": ("block", "filter"),
    "todo": ("explanation", "merge"),
    "ask_user": ("header",),
    "edits": (),
    "items": ("activeForm", "id", "priority"),
}  # fmt: skip
"""Arguments that do not affect what is done: remarks, and output formats."""

_STATUSES = {
    "completed": "done", "complete": "done", "finished": "done", "cancelled": "done",
    "canceled": "done", "active": "in_progress", "doing": "in_progress", "todo": "pending",
    "not_started": "pending",
}  # fmt: skip
_HEREDOC = re.compile(
    r"\s*apply_patch\s*<<-?\s*(['\"]?)(\w+)\1[ \t]*\n(.*)\n[ \t]*\2\s*", re.DOTALL
)
_SHELLS = ("bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/usr/bin/bash")
_RANGE = 2
_PATCH = "apply_patch"
"""The name of a patch if not everything it needs is offered: there is no such tool."""


class _Meant(NamedTuple):
    """A built-in tool with its arguments; everything it `needs` must be offered."""

    tool: str
    given: Arguments
    needs: tuple[str, ...] = ()


def own_call(call: ToolCallBlock, tools: Mapping[str, RunnableTool]) -> ToolCallBlock:
    """The call as one of a built-in tool, or unchanged if it means none that is offered."""
    if call.name in tools and tools[call.name].source != BUILT_IN:
        return call
    offered = {name for name, tool in tools.items() if tool.source == BUILT_IN}
    called = _plain(call.name)
    name = call.name if call.name in offered else NAMES.get(called, called)
    if name not in _ARGUMENTS and called not in _EDITORS:
        return call
    try:
        given = input_of(call, {})
    except ToolFailure:  # the tool itself reports it, with what would be valid
        return replace(call, name=name) if name in offered else call
    meant = _meant(name, called, dict(given))
    if not offered.issuperset((meant.tool, *meant.needs)):
        return replace(call, name=_PATCH) if meant.needs else call
    if meant.tool == call.name and meant.given == given:
        return call
    return replace(call, name=meant.tool, input=meant.given, arguments=None)


def own_name(name: str) -> str:
    """mull's name for the tool of this name, if it is a built-in one."""
    return NAMES.get(_plain(name), name)


def _plain(name: str) -> str:
    """`functions.ReadFile` and `read_file` are the same."""
    return re.sub(r"[^a-z0-9]", "", name.rpartition("functions.")[2].lower())


def _meant(name: str, called: str, given: Arguments) -> _Meant:
    if called in _EDITORS:
        name, given = _editor(given)
    named = _renamed(name, given)
    turn = _TURNS.get(called) or _TURNS.get(name)
    return turn(named) if turn else _Meant(name, named)


def _renamed(name: str, given: Arguments) -> Arguments:
    """The arguments by mull's names; unknown ones stay, and are rejected by name."""
    own = {other: mine for mine, others in _ARGUMENTS.get(name, {}).items() for other in others}
    return _with_names(given, own, _IGNORED.get(name, ()))


def _with_names(given: Arguments, own: Mapping[str, str], ignored: Collection[str]) -> Arguments:
    named: Arguments = {}
    for key, value in given.items():
        mine = own.get(key, key)
        if mine in ignored or (mine != key and mine in given) or mine in named:
            continue
        named[mine] = _items(mine, value) if mine in _ITEMS else value
    return named


def _items(name: str, value: Any) -> Any:
    own = {other: mine for mine, others in _ITEMS[name].items() for other in others}
    listed = [value] if isinstance(value, dict) else value
    if not isinstance(listed, list):
        return value
    return [
        _with_names(one, own, _IGNORED[name]) if isinstance(one, dict) else one for one in listed
    ]


def _editor(given: Arguments) -> tuple[str, Arguments]:
    command = given.pop("command", "")
    if command == "view":
        lines = given.pop("view_range", None)
        if isinstance(lines, list) and len(lines) == _RANGE and all(map(_is_number, lines)):
            first, last = lines
            given["offset"] = first
            given |= {"limit": last - first + 1} if last >= first else {}
        return "read", given
    return ("write" if command == "create" else "edit"), given


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _run(given: Arguments) -> _Meant:
    command = given.get("command")
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        if command[:1] == ["apply_patch"] and len(command) > 1:
            return _patch({"patch": command[1]})
        inner = command[-1] if command[:1] and command[0] in _SHELLS else None
        is_script = inner is not None and command[1:-1] in (["-c"], ["-lc"], ["-l", "-c"])
        given["command"] = command = inner if is_script else shlex.join(command)
    if isinstance(command, str) and (found := _HEREDOC.fullmatch(command)):
        return _patch({"patch": found[3]})
    if _is_number(limit := given.pop("timeout_ms", None)):
        given.setdefault("timeout", -(-limit // 1000))
    folder = next((given.pop(key) for key in ("workdir", "cwd", *_FOLDER) if key in given), None)
    if isinstance(command, str) and isinstance(folder, str) and folder.strip("./"):
        given["command"] = f"cd {shlex.quote(folder)} && {command}"
    return _Meant("run", given)


def _patch(given: Arguments) -> _Meant:
    return _Meant("edit", given, needs=("write",))


def _edit(given: Arguments) -> _Meant:
    patch = given.get("patch")
    if isinstance(patch, list):  # ["apply_patch", "*** Begin Patch…"]
        given["patch"] = patch[-1] if patch else ""
    return _patch(given) if "patch" in given else _Meant("edit", given)


def _end_job(given: Arguments) -> _Meant:
    return _Meant("jobs", {**given, "end": True})


def _todo(given: Arguments) -> _Meant:
    items = given.get("items")
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and isinstance(status := item.get("status"), str):
            item["status"] = _STATUSES.get(status, status)
    return _Meant("todo", given)


def _ask(given: Arguments) -> _Meant:
    """Claude Code asks several questions at once, and describes each option."""
    asked = given.pop("questions", None)
    first = asked[0] if isinstance(asked, list) and asked and isinstance(asked[0], dict) else {}
    for key in ("question", "options"):
        if key in first:
            given.setdefault(key, first[key])
    if isinstance(asked, list) and len(asked) > 1:
        texts = [str(one.get("question")) for one in asked if isinstance(one, dict)]
        given |= {"question": "\n".join(texts), "options": []}
    options = given.get("options")
    if isinstance(options, list):
        given["options"] = [
            one.get("label", one) if isinstance(one, dict) else one for one in options
        ]
    return _Meant("ask_user", given)


_TURNS: Mapping[str, Callable[[Arguments], _Meant]] = {
    "run": _run,
    "edit": _edit,
    "todo": _todo,
    "ask_user": _ask,
    "killshell": _end_job,
    "killbash": _end_job,
    "taskstop": _end_job,
}
