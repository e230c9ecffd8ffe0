"""git, as mull itself calls it: it runs nothing that a repository asks for.

The config of a repository can name programs for almost everything: filters, file system monitors,
hooks, external diffs, credentials. A list of what to switch off would never be complete, so git
gets a directory of ours in the place of the repository's own. It has the index and the objects of
the repository, and of its config only settings that are known to be inert. What the user has
configured for all repositories still counts.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

from mull.neutral.patterns import pattern
from mull.store.paths import find_program

__all__ = ["Git", "Repository", "fetch_file", "find_repository", "reading"]

SECONDS = 5.0
"""Seconds that one call may take."""
_LARGEST = 1 << 20
# what the user has configured may name a program relative to the repository
_OWN = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
_ASKED = ("--absolute-git-dir", "--git-common-dir", "--show-toplevel", "--git-path", "hooks")
_COMPARED = (
    r"core\.(?:filemode|ignorecase|precomposeunicode|symlinks|autocrlf|eol|safecrlf|quotepath"
    r"|repositoryformatversion|bigfilethreshold)|extensions\.objectformat"
)
_CARRIED = pattern(_COMPARED)
"""Settings that say how files are compared."""
_INERT = pattern(
    rf"{_COMPARED}"
    r"|core\.(?:bare|logallrefupdates|abbrev|compression|untrackedcache|preloadindex|commitgraph"
    r"|editor|sharedrepository|hookspath|whitespace|longpaths|checkstat|trustctime|protect\w+)"
    r"|extensions\.worktreeconfig|(?:user|author|committer|advice|color|column|gc|init|pack|pull"
    r"|push|fetch|rerere|commit|tag|rebase|receive|feature|index|alias|maintenance|i18n)\..*"
    r"|status\.(?:short|branch|showuntrackedfiles|aheadbehind|renames|relativepaths|showstash)"
    r"|remote\..*\.(?:url|pushurl|fetch|push|prune|tagopt|mirror|gh-resolved)|branch\..*"
    r"|merge\..*|submodule\.(?:active|.*\.(?:url|active|branch))|lfs\.(?!extension).*|url\..*|gui\..*"
    r"|http\..*|credential\..*|diff\.(?:algorithm|renames|colormoved|mnemonicprefix|noprefix)"
    r"|core\.sshcommand|gpg\.format|log\.date|blame\.date|versionsort\..*"
)
"""Settings by which no command that only reads runs a program, or reads other files."""
_MOST_ENTRIES = 10_000
_SUBMODULE = "160000 "

Git: TypeAlias = Callable[..., bytes | None]
"""Runs git with these words; None if it fails, is missing, or takes too long."""


class Repository(NamedTuple):
    """What git finds around a folder, and what the repository's own config says."""

    folder: Path
    """The folder that was asked about, without links."""
    own: Path
    """The git directory; of a worktree, its own one."""
    common: Path
    """The git directory that all worktrees share; the same as `own` if there is only one."""
    top: Path
    """The top folder of the working tree."""
    hooks: Path
    """The folder in which git looks for hooks."""
    prefix: str
    """The path of `folder` below `top`, with a slash at its end; empty for `top` itself."""
    head: str
    """The id of the current commit; empty if there is none."""
    config: tuple[tuple[str, str], ...]
    """The keys and values of the repository's config and of its worktree's, in their order."""

    @property
    def doubt(self) -> str:
        """Why a git command that only reads could run a program of the repository, or show files
        that are not in it; empty if it cannot.
        """
        strange = [key for key, _ in self.config if _INERT.fullmatch(key) is None]
        if strange:
            return f"the repository's config sets {strange[0]}"
        if os.path.lexists(self.hooks / "post-index-change"):
            return "the repository has a post-index-change hook"
        if not self._belongs():
            return "the repository is kept in another place"
        if any(_has_links(place) for place in {self.own, self.common}):
            return "links in the git directory lead elsewhere"
        with reading(self._replace(folder=self.top)) as git:  # git looks at all of it
            listed = git("ls-files", "-s", "-z")
        if listed is None:
            return "git does not say what it has"
        lines = os.fsdecode(listed).split("\0")
        modules = (line.partition("\t")[2] for line in lines if line.startswith(_SUBMODULE))
        if any(os.path.lexists(self.top / path / ".git") for path in modules):
            return "the repository has submodules with a config of their own"
        return ""

    def _belongs(self) -> bool:
        """Whether the git directory is that of this folder: it lies in it, or points back to it."""
        if not self.folder.is_relative_to(self.top):
            return False
        if self.own == self.common == self.top / ".git":
            return True
        back = _text(self.own / "gitdir").strip()
        worktree = self.own.parent == self.common / "worktrees"
        return worktree and bool(back) and os.path.realpath(back) == str(self.top / ".git")


