"""What all kinds of sandbox have in common: a program to be confined, how it is started, and what
the launcher and Landlock need.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from mull.agent.sandbox.filter import MACHINES
from mull.agent.sandbox.territory import Bounds
from mull.neutral.blocks import Value

__all__ = [
    "INTERNET",
    "KEPT_LINKS",
    "NETLINK",
    "REFER",
    "UNIX",
    "Grants",
    "Order",
    "Started",
    "Tier",
    "TierName",
    "environment",
    "handed_over",
    "is_folder",
    "landlock_version",
    "launched",
    "writing_rights",
]

TierName: TypeAlias = Literal["namespaces", "bubblewrap", "landlock", "seatbelt"]

UNIX, INTERNET = (1,), (2, 10)
NETLINK = (16,)
"""What libraries list interfaces with."""
KEPT_LINKS = ("/run/current-system", "/run/opengl-driver", "/run/booted-system")
"""Links without which NixOS has no programs."""
_BOOT = (
    "import marshal,sys\n"
    "with open(int(sys.argv[1]),'rb') as file:code,plan=marshal.load(file)\n"
    "exec(code)\n"
    "run(plan)"
)


class Grants(Value, frozen=True):
    """What a command gets beyond the usual: the network, paths that it may write to, and paths that
    it may see although they are hidden.
    """

    network: bool = False
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()


class Order(NamedTuple):
    """A program to be run."""

    program: Sequence[str]
    """The path of the program, and its arguments."""
    environment: Mapping[str, str]
    """All its environment variables."""
    folder: str
    """The folder it starts in."""
    bounds: Bounds
    """What it may write to, and what is protected or hidden there."""
    secret: Sequence[str]
    """Paths hidden outside the working folder."""
    own: Path
    """A folder for the sandbox's temporary files."""
    layer: Path
    """A folder for changed caches, which no other running command has."""
    grants: Grants = Grants()
    """What the user allowed beyond the usual."""
    join: int = 0
    """The id of a process whose network it shares; 0 for none."""

    def is_inside(self, path: str) -> bool:
        """Whether the path is below what may be written."""
        return path.startswith(tuple(f"{root}/" for root in self.bounds.roots))

    @property
    def locked(self) -> list[str]:
        """What is protected and not granted."""
        return [path for path in self.bounds.locked if path not in self.grants.writes]

    @property
    def covered(self) -> list[str]:
        """What is hidden in what may be written, and what rules hide outside."""
        return [*self.bounds.hidden, *filter(self.is_inside, self.secret)]

    def covered_in(self, folder: str) -> bool:
        """Whether something is hidden in this folder."""
        return any(path.startswith(f"{folder}/") for path in self.covered)


class Started(NamedTuple):
    """What to start instead, and with what environment; `passed` are descriptors for it, `report`
    is where it tells us.
    """

    program: list[str]
    environment: dict[str, str]
    passed: tuple[int, ...] = ()
    report: int = -1


class Tier(NamedTuple):
    """A way to confine. `why_not` says why it cannot work here, without trying. `gaps` is what it
    does not cover, beside what none of them covers.
    """

    name: TierName
    words: str
    gaps: tuple[str, ...]
    why_not: Callable[[], str]
    start: Callable[[Order], Started]
    system: str = "linux"
    locks_files: bool = True
    """Whether protected files cannot be changed at all, rather than are put back."""


_LEADING = """
    DBUS_SESSION_BUS_ADDRESS DBUS_SYSTEM_BUS_ADDRESS SSH_AUTH_SOCK SSH_AGENT_PID GPG_AGENT_INFO
    XDG_RUNTIME_DIR DISPLAY WAYLAND_DISPLAY XAUTHORITY SESSION_MANAGER TMUX TMUX_PANE STY WINDOW
    DOCKER_HOST CONTAINER_HOST WSL_INTEROP KITTY_LISTEN_ON GNOME_KEYRING_CONTROL NVIM PULSE_SERVER
    LISTEN_FDS LISTEN_PID NOTIFY_SOCKET SWAYSOCK I3SOCK
""".split()


