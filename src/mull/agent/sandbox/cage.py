"""The sandbox of one working folder: which kind works here, starting commands in it, and what they
tried that it denied.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from mull.agent.sandbox.guard import Checked, Guard, folders_of, make_changeable
from mull.agent.sandbox.order import Grants, Order, Started, Tier, TierName
from mull.agent.sandbox.territory import (
    Bounds,
    Territory,
    holders_of,
    home_secrets,
    programs,
    sockets,
)
from mull.agent.sandbox.tiers import TIERS
from mull.logs import log_warning
from mull.neutral.errors import LocalError
from mull.policy.approval import Rule
from mull.store.approvals import own_rules
from mull.store.paths import config_dir, data_dir

__all__ = ["Cage", "Launch", "Report", "Verdict", "confine", "find_tier"]

_PROBE_SECONDS = 20.0


class Verdict(NamedTuple):
    """The kind of sandbox that works here, or None and why each does not."""

    tier: Tier | None
    reasons: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Why there is none, in one line."""
        return "; ".join(self.reasons)


class Report(NamedTuple):
    """What the launcher told: whether the program left others running, where it wanted to connect
    to, and why it could not be started.
    """

    left: bool = False
    hosts: tuple[str, ...] = ()
    failed: str = ""
    inside: int = 0


class Launch:
    """A command to be started in the sandbox: `program` with `environment` and the descriptors
    `passed`; then `started`, and `ended` when it has.
    """

    def __init__(
        self,
        started: Started,
        order: Order,
        tier: Tier,
        release: Callable[[Path], None] = lambda _: None,
    ) -> None:
        self.program: list[str] = started.program
        self.environment: dict[str, str] = started.environment
        self.passed: tuple[int, ...] = started.passed
        self.order: Order = order
        self.tier: Tier = tier
        self.guard: Guard = Guard(
            order.bounds._replace(hidden=tuple(order.covered)), locks_files=tier.locks_files
        )
        self._release = release
        self._report = started.report
        self._said = b""
        self._is_over = False

    def __del__(self) -> None:  # a command that was interrupted before it started
        with contextlib.suppress(Exception):  # Python itself may be ending
            self.started()
            self.ended()

    def started(self) -> None:
        """It has its descriptors now, or never will."""
        for passed in self.passed:
            os.close(passed)
        self.passed = ()

    def report(self) -> Report:
        """What it told so far."""
        with contextlib.suppress(BlockingIOError):
            while self._report >= 0 and (data := os.read(self._report, 1 << 16)):
                self._said += data
        return _read_report(self._said.decode("utf-8", "replace"))

    def ended(self) -> Report:
        """What it told; nothing more is read."""
        report = self.report()
        if not self._is_over:
            self._is_over = True
            self._release(self.order.layer)
            if self._report >= 0:
                os.close(self._report)
                self._report = -1
        return report


def _read_report(text: str) -> Report:
    hosts: dict[str, None] = {}
    left, failed, inside = False, "", 0
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        match word:
            case "left":
                left = True
            case "failed":
                failed = rest
            case "inside":
                inside = int(rest)
            case "name":
                hosts[rest] = None
            case "address":
                host, _, port = rest.partition(" ")
                hosts[f"{ipaddress.ip_address(bytes.fromhex(host))}:{port}"] = None
            case "resolver" | "socket":
                hosts[""] = None
    if len(hosts) > 1:
        hosts.pop("", None)
    return Report(left, tuple(hosts), failed, inside)


