"""mull's own calls of git run nothing that a repository asks for."""

from __future__ import annotations

import http.server
import os
import subprocess
import threading
from pathlib import Path

import pytest

from mull.agent.tools.snapshot import take_snapshot
from mull.store.git import fetch_file, find_repository, reading

MISSING = "0123456789012345678901234567890123456789"
SIGNED = """tree {tree}
author a <a@b> 1700000000 +0000
committer a <a@b> 1700000000 +0000
gpgsig -----BEGIN PGP SIGNATURE-----
 x
 -----END PGP SIGNATURE-----

signed
"""


class Place:
    """A repository with two files, and a program that leaves a trace."""

    def __init__(self, top: Path) -> None:
        self.time = 0
        self.trace, self.evil, self.folder = top / "PWNED", top / "evil", top / "work"
        self.evil.write_text(f"#!/bin/sh\ntouch {self.trace}\n")
        self.evil.chmod(0o755)
        self.folder.mkdir()
        self.git("init", "-q")
        self.config(("user.name", "x"), ("user.email", "x@x"))
        for name in ("a.txt", "b.txt"):
            (self.folder / name).write_text(f"{name}\n")
        self.git("add", ".")
        self.git("commit", "-qm", "first")
        self.touch()

    def git(self, *words, check=True, given=None):
        ran = subprocess.run(
            ["git", *words],
            cwd=self.folder,
            check=check,
            capture_output=True,
            text=True,
            input=given,
        )
        return ran.stdout.strip()

    def config(self, *pairs):
        for key, value in pairs:
            self.git("config", "--add", key, value)

    def attributes(self, text):
        (self.folder / ".gitattributes").write_text(f"{text}\n")

    def touch(self):
        """As if the file had been written after git looked at it last."""
        self.time += 1
        os.utime(self.folder / "a.txt", (self.time, self.time))


def clean(place):
    place.attributes("* filter=x")
    place.config(("filter.x.clean", str(place.evil)))


def process(place):
    place.attributes("* filter=x")
    place.config(("filter.x.process", str(place.evil)))


def smudge(place):
    place.attributes("* filter=x")
    place.config(("filter.x.smudge", str(place.evil)))


def included(place):
    (place.folder / "more").write_text(f'[filter "x"]\nclean = {place.evil}\n')
    place.attributes("* filter=x")
    place.config(("include.path", "../more"))


def monitor(place):
    place.config(("core.fsmonitor", str(place.evil)))


def hook(place):
    hook = place.folder / ".git/hooks/post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(place.evil.read_text())
    hook.chmod(0o755)


def hooks_elsewhere(place):
    hook(place)
    (place.folder / ".git/hooks").rename(place.folder / "hooks")
    place.config(("core.hooksPath", "hooks"))


def external(place):
    (place.folder / "a.txt").write_text("other\n")
    place.config(("diff.external", str(place.evil)))


def driver(place):
    (place.folder / "a.txt").write_text("other\n")
    place.attributes("* diff=x")
    place.config(("diff.x.command", str(place.evil)))


def textconv(place):
    place.attributes("* diff=x")
    place.config(("diff.x.textconv", str(place.evil)))


def alias(place):
    place.config(("alias.st", f"!{place.evil}"))


def promised(url, *more):
    def plant(place):
        place.config(
            ("extensions.partialClone", "origin"),
            ("core.repositoryFormatVersion", "1"),
            ("remote.origin.promisor", "true"),
            ("remote.origin.url", url.format(place.evil)),
            *((key, value.format(place.evil)) for key, value in more),
        )

    return plant


def signature(place):
    tree = place.git("rev-parse", "HEAD^{tree}")
    made = place.git("hash-object", "-t", "commit", "-w", "--stdin", given=SIGNED.format(tree=tree))
    place.git("update-ref", "HEAD", made)
    place.config(("gpg.program", str(place.evil)))