def environment(order: Order, temporary: str, **more: str) -> dict[str, str]:
    """The program's variables, without those that lead to other programs."""
    left = {
        name: text
        for name, text in order.environment.items()
        if name not in _LEADING and not name.startswith(("VSCODE_", "CURSOR_"))
    }
    calm = {"LC_MESSAGES": "C", "LANGUAGE": "C"}  # what was refused is read from messages
    return {**left, **calm, "TMPDIR": temporary, "TMP": temporary, "TEMP": temporary, **more}


def own_folder(order: Order, name: str) -> str:
    """A folder among the sandbox's temporary files."""
    folder = order.own / name
    folder.mkdir(mode=0o700, exist_ok=True)
    return str(folder)


def is_folder(path: str) -> bool:
    """Whether it is one, and no link."""
    return os.path.isdir(path) and not os.path.islink(path)


# The launcher


def _compiled() -> Any:
    source = Path(__file__).with_name("launcher.py")
    return compile(source.read_bytes(), source.name, "exec", dont_inherit=True, optimize=2)


_LAUNCHER = _compiled()
"""Read before a model can change anything, and not again."""


def why_no_launcher() -> str:
    """Why there is no launcher for this machine; empty if there is one."""
    if os.uname().machine not in MACHINES:
        return f"the system calls of {os.uname().machine} are not known to mull"
    return "" if _python() else "Python does not know its own path"


def launched(order: Order, plan: Mapping[str, Any], variables: Mapping[str, str]) -> Started:
    """The launcher with this plan.

    It runs outside the sandbox, so it gets none of the variables: one of them could name a folder
    of libraries that a model can write to.
    """
    told, report = os.pipe()
    common = {
        "report": report,
        "program": [os.fsencode(word) for word in order.program],
        "environment": {os.fsencode(k): os.fsencode(v) for k, v in variables.items()},
        "folder": os.fsencode(order.folder),
    }
    given = handed_over(marshal.dumps((_LAUNCHER, {**common, **plan})))
    os.set_blocking(told, False)
    program = [_python(), "-I", "-S", "-c", _BOOT, str(given)]
    return Started(program, {}, (given, report), told)


def _python() -> str:
    """The interpreter itself, not the link in a virtual environment."""
    return getattr(sys, "_base_executable", "") or sys.executable


def handed_over(data: bytes) -> int:
    """A descriptor to read this from."""
    given = os.memfd_create("mull")
    with os.fdopen(os.dup(given), "wb") as file:
        file.write(data)
    os.lseek(given, 0, os.SEEK_SET)
    return given


# Landlock


@lru_cache(1)
def landlock_version() -> int:
    """The version of the kernel's Landlock; 0 if there is none."""
    libc = ctypes.CDLL(None, use_errno=True)
    found: int = libc.syscall(ctypes.c_long(444), None, ctypes.c_long(0), ctypes.c_long(1))
    return max(found, 0)


EXECUTE, WRITE, READ, LIST = 1, 2, 4, 8
_CHANGE = WRITE | sum(1 << bit for bit in range(4, 13))
REFER, TRUNCATE = 1 << 13, 1 << 14


def writing_rights() -> int:
    """All rights to change something that this version knows."""
    version = landlock_version()
    return _CHANGE | (REFER if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0)


def may_write(paths: Iterable[str]) -> list[tuple[int, bytes]]:
    """The right to change these paths, and what is below them."""
    of_files = writing_rights() & (WRITE | TRUNCATE)
    return [
        (of_files if os.path.isfile(path) else writing_rights(), os.fsencode(path))
        for path in paths
    ]


def scopes() -> int:
    """What keeps signals and abstract sockets inside."""
    return 3 if landlock_version() >= 6 else 0
