"""Which files of the working folder a command in the sandbox may not change, or not read.

Protected files may be read but not changed: those that decide what runs later, or what a model is
told, and those that rules deny to `edit` and `write`. What rules deny to `read` is hidden. Both are
looked for in the whole folder before every command; a folder that has not changed since is not
read again.

Two things differ from the file tools. Of `.git` only what makes git execute something is protected:
commits must be possible. And nothing is protected inside folders that programs fill (`.venv`,
`node_modules`), nor in a few that build tools keep in a project (`.gradle`).
"""

from __future__ import annotations

import os
import pwd
import re
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from mull.agent.sandbox import own_code
from mull.agent.tools.walk import PASSED_OVER
from mull.neutral.errors import LocalError
from mull.neutral.patterns import pattern
from mull.policy.approval import Asked, Rule, Subject, decide
from mull.policy.globs import fixed_start, has_wildcard, text_matches
from mull.policy.protected import is_protected

__all__ = ["Bounds", "Territory", "git_parts", "holders_of", "home_secrets", "programs", "sockets"]

MOST_FOLDERS = 50_000
MOST_FOUND = 1_000
MOST_LINKED = 10_000
_FILLED = frozenset(PASSED_OVER) - {".git"}
_VIRTUAL = frozenset(
    "pyvenv.cfg bin Scripts include Include lib lib64 Lib man share etc src"
    " .gitignore .lock CACHEDIR.TAG".split()
)
"""What is in a virtual environment. A folder with anything else is none, whatever says so."""
_BUILD = frozenset({".gradle", ".yarn", ".cargo", ".m2", ".gem", ".direnv", ".ipython", ".jupyter"})
_GIT = ("config", "config.worktree", "hooks", "commondir")
"""What makes git execute something, or look for its configuration elsewhere."""
_PATHS = pattern(
    r'^\s*(?:\[.*\]\s*)?(hookspath|path)\s*=\s*"?([^"\n]*[^"\s])', re.IGNORECASE | re.MULTILINE
)
_LARGEST_CONFIG = 1 << 16
_ANYTHING = "\x01"
"""A name that only a pattern for everything matches."""
_RECENT = 2_000_000_000
"""Nanoseconds: a folder that changed this shortly before it was read may change again unnoticed."""


_is_protected = lru_cache(1 << 15)(is_protected)


class Bounds(NamedTuple):
    """Absolute paths. Below `roots` a command may write, except to what is `locked`; what is
    `hidden` cannot even be read. `holders` are the folders between a root and those, the outer
    ones first: if they could be moved, so could what they hold. `links` are protected symbolic
    links, which cannot be locked, and protected files that have other names too.
    """

    roots: tuple[str, ...]
    locked: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    links: tuple[str, ...] = ()

    @property
    def protected(self) -> frozenset[str]:
        """Everything that may not be changed."""
        return frozenset((*self.locked, *self.links))


class _Seen(NamedTuple):
    """What was found in one folder when it was last read."""

    changed: int
    folders: tuple[tuple[str, bool], ...]
    locked: tuple[str, ...]
    hidden: tuple[str, ...]
    links: tuple[str, ...]
    repositories: tuple[str, ...]
    is_sure: bool


