"""Whether a tool call runs, needs approval, or is refused.

Rules are `TOOL` or `TOOL(PATTERN)`. In this order: a deny rule refuses, whatever else applies; a
call that changes nothing and needs no approval runs; read-only mode refuses calls that change
something; `yes` runs the rest; `accept-edits` runs changes to ordinary files in the working folder;
an allow rule runs the call, unless the tool has changed; everything else needs approval.

What a pattern is matched against depends on the tool: a path inside the working folder, a command,
or the arguments as JSON. Allow rules are read narrowly and deny rules broadly, so that what a
pattern does not foresee needs approval.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

from mull.neutral.blocks import Value
from mull.neutral.errors import SettingError
from mull.neutral.patterns import pattern
from mull.policy.commands import allow_parts, deny_parts
from mull.policy.globs import escape, fixed_start, has_wildcard, path_matches, text_matches
from mull.policy.hazards import is_hazardous
from mull.policy.protected import is_protected, names_protected
from mull.settings.words import quote

__all__ = [
    "Asked",
    "Decision",
    "Effect",
    "Mode",
    "Rule",
    "Subject",
    "decide",
    "parse_rule",
    "suggest",
]

Mode: TypeAlias = Literal["ask", "accept-edits", "yes", "read-only"]
Effect: TypeAlias = Literal["allow", "deny"]

_RULE = pattern(r"([^()\s]+)(?:\((.+)\))?", re.DOTALL)


class Subject(Value, frozen=True):
    """What a call is about, and how patterns are matched against it.

    A path is relative to the working folder, and `full` is the absolute one. What is `guarded`, a
    read-only file, is allowed only by a rule that names exactly this file.
    """

    kind: Literal["path", "command", "text"]
    text: str
    full: str = ""
    guarded: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The ways to write the path."""
        return (self.text, self.full) if self.full else (self.text,)


class Asked(Value, frozen=True):
    """A call that wants to run.

    One that `asks` changes nothing but still needs approval. `altered` says why an earlier approval
    does not count: the tool has changed.
    """

    tool: str
    changes: bool
    subject: Subject
    asks: bool = False
    altered: str = ""


class Rule(Value, frozen=True):
    """What is allowed or denied; `where` says where it is written, for messages."""

    effect: Effect
    tool: str
    argument: str | None = None
    where: str = ""

    @property
    def text(self) -> str:
        """The rule as it is written in a file."""
        return self.tool if self.argument is None else f"{self.tool}({self.argument})"


class Decision(Value, frozen=True):
    """What happens to a call; `reason` says why it is refused."""

    verdict: Literal["run", "ask", "refuse"]
    reason: str = ""


def parse_rule(effect: Effect, text: str, where: str = "") -> Rule:
    """Parse `TOOL` or `TOOL(PATTERN)`.

    Raises:
        SettingError: it is neither.
    """
    found = _RULE.fullmatch(text.strip())
    if found is None:
        raise SettingError(
            f"{quote(text)} is not a rule: write a tool, or a tool with a pattern such as"
            " run(git status *) or edit(src/**)"
        )
    return Rule(effect, found.group(1), found.group(2), where)


def decide(asked: Asked, mode: Mode, rules: Iterable[Rule]) -> Decision:
    """What happens to the call under these rules, including those of the session."""
    rules = tuple(rules)
    for rule in rules:
        if rule.effect == "deny" and _denies(rule, asked):
            where = f" ({rule.where})" if rule.where else ""
            return Decision("refuse", f"the rule {rule.text}{where} denies it")
    if not (asked.changes or asked.asks or asked.altered):
        return Decision("run")
    if mode == "read-only" and asked.changes:
        return Decision("refuse", f"mull is in read-only mode and {asked.tool} changes something")
    if mode == "yes" or (mode == "accept-edits" and _is_plain_edit(asked)):
        return Decision("run")
    if not asked.altered and _is_allowed(asked, rules):
        return Decision("run")
    return Decision("ask")


