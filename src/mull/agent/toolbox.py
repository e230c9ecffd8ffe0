"""The tools of one session, mull's own and those of MCP servers, and the gate before them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from mull.agent.approving import ApproveFunction, approver_of
from mull.agent.instructions import BASE, Instruction, load_instructions, system_prompt
from mull.agent.mcp.elsewhere import at, at_now, from_here
from mull.agent.mcp.find import OnDemand
from mull.agent.mcp.servers import McpServers, may_mean
from mull.agent.mcp.settled import referred
from mull.agent.sandbox import is_likely, is_versioned
from mull.agent.tools.approve import Approver, Gate, unknown_rules
from mull.agent.tools.around import ToolAround
from mull.agent.tools.background import JobStatus
from mull.agent.tools.output import MOST, fitted
from mull.agent.tools.table import builtin_tools, choose_tools, with_jobs
from mull.agent.tools.todo import Todo, TodoItem
from mull.agent.tools.tool import Outcome, RunnableTool, ToolContext, Work
from mull.agent.tools.workspace import Workspace
from mull.agent.trust import Trusting
from mull.client.connection import running_loop
from mull.logs import log_warning
from mull.policy.allowance import room
from mull.policy.approval import Mode
from mull.store.approvals import RuleFile, load_policy
from mull.store.paths import config_dir, data_dir
from mull.store.serve import ServeConfig
from mull.store.trust import Trust

if TYPE_CHECKING:
    from mull.agent.mcp.servers import ServerStatus
    from mull.agent.sandbox.cage import Cage
    from mull.agent.setup import Setup
    from mull.settings.layers import Snapshot

__all__ = ["Toolbox", "key_variables"]


class Toolbox:
    """What a model may use in a folder. Servers are started by `start` and ended by `close`.

    They run on the event loop that started them; their tools can be used on any. If they are
    `unasked`, a model known to be bad at tools is offered none. Instructions of the folder that
    nobody has approved yet are asked about when a session starts, or left out if there is nobody to
    ask; `trusted` uses them without asking. Without a `mode`, the setting `tools.mode` decides, or
    else the surroundings: `auto` if somebody can be asked, commands can be confined and the folder
    is under version control, otherwise `ask`.

    Raises:
        LocalError: a word of `wanted` matches no tool, or a policy file is invalid.
    """

    warnings: tuple[str, ...]

    def __init__(  # noqa: PLR0913 - keywords, each of them optional
        self,
        setup: Setup,
        folder: Path,
        *,
        wanted: str = "all",
        mode: Mode | None = "ask",
        approver: Approver | ApproveFunction | None = None,
        trusted: bool = False,
        on_change: Callable[[ServerStatus], None] | None = None,
        warn: Callable[[str], None] = log_warning,
    ) -> None:
        self.workspace: Workspace = Workspace(folder)
        self.wanted: str = wanted
        self.snapshot: Callable[[], Snapshot] = setup.settings.snapshot
        """The current settings; a session provides its own."""
        self.unasked: bool = False
        self._on_change = on_change
        self._warn = warn
        self._told: set[str] | None = None
        self._cage: Cage | None = None
        self._demand = OnDemand()
        self._configs = {n: one for n, one in setup.config.mcp.items() if one.enabled}
        root = self.workspace.root
        policy = load_policy(config_dir(), root)
        self.warnings = self._policy_warnings = policy.warnings
        self.gate: Gate = Gate(
            mode or self._wanted_mode() or self._usual_mode(has_person=approver is not None),
            policy.rules,
            approver_of(approver),
            RuleFile(config_dir(), root),
            warn,
            self.cage,
        )
        self.gate.is_chosen = bool(mode or self._wanted_mode())
        self._rules = policy.rules
        self._own = builtin_tools(
            self.workspace,
            rules=policy.rules,
            withheld=key_variables(setup),
            passed_on=policy.environment,
            ask=self.gate.question,
            cage=self.cage,
        )
        self._trusting = Trusting(
            load_instructions(root),
            Trust(data_dir()),
            policy.trusted,
            all_in=trusted or root in policy.trusted,
        )
        self.mcp: McpServers | None = None
        self.is_started: bool = False
        self._home: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Task[None] | None = None
        if not any(may_mean(wanted, name) for name in self._configs):
            self.choose(wanted)  # a word that matches no tool is reported before anything is asked

    def cage(self) -> Cage:
        """The sandbox for commands; loaded with the first one that needs it."""
        if self._cage is None:
            from mull.agent.sandbox.cage import Cage

            self._cage = Cage(self.workspace.root, self._rules, self._wish, self._warn)
        return self._cage

    def _wanted_mode(self) -> Mode | None:
        wanted = self.snapshot()["tools.mode"]
        return next((mode for mode in get_args(Mode) if mode == wanted), None)

    def _usual_mode(self, *, has_person: bool) -> Mode:
        is_safe = has_person and self._wish() != "off" and is_versioned(self.workspace.root)
        return "auto" if is_safe and is_likely() else "ask"

    def _wish(self) -> str:
        return str(self.snapshot()["tools.sandbox"])

    async def start(self) -> None:
        """Start the servers whose tools are wanted; returns when each is up, has failed, or is
        known from an earlier run. Further calls do nothing.
        """
        if self.is_started:
            return
        here = running_loop()
        self.is_started = True
        self._told = None
        if self._configs:
            self.mcp = McpServers(self._configs, on_change=self._heard, lazy=True)
            self._home = here
            await self.mcp.start(self.wanted)
            self._told = set(self.trouble)  # the caller reports these
        unlisted = [name for name in self._configs if not may_mean(self.wanted, name)]
        unknown = [
            rule
            for rule in unknown_rules(self.gate.rules, self.all)
            if not any(may_mean(rule, name) for name in unlisted)
        ]
        said = (f"the rule {rule} matches no available tool" for rule in unknown)
        self.warnings = (*self._policy_warnings, *said)

    async def reach(self, wanted: str) -> None:
        """Start the servers that other tools come from."""
        if self.mcp is not None and self._home is not None:
            servers = self.mcp
            await at(self._home, lambda: servers.start(wanted))

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """The instructions from AGENTS.md files; the note of an unused one says why."""
        return self._trusting.used

    async def settle_instructions(self) -> list[str]:
        """Ask about instructions that nobody has approved yet; returns messages for the user."""
        return await self._trusting.settle(self.gate.person)

    def _heard(self, status: ServerStatus) -> None:
        """Report what happens to a server during the session."""
        for trouble in _trouble(status):
            if self._told is not None and trouble not in self._told:
                self._told.add(trouble)
                self._warn(trouble)
        if self._on_change is not None:
            self._on_change(status)

    async def close(self) -> None:
        """End the servers and background commands. `start` starts the servers again."""
        await asyncio.to_thread(self.workspace.jobs.end)
        servers, home = self._let_go()
        if servers is not None and home is not None:
            await at(home, servers.close)

    def close_now(self) -> None:
        """`close` for blocking code. On the servers' own event loop, which cannot wait for itself,
        they end as soon as it continues.
        """
        self.workspace.jobs.end()
        servers, home = self._let_go()
        if servers is not None and home is not None:
            self._closing = at_now(home, servers.close)

    def _let_go(self) -> tuple[McpServers | None, asyncio.AbstractEventLoop | None]:
        """The servers to end and their event loop, if there are any; they offer nothing more."""
        servers, home = self.mcp, self._home
        self._home, self.is_started = None, False
        return (None, None) if home is None or home.is_closed() else (servers, home)

    @property
    def trouble(self) -> tuple[str, ...]:
        """Servers that did not start, tools that are left out, AGENTS.md not read completely: what
        is missing although the user may expect it.
        """
        statuses = self.mcp.statuses if self.mcp else ()
        return (
            *(f"{one.path}: {one.note}" for one in self.instructions if one.note),
            *(trouble for one in statuses for trouble in _trouble(one)),
        )

    @property
    def jobs(self) -> tuple[JobStatus, ...]:
        """The background commands, including those that have ended."""
        return self.workspace.jobs.statuses

    @property
    def todo(self) -> tuple[TodoItem, ...]:
        """The model's list of steps."""
        tool = self._own[Todo.name]
        return tool.items if isinstance(tool, Todo) else ()

    @property
    def all(self) -> Mapping[str, RunnableTool]:
        """All tools."""
        return {**self._own, **self._served()}

    def _served(self) -> Mapping[str, RunnableTool]:
        """The servers' tools."""
        if not (self.mcp and self.is_started):
            return {}
        served = {**self.mcp.tools, **self.mcp.resource_tools}
        return {
            name: ToolAround(tool, self._fitted)
            for name, tool in from_here(served, self._home).items()
        }

    async def _fitted(self, work: Work, context: ToolContext) -> Outcome:
        """What a server's tool returns; if that is long, it is put aside like a command's."""
        outcome = await work(context)
        most = room(context.tokens, MOST)
        return outcome._replace(text=fitted(outcome.text, most, self.workspace.put_aside))

    def offered(self, taught: Collection[str] | None = None) -> Mapping[str, RunnableTool]:
        """The tools offered to the model now; in read-only mode, only those that change nothing.

        A model `taught` only a few gets no others, unless they are requested by name. A server may
        withdraw tools: then there are fewer, and the turn continues. If servers have many, the
        model searches for those it needs.
        """
        chosen = choose_tools(self.wanted, self.all, may_miss=True, taught=taught)
        if self.gate.mode == "read-only":
            looking = {name: tool for name, tool in chosen.items() if not tool.changes}
            chosen = with_jobs(looking, chosen)
        if not (self.mcp and self.is_started):
            return chosen
        settings = self.snapshot()
        most, tokens = settings["tools.onDemandOver"], settings["tools.onDemandTokens"]
        assert isinstance(most, int)
        assert isinstance(tokens, int)
        return self._demand.narrow(chosen, most, tokens)

    def choose(self, wanted: str) -> None:
        """Offer other tools from now on.

        Raises:
            LocalError: a word matches no tool; nothing has changed.
        """
        choose_tools(wanted, self.all)
        self.wanted, self.unasked = wanted, False

    def system(self, base: str = "", *, today: date, taught: Collection[str] | None = None) -> str:
        """The system prompt of a session that starts today with a model `taught` these tools.

        Raises:
            LocalError: a word of `wanted` matches no tool, now that the servers are up.
        """
        self.choose(self.wanted)
        tools = [tool.definition for tool in self.offered(taught).values()]
        return system_prompt(base or BASE, self.instructions, tools, self.workspace, today)


def _trouble(status: ServerStatus) -> list[str]:
    """What a server lacks although the user may expect it."""
    failed = [f" did not start: {status.reason}"] if status.state == "failed" else []
    notes = [f": {note}" for note in status.notes]
    return [f"the MCP server {status.name}{text}" for text in (*failed, *notes)]


def key_variables(setup: Setup) -> list[str]:
    """The variables that contain keys, and those that config.toml expands: commands run by a model
    do not get them.
    """
    own, serve = setup.config.providers.values(), setup.config.serve or ServeConfig()
    known = setup.catalog().providers.values()
    filled = [
        *(
            text
            for one in own
            for text in (one.base_url or "", *one.headers.values(), *one.query.values())
        ),
        *(
            text
            for one in setup.config.mcp.values()
            for text in (one.url or "", *one.headers.values(), *one.env.values())
        ),
        serve.store or "",
        serve.cache or "",
    ]
    served = [one for model in serve.models.values() for one in model.upstreams]
    return [
        *(v for one in own for v in one.key_env),
        *(one.key_env for one in served if one.key_env),
        *(v for one in known for v in one.env),
        *(name for text in filled for name in referred(text)),
    ]