class Cage:
    """Starts commands in the sandbox. `wish` is the setting `tools.sandbox`; `warn` tells the user
    something.
    """

    def __init__(
        self,
        root: Path,
        rules: Sequence[Rule] = (),
        wish: Callable[[], str] = lambda: "auto",
        warn: Callable[[str], None] = log_warning,
        tiers: Sequence[TierName] = tuple(TIERS),
    ) -> None:
        self.territory: Territory = Territory(root, rules)
        self.warn: Callable[[str], None] = warn
        self._wish = wish
        self._tiers = tuple(tiers)
        self._own: Path | None = None
        self._free: list[Path] = []
        self._servers: list[Launch] = []

    @property
    def is_forced(self) -> bool:
        """Whether every command has to run in it."""
        return self._wish() == "on"

    def why_not(self, *, whole: bool = False) -> str:
        """Why commands cannot run in it, or, if it has to be the `whole` one, not in all of it;
        empty if they can.
        """
        try:
            tier, _ = self._order((), {}, Grants(), self.territory.root)
        except LocalError as error:
            return str(error)
        if whole and not tier.locks_files:
            return f"only {tier.words} works here; --auto uses it, `mull doctor` says what it lacks"
        return ""

    def launch(
        self,
        program: Sequence[str],
        environment: Mapping[str, str],
        grants: Grants | None = None,
        folder: str | None = None,
    ) -> Launch:
        """The program as it has to be started to be confined.

        Raises:
            LocalError: it cannot be confined here; says why.
        """
        where = folder or self.territory.root
        tier, order = self._order(program, environment, grants or Grants(), where)
        layer = self._free.pop() if self._free else Path(tempfile.mkdtemp(dir=self._folder()))
        order = order._replace(layer=layer)
        return Launch(tier.start(order), order, tier, self._release)

    def _release(self, layer: Path) -> None:
        """A command has ended. As long as one has not, this keeps the sandbox and its files."""
        self._free.append(layer)

    def _order(
        self, program: Sequence[str], environment: Mapping[str, str], grants: Grants, folder: str
    ) -> tuple[Tier, Order]:
        if self._wish() == "off":
            raise LocalError("tools.sandbox is off")
        verdict = find_tier(self._tiers)
        if verdict.tier is None:
            raise LocalError(f"there is no sandbox here: {verdict.words}")
        bounds = self.territory.look()
        secret = [path for path in self._secret() if path not in grants.reads]
        inside = [path for path in secret if path.startswith(f"{self.territory.root}/")]
        holders = {*bounds.holders, *holders_of(bounds.roots, inside)}
        bounds = bounds._replace(holders=tuple(sorted(holders)))
        apart = (*bounds.roots, *bounds.hidden, *secret)
        needed = programs(environment.get("PATH", ""))
        shown = [path for path in needed if not _meets(os.path.realpath(path), apart)]
        order = Order(
            program,
            environment,
            folder,
            bounds,
            secret,
            self._folder(),
            self._folder(),
            Grants(grants.network, grants.writes, (*grants.reads, *shown)),
            0 if grants.network else self._neighbour(),
        )
        return verdict.tier, order

    def check(self, launch: Launch) -> Checked:
        """What an ended command did to protected files; changed ones are put back."""
        launch.guard.open()
        try:
            now = self.territory.look()
        except LocalError as error:
            self.warn(f"a command may have created protected files, look for them: {error}")
            now = launch.order.bounds
        return launch.guard.check(now, launch.order.grants.writes)

    def end(self, launch: Launch, name: str) -> None:
        """A program that ran for long has ended, and a person worked beside it: what has changed
        since it started need not be its doing, so it is only told.
        """
        launch.ended()
        checked = self.check(launch)
        for path in (*checked.made, *checked.put_back, *checked.lost):
            back = " and is put back" if path in checked.put_back else ""
            self.warn(f"look at {path}: it changed while {name} ran in the sandbox{back}")

    def stays(self, launch: Launch) -> None:
        """A command keeps running in the background: later ones share its network, so that they
        reach its ports.
        """
        self._servers.append(launch)

    def _neighbour(self) -> int:
        """A process of a running background command."""
        for launch in self._servers:
            inside = launch.report().inside
            if inside and not launch.order.grants.network and os.path.exists(f"/proc/{inside}"):
                return inside
        return 0

    def _folder(self) -> Path:
        """For temporary files of commands; deleted when mull ends."""
        if self._own is None:
            self._own = Path(os.path.realpath(tempfile.mkdtemp(prefix="mull-sandbox-")))
            weakref.finalize(self, _delete, self._own)
        return self._own

    def _secret(self) -> list[str]:
        found = [*home_secrets((config_dir(), data_dir())), *sockets(self.territory.root)]
        root = f"{self.territory.root}/"
        for path in found:
            if root.startswith(f"{path}/"):
                raise LocalError(f"the working folder is in {path}, which is hidden from commands")
        return [path for path in found if not any(path.startswith(f"{o}/") for o in found)]


def confine(
    program: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    grants: Grants | None = None,
) -> tuple[Cage, Launch]:
    """A program that mull itself starts, such as an MCP server, as it has to be started to be
    confined: it may write to the folder, under the user's rules. The cage checks what it did.

    Raises:
        LocalError: it cannot be confined here; says why.
    """
    root = Path(os.path.realpath(folder))
    cage = Cage(root, own_rules(root))
    return cage, cage.launch(program, environment, grants)


def _meets(path: str, others: Sequence[str]) -> bool:
    """Whether it is, is inside or holds one of the others."""
    return any(f"{path}/".startswith(f"{o}/") or o.startswith(f"{path}/") for o in others)


def _delete(folder: Path) -> None:
    """Also what a command made unreadable."""
    make_changeable(folders_of(str(folder)))
    shutil.rmtree(folder, ignore_errors=True)


@lru_cache(8)
def find_tier(names: tuple[TierName, ...] = tuple(TIERS)) -> Verdict:
    """The strongest kind of sandbox that works on this machine; tried once."""
    reasons: list[str] = []
    for tier in (TIERS[name] for name in names if TIERS[name].system == sys.platform):
        why = tier.why_not() or _probe(tier)
        if not why:
            return Verdict(tier, tuple(reasons))
        reasons.append(f"{tier.name}: {why}")
    return Verdict(None, tuple(reasons) or (f"there is none for {sys.platform}",))


def _probe(tier: Tier) -> str:
    """Run nothing in it, to see whether that works."""
    with tempfile.TemporaryDirectory(prefix="mull-probe-") as made:
        folder = os.path.realpath(made)
        own, root = Path(folder) / "own", f"{folder}/root"
        own.mkdir()
        os.mkdir(root)
        order = Order(("/bin/sh", "-c", ":"), os.environ, root, Bounds((root,)), (), own, own)
        launch = Launch(tier.start(order), order, tier)
        try:
            done = subprocess.run(
                launch.program,
                env=launch.environment,
                pass_fds=launch.passed,
                cwd=root,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PROBE_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        finally:
            launch.started()
        failed = launch.ended().failed
    if done.returncode == 0 and not failed:
        return ""
    if "not permitted" in failed or "denied" in failed:
        return "not allowed here"
    return failed or done.stderr.decode("utf-8", "replace").strip() or f"exit {done.returncode}"
