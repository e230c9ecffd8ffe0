"""The kinds of sandbox, strongest first, and what each of them does not cover.

- **namespaces** (`mull.agent.sandbox.namespaces`): made by the launcher, without root (Linux 5.12).
- **bubblewrap**: the same through the program `bwrap`, for systems that let only known programs
  make namespaces.
- **landlock**: no namespaces, as in most containers. The kernel (Linux 6.2) refuses files outside;
  inside the working folder it cannot deny what it allows around it, so protected files are put back
  afterwards.
- **seatbelt**: `sandbox-exec` of macOS. Written from its documentation; not tested.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from mull.agent.sandbox.filter import filter_program
from mull.agent.sandbox.namespaces import start_namespaces, why_no_namespaces
from mull.agent.sandbox.order import (
    EXECUTE,
    INTERNET,
    KEPT_LINKS,
    LIST,
    NETLINK,
    READ,
    REFER,
    UNIX,
    WRITE,
    Order,
    Started,
    Tier,
    TierName,
    environment,
    handed_over,
    is_folder,
    landlock_version,
    launched,
    may_write,
    own_folder,
    scopes,
    why_no_launcher,
    writing_rights,
)
from mull.store.paths import find_program

__all__ = ["TIERS"]


def _caches(folder: str) -> dict[str, str]:
    """Where programs are to keep what they can make again."""
    return {"XDG_CACHE_HOME": folder, "npm_config_cache": f"{folder}/npm"}


# bubblewrap


def _why_no_bubblewrap() -> str:
    if why := why_no_launcher():
        return why
    return "" if find_program("bwrap") else "bubblewrap (bwrap) is not installed"


def _start_bubblewrap(order: Order) -> Started:
    bounds, grants = order.bounds, order.grants
    words = ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-cgroup-try"]
    words += [] if grants.network else ["--unshare-net"]
    words += ["--cap-drop", "ALL", "--die-with-parent"]
    words += ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    words += ["--remount-ro", "/proc"]  # root could change the kernel's settings there
    if is_folder("/run"):
        words += ["--tmpfs", "/run"]
        links = [(os.readlink(at), at) for at in KEPT_LINKS if os.path.islink(at)]
        words += [word for link in links for word in ("--symlink", *link)]
        names = os.path.realpath("/etc/resolv.conf")
        words += ["--ro-bind", names, names] if grants.network and names.startswith("/run/") else []
    for place in ("/tmp", "/var/tmp"):
        if is_folder(place):
            words += ["--bind", own_folder(order, place.replace("/", "")), place]
    fresh = ("/run/", "/tmp/", "/var/tmp/", "/dev/")

    def is_there(path: str) -> bool:
        is_shown = order.is_inside(path) or not path.startswith(fresh)
        return is_shown and os.path.exists(path)

    words += _covers(order, (path for path in order.secret if is_there(path)))
    outside = [path for path in grants.writes if not order.is_inside(path)]
    for path in (*bounds.roots, *outside):
        words += ["--bind", path, path]
    for path in grants.reads:
        words += ["--ro-bind", path, path]
    for path in bounds.holders:
        words += ["--bind-try", path, path]
    for path in order.locked:
        words += ["--ro-bind-try", path, path]
    words += _covers(order, (path for path in order.covered if is_there(path)))
    for path in grants.writes:
        if order.is_inside(path) and path not in bounds.locked:
            words += ["--bind", path, path]
    families = (*UNIX, *INTERNET, *NETLINK)
    code = handed_over(filter_program(os.uname().machine, families, told="nothing"))
    words += ["--seccomp", str(code), "--chdir", order.folder]
    for name, text in environment(order, "/tmp", **_caches("/tmp/cache")).items():
        words += ["--setenv", name, text]
    given = handed_over(b"".join(os.fsencode(word) + b"\0" for word in words))
    program = [find_program("bwrap") or "bwrap", "--args", str(given), "--", *order.program]
    return Started(program, {}, (code, given))


def _covers(order: Order, paths: Iterable[str]) -> list[str]:
    """Options that put something unreadable in the place of each."""
    file, folder = order.own / "no-file", order.own / "no-folder"
    if not folder.exists():
        folder.mkdir(mode=0)
        os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0))
    words: list[str] = []
    for path in paths:
        words += ["--ro-bind", str(folder if os.path.isdir(path) else file), path]
    return words


# Landlock


def _why_no_landlock() -> str:
    if why := why_no_launcher():
        return why
    if landlock_version() >= 3:
        return ""
    return "the kernel's Landlock is too old" if landlock_version() else "there is no Landlock"


def _start_landlock(order: Order) -> Started:
    temporary, cache = own_folder(order, "tmp"), own_folder(order, "cache")
    rights = _reading(order)
    rights += may_write((temporary, cache, "/dev/shm", *order.grants.writes))
    rights += [(_rights_in(root, order), os.fsencode(root)) for root in order.bounds.roots]
    devices = ("null", "zero", "full", "random", "urandom")
    rights += [(WRITE | READ, f"/dev/{name}".encode()) for name in devices]
    rights += [(EXECUTE | READ | LIST, b"/dev/shm"), (LIST, b"/dev")]
    families = (*NETLINK, *(INTERNET if order.grants.network else ()))
    plan = {
        "namespaces": 0,
        "join": 0,
        "maps": {},
        "powers": 0,
        "landlock": ((EXECUTE | READ | LIST | writing_rights(), 0, scopes()), rights),
        "filter": filter_program(os.uname().machine, families, told="sockets"),
        "is_watched": True,
    }
    return launched(order, plan, environment(order, temporary, **_caches(cache)))


def _rights_in(root: str, order: Order) -> int:
    """To write there. If something is hidden in it, nothing may move between folders but where
    reading was allowed too: it would be read there by the next command.
    """
    return writing_rights() & ~REFER if order.covered_in(root) else writing_rights()


def _reading(order: Order) -> list[tuple[int, bytes]]:
    """What may be read: everything but what is hidden.

    Landlock only allows, and a folder with everything below it. So a folder that holds something
    hidden is allowed entry by entry; its list of names is allowed too, as otherwise nothing new
    could be seen in it. Devices are allowed by name: one may be the user's terminal.
    """
    hidden = {"/dev", *order.secret, *order.bounds.hidden}
    above: set[str] = set()
    for path in hidden:
        while (path := os.path.dirname(path)) not in above:
            above.add(path)
    rights: list[tuple[int, bytes]] = []
    for folder in above:
        rights.append((LIST, os.fsencode(folder)))
        try:
            with os.scandir(folder) as listed:
                shown = [one for one in listed if one.path not in (hidden | above)]
        except OSError:
            continue
        for one in shown:
            if not one.is_symlink():  # where it leads is allowed, or not, by itself
                of_folders = LIST | REFER if one.is_dir() else 0
                rights.append((EXECUTE | READ | of_folders, os.fsencode(one.path)))
    return rights


# macOS


def _why_no_seatbelt() -> str:
    return "" if os.path.exists("/usr/bin/sandbox-exec") else "sandbox-exec is missing"


def _start_seatbelt(order: Order) -> Started:
    temporary = os.path.realpath(own_folder(order, "tmp"))
    grants = order.grants

    def rule(what: str, paths: Iterable[str]) -> str:
        escaped = (path.replace("\\", "\\\\").replace('"', '\\"') for path in paths)
        places = " ".join(f'(subpath "{path}")' for path in escaped)
        return f"({what} {places})" if places else ""

    lines = (
        "(version 1)",
        "(allow default)",
        "(deny file-write*)",
        rule("allow file-write*", (*order.bounds.roots, temporary, "/dev")),
        rule("deny file-write*", order.locked),
        rule("allow file-write*", grants.writes),
        rule("deny file-read* file-write*", (*order.secret, *order.bounds.hidden)),
        "" if grants.network else "(deny network*)\n(allow network* (local ip))",
        "(deny process-info* (target others))",
        "(deny signal (target others))",
        '(deny mach-lookup (global-name-prefix "com.apple.security"))',
    )
    profile = "\n".join(filter(None, lines))
    program = ["/usr/bin/sandbox-exec", "-p", profile, *order.program]
    return Started(program, environment(order, temporary, **_caches(f"{temporary}/cache")))


_NOT_YET = (
    "a protected file that is not there yet can be created; mull asks about it when the command "
    "has ended"
)

TIERS: Mapping[TierName, Tier] = {
    tier.name: tier
    for tier in (
        Tier(
            "namespaces",
            "namespaces and seccomp",
            (_NOT_YET,),
            why_no_namespaces,
            start_namespaces,
        ),
        Tier(
            "bubblewrap",
            "bubblewrap and seccomp",
            (
                _NOT_YET,
                "what a command wanted is guessed from its output",
                "commands can write to named pipes (FIFOs) of other programs",
            ),
            _why_no_bubblewrap,
            _start_bubblewrap,
        ),
        Tier(
            "landlock",
            "Landlock and seccomp",
            (
                "protected files in the folder can be changed while a command runs; mull puts them "
                "back when it has ended",
                "commands see the names of hidden files, and other processes' command lines",
                "commands can change mode, owner and times of your files anywhere",
                "not even connections inside the machine are possible",
            ),
            _why_no_landlock,
            _start_landlock,
            locks_files=False,
        ),
        Tier(
            "seatbelt",
            "sandbox-exec",
            ("it has never been tested", _NOT_YET),
            _why_no_seatbelt,
            _start_seatbelt,
            system="darwin",
        ),
    )
}
