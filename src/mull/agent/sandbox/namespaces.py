"""The strongest sandbox: a command with a file system, processes and a network of its own.

The launcher makes them without root, in a user namespace. The whole file system becomes read-only;
then what may be written is put back in its place, and what may not be seen is covered. Landlock,
where the kernel has it, guards the files once more.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from mull.agent.sandbox.filter import filter_program
from mull.agent.sandbox.order import (
    INTERNET,
    KEPT_LINKS,
    NETLINK,
    TRUNCATE,
    UNIX,
    WRITE,
    Order,
    Started,
    environment,
    is_folder,
    landlock_version,
    launched,
    may_write,
    own_folder,
    scopes,
    why_no_launcher,
    writing_rights,
)

__all__ = ["start_namespaces", "why_no_namespaces"]

_NEW_USER, _NEW_FILES, _NEW_PROCESSES, _NEW_NETWORK, _NEW_IPC = (
    0x10000000, 0x00020000, 0x20000000, 0x40000000, 0x08000000,
)  # fmt: skip
_ROOTS_POWERS = sum(1 << power for power in (0, 3, 4, 5, 6, 7, 8))
"""What root keeps inside: owners and modes of files, signals, changing users. Not reading what
others may not read: hidden files would look empty.
"""
_GRADLE = ("gradlew", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts")
_CACHES: Mapping[str, Sequence[str]] = {
    ".cache": (),
    ".gradle": _GRADLE,
    ".m2": ("pom.xml", "mvnw", *_GRADLE),
}
"""In the home directory: programs fail if they cannot write there. What a command changes there is
stored apart, for the next ones; each takes some milliseconds, so some only where one of these files
is.
"""


def why_no_namespaces() -> str:
    """Why they cannot be made; empty if that has to be tried."""
    if why := why_no_launcher():
        return why
    if _number("/proc/sys/user/max_user_namespaces") == 0:
        return "user namespaces are switched off (user.max_user_namespaces)"
    if _number("/proc/sys/kernel/unprivileged_userns_clone") == 0 and os.geteuid():
        return "user namespaces are for root only (kernel.unprivileged_userns_clone)"
    if _number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1 and os.geteuid():
        return "AppArmor keeps user namespaces from unknown programs: install bubblewrap"
    return ""


def _number(path: str) -> int | None:
    try:
        with open(path) as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def start_namespaces(order: Order) -> Started:
    """The program in namespaces of its own."""
    network = order.grants.network
    kinds = _NEW_FILES | _NEW_PROCESSES | _NEW_IPC
    if not order.join:
        kinds |= _NEW_USER | (0 if network else _NEW_NETWORK)
    files = _files(order)
    rights = [(writing_rights() & (WRITE | TRUNCATE), b"/dev"), *may_write(["/dev/shm"])]
    rights += may_write(files.writable)
    plan = {
        "namespaces": kinds,
        "join": order.join,
        "maps": {} if order.join else _maps(),
        "files": files.steps,
        "has_loopback": not network and not order.join,
        "powers": _ROOTS_POWERS if os.geteuid() == 0 else 0,
        "landlock": ((writing_rights(), 0, scopes()), rights) if landlock_version() else None,
        "filter": _filter(network),
        "is_watched": not network,
    }
    return launched(order, plan, environment(order, "/tmp"))


@lru_cache(2)
def _filter(network: bool) -> bytes:
    told: Literal["nothing", "connects"] = "nothing" if network else "connects"
    return filter_program(os.uname().machine, (*UNIX, *INTERNET, *NETLINK), told=told)


def _maps() -> dict[str, bytes]:
    """Everybody is who they are outside; only root may map others than itself."""
    if os.geteuid() == 0:
        return {name: _same_map(name) for name in ("uid_map", "gid_map")}
    user, group = os.geteuid(), os.getegid()
    return {
        "setgroups": b"deny",
        "uid_map": f"{user} {user} 1\n".encode(),
        "gid_map": f"{group} {group} 1\n".encode(),
    }


def _same_map(name: str) -> bytes:
    with open(f"/proc/self/{name}") as file:
        lines = [line.split() for line in file]
    return "".join(f"{first} {first} {count}\n" for first, _, count in lines).encode()


def _files(order: Order) -> _Files:
    files = _Files()
    for place in ("/tmp", "/var/tmp"):
        if is_folder(place):
            files.keep(own_folder(order, place.replace("/", "")), place)
    if is_folder("/run"):  # sockets of other programs: D-Bus, agents, Docker
        files.empty("/run")
        links = ((at, os.readlink(at)) for at in KEPT_LINKS if os.path.islink(at))
        files.then += [("link", os.fsencode(to), os.fsencode(at)) for at, to in links]
        names = os.path.realpath("/etc/resolv.conf")
        if order.grants.network and names.startswith("/run/"):
            files.keep(names, names)
            files.lock(names)
    for number, cache in enumerate(_caches(order)):
        upper = order.layer / str(number)
        upper.mkdir(mode=0o700, parents=True, exist_ok=True)
        files.over(cache, str(upper), tempfile.mkdtemp(dir=order.layer))
    outside = (path for path in order.secret if not order.is_inside(path))
    files.hide(path for path in outside if not files.is_fresh(path))
    for root in order.bounds.roots:
        files.keep(root, root)
    for path in order.grants.writes:
        if not order.is_inside(path):
            files.keep(path, path)
    for path in order.grants.reads:
        if files.is_fresh(path):
            files.keep(path, path)
            files.lock(path)
    files.confine(order)
    return files


def _caches(order: Order) -> list[str]:
    """Those that exist, and that the working folder is neither in nor around."""
    taken = [f"{path}/" for path in (*order.bounds.roots, *order.grants.writes)]
    there = os.listdir(order.folder)
    found = [
        os.path.realpath(Path.home() / name)
        for name, files in _CACHES.items()
        if not files or any(file in there for file in files)
    ]
    return [
        path
        for path in found
        if os.path.isdir(path)
        and os.access(path, os.W_OK)
        and not any(f"{path}/".startswith(one) or one.startswith(f"{path}/") for one in taken)
    ]


class _Files:
    """The steps in which the launcher makes the file system. `now` are those before everything
    becomes read-only, `then` those after.
    """

    def __init__(self) -> None:
        self.now: list[tuple[Any, ...]] = []
        self.then: list[tuple[Any, ...]] = []
        self.writable: list[str] = []
        self._fresh: list[str] = ["/dev/"]
        self._keys = 0

    @property
    def steps(self) -> list[tuple[Any, ...]]:
        """All of them. In a container parts of /proc are covered, and then there is no other: that
        is safe only with Landlock, which keeps processes apart too.
        """
        first = (("lock",), ("proc", landlock_version() > 0), ("dev",))
        return [*self.now, *first, *self.then]

    def keep(self, source: str, target: str) -> None:
        """What is at `source` stays writable, at `target`."""
        key = self._key()
        self.now.append(("keep", key, os.fsencode(source)))
        kind = "folder" if os.path.isdir(source) else "file"
        made = kind if self.is_fresh(target) else ""
        self.then.append(("put", key, os.fsencode(target), made))
        self.writable.append(target)
        if source != target:
            self._fresh.append(f"{target}/")

    def _key(self) -> str:
        self._keys += 1
        return str(self._keys)

    def empty(self, path: str) -> None:
        """A new file system is there."""
        self.then.append(("empty", os.fsencode(path), 0o755))
        self.writable.append(path)
        self._fresh.append(f"{path}/")

    def over(self, path: str, upper: str, work: str) -> None:
        """What is there can be changed, but the changes are stored elsewhere."""
        self.now.append(("over", *(os.fsencode(one) for one in (path, upper, work))))
        self.keep(path, path)

    def lock(self, path: str) -> None:
        """What is there cannot be changed, moved or removed."""
        self.then.append(("same", os.fsencode(path), True))

    def hide(self, paths: Iterable[str]) -> None:
        """Nobody sees what is there."""
        self.then += [("hide", os.fsencode(path)) for path in paths]

    def is_fresh(self, path: str) -> bool:
        """Whether it is in one of the new file systems, where nothing is."""
        return path.startswith(tuple(self._fresh))

    def confine(self, order: Order) -> None:
        """Lock and hide inside the roots, except what is granted."""
        granted = [path for path in order.grants.writes if order.is_inside(path)]
        puts: list[tuple[Any, ...]] = []
        for path in granted:
            if path not in order.bounds.locked:  # then it is in something that is
                key = self._key()
                self.then.append(("keep", key, os.fsencode(path)))
                puts.append(("put", key, os.fsencode(path), ""))
        self.then += [("same", os.fsencode(path), False) for path in order.bounds.holders]
        for path in order.locked:
            self.lock(path)
        self.hide(order.covered)
        self.then += puts
