"""How many questions a task costs: `python -m tools.questions [NAME ...]`.

The task is questions.toml: 40 tool calls in a small repository. A server on loopback plays the
model. Each assistant is started at a terminal (tmux) as it comes, in a home and a repository made
for it, and every question it asks is answered with its plain yes, never with one that lasts. What
is counted: the questions of each call, and what is new or changed in the home, in the temporary
folder and beside the repository in the end. A run counts only if its work was done: the commit is
the right one, and what wanted the network had it.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from mull.dialects.serving import answer_writer, decode_request, write_answer
from mull.dialects.writer import About
from mull.neutral.assemble import tell
from mull.neutral.blocks import Block, OpaqueBlock, TextBlock, ToolCallBlock
from mull.neutral.messages import assistant
from mull.neutral.usage import Usage
from mull.testing.fidelity.peers import cache_folder
from mull.testing.server import Recorded, Reply, ScriptedServer
from tools.agents import PACKAGES, PATH, install
from tools.record_clients import COUNTED, DIALECTS

__all__ = ["ASSISTANTS", "TASK", "Assistant", "Outcome", "Stuck", "measure"]

TASK = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
PATIENCE_S = 60
"""How long a screen may neither ask nor go on."""
_AGAIN_S = 5
"""When an answer that did nothing is given again."""
_SETTLE_S = 1
"""How long a screen must stay as it is to count."""
_MARK = "MULL_QUESTIONS_RUN"
"""A variable that tells which processes belong to a run."""
_RESULT = re.compile(r"step_(\d\d)_(\d)")
_CALL_NAMES = ("tool_use_id", "tool_call_id", "call_id")
_RESULT_NAMES = ("content", "output")


class Stuck(Exception):
    """An assistant neither asks nor goes on, or does not do what it was told."""


class Assistant(msgspec.Struct, frozen=True):
    """How one is started, asked and answered.

    `tools` maps a kind of step to a tool and its arguments. In these, in `command`, `variables`
    and `files` (in the home), `{url}`, `{home}`, `{folder}` and a step's fields stand for what they
    say. `questions` are screens that wait for an approval and the keys of their plain yes, `before`
    those that come before there is a prompt. `own` is what it writes for itself.
    """

    command: str
    prompt: str
    before: Mapping[str, tuple[str, ...]]
    questions: Mapping[str, tuple[str, ...]]
    tools: Mapping[str, tuple[str, Mapping[str, str]]]
    own: str
    package: str = ""
    variables: Mapping[str, str] = {}
    files: Mapping[str, str] = {}
    refused: str = ""
    """What a result says that the assistant's sandbox refused; its model then asks for more."""
    more: Mapping[str, str] = {}
    """With which arguments."""
    is_checked: bool = True
    """Whether the server answers the safety check that an assistant leaves to it."""

    @property
    def version(self) -> str:
        """The version that is measured."""
        return PACKAGES[self.package] if self.package else "this checkout"


class Outcome(msgspec.Struct):
    """What one assistant did. `asked` has the number of questions of each step."""

    version: str
    before: int = 0
    asked: list[int] = []
    outside: list[str] = []
    results: list[str] = []