PLANTED = {
    "clean": (clean, ("status",)),
    "process": (process, ("status",)),
    "smudge": (smudge, ("cat-file", "--filters", "--path=a.txt", "HEAD:a.txt")),
    "included": (included, ("status",)),
    "monitor": (monitor, ("status",)),
    "hook": (hook, ("diff",)),
    "hooks elsewhere": (hooks_elsewhere, ("diff",)),
    "external diff": (external, ("diff",)),
    "diff driver": (driver, ("diff",)),
    "textconv": (textconv, ("show",)),
    "alias": (alias, ("st",)),
    "ssh": (
        promised("ssh://127.0.0.1/x", ("core.sshCommand", "{}")),
        ("cat-file", "-p", MISSING),
    ),
    "transport": (
        promised("ext::{}", ("protocol.ext.allow", "always")),
        ("cat-file", "-p", MISSING),
    ),
    "upload pack": (
        promised("file:///", ("remote.origin.uploadpack", "{}")),
        ("cat-file", "-p", MISSING),
    ),
    "proxy": (promised("git://127.0.0.1/x", ("core.gitProxy", "{}")), ("cat-file", "-p", MISSING)),
    "signature": (signature, ("log", "--format=%G?")),
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    return Place(tmp_path)


def read(place, *words, exact=False):
    with reading(find_repository(place.folder), exact=exact) as git:
        return git(*words)


@pytest.mark.parametrize("kind", PLANTED)
def test_what_a_repository_configures_is_not_run(place, kind):
    plant, words = PLANTED[kind]
    plant(place)
    assert not place.trace.exists()
    place.git(*words, check=False)
    assert place.trace.exists(), "git itself does not run it: this plant proves nothing"
    place.trace.unlink()
    place.touch()
    read(place, *words)
    assert not place.trace.exists()


class _Locked(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(401)
        self.send_header("WWW-Authenticate", "Basic realm=x")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("key", ["credential.helper", "core.askPass"])
def test_nobody_is_asked_for_a_password(place, key):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Locked) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        promised(f"http://127.0.0.1:{server.server_port}/x", (key, "{}"))(place)
        place.git("cat-file", "-p", MISSING, check=False)
        assert place.trace.exists()
        place.trace.unlink()
        assert read(place, "cat-file", "-p", MISSING) is None
        assert not place.trace.exists()
        server.shutdown()


@pytest.mark.parametrize("key", ["core.fsmonitor", "core.hooksPath"])
def test_what_the_user_configures_for_all_is_not_looked_for_in_the_repository(place, key):
    if key == "core.hooksPath":
        hook(place)
        (place.folder / ".git/hooks").rename(place.folder / "hooks")
    value = {"core.hooksPath": "hooks", "core.fsmonitor": "../evil"}[key]
    place.git("config", "--global", key, value)
    place.git("diff")
    assert place.trace.exists()
    place.trace.unlink()
    place.touch()
    read(place, "diff")
    assert not place.trace.exists()


def test_a_submodule_is_not_asked(place, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    inner = Place(other)
    add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.folder))
    place.git(*add, "sub")
    place.git("commit", "-qm", "second")
    place.git("-C", "sub", "config", "filter.x.clean", str(place.evil))
    (place.folder / ".git/modules/sub/info").mkdir(exist_ok=True)
    (place.folder / ".git/modules/sub/info/attributes").write_text("* filter=x\n")
    (place.folder / "sub/a.txt").write_text("other\n")
    place.git("config", "-f", ".gitmodules", "submodule.sub.ignore", "none")
    place.git("status")
    assert place.trace.exists()
    place.trace.unlink()
    assert take_snapshot(place.folder) is not None
    assert not place.trace.exists()
    assert "submodules" in find_repository(place.folder).doubt
    (place.folder / "docs").mkdir()  # git looks at the whole repository from there too
    assert "submodules" in find_repository(place.folder / "docs").doubt


