"""Approvals that are to cover more than was asked about: other options, files, contents, places."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from mull.agent.tools.table import builtin_tools
from mull.agent.tools.workspace import Workspace
from mull.neutral.blocks import ToolCallBlock
from mull.policy.approval import Asked, Subject, decide, parse_rule
from tools.attack.ground import Home, Server, Trial, attack, calling, home
from tools.pictures.screen import TerminalScreen
from tools.pseudo_terminal import PseudoTerminal, Timeout

_SIZE = (100, 32)
_DOWN, _PAGE_DOWN, _MOST_PAGES = "\x1b[B", "\x1b[6~", 6
_KIND = "Approval"
_PATIENCE = 40
_COUNTS = re.compile(r"[+−]([\d,]+)")
_HARMFUL: Mapping[str, tuple[str, ...]] = {
    "git diff": ("--output=x", "--no-index a b", "--ext-diff", "--textconv"),
    "git log": ("--output=x", "--ext-diff", "--textconv"),
    "git show": ("--output=x", "--ext-diff"),
    "git grep": ("--open-files-in-pager=sh", "-Osh"),
    "git fetch": ("--upload-pack=sh",),
    "git archive": ("--output=x", "--remote=x", "-ox"),
    "sed": ("-i", "--in-place", "-n -i", "-ni", "--expression=w", "-fx"),
    "sort": ("-o x", "-ox", "--output=x", "--compress-program=sh", "-uox"),
    "find": ("-exec sh", "-execdir sh", "-ok sh", "-delete", "-fprint x", "-fls x"),
    "tar tf": ("--to-command=sh", "--use-compress-program=sh", "--checkpoint-action=exec=sh"),
    "curl": ("-o x", "-O", "--output x", "-T x", "--upload-file x", "-K x", "--config x", "-d @x"),
    "rg": ("--pre=sh", "--pre sh", "--hostname-bin=sh"),
    "fd": ("-x rm", "--exec rm", "-X rm", "--exec-batch rm"),
    "make": ("--eval=x", "SHELL=x", "-f x", "-C x", "--file=x"),
    "pytest": ("-p x", "-c x", "--rootdir=x", "--override-ini=x=y", "-o x=y"),
    "go test": ("-exec sh", "-toolexec sh", "-o x", "-coverprofile x"),
    "npm test": ("-- --config x", "--script-shell=sh"),
    "unheard-of": ("--output=x", "-o x", "--exec=sh", "--config=x", "--plugin=x"),
}
"""Options that write or execute, behind the words of a rule that looks harmless."""


def _spelt(option: str) -> Iterator[str]:
    """The ways in which a shell takes an option."""
    first, *rest = option.split(" ")
    yield option
    yield " ".join((f'"{first}"', *rest))
    yield " ".join((f"{first[:3]}'{first[3:]}'" if len(first) > 3 else f"'{first}'", *rest))
    yield f"a {option}"


@attack(_KIND, "options that write or execute, behind a rule with a star")
def _options() -> Iterator[Trial]:
    for words, options in _HARMFUL.items():
        rules = [parse_rule("allow", f"run({words} *)")]
        for command in (f"{words} {form}" for option in options for form in _spelt(option)):
            asked = Asked("run", True, Subject("command", command))
            verdict = decide(asked, "ask", rules).verdict
            yield command, None if verdict == "ask" else f"it would {verdict}"


_STEERING = (
    *("AGENTS.md", "CLAUDE.md", "GEMINI.md", ".mull/tools.toml", ".mull/config.toml", ".mcp.json"),
    *(".git/config", ".git/hooks/post-checkout", ".gitattributes", ".husky/pre-commit"),
    *(".bashrc", ".zshrc", ".profile", ".env", ".env.local", ".envrc", ".ssh/authorized_keys"),
    *(".vscode/tasks.json", ".idea/workspace.xml", ".github/workflows/a.yml", ".npmrc"),
    *(".config/mull/tools.toml", ".claude/settings.json", ".cursorrules", "sitecustomize.py"),
)


@attack(_KIND, "files that steer later runs, under rules for every file")
def _steering() -> Iterator[Trial]:
    texts = [f"{tool}({form})" for tool in ("write", "edit") for form in ("**", "*", "**/*.md")]
    rules = [parse_rule("allow", text) for text in (*texts, "write", "edit")]
    for path in _STEERING:
        for form in (path, f"sub/{path}", path.upper(), path.replace(".", ".\u200b", 1)):
            for tool in ("write", "edit"):
                asked = Asked(tool, True, Subject("path", form, f"/home/me/work/{form}"))
                verdict = decide(asked, "ask", rules[:-2]).verdict
                yield f"{tool} {form!r}", None if verdict == "ask" else f"it would {verdict}"


def _edited(folder: Path) -> None:
    (folder / "notes").write_text("one\ntwo\nmine\n", encoding="utf-8")


def _turned(folder: Path) -> None:
    (folder / "docs").rename(folder / "aside")
    (folder / "docs").symlink_to(".git/hooks")


def _untouched(folder: Path) -> None:
    """Change nothing: then the answer counts, or this attack proves nothing."""


def _planted(folder: Path) -> None:
    (folder / "new").write_text("mine\n", encoding="utf-8")


def _replaced(folder: Path) -> None:
    (folder / "notes").unlink()
    (folder / "notes").symlink_to(".git/config")


_MEANWHILE: Mapping[str, tuple[str, dict[str, Any], Callable[[Path], None]]] = {
    "written, and edited meanwhile": ("write", {"path": "notes", "content": "x\n"}, _edited),
    "edited, and edited meanwhile": ("edit", {"path": "notes", "old": "one", "new": "x"}, _edited),
    "new, and there meanwhile": ("write", {"path": "new", "content": "x\n"}, _planted),
    "a folder that became a link": ("write", {"path": "docs/post", "content": "x\n"}, _turned),
    "nothing meanwhile": ("write", {"path": "notes", "content": "x\n"}, _untouched),
    "a file that became a link": ("write", {"path": "notes", "content": "x\n"}, _replaced),
}


@attack(_KIND, "content or place of a file that change between the question and the answer")
def _pins() -> Iterator[Trial]:
    for front in (("--plain",), ()):
        for form, (tool, given, meddle) in _MEANWHILE.items():
            with home() as place, Server(_asking(tool, given)) as server:
                _fill(place.folder)
                yield f"{form}, {front or 'terminal'}", _answered(place, server, front, meddle)


def _asking(tool: str, given: dict[str, Any]) -> Any:
    return calling("openai-chat", [(tool, json.dumps(given))], then="quite done")


def _fill(folder: Path) -> None:
    for name in (".git/hooks", "docs"):
        (folder / name).mkdir(parents=True)
    for name in ("notes", "docs/post", ".git/hooks/post", ".git/config"):
        (folder / name).write_text("one\ntwo\n", encoding="utf-8")


def _answered(
    place: Home, server: Server, front: tuple[str, ...], meddle: Callable[[Path], None]
) -> str | None:
    """Why it broke that the world was changed before the question was answered with yes."""
    place.configure("openai-chat", server.url)
    command = [sys.executable, "-m", "mull", *front, "-m", "evil-openai-chat/m", "--tools", "all"]
    environment = place.environment
    with PseudoTerminal(command, environment=environment, folder=place.folder) as terminal:
        try:
            terminal.read_until(lambda heard: b"/help" in heard, _PATIENCE)
            terminal.press("q\r")
            terminal.read_until(_is_question, _PATIENCE)
            meddle(place.folder)
            now = _held(place.folder)
            terminal.rest(1)  # keys that come at once belong to the line
            terminal.press("1\r")
            with suppress(Timeout):
                terminal.read_until(lambda heard: b"quite done" in heard or _is_question(heard), 15)
        except Timeout as timeout:
            return f"it was not asked about: {str(timeout)[-80:]!r}"
    changed = [name for name, held in _held(place.folder).items() if now.get(name) != held]
    if meddle is _untouched:
        return None if changed == ["notes"] else "an answer changes nothing"
    return f"{changed} changed unseen" if changed else None


def _is_question(heard: bytes) -> bool:
    return re.search(rb"\b1\. Yes", _plain(heard)) is not None


def _plain(heard: bytes) -> bytes:
    return re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", heard)


def _held(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@attack(_KIND, "long differences: every changed line is shown, and the counts are true")
def _differences() -> Iterator[Trial]:
    lines = [f"line {number}" for number in range(2_500)]
    few = [f"{line} changed" if at in (3, 1200, 2490) else line for at, line in enumerate(lines)]
    texts = {
        "three lines far apart": (lines, few),
        "every line": (lines, [f"{line}!" for line in lines]),
        "a new file": ([], lines),
        "all taken out": (lines, []),
        "one at the end": (lines, [*lines, "last"]),
    }
    for form, (before, after) in texts.items():
        with home() as place:
            old, new = ("".join(f"{line}\n" for line in side) for side in (before, after))
            if before:
                (place.folder / "f").write_text(old, encoding="utf-8")
            yield form, _hidden(place.folder, before, after, content=new)


def _hidden(folder: Path, before: list[str], after: list[str], content: str) -> str | None:
    tool = builtin_tools(Workspace(folder))["write"]
    call = ToolCallBlock("c", "write", {"path": "f", "content": content})
    preview = tool.prepare(call).preview
    shown = preview.detail.splitlines()
    gone = [line for line in before if line not in set(after)]
    come = [line for line in after if line not in set(before)]
    missing = [line for line in gone if f"-{line}" not in set(shown)]
    missing += [line for line in come if f"+{line}" not in set(shown)]
    if missing:
        return f"{len(missing)} changed lines are not shown"
    counts = [int(found.replace(",", "")) for found in _COUNTS.findall(preview.title)]
    return None if counts == [len(come), len(gone)] else f"it says {preview.title!r}"


@attack(_KIND, "commands and arguments longer than the screen are shown whole before the answer")
def _long() -> Iterator[Trial]:
    words = [f"word{number:03}" for number in range(120)]
    forms = {
        "many lines": "\n".join(f"touch {word}" for word in words),
        "one long line": "touch " + " ".join(words),
    }
    for form, command in forms.items():
        for front in (("--plain",), ()):
            with home() as place, Server(_asking("run", {"command": command})) as server:
                yield f"{form}, {front or 'terminal'}", _cut(place, server, front, words)


def _cut(place: Home, server: Server, front: tuple[str, ...], words: list[str]) -> str | None:
    place.configure("openai-chat", server.url)
    command = [sys.executable, "-m", "mull", *front, "-m", "evil-openai-chat/m", "--tools", "all"]
    screen = TerminalScreen(*_SIZE)
    with PseudoTerminal(
        command,
        environment=place.environment,
        folder=place.folder,
        size=_SIZE,
        seen=screen.feed,
        cursor=screen.cursor,
    ) as terminal:
        try:
            terminal.read_until(lambda heard: b"/help" in heard, _PATIENCE)
            terminal.press("q\r")
            heard = terminal.read_until(_is_question, _PATIENCE) + terminal.rest(1)
            seen = _plain(heard).decode("utf-8", "replace")
            if b"(80 more lines)" in _plain(heard):
                seen += "".join(_pages(terminal, screen))
        except Timeout as timeout:
            return f"it was not asked about: {str(timeout)[-80:]!r}"
    missing = [word for word in words if word not in seen]
    return f"{len(missing)} of {len(words)} words are not shown" if missing else None


def _pages(terminal: PseudoTerminal, screen: TerminalScreen) -> Iterator[str]:
    """What the viewer shows of the whole, a page after the other."""
    terminal.press(_DOWN * 6)  # looking is the last row
    terminal.press("\r")
    terminal.rest(1)
    yield screen.text
    for _ in range(_MOST_PAGES):
        terminal.press(_PAGE_DOWN)
        terminal.rest(0.5)
        yield screen.text