_FILE = "{folder}/{path}"
_SHELL = {"command": "{command}", "description": "Work on the ledger"}
_CODEX_FILES = {
    ".codex/config.toml": """model = "gpt-5.5"
model_provider = "played"
check_for_update_on_startup = false
[analytics]
enabled = false
[notice.model_migrations]
"gpt-5.5" = "gpt-6-sol"
[model_providers.played]
name = "Played"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "PLAYED_KEY"
"""
}
_CLAUDE_FILES = {
    ".claude.json": '{"hasCompletedOnboarding": true, "theme": "dark",'
    ' "customApiKeyResponses": {"approved": ["none"]}}'
}
_ALL = {
    "mull": Assistant(
        f"{sys.executable} -m mull -m openai-compatible/thinker --base-url {{url}}/v1",
        "/help lists",
        {
            r"Give these instructions .*\[y\]": ("y",),
            r"Give these instructions [^❯]*❯ 1\.": ("Enter",),
        },
        {r"\[y\] yes, once": ("y",), r"❯ 1\. Yes\s": ("Enter",)},
        {
            "list": ("list", {"path": "{path}"}),
            "read": ("read", {"path": "{path}"}),
            "search": ("search", {"pattern": "{pattern}", "path": "{path}"}),
            "edit": ("edit", {"path": "{path}", "old": "{old}", "new": "{new}"}),
            "write": ("write", {"path": "{path}", "content": "{text}"}),
            "run": ("run", {"command": "{command}"}),
        },
        r"home/\.(config|local/share|local/state|cache)/mull/",
    ),
    "Claude Code": Assistant(
        "claude --model claude-opus-4-6",
        r"shift\+tab to cycle|\? for shortcuts",
        {"Yes, I trust this folder": ("Down", "Enter")},
        {
            r"Do you want to .*\?\s+❯ 1\. Yes": ("1",),
            r"Do you want to .*\?\s+❯ No\s+Yes": ("Down", "Enter"),
            "Enter to stay in auto mode": ("Enter",),
        },
        {
            "list": ("Bash", {**_SHELL, "command": "ls -la {path}"}),
            "read": ("Read", {"file_path": _FILE}),
            "search": ("Bash", {**_SHELL, "command": "grep -rn '{pattern}' {path}"}),
            "edit": ("Edit", {"file_path": _FILE, "old_string": "{old}", "new_string": "{new}"}),
            "write": ("Write", {"file_path": _FILE, "content": "{text}"}),
            "run": ("Bash", _SHELL),
        },
        r"home/\.claude|home/\.config/mimeapps|home/\.local/share/applications/|tmp/cc-",
        "@anthropic-ai/claude-code",
        {
            "ANTHROPIC_BASE_URL": "{url}",
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        _CLAUDE_FILES,
    ),
    "codex": Assistant(
        "codex",
        r"GPT-5\.5 \w+ · ",
        {"Trust and continue": ("Enter",)},
        {r"Would you like to [^?]*\?": ("y",)},
        {
            "list": ("exec_command", {"cmd": "ls -la {path}"}),
            "read": ("exec_command", {"cmd": "sed -n '1,200p' {path}"}),
            "search": ("exec_command", {"cmd": "rg -n '{pattern}' {path}"}),
            "edit": ("apply_patch", {"": "{patch}"}),
            "write": ("apply_patch", {"": "{patch}"}),
            "run": ("exec_command", {"cmd": "{command}"}),
        },
        r"home/\.codex|tmp/codex-",
        "@openai/codex",
        {"PLAYED_KEY": "none"},
        _CODEX_FILES,
        "Read-only file system|Permission denied|Operation not permitted|Failed to connect",
        {"sandbox_permissions": "require_escalated", "justification": "May I do this?"},
    ),
    "kimi-code": Assistant(
        "kimi",
        "context:",
        {"❯ Trust this folder": ("Enter",)},
        {r"▶ 1\. (Approve once|Yes)": ("1",)},
        {
            "list": ("Glob", {"pattern": "*", "path": _FILE}),
            "read": ("Read", {"path": _FILE}),
            "search": ("Grep", {"pattern": "{pattern}", "path": _FILE}),
            "edit": ("Edit", {"path": _FILE, "old_string": "{old}", "new_string": "{new}"}),
            "write": ("Write", {"path": _FILE, "content": "{text}"}),
            "run": ("Bash", _SHELL),
        },
        r"home/\.kimi",
        "@moonshot-ai/kimi-code",
        {
            "KIMI_MODEL_BASE_URL": "{url}/v1",
            "KIMI_MODEL_NAME": "kimi-k2.5",
            "KIMI_API_KEY": "none",
        },
    ),
}
ASSISTANTS: Mapping[str, Assistant] = {
    **_ALL,
    "Claude Code, manual": replace(
        _ALL["Claude Code"], command="claude --model claude-opus-4-6 --permission-mode manual"
    ),
    "Claude Code, unchecked": replace(_ALL["Claude Code"], is_checked=False),
    "kimi-code, yolo": replace(_ALL["kimi-code"], command="kimi --yolo"),
}


class Player:
    """Plays the model. Where it is in the task it reads from the results it is sent."""

    def __init__(self, who: Assistant, words: Mapping[str, str]) -> None:
        self._who, self._words = who, words
        self.results: dict[int, str] = {}
        self.at = 0
        """The step that was called last, counted from 1; one more than there are in the end."""

    def reply(self, recorded: Recorded) -> Reply:
        """The answer to one request."""
        path = recorded.path.partition("?")[0]
        dialect = next((d for end, d in DIALECTS.items() if path.endswith(end)), None)
        if recorded.method != "POST" or dialect is None:
            counts = (Reply.json(known) for end, known in COUNTED.items() if path.endswith(end))
            latest = Reply.json({"version": "1.1", "object": "list", "data": []})
            return next(counts, None) or latest
        asked = decode_request(dialect, recorded.body, recorded.path, recorded.headers)
        blocks: list[Block] = [TextBlock("Weekly totals")]
        if asked.tools and f'"{TASK["question"]}'.encode() in recorded.body:
            blocks = self._next(recorded.json)
        ending = "stop" if isinstance(blocks[-1], TextBlock) else "tool_calls"
        message = assistant(*blocks, stop_reason=ending, usage=Usage(input=1000, output=100))
        about = About(id=f"resp_{os.urandom(6).hex()}", model=asked.model, usage=True)
        if not asked.stream:
            return Reply.json(msgspec.Raw(write_answer(message, dialect, about).body))
        writer = answer_writer(dialect, about)
        answer = b"".join((*map(writer.feed, tell(message)), writer.close()))
        if self._who.is_checked and b'"safeguards"' in recorded.body:
            answer = answer.replace(b'"delta":{"stop_reason"', _verdict(blocks[-1]), 1)
        return Reply.events(answer)

    def _next(self, body: Any) -> list[Block]:
        done, tries = 0, 0
        for number, attempt, text in _results(body):
            done, tries = max((done, tries), (number, attempt))
            self.results[number] = text
        refused = self._who.refused and re.search(self._who.refused, self.results.get(done, ""))
        if done and not tries and refused:
            return [self._call(done, 1)]
        self.at = done + 1
        if done == len(TASK["steps"]):
            return [TextBlock("Done: the ledger says what was spent each week.")]
        return [self._call(self.at, 0)]

    def _call(self, number: int, attempt: int) -> Block:
        kind, words = _fields(TASK["steps"][number - 1])
        tool, arguments = self._who.tools[kind]
        key = f"step_{number:02}_{attempt}"
        arguments = {**arguments, **(self._who.more if attempt else {})}
        words = {name: _filled(text, self._words) for name, text in words.items()}
        words |= {"folder": self._words["folder"]}
        given = {name: _filled(text, words) for name, text in arguments.items()}
        if "" not in given:
            return ToolCallBlock(key, tool, given)
        custom = {"type": "custom_tool_call", "name": tool, "input": given[""]}
        return OpaqueBlock({**custom, "id": f"ctc_{number}", "call_id": key})


def _verdict(block: Block) -> bytes:
    """The result of that check: nothing is objected to, so this is the least it can ask."""
    given = {"type": "evaluated", "outcome": "not_flagged"}
    calls = {block.id: given} if isinstance(block, ToolCallBlock) else {}
    status = {"type": "available", "tool_uses": calls}
    results = msgspec.json.encode([{"type": "dangerous_tool_use", "status": status}])
    return b'"delta":{"safeguard_results":' + results + b',"stop_reason"'


def _fields(step: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The kind of a step, and its words by name."""
    kind, value = next(iter(step.items()))
    names = {"search": "pattern", "run": "command"}
    words = {**step, names.get(kind, "path"): value}
    if kind == "edit":
        words["patch"] = _patch("Update", value, f"@@\n{_lines('-', step['old'])}", step["new"])
    if kind == "write":
        words["patch"] = _patch("Add", value, "", step["text"].removesuffix("\n"))
    return kind, words


def _patch(act: str, path: str, before: str, after: str) -> str:
    text = f"*** {act} File: {path}\n{before}{_lines('+', after)}"
    return f"*** Begin Patch\n{text}*** End Patch\n"


def _lines(sign: str, text: str) -> str:
    return "".join(f"{sign}{line}\n" for line in text.split("\n"))


def _results(value: Any) -> Iterator[tuple[int, int, str]]:
    """The results in a request, in whichever dialect: step, attempt and text."""
    if isinstance(value, list):
        for one in value:
            yield from _results(one)
    if not isinstance(value, dict):
        return
    keys = (value[name] for name in _CALL_NAMES if isinstance(value.get(name), str))
    found = next((match for key in keys if (match := _RESULT.fullmatch(key))), None)
    held = next((value[name] for name in _RESULT_NAMES if name in value), None)
    if found and held is not None:
        text = held if isinstance(held, str) else msgspec.json.encode(held).decode()
        yield int(found[1]), int(found[2]), text
    for one in value.values():
        yield from _results(one)


class _Terminal:
    """A program in a window of tmux, with nobody's configuration."""

    def __init__(
        self, root: Path, folder: Path, command: str, environment: Mapping[str, str]
    ) -> None:
        self._tmux = ["tmux", "-S", str(root / "tmux"), "-f", "/dev/null"]
        self._environment = {**environment, _MARK: str(root)}
        self._mark = f"{_MARK}={root}".encode()
        self._do(
            "new-session", "-d", "-s", "q", "-x", "120", "-y", "50", "-c", str(folder), command
        )
        self._do("set", "-g", "remain-on-exit", "on")  # the last screen says why it ended
        self._do("set", "-g", "extended-keys", "on")
        self._do("set", "-sg", "escape-time", "0")

    def _do(self, *words: str) -> str:
        done = subprocess.run(
            [*self._tmux, *words], env=self._environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    @property
    def screen(self) -> str:
        return self._do("capture-pane", "-p", "-t", "q")

    def press(self, *keys: str) -> None:
        self._do("send-keys", "-t", "q", *keys)

    def end(self) -> None:
        """End it and all that it left running: one assistant leaves a server."""
        subprocess.run([*self._tmux, "kill-server"], check=False, capture_output=True)
        for place in Path("/proc").glob("[0-9]*/environ"):
            try:
                if self._mark in place.read_bytes().split(b"\0"):
                    os.kill(int(place.parent.name), signal.SIGKILL)
            except OSError:  # it has ended, or is another user's
                continue


def measure(name: str, root: Path) -> Outcome:
    """Play the task to an assistant, in a folder of its own.

    Raises:
        Stuck: it did not come to the right end; says where, with its screen.
    """
    who = ASSISTANTS[name]
    if who.package:
        install(who.package)
    home, folder, temporary = root / "home", root / "ledger", root / "tmp"
    home.mkdir(parents=True)
    temporary.mkdir()
    _make_repository(folder)
    words = {"home": str(home), "folder": str(folder)}
    player = Player(who, words)
    with ScriptedServer(player.reply) as server:
        words["url"] = server.url
        for file, text in {**who.files, ".profile": f"export PATH={shlex.quote(PATH)}\n"}.items():
            (home / file).parent.mkdir(parents=True, exist_ok=True)
            (home / file).write_text(_filled(text, words))
        environment = {
            **{"HOME": str(home), "PATH": PATH, "TMPDIR": str(temporary), "TERM": "xterm-256color"},
            **{"LANG": "C.UTF-8", "SHELL": "/bin/bash", "USER": "user"},
            **{key: _filled(value, words) for key, value in who.variables.items()},
        }
        known = set(_files(root))
        terminal = _Terminal(root, folder, _filled(who.command, words), environment)
        try:
            outcome = _watch(who, player, terminal)
        finally:
            terminal.end()
        outcome.outside = sorted(
            file
            for file, _ in set(_files(root)) - known
            if not re.match(rf"ledger/|tmux|{who.own}", file)
        )
        if not any(recorded.path == "/latest.json" for recorded in server.requests):
            raise Stuck("the command that wanted the network did not have it")
        if _git(folder, "rev-parse", "weekly^{tree}") != _right_tree(words):
            raise Stuck(f"the commit is not the right one: {_git(folder, 'show', '--stat')}")
    return outcome


def _watch(who: Assistant, player: Player, terminal: _Terminal) -> Outcome:
    """Answer what it asks until the task is done."""
    steps = len(TASK["steps"])
    outcome = Outcome(who.version, asked=[0] * steps)
    for _ in _questions(terminal, player, who.before, lambda now: re.search(who.prompt, now)):
        outcome.before += 1
    terminal.press("-l", TASK["question"])
    time.sleep(1)  # what comes with the Enter might be taken for a paste
    terminal.press("Enter")
    for step in _questions(terminal, player, who.questions, lambda _: player.at > steps):
        outcome.asked[step - 1] += 1
    outcome.results = [player.results.get(step, "") for step in range(1, steps + 1)]
    return outcome


def _questions(
    terminal: _Terminal,
    player: Player,
    questions: Mapping[str, tuple[str, ...]],
    ended: Callable[[str], object],
) -> Iterator[int]:
    """The step of each question, which is then answered, until a screen is the last.

    Raises:
        Stuck: nothing happens.
    """
    known: tuple[int, tuple[str, ...]] = (-1, ())
    since = pressed = 0.0
    while True:
        step, screen, now = player.at, terminal.screen, time.monotonic()
        keys = next((keys for text, keys in questions.items() if re.search(text, screen)), ())
        if (step, keys) != known:
            known, since, pressed = (step, keys), now, 0.0
        settled = now > since + _SETTLE_S  # not the last sight of one that was answered
        if settled and not keys and ended(screen):
            return
        if settled and keys and now > pressed + _AGAIN_S:
            if not pressed:
                yield step
            terminal.press(*keys)
            pressed = now
        if now > since + PATIENCE_S:
            raise Stuck(f"nothing happens at step {step}:\n{screen}")
        time.sleep(0.1)


def _make_repository(folder: Path) -> None:
    """The repository with a history of three commits."""
    for name, text in TASK["repository"].items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    _git(folder, "init", "-q", "-b", "main")
    _git(folder, "config", "user.name", "Somebody")
    _git(folder, "config", "user.email", "somebody@example.org")
    for part, subject in (("ledger", "Sum a ledger"), ("tests", "Test it"), (".", "Build it")):
        _git(folder, "add", part)
        _git(folder, "commit", "-q", "-m", subject)


def _git(folder: Path, *words: str) -> str:
    quiet = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *words], cwd=folder, env=quiet, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def _files(root: Path) -> Iterator[tuple[str, int]]:
    """All files with the times of their last change."""
    for file in root.rglob("*"):
        if file.is_symlink() or not file.is_dir():
            yield str(file.relative_to(root)), file.lstat().st_mtime_ns


def _filled(text: str, words: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: words.get(found[1], found[0]), text)


def _right_tree(words: Mapping[str, str]) -> str:
    """What the commit should hold: the same steps, without an assistant."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "ledger")
        _make_repository(folder)
        environment = {"HOME": place, "PATH": PATH, "LANG": "C.UTF-8"}
        for step in TASK["steps"]:
            kind, given = _fields(step)
            file = folder / given.get("path", "")
            if kind == "edit":
                file.write_text(file.read_text().replace(given["old"], given["new"], 1))
            elif kind == "write":
                file.parent.mkdir(exist_ok=True)
                file.write_text(given["text"])
            elif kind == "run":
                command = ["bash", "-c", _filled(given["command"], words)]
                subprocess.run(
                    command, cwd=folder, env=environment, capture_output=True, check=False
                )
        return _git(folder, "rev-parse", "weekly^{tree}")


def main() -> None:
    """Measures the assistants that are named, or all, and prints what they did."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", nargs="*", help="one of: " + ", ".join(ASSISTANTS))
    parser.add_argument("--json", type=Path, help="a file for all that is known of each call")
    options = parser.parse_args()
    base = cache_folder() / "questions"  # not in /tmp, which some sandboxes let commands write to
    base.mkdir(parents=True, exist_ok=True)
    outcomes: dict[str, Outcome] = {}
    for name in options.name or ASSISTANTS:
        with tempfile.TemporaryDirectory(dir=base, ignore_cleanup_errors=True) as root:
            outcomes[name] = one = measure(name, Path(root))
        asked = ", ".join(f"{step}" for step, times in enumerate(one.asked, 1) if times)
        told = f"{sum(one.asked)} questions (calls {asked or 'none'}), {one.before} before them"
        print(f"{name}, {one.version}: {told}; outside: {one.outside or 'nothing'}", flush=True)
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(outcomes), indent=1))


if __name__ == "__main__":
    main()
