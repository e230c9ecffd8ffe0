"""The gate before every tool call: decides by the rules, and asks the user if they say nothing.

Calls run in parallel, but the user is asked one question at a time, and an answer that covers more
than one call is asked for only once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from mull.agent.tools.tool import PreparedCall, Preview
from mull.logs import log_warning
from mull.neutral.blocks import Value
from mull.neutral.errors import LocalError
from mull.policy.approval import Decision, Effect, Mode, Rule, decide, parse_rule
from mull.policy.approval import suggest as suggest_rules
from mull.policy.globs import has_wildcard

__all__ = [
    "LETTERS",
    "ApprovalAnswer",
    "ApprovalRequest",
    "Approver",
    "Choice",
    "Gate",
    "NobodyToAsk",
    "Questioner",
    "UserQuestion",
    "unknown_rules",
]

Choice: TypeAlias = Literal["once", "session", "always", "no", "never"]

LETTERS: Mapping[str, Choice] = {
    "y": "once",
    "s": "session",
    "a": "always",
    "n": "no",
    "x": "never",
}
"""What the user types for each choice."""
_SESSION = "this session"
_STRICTNESS = ("run", "ask", "refuse")


class ApprovalRequest(Value, frozen=True):
    """A request for approval: a call of `tool` with these `arguments`. `rules` would allow this and
    similar calls, the narrowest first.

    `altered` says why an allowing rule does not apply: the tool has changed.
    """

    call_id: str
    tool: str
    source: str
    preview: Preview
    rules: tuple[str, ...]
    altered: str = ""
    arguments: dict[str, Any] = {}


class ApprovalAnswer(Value, frozen=True):
    """The user's answer.

    `session` and `always` allow what `rule` matches from now on, `never` denies it for this
    session; without a rule the narrowest is used. `feedback` is the user's message to the model,
    `reason` replaces it if there is no user.
    """

    choice: Choice
    rule: str | None = None
    feedback: str = ""
    reason: str = ""


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

    async def ask(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Show the request and wait for an answer."""


class NobodyToAsk:
    """Answers if there is no user: what would need approval is refused."""

    async def ask(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Refuse, and say what would allow it."""
        if request.altered:
            return ApprovalAnswer("no", reason=f"there is nobody to ask and {request.altered}")
        rule = msgspec.json.encode(request.rules[0]).decode()
        return ApprovalAnswer(
            "no",
            reason=f"{request.tool} needs approval and there is nobody to ask: run mull with "
            f"--yes, or allow it in tools.toml, [tools] allow = [{rule}]",
        )


class Gate:
    """Lets calls through or not; remembers the answers of this session.

    If an answer cannot be stored permanently, `warn` is called; no call waits for that.
    """

    def __init__(
        self,
        mode: Mode = "ask",
        rules: Sequence[Rule] = (),
        approver: Approver | None = None,
        always: Callable[[str], None] | None = None,
        warn: Callable[[str], None] = log_warning,
    ) -> None:
        self.mode: Mode = mode
        self.session: list[Rule] = []
        self._rules = tuple(rules)
        self._approver: Approver = approver or NobodyToAsk()
        self._always = always
        self._warn = warn
        self._asking = asyncio.Lock()

    @property
    def person(self) -> Approver:
        """The one who answers."""
        return self._approver

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All active rules, including those of this session."""
        return (*self._rules, *self.session)

    async def admit(self, call: PreparedCall) -> str | None:
        """None if the call may run, otherwise what the model is told instead of a result."""
        decision = self._decide(call)
        if decision.verdict == "ask":
            async with self._asking:
                decision = self._decide(call)  # an answer given meanwhile may settle it
                if decision.verdict == "ask":
                    return await self._ask(call)
        if decision.verdict == "refuse":
            return f"not run: {decision.reason}; do not try to work around this"
        return None

    async def question(self, question: UserQuestion) -> str | None:
        """The user's answer to a question from the model; None if there is nobody, or none."""
        if not isinstance(self._approver, Questioner):
            return None
        async with self._asking:
            return await self._approver.question(question)

    def _decide(self, call: PreparedCall) -> Decision:
        """The strictest decision of the rules about everything the call touches."""
        decisions = [decide(asked, self.mode, self.rules) for asked in call.every]
        return max(decisions, key=lambda decision: _STRICTNESS.index(decision.verdict))

    async def _ask(self, call: PreparedCall) -> str | None:
        open_ones = [a for a in call.every if decide(a, self.mode, self.rules).verdict == "ask"]
        offered = [suggest_rules(asked) for asked in open_ones]
        rules = offered[0]
        asked = call.asked
        answer = await self._approver.ask(
            ApprovalRequest(
                call_id=call.call.id,
                tool=asked.tool,
                source=call.source,
                preview=call.preview,
                rules=rules,
                altered=asked.altered,
                arguments=call.call.input,
            )
        )
        rule = answer.rule or rules[0]
        # what applies to the first file of a patch applies to the others, each by its own name
        others = [own[0] for own in offered[1:]]
        match answer.choice:
            case "once":
                return None
            case "session" | "always":
                for one in (rule, *others):
                    self._remember("allow", one)
                    if answer.choice == "always":
                        self._keep(one)
                return None
            case "never":
                self._remember("deny", rule)
        return _refusal(answer)

    def _keep(self, rule: str) -> None:
        try:
            if self._always is not None:
                self._always(rule)
        except LocalError as error:
            self._warn(str(error))

    def _remember(self, effect: Effect, rule: str) -> None:
        self.session.append(parse_rule(effect, rule, _SESSION))


def unknown_rules(rules: Sequence[Rule], names: Collection[str]) -> list[str]:
    """The rules that match no existing tool: most likely they are misspelt."""
    return [rule.text for rule in rules if not has_wildcard(rule.tool) and rule.tool not in names]


def _refusal(answer: ApprovalAnswer) -> str:
    if answer.reason:
        return f"not run: {answer.reason}"
    if answer.feedback.strip():
        return f"not run: the user refused, and says: {answer.feedback.strip()}"
    return "not run: the user refused; ask what to do instead, or continue without it"