class Territory:
    """A working folder and the rules for it."""

    def __init__(self, root: Path, rules: Sequence[Rule] = ()) -> None:
        self.root: str = str(root)
        denied = [rule for rule in rules if rule.effect == "deny" and rule.argument is not None]
        self._unread = _Denied("read", denied, self.root)
        self._far = [rule for rule in denied if text_matches(rule.tool, "read")]
        self._unwritten = [_Denied(tool, denied, self.root) for tool in ("edit", "write")]
        self._cache: dict[tuple[str, bool], _Seen] = {}
        self._known_hidden: set[int] = set()

    def look(self) -> Bounds:
        """What is there now.

        Raises:
            LocalError: it is too much to look at before every command.
        """
        locked, hidden, links = list[str](), list[str](), list[str]()
        waiting, cache = [("", False)], dict[tuple[str, bool], _Seen]()
        while waiting:
            key = waiting.pop()
            seen = cache[key] = self._folder(*key)
            locked += seen.locked
            hidden += seen.hidden
            links += seen.links
            locked += (part for path in seen.repositories for part in git_parts(path))
            waiting += seen.folders
            is_much = len(cache) > MOST_FOLDERS or len(locked) + len(hidden) > MOST_FOUND
            if is_much or self.root == "/":
                raise LocalError(
                    f"{self.root} has too many folders or protected files for the sandbox: "
                    "start mull in a smaller folder"
                )
        self._cache = cache
        roots = (self.root, *_git_home(self.root))
        locked += [part for home in roots[1:] for part in git_parts(home)]
        links += filter(os.path.islink, locked)  # what git has may be a link too
        locked = [path for path in locked if path not in links]
        links += [path for path, _ in _linked(locked)]
        hidden += self._other_names(hidden)
        code = own_code(Path(self.root))
        locked = [path for path in locked if not path.startswith(tuple(f"{c}/" for c in code))]
        locked += code
        inside = tuple(f"{root}/" for root in roots)
        targets = {os.path.realpath(link) for link in links}
        locked += sorted(path for path in targets - {*locked} if path.startswith(inside))
        holders = holders_of(roots, locked + hidden)
        hidden += self._outside()
        return Bounds(roots, *map(tuple, (locked, hidden, holders, links)))

    def _other_names(self, hidden: Sequence[str]) -> list[str]:
        """What is hidden under another name: a hard link."""
        numbers = {number for _, number in _linked(hidden)}
        if not numbers:
            return []
        known = {*hidden}
        found: list[str] = []
        waiting, seen = [self.root], 0
        while waiting:
            seen += 1
            if seen > MOST_FOLDERS:
                raise LocalError(f"{self.root} has too many folders to look for hard links")
            with suppress(OSError), os.scandir(waiting.pop()) as listed:
                entries = [one for one in listed if one.path not in known]
                found += [one.path for one in entries if one.inode() in numbers]
                waiting += [one.path for one in entries if one.is_dir(follow_symlinks=False)]
        return found

    def _outside(self) -> list[str]:
        """What rules deny by an absolute path, outside the folder. Other patterns are about names
        in the folder.
        """
        found: set[str] = set()
        for rule in self._far:
            pattern = rule.argument or ""
            if pattern.startswith("/"):
                parts = [part for part in pattern.split("/") if part]
                while parts[-1:] == ["**"]:
                    parts.pop()
                found.update(map(os.path.realpath, _matching("/", parts, [MOST_FOLDERS])))
        for path in found:
            if f"{self.root}/".startswith(f"{path}/"):
                raise LocalError(f"the working folder is in {path}, which rules deny to read")
        return sorted(path for path in found if not path.startswith(f"{self.root}/"))

    def _folder(self, folder: str, is_filled: bool) -> _Seen:
        """One folder; `folder` ends with a slash, or is empty."""
        path = os.path.join(self.root, folder)
        try:
            changed = os.stat(path).st_ctime_ns  # a command can set the other times
            known = self._cache.get((folder, is_filled))
            if known is not None and known.is_sure and known.changed == changed:
                return known
            with os.scandir(path) as listed:
                entries = [
                    _Entry(
                        one.name, one.is_dir(follow_symlinks=False), one.is_symlink(), one.inode()
                    )
                    for one in listed
                ]
        except PermissionError:  # a command may make it readable again
            if not folder:
                raise LocalError(f"{self.root} cannot be read") from None
            unknown = () if is_filled else (path.rstrip("/"),)
            return _Seen(0, (), unknown, (), (), (), is_sure=False)
        except OSError:  # it is gone
            return _Seen(0, (), (), (), (), (), is_sure=False)
        names = {one.name for one in entries}
        is_filled = is_filled or ("pyvenv.cfg" in names and names <= _VIRTUAL)
        found = _Found()
        is_bare = "HEAD" in names and ({"objects", "refs"} <= names or "commondir" in names)
        if is_bare and not is_filled:  # git takes it for a repository, also without .git
            found.repositories.append(path)
        for one in entries:
            self._entry(folder + one.name, one, is_filled, found)
        is_sure = time.time_ns() - changed > _RECENT
        return _Seen(
            changed,
            tuple(found.folders),
            tuple(found.locked),
            tuple(found.hidden),
            tuple(found.links),
            tuple(found.repositories),
            is_sure,
        )

    def _entry(self, path: str, entry: _Entry, is_filled: bool, found: _Found) -> None:
        full, (name, is_folder, is_link, number) = os.path.join(self.root, path), entry
        if self._unread.covers(path, is_folder) or number in self._known_hidden:
            self._known_hidden.add(number)  # it is what it is, whatever it is called later
            found.hidden.append(os.path.realpath(full) if is_link else full)
            if not is_filled and _is_protected(name):  # one that a command makes is asked about too
                (found.links if is_link else found.locked).append(full)
            return
        if is_filled:
            is_locked = False
        elif name.lower() == ".git" and is_folder:
            found.repositories.append(full)
            return
        else:
            is_locked = name not in _BUILD and _is_protected(name)
        if is_locked or any(denied.covers(path, is_folder) for denied in self._unwritten):
            (found.links if is_link else found.locked).append(full)
            is_filled = True  # only what must not be read matters inside
        is_filled = is_filled or name in _FILLED
        if is_folder and (not is_filled or self._unread.has_rules):
            found.folders.append((f"{path}/", is_filled))