def find_repository(folder: Path) -> Repository | None:
    """The repository that the folder is in; None if there is none, or git refuses it."""
    # neither of the two runs anything, whatever is configured
    said = _call(folder, ("rev-parse", *_ASKED, "--show-prefix", "--revs-only", "HEAD"))
    listed = _call(folder, ("config", "--list", "--show-scope", "-z"))
    lines = (os.fsdecode(said) if said else "").split("\n")[:-1]
    if listed is None or len(lines) not in (5, 6):
        return None
    own, common, top, hooks = (Path(os.path.realpath(folder / line)) for line in lines[:4])
    found = os.fsdecode(listed).split("\0")
    pairs = (
        entry.partition("\n")[::2]
        for scope, entry in zip(found[::2], found[1::2], strict=False)
        if scope in ("local", "worktree")
    )
    return Repository(
        Path(os.path.realpath(folder)),
        own,
        common,
        top,
        hooks,
        lines[4],
        lines[5] if len(lines) > 5 else "",
        tuple((key, value) for key, value in pairs),
    )


@contextmanager
def reading(found: Repository, *, exact: bool = False) -> Iterator[Git]:
    """Run git to read the repository. If it is to be `exact`, a file whose content is made by a
    filter of the repository is an error; otherwise it is compared as it is.
    """
    with tempfile.TemporaryDirectory(prefix="mull-git-") as made:
        place = Path(made)
        for name in ("refs", "info"):
            (place / name).mkdir()
        (place / "HEAD").write_text(f"{found.head or 'ref: refs/heads/none'}\n")
        (place / "config").write_bytes(os.fsencode("".join(_settings(found, exact))))
        for name in ("exclude", "attributes"):
            text = _text(found.common / "info" / name)
            (place / "info" / name).write_bytes(os.fsencode(text))
        variables = {
            "GIT_DIR": made,
            "GIT_WORK_TREE": str(found.top),
            "GIT_INDEX_FILE": str(found.own / "index"),
            "GIT_OBJECT_DIRECTORY": str(found.common / "objects"),
        }
        yield lambda *words: _call(found.folder, (*_OWN, *words), variables)


def fetch_file(url: str, commit: str, path: str, file: IO[bytes], folder: Path) -> bool:
    """Write a file of a commit, fetched into an empty folder; whether that succeeded."""
    for words in (
        ("init", "--quiet"),
        ("fetch", "--quiet", "--no-recurse-submodules", "--depth", "1", "--", url, commit),
    ):
        if _call(folder, (*_OWN, *words), seconds=None, out=sys.stderr) is None:
            return False
    shown = ("cat-file", "blob", f"{commit}:{path}")
    return _call(folder, shown, seconds=None, out=file) is not None


def _settings(found: Repository, exact: bool) -> Iterator[str]:
    """Our config: what git needs to know to compare files, and no programs."""
    for key, value in found.config:
        if _CARRIED.fullmatch(key):
            section, _, name = key.partition(".")
            yield f"[{section}]\n{name} = {_quoted(value)}\n"
        elif exact and key.startswith("filter."):
            name = key.removeprefix("filter.").rpartition(".")[0]
            yield f"[filter {_quoted(name)}]\nrequired = true\n"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _call(
    folder: Path,
    words: tuple[str, ...],
    variables: Mapping[str, str] | None = None,
    *,
    seconds: float | None = SECONDS,
    out: IO[Any] | None = None,
) -> bytes | None:
    """What git prints, or nothing if that goes `out`. To fetch, it may take the user's variables
    and any time.
    """
    to_fetch = seconds is None
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or (to_fetch and name.startswith(("GIT_SSH", "GIT_ASK")))
    }
    git = find_program("git", folder)
    if git is None:
        return None
    calm = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            (git, *words),
            cwd=folder,
            env={**kept, **calm, **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if out is None else out,
            stderr=sys.stderr if to_fetch else subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout or b"") if done.returncode == 0 else None


def _has_links(place: Path) -> bool:
    """Whether a git directory may have refs or objects of another one; also if it is too large to
    tell. Without its refs nobody can name what is in another repository.
    """
    if (place / "objects/info/alternates").exists():
        return True
    seen = 0
    for above, folders, files in os.walk(place):
        names = [*folders, *files]
        if Path(above) == place:
            names = [name for name in names if name != "hooks"]
            folders[:] = [name for name in folders if name not in ("hooks", "modules", "objects")]
        seen += len(names)
        if seen > _MOST_ENTRIES or any(os.path.islink(os.path.join(above, n)) for n in names):
            return True
    return False


def _text(path: Path) -> str:
    """The content of a small regular file, otherwise nothing."""
    with suppress(OSError):
        found = os.stat(path)
        if stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST:
            return os.fsdecode(path.read_bytes())
    return ""
