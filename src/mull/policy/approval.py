"""Whether a tool call runs, needs approval, or is refused.

Rules are `TOOL` or `TOOL(PATTERN)`. In this order: a deny rule refuses, whatever else applies; a
call that changes nothing and needs no approval runs, and so does a command that is known only to
look; read-only mode refuses calls that change something; `yes` runs the rest; `accept-edits` and
`auto` run changes to ordinary files in the working folder; an allow rule runs the call, unless the
tool has changed; `auto` runs other commands in the sandbox; everything else needs approval.

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
from mull.policy.commands import deny_parts
from mull.policy.globs import escape, fixed_start, has_wildcard, path_matches, text_matches
from mull.policy.harmless import Judged, LexicalLook, Part, judge
from mull.policy.protected import folded, is_protected, names_protected
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

Mode: TypeAlias = Literal["auto", "ask", "accept-edits", "yes", "read-only"]
Effect: TypeAlias = Literal["allow", "deny"]

_ADDRESS = pattern(r"(https?://[\w.-]+(?::\d+)?/)[^$`]*")
"""An address; if a rule has named its host, the star stands for what is below. What a shell puts in
could be more words.
"""
_RULE = pattern(r"([^()\s]+)(?:\((.+)\))?", re.DOTALL)


class Subject(Value, frozen=True):
    """What a call is about, and how patterns are matched against it.

    A path is relative to the working folder, and `full` is the absolute one. What is `guarded`, a
    read-only file, is allowed only by a rule that names exactly this file. A command is `judged`
    where its words can be looked up.
    """

    kind: Literal["path", "command", "text"]
    text: str
    full: str = ""
    guarded: bool = False
    judged: Judged | None = None

    @property
    def is_harmless(self) -> bool:
        """Whether it is a command that is known only to look at files in the folder."""
        return self.judged is not None and not self.judged.reason

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
    """What happens to a call; `reason` says why it is refused. A `confined` command runs only in
    the sandbox.
    """

    verdict: Literal["run", "ask", "refuse"]
    reason: str = ""
    confined: bool = False


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
    if asked.subject.is_harmless:  # where there is a sandbox, nothing depends on that being right
        return Decision("run", confined=mode == "auto")
    if mode == "read-only" and asked.changes:
        return Decision("refuse", f"mull is in read-only mode and {asked.tool} changes something")
    if mode == "yes" or (mode in ("accept-edits", "auto") and _is_plain_edit(asked)):
        return Decision("run")
    if not asked.altered and _is_allowed(asked, rules):
        return Decision("run")
    if mode == "auto" and asked.subject.kind == "command" and not asked.altered:
        return Decision("run", confined=True)
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
    wide = _wide_pattern(subject)
    return (f"{asked.tool}({exact})", *([f"{asked.tool}({wide})"] if wide else []))


def _wide_pattern(subject: Subject) -> str:
    """The narrowest pattern with a star that allows a command: `pytest *`, `git commit *`. Empty if
    more than one of its parts needs a rule, or a star would not cover its words.
    """
    open_parts = [part for part in _judged(subject, ()).parts if part.reason]
    if len(open_parts) != 1 or not (name := open_parts[0].name):
        return ""
    words = open_parts[0].words
    pattern = f"{escape(' '.join(words[:name]))} *"
    return pattern if _covers(pattern, open_parts[0]) else ""


def _path_patterns(path: str) -> list[str]:
    folder = path.rpartition("/")[0]
    exact = escape(path) if folder else f"./{escape(path)}"  # a bare name would match in any folder
    if is_protected(path):
        return [exact]
    return [exact, *([f"{escape(folder)}/**"] if folder else []), "**"]


def _is_allowed(asked: Asked, every: Iterable[Rule]) -> bool:
    """A rule allows all of it, or each part of the command is harmless or has a rule that does."""
    rules = [rule for rule in every if rule.effect == "allow" and _is_of(rule, asked)]
    if any(rule.argument is None or _fits_whole(rule.argument, asked.subject) for rule in rules):
        return True
    if not rules or asked.subject.kind != "command":
        return False
    parts = _judged(asked.subject, every).parts
    return bool(parts) and all(
        not part.reason or any(_covers(rule.argument or "", part) for rule in rules)
        for part in parts
    )


def _judged(subject: Subject, rules: Iterable[Rule]) -> Judged:
    """The command's parts; judged by their look alone if nothing was looked up."""
    denying = [rule for rule in rules if rule.effect == "deny"]

    def is_denied(path: str) -> bool:
        asked = Asked("read", False, Subject("path", path))
        return any(_denies(rule, asked) for rule in denying)

    return subject.judged or judge(subject.text, LexicalLook(is_denied))


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
        return any(_path_fits(folded(pattern), folded(path), ignore_case=True) for path in paths)
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


def _covers(pattern: str, part: Part) -> bool:
    """Whether the pattern allows this command. What a star stands for must be known to be harmless;
    the program has to be named.
    """
    if not _command_fits(pattern, part.text) or part.is_redirected:
        return False
    if not has_wildcard(pattern):
        return True
    if part.wide:
        return False
    star, end = len(fixed_start(pattern)), -1
    for place, word in enumerate(part.words):
        begin, end = end + 1, end + 1 + len(word)
        if end <= star or (place not in part.bad and place not in part.programs):
            continue
        address = _ADDRESS.fullmatch(word)
        if place in part.programs or not address or address.end(1) > star - begin:
            return False
    return True


def _upward(path: str) -> list[str]:
    """The path and its parent folders."""
    names = path.split("/")
    return ["/".join(names[:end]) for end in range(len(names), 0, -1)]
