"""What a command wanted that the sandbox denied: from what the launcher saw, and from its messages.

Connections are seen. Files are guessed from the messages of a command that failed: a path beside
one of the system's words for "denied" counts only if the sandbox does deny it, and if the user
could do what was denied.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from mull.agent.sandbox.cage import Launch, Report
from mull.agent.sandbox.order import Grants
from mull.agent.tools.shown import shown_name
from mull.neutral.blocks import Value
from mull.neutral.patterns import pattern

__all__ = ["Want", "granting", "is_denial", "wants_of"]

_DENIED = pattern(
    r"read-only file system|permission denied|operation not permitted|device or resource busy"
    r"|\bE(?:ROFS|ACCES|PERM|BUSY)\b",
    re.IGNORECASE,
)
_MISSING = pattern(r"no such file or directory|\bENOENT\b", re.IGNORECASE)
_KEYS = pattern(r"permission denied \(publickey", re.IGNORECASE)
_QUOTED = pattern(r"['\"`‘“]([^'\"`’”]{1,1024})['\"`’”]")
_NAME = r"['\"‘`]?([A-Za-z0-9_][\w-]*(?:\.[\w-]+)*)"
_UNRESOLVED = pattern(
    rf"could not resolve (?:host(?:name)?:? |proxy: ){_NAME}"
    rf"|getaddrinfo (?:EAI_AGAIN|ENOTFOUND) {_NAME}"
    rf"|(?:failed to resolve|unable to resolve host address|temporary failure resolving) {_NAME}"
    rf"|\bhost={_NAME}"
    rf"|lookup {_NAME}(?: on \S+)?: ",
    re.IGNORECASE,
)
_NO_NETWORK = pattern(
    r"network is unreachable|temporary failure in name resolution|name or service not known"
    r"|\bENETUNREACH\b|\bEAI_AGAIN\b",
    re.IGNORECASE,
)
_OWN_PLACES = ("/tmp", "/var/tmp", "/run", "/dev", "/proc", "/sys")
"""Where the sandbox has files of its own."""
_MOST_LINES = 400
_MOST = 5


class Want(Value, frozen=True):
    """Something denied. `what` is a path as it is shown, or hosts; `path` what would have to be
    granted. Without a path, the command would have to run outside the sandbox.
    """

    kind: Literal["write", "read", "network"]
    what: str = ""
    path: str = ""

    @property
    def words(self) -> str:
        """`to write AGENTS.md`, `the network: example.org`."""
        if self.kind == "network":
            return f"the network: {self.what}" if self.what else "the network"
        outside = "" if self.path else ", outside the sandbox"
        return f"to {self.kind} {self.what}{outside}"


def granting(grants: Grants, wants: Iterable[Want]) -> Grants | None:
    """What it had and what it wants; None if that is possible only outside the sandbox."""
    network, writes, reads = grants.network, list(grants.writes), list(grants.reads)
    for want in wants:
        if want.kind == "network":
            network = True
        elif not want.path:
            return None
        else:
            (writes if want.kind == "write" else reads).append(want.path)
    return Grants(network, tuple(dict.fromkeys(writes)), tuple(dict.fromkeys(reads)))


def is_denial(output: str) -> bool:
    """Whether the output of a failed command reads like something was denied."""
    return any(found.search(output) for found in (_DENIED, _NO_NETWORK, _UNRESOLVED))


def wants_of(output: str, report: Report, launch: Launch) -> list[Want]:
    """What a failed command wanted, as far as that can be known."""
    lines = output.splitlines()[-_MOST_LINES:]
    found: dict[str, Want] = {}
    if not launch.order.grants.network:
        found.update((want.words, want) for want in _network(lines, report, launch))
    for line in lines:
        if len(found) >= _MOST:
            break
        if _KEYS.search(line) and (want := _file(str(Path.home() / ".ssh"), launch)):
            found[want.words] = want
        elif word := _DENIED.search(line) or _MISSING.search(line):
            is_missing = not _DENIED.search(line)
            for path in _paths(line, word.start()):
                if want := _file(path, launch, is_missing=is_missing):
                    found[want.words] = want
                    break
    return list(found.values())


# The network


def _network(lines: Sequence[str], report: Report, launch: Launch) -> Iterator[Want]:
    names = [host for host in report.hosts if host and not _is_address(host)]
    hosts = names or [host for host in report.hosts if host and _is_served(host)]
    is_sure = bool(hosts)
    if not hosts:
        found = (_UNRESOLVED.search(line) for line in lines)
        hosts = [next(filter(None, one.groups())) for one in found if one]
    if hosts:
        yield Want("network", ", ".join(dict.fromkeys(hosts[:3])))
    elif ("" in report.hosts and not is_sure) or (
        launch.tier.name == "bubblewrap" and any(_NO_NETWORK.search(line) for line in lines)
    ):
        yield Want("network")


def _is_address(host: str) -> bool:
    return host[-1:].isdigit() and ":" in host


def _is_served(host: str) -> bool:
    """Whether the address is elsewhere, or something on this machine listens there: a test may
    well connect to a port that nobody has.
    """
    address, _, port = host.rpartition(":")
    if not (address.startswith("127.") or address in ("::1", "::ffff:127.0.0.1")):
        return True
    wanted = f":{int(port):04X}"
    for kind in ("tcp", "tcp6"):
        try:
            with open(f"/proc/net/{kind}") as file:
                fields = (line.split() for line in file)
                if any(f[1].endswith(wanted) and f[3] == "0A" for f in fields if len(f) > 3):
                    return True
        except OSError:
            continue
    return False


# Files


def _paths(line: str, at: int) -> Iterator[str]:
    """What may be a path in a message: quoted, between colons, or a word; what is right before the
    reason comes first.
    """
    yield from _QUOTED.findall(line)
    for text in (line[:at], line[at:]):
        for part in reversed(re.split(r": |:$", text)):
            yield part.strip()
            if " " in part.strip():
                yield from reversed(part.split())


def _file(path: str, launch: Launch, *, is_missing: bool = False) -> Want | None:
    """What is wanted of the path, if the sandbox is what denies it."""
    if not path or "\0" in path or len(path) > 4096:
        return None
    order = launch.order
    real = os.path.realpath(os.path.join(order.folder, os.path.expanduser(path)))
    if _within(real, order.bounds.hidden):
        return None  # rules deny it, whoever asks
    if is_missing:  # it has its own temporary files
        is_hidden = real.startswith(("/tmp/", "/var/tmp/")) and os.path.lexists(real)
        is_inside = _within(real, (*order.bounds.roots, str(order.own)))
        return Want("read", shown_name(real), real) if is_hidden and not is_inside else None
    if secret := _within(real, order.secret):
        return Want("read", _shown(secret, order.folder), secret)
    if locked := _within(real, order.bounds.locked):
        path = real if os.path.exists(real) else locked
        return Want("write", _granted(real, path, order.folder), path)
    if _within(real, (*order.bounds.roots, str(order.own), *_OWN_PLACES)):
        return None
    return _outside(real, order.folder)


def _outside(real: str, folder: str) -> Want | None:
    """A path that only the sandbox keeps the user from writing."""
    if os.path.isfile(real):
        above = real
    else:
        above = real if os.path.isdir(real) else os.path.dirname(real)
        while not os.path.isdir(above):
            above = os.path.dirname(above)
    if not (real.startswith("/") and os.access(above, os.W_OK)) or real == "/":
        return None
    is_wide = folder.startswith(f"{above}/") or above == str(Path.home()) or above.count("/") < 2
    if is_wide:
        return Want("write", _shown(real, folder))
    return Want("write", _granted(real, above, folder), above)


def _granted(path: str, granted: str, folder: str) -> str:
    """The path, and what has to be granted for it if that is more."""
    more = "" if path == granted else f" (all of {_shown(granted, folder)})"
    return _shown(path, folder) + more


def _within(path: str, places: Iterable[str]) -> str:
    """The place that the path is, or is in."""
    return next((place for place in places if path == place or path.startswith(f"{place}/")), "")


def _shown(path: str, folder: str) -> str:
    home = str(Path.home())
    if path.startswith(f"{folder}/"):
        return shown_name(path[len(folder) + 1 :])
    return shown_name(f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path)