def suggest(asked: Asked) -> tuple[str, ...]:
    """Rules that would have allowed this call, the narrowest first."""
    subject = asked.subject
    if subject.kind == "text":
        return (asked.tool,)
    exact = escape(subject.text)
    if subject.kind == "path":
        patterns = _path_patterns(subject.text)
        fitting = patterns[:1] if subject.guarded else patterns
        return tuple(f"{asked.tool}({pattern})" for pattern in fitting)
    words = subject.text.split()
    if allow_parts(subject.text) == [subject.text.strip()] and _names_an_action(words):
        wide = f"{words[0]} {words[1]} *"
        if _allows_command(wide, subject.text.strip()):
            return (f"{asked.tool}({exact})", f"{asked.tool}({wide})")
    return (f"{asked.tool}({exact})",)


def _path_patterns(path: str) -> list[str]:
    folder = path.rpartition("/")[0]
    exact = escape(path) if folder else f"./{escape(path)}"  # a bare name would match in any folder
    if is_protected(path):
        return [exact]
    return [exact, *([f"{escape(folder)}/**"] if folder else []), "**"]


def _names_an_action(words: list[str]) -> bool:
    """`git status -s` and `npm test` do, `rm -rf x` does not: its options determine what it
    does.
    """
    return len(words) > 1 and all(re.fullmatch(r"[\w.][\w.:/-]*", word) for word in words[:2])


def _is_allowed(asked: Asked, rules: Iterable[Rule]) -> bool:
    """A rule allows all of it, or each part of the command has a rule that does."""
    rules = [rule for rule in rules if rule.effect == "allow" and _is_of(rule, asked)]
    if any(rule.argument is None or _fits_whole(rule.argument, asked.subject) for rule in rules):
        return True
    if not rules or asked.subject.kind != "command":
        return False
    parts = allow_parts(asked.subject.text)
    return parts is not None and all(
        any(_allows_command(rule.argument or "", part) for rule in rules) for part in parts
    )


def _is_plain_edit(asked: Asked) -> bool:
    """Whether it changes a file in the working folder that is neither protected nor read-only."""
    subject = asked.subject
    if not asked.changes or subject.kind != "path" or asked.altered or subject.guarded:
        return False
    outside = subject.text.startswith("/") or ".." in subject.text.split("/")
    return not outside and not is_protected(subject.text)


def _is_of(rule: Rule, asked: Asked) -> bool:
    """Whether the rule is about this tool, and names what has to be named: protected and read-only
    files.
    """
    if not text_matches(rule.tool, asked.tool):
        return False
    if asked.subject.guarded and (rule.argument is None or has_wildcard(rule.argument)):
        return False
    subject = asked.subject
    if subject.kind != "path" or not is_protected(subject.text):
        return True
    return rule.argument is not None and names_protected(rule.argument, subject.text)


def _fits_whole(pattern: str, subject: Subject) -> bool:
    if subject.kind == "path":
        return any(_path_fits(pattern, path) for path in subject.names)
    # a star must not match what a shell would take for the next command
    if subject.kind == "command" and has_wildcard(pattern):
        return False
    return text_matches(pattern, subject.text)


def _denies(rule: Rule, asked: Asked) -> bool:
    if not text_matches(rule.tool, asked.tool):
        return False
    pattern, subject = rule.argument, asked.subject
    if pattern is None:
        return True
    if subject.kind == "path":
        paths = (above for path in subject.names for above in _upward(path))
        return any(_path_fits(pattern, path, ignore_case=True) for path in paths)
    if subject.kind == "command":
        return any(_command_fits(pattern, part) for part in deny_parts(subject.text))
    return text_matches(pattern, subject.text, ignore_case=True)


def _path_fits(pattern: str, path: str, *, ignore_case: bool = False) -> bool:
    """A pattern without a slash matches a file name in any folder."""
    if pattern.endswith("/"):
        pattern += "**"
    if "/" not in pattern:
        path = path.rpartition("/")[2]
    return path_matches(pattern.removeprefix("./"), path, ignore_case=ignore_case)


def _command_fits(pattern: str, command: str) -> bool:
    """`git status *` matches `git status` too."""
    return text_matches(pattern, command) or (
        pattern.endswith(" *") and text_matches(pattern[:-2], command)
    )


def _allows_command(pattern: str, command: str) -> bool:
    """What a star stands for may not write or execute: that has to be named."""
    if not _command_fits(pattern, command):
        return False
    return not (has_wildcard(pattern) and is_hazardous(command, len(fixed_start(pattern))))


def _upward(path: str) -> list[str]:
    """The path and its parent folders."""
    names = path.split("/")
    return ["/".join(names[:end]) for end in range(len(names), 0, -1)]
