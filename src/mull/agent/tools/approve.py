"""The gate before every tool call: decides by the rules, and asks the user if they say nothing.

Calls run in parallel, but the user is asked one question at a time, and an answer that covers more
than one call is asked for only once. Whoever answers, a person at a terminal, a function of a
program or an editor, has the same four answers; anything else is no answer, and the call does not
run.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args, runtime_checkable

import msgspec

from mull.agent.tools.shown import NOT_RUN, REFUSED
from mull.agent.tools.tool import PreparedCall, Preview, ToolFailure, explain
from mull.logs import log_warning
from mull.neutral.blocks import Value
from mull.neutral.errors import LocalError
from mull.policy.approval import Asked, Decision, Mode, Rule, decide, parse_rule
from mull.policy.approval import suggest as suggest_rules
from mull.policy.globs import has_wildcard

if TYPE_CHECKING:
    from mull.agent.sandbox.cage import Cage

__all__ = [
    "ApprovalAnswer",
    "ApprovalChoice",
    "ApprovalRequest",
    "Approver",
    "Gate",
    "Keeper",
    "Questioner",
    "UserQuestion",
    "offered",
    "read_answer",
    "unknown_rules",
]

ApprovalChoice: TypeAlias = Literal["yes", "always", "session", "no"]
"""The answers to a request for approval, wherever they come from."""
_CHOICES = get_args(ApprovalChoice)
_WITH_RULES = ("always", "session")
_SESSION = "this session"
_STRICTNESS = ("run", "ask", "refuse")
_LONGEST_RULE = 200
"""Characters of a rule that can still be read at a glance; a longer one is not offered."""


class ApprovalRequest(Value, frozen=True):
    """A request for approval of a tool call."""

    call_id: str
    """The id of the call in the conversation."""
    tool: str
    """The name of the tool."""
    source: str
    """Where the tool comes from: `built in`, `function`, or `mcp:NAME`."""
    preview: Preview
    """What the call would do, in words for the user."""
    rules: tuple[str, ...] = ()
    """What `session` and `always` allow from now on, one rule for each thing that the call touches;
    without any, both allow only this call.
    """
    altered: str = ""
    """Why an allowing rule does not apply: the tool has changed. Empty if it has not."""
    arguments: dict[str, Any] = {}
    """The arguments of the call."""
    wants: str = ""
    """What the call needs beyond what it may do; empty if nothing."""
    kept: str = ""
    """How `always` writes the rules: the file and the line, and below it the text. Empty if they
    cannot be stored.
    """


class ApprovalAnswer(Value, frozen=True):
    """The answer: `yes` to this call, `session` and `always` to everything that the request's
    rules match, or `no`.

    `reason` is what the model is told about a no. `rule` replaces the rules of the request.
    """

    choice: ApprovalChoice
    reason: str = ""
    rule: str | None = None


class UserQuestion(Value, frozen=True):
    """A question from the model; it may have `options` to choose from."""

    text: str
    options: tuple[str, ...] = ()


@runtime_checkable
class Questioner(Protocol):
    """An approver that also asks the model's own questions to the user."""

    async def question(self, question: UserQuestion) -> str | None:
        """The answer; None if there is none."""


class Approver(Protocol):
    """Answers requests for approval; a program passes its own to a `Toolbox`."""

    async def ask(self, request: ApprovalRequest) -> ApprovalAnswer | bool | str:
        """Show the request and wait for an answer. True is `yes` and False is `no`; a text is one
        of the four answers, or the reason for no.
        """


class Keeper(Protocol):
    """Stores the rules of an `always`."""

    def preview(self, rules: Sequence[str]) -> str:
        """Where they would be written, and below it what; empty if there is nothing to write.

        Raises:
            LocalError: they cannot be stored.
        """

    def keep(self, rules: Sequence[str]) -> None:
        """Store them.

        Raises:
            LocalError: they cannot be stored.
        """