def test_git_finds_the_folders_own_repository_and_writes_nothing(place, monkeypatch, tmp_path):
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    index = place.folder / ".git/index"
    before = index.read_bytes()
    (place.folder / "b.txt").write_text("other\n")
    (place.folder / "new").write_text("new\n")
    (place.folder / "out").write_text("out\n")
    (place.folder / ".git/info/exclude").write_text("out\n")
    assert read(place, "status", "--porcelain") == b" M b.txt\n?? new\n"
    assert index.read_bytes() == before
    assert find_repository(tmp_path) is None


def test_what_a_filter_of_the_repository_makes_is_unknown(place):
    """git has another content than the file, and only the filter could make one of the other."""
    smudge(place)
    words = ("cat-file", "--filters", "--path=a.txt", "HEAD:a.txt")
    assert read(place, *words) == b"a.txt\n"
    assert read(place, *words, exact=True) is None


def test_a_file_of_a_commit_is_fetched(place, tmp_path):
    place.git("config", "uploadpack.allowAnySHA1InWant", "true")
    commit = place.git("rev-parse", "HEAD")
    for made in ("one", "two"):
        (tmp_path / made).mkdir()
    with open(tmp_path / "got", "wb") as file:
        assert fetch_file(str(place.folder), commit, "a.txt", file, tmp_path / "one")
        assert not fetch_file(str(place.folder), commit, "none", file, tmp_path / "two")
    assert (tmp_path / "got").read_bytes() == b"a.txt\n"


def test_an_ordinary_repository_raises_no_doubt(place, tmp_path):
    assert find_repository(place.folder).doubt == ""
    place.config(
        ("core.hooksPath", ".husky/_"),
        ("branch.main.remote", "origin"),
        ("remote.origin.url", "https://example.org/x"),
        ("alias.st", "status"),
        ("diff.algorithm", "histogram"),
    )
    (place.folder / "sub").mkdir()
    assert find_repository(place.folder / "sub").doubt == ""
    place.git("worktree", "add", "-q", str(tmp_path / "tree"))
    assert find_repository(tmp_path / "tree").doubt == ""


def test_a_repository_of_which_git_says_too_little_raises_doubt(place):
    (place.folder / ".git/index").write_bytes(b"broken")
    assert find_repository(place.folder).doubt


@pytest.mark.parametrize("kind", [kind for kind in PLANTED if kind != "alias"])
def test_a_repository_that_could_run_something_raises_doubt(place, kind):
    PLANTED[kind][0](place)
    assert find_repository(place.folder).doubt


def test_an_extension_of_lfs_raises_doubt(place):
    place.config(("lfs.url", "https://example.org/x"))
    assert find_repository(place.folder).doubt == ""
    place.config(("lfs.extension.x.clean", "touch x"))
    assert find_repository(place.folder).doubt


def elsewhere(place, other):
    (place.folder / ".git").rename(place.folder / "old")
    (place.folder / ".git").write_text(f"gitdir: {other.folder}/.git\n")


def linked(place, other):
    (place.folder / ".git").rename(place.folder / "old")
    (place.folder / ".git").symlink_to(other.folder / ".git")


def common(place, other):
    (place.folder / ".git/commondir").write_text(f"{other.folder}/.git\n")


def objects(place, other):
    (place.folder / ".git/objects/info").mkdir(exist_ok=True)
    (place.folder / ".git/objects/info/alternates").write_text(f"{other.folder}/.git/objects\n")


def refs(place, other):
    heads = place.folder / ".git/refs/heads"
    heads.rename(place.folder / "old")
    heads.symlink_to(other.folder / ".git/refs/heads")


def worktree(place, other):
    place.config(("core.worktree", str(other.folder.parent)))


@pytest.mark.parametrize("kind", [elsewhere, linked, common, objects, refs, worktree])
def test_a_repository_that_shows_another_one_raises_doubt(place, tmp_path, kind):
    (tmp_path / "other").mkdir()
    kind(place, Place(tmp_path / "other"))
    found = find_repository(place.folder)
    assert found is None or found.doubt