def _linked(paths: Sequence[str]) -> Iterator[tuple[str, int]]:
    """The files among these, and in these folders, that have more than one name; with the number
    that tells files apart.
    """
    looked = 0
    for top in paths:
        inside = (os.path.join(above, name) for above, _, names in os.walk(top) for name in names)
        for path in (top, *islice(inside, MOST_LINKED - looked)):
            looked += 1
            with suppress(OSError):
                found = os.lstat(path)
                if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
                    yield path, found.st_ino


def _matching(folder: str, parts: Sequence[str], left: list[int]) -> Iterator[str]:
    """The paths below the folder that fit, name by name; `left` is how many may be looked at.

    Raises:
        LocalError: there are more.
    """
    if not parts:
        yield folder
        return
    first, rest = parts[0], parts[1:]
    if not has_wildcard(first):
        path = os.path.join(folder, first)
        if os.path.lexists(path):
            yield from _matching(path, rest, left)
        return
    left[0] -= 1
    if left[0] < 0:
        raise LocalError("a rule with an absolute path denies what is in too many folders")
    if first == "**":
        yield from _matching(folder, rest, left)
    with suppress(OSError), os.scandir(folder) as listed:
        entries = [(one.path, one.name, one.is_dir(follow_symlinks=False)) for one in listed]
        for path, name, is_folder in entries:
            if first == "**":
                if is_folder:
                    yield from _matching(path, parts, left)
            elif text_matches(first, name, ignore_case=True):
                yield from _matching(path, rest, left)


def holders_of(roots: Sequence[str], paths: Sequence[str]) -> list[str]:
    """The folders between the roots and these paths, the outer ones first."""
    found: set[str] = set()
    inside = tuple(f"{root}/" for root in roots)
    for path in paths:
        above = os.path.dirname(path)
        while above.startswith(inside) and above not in (*found, *roots):
            found.add(above)
            above = os.path.dirname(above)
    return sorted(found)


class _Entry(NamedTuple):
    name: str
    is_folder: bool
    is_link: bool
    number: int


class _Found:
    def __init__(self) -> None:
        self.folders: list[tuple[str, bool]] = []
        self.locked: list[str] = []
        self.hidden: list[str] = []
        self.links: list[str] = []
        self.repositories: list[str] = []


class _Denied:
    """What rules deny to a tool. A pattern without a slash is about names, and names recur."""

    def __init__(self, tool: str, rules: Sequence[Rule], root: str) -> None:
        self._tool = tool
        self._root = root
        about = [rule for rule in rules if text_matches(rule.tool, tool)]
        self._by_name = tuple(rule for rule in about if "/" not in (rule.argument or ""))
        self._by_path = tuple(rule for rule in about if "/" in (rule.argument or ""))
        self._names = lru_cache(1 << 15)(self._covers_name)
        self.has_rules: bool = bool(about)

    def covers(self, path: str, is_folder: bool = False) -> bool:
        """Whether they deny this path, which is relative to the root if it is inside; of a folder,
        whether they deny whatever is in it.
        """
        if self._by_name and self._names(path.rpartition("/")[2]):
            return True
        near = tuple(rule for rule in self._by_path if _may_fit(rule, path))
        if not near:
            return False
        return self._is_refused(near, path) or (
            is_folder and self._is_refused(near, f"{path}/{_ANYTHING}")
        )

    def _covers_name(self, name: str) -> bool:
        return self._is_refused(self._by_name, name)

    def _is_refused(self, rules: Sequence[Rule], path: str) -> bool:
        subject = Subject("path", path, os.path.join(self._root, path))
        return decide(Asked(self._tool, False, subject), "ask", rules).verdict == "refuse"