def offered(request: ApprovalRequest) -> list[tuple[ApprovalChoice, str]]:
    """The answers that the user can give, in order, each with its words."""
    rules = ", ".join(map(_spoken, request.rules))
    words: dict[ApprovalChoice, str] = {
        "yes": "Yes",
        "always": f"Yes, and do not ask again in this folder for: {rules}",
        "session": f"Yes, for this session: {rules}",
        "no": "No",
    }
    missing = () if request.rules and request.kept else ("always",) if rules else _WITH_RULES
    return [(choice, word) for choice, word in words.items() if choice not in missing]


def read_answer(said: object) -> ApprovalAnswer:
    """An answer, in any of its forms.

    Raises:
        LocalError: it is none; says what would be one.
    """
    if isinstance(said, bool):
        return ApprovalAnswer("yes" if said else "no")
    if isinstance(said, str):
        known = next((choice for choice in _CHOICES if choice == said), None)
        return ApprovalAnswer(known) if known else ApprovalAnswer("no", said.strip())
    if isinstance(said, ApprovalAnswer) and said.choice in _CHOICES:
        return said
    words = ", ".join(f'"{choice}"' for choice in _CHOICES)
    raise LocalError(f"the answer was {said!r}: use True, False, {words}, or a reason for no")


class Gate:
    """Lets calls through or not; remembers the answers of this session.

    Without an approver, what would need approval is refused. If an answer cannot be stored
    permanently, or is none, `warn` is called; no call waits for that. `cage` is the sandbox for
    commands that nobody approves; without it, the mode `auto` asks.
    """

    def __init__(
        self,
        mode: Mode = "ask",
        rules: Sequence[Rule] = (),
        approver: Approver | None = None,
        keeper: Keeper | None = None,
        warn: Callable[[str], None] = log_warning,
        cage: Callable[[], Cage] | None = None,
    ) -> None:
        self.mode: Mode = mode
        self.is_chosen: bool = True
        """Whether somebody chose the mode. If nobody did, `auto` needs the whole sandbox."""
        self.session: list[Rule] = []
        self._rules = tuple(rules)
        self._approver = approver
        self._keeper = keeper
        self._warn = warn
        self._cage = cage
        self._asking = asyncio.Lock()

    @property
    def person(self) -> Approver | None:
        """The one who answers."""
        return self._approver

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All active rules, including those of this session."""
        return (*self._rules, *self.session)

    def choose(self, mode: Mode) -> None:
        """Change the mode."""
        self.mode, self.is_chosen = mode, True

    async def admit(self, call: PreparedCall) -> str | None:
        """None if the call may run, otherwise what the model is told instead of a result. The
        call's permit says how.
        """
        is_forced = await self._settle_sandbox(call)
        decision = self._decide(call)
        if decision.verdict == "ask":
            async with self._asking:
                decision = self._decide(call)  # an answer given meanwhile may settle it
                if decision.verdict == "ask" and (refusal := await self._ask(call)) is not None:
                    return refusal
        if decision.verdict == "refuse":
            return f"{NOT_RUN}{decision.reason}; do not try to work around this"
        call.permit.confined = decision.confined or is_forced
        call.permit.more = partial(self._more, call)
        return None

    async def _settle_sandbox(self, call: PreparedCall) -> bool:
        """Whether the call has to run in the sandbox whoever approves it. Where there is none, the
        mode `auto` ends.
        """
        if not any(asked.changes for asked in call.every) or self._cage is None:
            if self.mode == "auto" and self._cage is None:
                self.mode = "ask"
            return False
        cage = self._cage()
        whole = not self.is_chosen
        if self.mode == "auto" and (why := await asyncio.to_thread(cage.why_not, whole=whole)):
            self.mode = "ask"
            if self.is_chosen:
                self._warn(f"the mode auto is not possible here, so mull asks: {why}")
        return cage.is_forced and call.asked.subject.kind == "command"

    async def _more(self, call: PreparedCall, wants: str) -> str | None:
        """Ask for what a command wants beyond the sandbox."""
        if self.mode == "yes":  # then the sandbox is there because tools.sandbox demands it
            return "not allowed: tools.sandbox is on"
        async with self._asking:
            refusal = await self._ask(dataclasses.replace(call, wants=wants))
        return refusal and refusal.removeprefix(NOT_RUN)  # it has run

    async def question(self, question: UserQuestion) -> str | None:
        """The user's answer to a question from the model; None if there is nobody, or none."""
        person: object = self._approver
        if not isinstance(person, Questioner):
            return None
        async with self._asking:
            return await person.question(question)

    def _decide(self, call: PreparedCall) -> Decision:
        """The strictest decision of the rules about everything the call touches. What it wants
        beyond that no rule has allowed.
        """
        decisions = [decide(asked, self.mode, self.rules) for asked in call.every]
        if call.wants and self.mode != "yes":
            decisions.append(Decision("ask"))
        return max(decisions, key=lambda decision: _STRICTNESS.index(decision.verdict))

    async def _ask(self, call: PreparedCall) -> str | None:
        request = self._request(call)
        if self._approver is None:
            return _nobody(request)
        try:
            answer = read_answer(await self._approver.ask(request))
            rules = (answer.rule,) if answer.rule else request.rules
            allowed = [parse_rule("allow", rule, _SESSION) for rule in rules]
        except Exception as error:  # whoever is asked may fail in any way: then nobody said yes
            why = str(error) if isinstance(error, LocalError | ToolFailure) else explain(error)
            self._warn(f"approve failed, so {request.tool} was not run: {why}")
            return f"{NOT_RUN}asking for approval failed"
        if answer.choice == "no":
            return _refusal(answer.reason.strip())
        if answer.choice != "yes":
            self.session += allowed
        if answer.choice == "always":
            self._keep(rules)
        return None

    def _request(self, call: PreparedCall) -> ApprovalRequest:
        asked = call.asked
        open_ones = [a for a in call.every if decide(a, self.mode, self.rules).verdict == "ask"]
        rules = () if call.wants else _narrow_rules(open_ones)
        return ApprovalRequest(
            call_id=call.call.id,
            tool=asked.tool,
            source=call.source,
            preview=call.preview,
            rules=rules,
            altered=asked.altered,
            arguments=call.call.input,
            wants=call.wants,
            kept=self._preview(rules),
        )

    def _preview(self, rules: Sequence[str]) -> str:
        try:
            return self._keeper.preview(rules) if self._keeper and rules else ""
        except LocalError:  # then keeping them is not offered
            return ""

    def _keep(self, rules: Sequence[str]) -> None:
        try:
            if self._keeper is not None:
                self._keeper.keep(rules)
        except LocalError as error:
            self._warn(str(error))


def unknown_rules(rules: Sequence[Rule], names: Collection[str]) -> list[str]:
    """The rules that match no existing tool: most likely they are misspelt."""
    return [rule.text for rule in rules if not has_wildcard(rule.tool) and rule.tool not in names]


def _narrow_rules(asked: Iterable[Asked]) -> tuple[str, ...]:
    """For each of them the rule to offer: a pattern for similar calls, but not for everything that
    the tool can do, or else this very call. None if one of them has no rule that can be read.
    """
    rules: list[str] = []
    for one in asked:
        suggested = suggest_rules(one)
        similar = (rule for rule in suggested[1:] if not rule.endswith("(**)"))
        rule = next(similar, suggested[0] if suggested else "")
        if not rule or len(rule) > _LONGEST_RULE or not rule.isprintable():
            return ()
        rules.append(rule)
    return tuple(dict.fromkeys(rules))


def _spoken(rule: str) -> str:
    """`pytest *` for `run(pytest *)`, `edit src/**` for `edit(src/**)`."""
    tool, _, argument = rule.partition("(")
    argument = argument.removesuffix(")")
    return argument if tool == "run" and argument else f"{tool} {argument}".rstrip()


def _nobody(request: ApprovalRequest) -> str:
    """What the model is told if there is nobody to ask; it says what would allow the call."""
    if request.altered:
        return f"{NOT_RUN}there is nobody to ask and {request.altered}"
    rules = msgspec.json.encode(request.rules).decode()
    allow = f", or allow it in tools.toml, [tools] allow = {rules}" if request.rules else ""
    return (
        f"{NOT_RUN}{request.tool} needs approval and there is nobody to ask: run mull with "
        f"--yes{allow}"
    )


def _refusal(reason: str) -> str:
    if reason:
        return f"{REFUSED}, and says: {reason}"
    return f"{REFUSED}; ask what to do instead, or continue without it"