def _may_fit(rule: Rule, path: str) -> bool:
    """Whether the fixed start of the rule's pattern leads to this path, or may be absolute."""
    start = fixed_start(rule.argument or "").removeprefix("./").lower()
    return start.startswith("/") or start.startswith(path.lower()) or path.lower().startswith(start)


def _git_home(root: str) -> Iterator[str]:
    """Where a linked working tree (`git worktree`) keeps its commits, if that place names this
    folder too: a file that came with a download may name any.
    """
    try:
        with open(os.path.join(root, ".git"), encoding="utf-8", errors="surrogateescape") as file:
            word, _, path = file.read(4096).strip().partition(": ")
        own = os.path.realpath(os.path.join(root, path))
        with open(f"{own}/gitdir", encoding="utf-8", errors="surrogateescape") as file:
            back = file.read(4096).strip()
        with open(f"{own}/commondir", encoding="utf-8", errors="surrogateescape") as file:
            home = os.path.realpath(os.path.join(own, file.read(4096).strip()))
    except OSError:
        return
    is_ours = os.path.realpath(os.path.join(own, back)) == os.path.join(root, ".git")
    if word == "gitdir" and is_ours and own.startswith(f"{home}/worktrees/"):
        yield home


def _configured(folder: str) -> Iterator[str]:
    """Hooks and other configuration in the working tree, as far as that of git names them."""
    try:
        with open(os.path.join(folder, "config"), errors="surrogateescape") as file:
            text = file.read(_LARGEST_CONFIG)
    except OSError:
        return
    top = os.path.dirname(folder.rstrip("/"))
    for found in _PATHS.finditer(text):
        base = top if found[1].lower() == "hookspath" else folder
        path = os.path.normpath(os.path.join(base, found[2]))
        if path.startswith(f"{top}/"):
            yield path


def git_parts(folder: str) -> Iterator[str]:
    """What is protected of a git directory, and of those of its submodules and working trees."""
    for name in (*_GIT, *_configured(folder)):
        if os.path.lexists(path := os.path.join(folder, name)):
            yield os.path.normpath(path)
    waiting = [os.path.join(folder, "modules"), os.path.join(folder, "worktrees")]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as listed:
                inner = [one.path for one in listed if one.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        for path in inner:
            if os.path.exists(os.path.join(path, "HEAD")):
                yield from git_parts(path)
            else:
                waiting.append(path)


_SECRETS = """
    .ssh .gnupg .aws .azure .kube .docker .oci .netrc .pgpass .my.cnf .git-credentials .npmrc
    .pypirc .vault-token .terraform.d .password-store .pki .cargo/credentials
    .cargo/credentials.toml .gem/credentials .m2/settings.xml .m2/settings-security.xml
    .gradle/gradle.properties
    .config/gcloud .config/gh .config/glab-cli .config/git/credentials .config/op .config/rclone
    .config/sops .config/containers .config/hub .config/doctl .config/flyctl .fly .config/heroku
    .config/google-chrome .config/chromium .config/BraveSoftware .config/microsoft-edge .mozilla
    .thunderbird .config/Signal .config/Slack .config/discord .electrum .bitcoin .ethereum
    .local/share/keyrings .local/share/kwalletd .1password .config/1Password .config/Bitwarden
    .claude .claude.json .codex .gemini .qwen .kimi .config/opencode .local/share/opencode
    .config/github-copilot .config/goose .aider.conf.yml .huggingface/token
    .cache/huggingface/token .config/kaggle .kaggle .wandb .boto .s3cfg .config/anthropic
    .bash_history .zsh_history .python_history .node_repl_history .psql_history .mysql_history
    .sqlite_history .rediscli_history .local/share/fish .xauthority .Xauthority .ICEauthority
    .dbus .config/pulse .gnome2/keyrings .local/share/gnupg
""".split()
"""Below the home directory: keys, logins, browsers, other assistants, what was typed."""
_NAMED_BY = """
    GOOGLE_APPLICATION_CREDENTIALS AWS_SHARED_CREDENTIALS_FILE AWS_CONFIG_FILE KUBECONFIG NETRC
    PGPASSFILE GNUPGHOME DOCKER_CONFIG CLOUDSDK_CONFIG AZURE_CONFIG_DIR GH_CONFIG_DIR HISTFILE
    NPM_CONFIG_USERCONFIG npm_config_userconfig PASSWORD_STORE_DIR CLAUDE_CONFIG_DIR CODEX_HOME
""".split()
"""Variables that say where such a file is instead."""
_SYSTEM = (
    "/run/secrets",
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/shadow-",
    "/etc/gshadow-",
    "/etc/ssl/private",
)
_SHARED = ("/run/", "/tmp/", "/var/tmp/", "/dev/", "/proc/", "/sys/")
"""Where the sandbox has files of its own instead."""


def home_secrets(own: Sequence[Path]) -> list[str]:
    """Files and folders that no command gets to see: mull's `own`, keys, logins and histories; for
    root, those of every user.
    """
    homes = [str(Path.home())]
    with suppress(KeyError):  # in a container the user may have no name
        homes.append(pwd.getpwuid(os.getuid()).pw_dir)
    if os.geteuid() == 0:
        homes += ["/root", *(f"/home/{name}" for name in _listed("/home"))]
    paths = [f"{home}/{name}" for home in dict.fromkeys(homes) for name in _SECRETS]
    hosts = (f"/etc/ssh/{name}" for name in _listed("/etc/ssh") if name.endswith("_key"))
    named = (os.environ.get(name, "").split(os.pathsep) for name in _NAMED_BY)
    paths += (path for path in chain(*named) if not path.startswith("/dev/"))
    there = (path for path in (*map(str, own), *paths, *_SYSTEM, *hosts) if os.path.exists(path))
    return sorted({os.path.realpath(path) for path in there})


def sockets(root: str) -> list[str]:
    """Sockets in the file system that something listens on, outside the folders that the sandbox
    has anew but for this one: a read-only file system does not keep a command from connecting.
    """
    try:
        with open("/proc/net/unix", errors="surrogateescape") as file:
            lines = [line.rstrip("\n").split(None, 7) for line in file]
    except OSError:
        return []
    names = {line[7] for line in lines[1:] if len(line) == 8}
    real = {os.path.realpath(path) for path in _named_sockets(names) if Path(path).is_socket()}
    return sorted(one for one in real if one.startswith(f"{root}/") or not one.startswith(_SHARED))


def _named_sockets(names: Iterable[str]) -> Iterator[str]:
    """Where these may be: a program may have named one from its own folder, or renamed it since,
    as ssh does.
    """
    relative = [name for name in names if not name.startswith(("/", "@"))]
    for pid in filter(str.isdigit, _listed("/proc") if relative else ()):
        with suppress(OSError):
            folder = os.readlink(f"/proc/{pid}/cwd")
            yield from (os.path.join(folder, name) for name in relative)
    for path in names:
        if os.path.lexists(path):
            yield path
        elif path.startswith("/"):
            above = os.path.dirname(path)
            yield from (os.path.join(above, name) for name in _listed(above))


def programs(path: str) -> list[str]:
    """What commands need to see of the folders that the sandbox has anew: the folders of programs
    on this `PATH` and the one of our own Python. A virtual environment is needed whole.
    """
    named = (*path.split(os.pathsep), os.path.dirname(sys.executable))
    found = [one.rstrip("/") for one in named if one.startswith(("/tmp/", "/var/tmp/"))]
    for number, one in enumerate(found):
        above = os.path.dirname(one)
        if os.path.isfile(f"{above}/pyvenv.cfg"):
            found[number] = above
    return [one for one in dict.fromkeys(found) if os.path.isdir(one)]


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
