"""The sandbox by its effects: every command here runs for real and tries to get out.

Each test runs in every kind of sandbox that works on this machine; one that does not is skipped,
and a warning says so.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from caged import FILES, cage_of, fill_repository, git, make_place, need_tier, popen, run
from mull.agent.sandbox import namespaces, own_code
from mull.agent.sandbox.cage import Cage
from mull.agent.sandbox.order import Grants
from mull.agent.sandbox.territory import programs
from mull.agent.sandbox.tiers import TIERS
from mull.agent.sandbox.wants import wants_of
from mull.agent.tools.snapshot import take_snapshot
from mull.agent.tools.table import builtin_tools
from mull.agent.tools.workspace import Workspace
from mull.neutral.blocks import ToolCallBlock
from mull.neutral.errors import LocalError
from mull.policy.approval import decide
from mull.store.paths import find_program

LINUX = ("namespaces", "bubblewrap", "landlock")
LOCKING = [name for name in LINUX if TIERS[name].locks_files]
ALONE = [name for name in LINUX if name != "landlock"]
"""Those with a network and processes of their own."""


@pytest.fixture(params=LINUX)
def tier(request):
    need_tier(request.param)
    return request.param


@pytest.fixture
def _no_landlock(monkeypatch):
    """An older kernel: then nothing but the mounts protects files."""
    monkeypatch.setattr(namespaces, "landlock_version", lambda: 0)


@pytest.fixture
def place():
    yield from make_place()


@pytest.fixture
def folder(place):
    (place / "work").mkdir()
    return fill_repository(place / "work")


@pytest.fixture
def home(place, monkeypatch):
    (place / "home").mkdir()
    monkeypatch.setenv("HOME", str(place / "home"))
    return place / "home"


def python(code):
    return f"{shlex.quote(sys.executable)} -I -S -c {shlex.quote(code)}"


# Files


def test_the_working_folder_can_be_written_and_git_commits(folder, tier):
    command = (
        "echo 2 >> a.py && mkdir -p new/b && echo x > new/b/c && git add -A new a.py"
        " && git commit -qm second && git log --oneline | wc -l"
    )
    ran = run(cage_of(folder, tier), command)
    assert (ran.status, ran.output) == (0, "2\n")
    assert (folder / "new/b/c").read_text() == "x\n"
    assert git(folder, "show", "HEAD:new/b/c") == "x\n"


OUTSIDE = {
    "a new file": "echo x > ../beside",
    "through a link": "ln -s .. up && echo x > up/beside",
    "by renaming": "touch x && mv x ../beside",
    "by a hard link": "ln a.py ../beside",
    "a folder": "mkdir ../beside",
    "a link": "ln -s a ../beside",
    "over a file": "echo x > ../there",
    "by truncating": "truncate -s 0 ../there",
    "by deleting": "rm -f ../there",
    "by moving it in": "mv ../there .",
    "a pipe": "mkfifo ../beside",
    "a device": "mknod ../beside c 1 3",
    "through another process's root": "echo x > /proc/1/root$(realpath ..)/beside",
    "through the old working directory": "cd /proc/self/cwd/.. && echo x > beside",
}


@pytest.mark.parametrize("how", OUTSIDE)
def test_nothing_outside_can_be_written(folder, home, tier, how):
    there = folder.parent / "there"
    there.write_text("keep me")
    ran = run(cage_of(folder, tier), OUTSIDE[how])
    assert ran.status != 0, ran.output
    assert there.read_text() == "keep me"
    assert sorted(os.listdir(folder.parent)) == ["home", "there", "work"]


@pytest.mark.usefixtures("_no_landlock")
def test_without_landlock_the_mounts_hold_alone(folder, home):
    need_tier("namespaces")
    (folder.parent / "there").write_text("keep me")
    cage, before = cage_of(folder, "namespaces"), kept(folder)
    ran = run(cage, "; ".join(f"({one})" for one in (*OUTSIDE.values(), *PROTECTED.values())))
    assert ran.output
    assert sorted(os.listdir(folder.parent)) == ["home", "there", "work"]
    assert (folder.parent / "there").read_text() == "keep me"
    assert kept(folder) == before


def test_no_powers_are_left_that_could_undo_the_walls(folder, tier):
    ran = run(cage_of(folder, tier), "cat /proc/self/status")
    found = dict(line.split(":\t") for line in ran.output.splitlines() if ":\t" in line)
    assert found["NoNewPrivs"] == "1"
    assert found["Seccomp"] == "2"
    harmless = sum(1 << power for power in (0, 3, 4, 5, 6, 7, 8))
    assert int(found["CapEff"], 16) & ~harmless == 0
    if os.geteuid() == 0:
        assert int(found["CapBnd"], 16) & ~harmless == 0


@pytest.mark.parametrize("tier", LOCKING)
def test_nothing_outside_changes_its_mode_owner_times_or_attributes(folder, tier):
    need_tier(tier)
    there = folder.parent / "there"
    there.write_text("keep me")
    before = os.stat(there)
    command = "chmod 777 ../there; chown 1:1 ../there; touch -d 2001-01-01 ../there; "
    run(cage_of(folder, tier), command + "setfattr -n user.x -v 1 ../there")
    after = os.stat(there)
    assert (after.st_mode, after.st_uid, after.st_mtime) == (
        before.st_mode, before.st_uid, before.st_mtime,
    )  # fmt: skip
    assert os.listxattr(there) == []


PROTECTED = {
    "AGENTS.md": "echo evil > AGENTS.md",
    "appended": "echo evil >> AGENTS.md",
    "replaced": "echo evil > x; mv -f x AGENTS.md",
    "removed": "rm -f AGENTS.md; echo evil > AGENTS.md",
    "edited": "sed -i s/good/evil/ AGENTS.md",
    "in a subfolder": "echo evil > sub/deep/CLAUDE.md",
    "with its folder": "mv sub/deep sub/d2; mkdir sub/deep; echo evil > sub/deep/CLAUDE.md",
    "with the outer folder": "mv sub s2; mkdir -p sub/deep; echo evil > sub/deep/CLAUDE.md",
    "git's configuration": "git config core.fsmonitor evil",
    "git's configuration by hand": "echo evil >> .git/config",
    "git's hooks": "rm -f .git/hooks/pre-commit.sample; echo evil > .git/hooks/pre-commit",
    "a workflow": "echo evil > .github/workflows/ci.yml",
    "a workflow's folder": "rm -rf .github; mkdir -p .github/workflows; echo evil > .github/workflows/ci.yml",  # noqa: E501
    "by writing in place": "dd if=/dev/zero of=AGENTS.md conv=notrunc bs=1 count=2",
    "a hard link": "ln AGENTS.md y && echo evil > y",
}
KEPT = ("AGENTS.md", "sub/deep/CLAUDE.md", ".git/config", ".github/workflows/ci.yml")


def kept(folder):
    hooks = sorted(os.listdir(folder / ".git/hooks"))
    return [(folder / name).read_text() for name in KEPT], hooks


@pytest.mark.parametrize("how", PROTECTED)
@pytest.mark.parametrize("tier", LOCKING)
def test_protected_files_cannot_be_changed(folder, tier, how):
    need_tier(tier)
    before = kept(folder)
    run(cage_of(folder, tier), PROTECTED[how])
    assert kept(folder) == before


@pytest.mark.parametrize("how", PROTECTED)
def test_where_they_cannot_be_locked_they_are_put_back(folder, how):
    need_tier("landlock")
    before = kept(folder)
    cage = cage_of(folder, "landlock")
    checked = cage.check(run(cage, PROTECTED[how]).launch)
    assert not checked.lost
    for path in checked.made:
        Path(path).unlink()
    assert kept(folder) == before
    assert checked.put_back or checked.made


REPOSITORY = {
    "hooks elsewhere": "tools/hooks/pre-commit",
    "hooks named in one line": "tools/more/pre-commit",
    "more configuration": "tools/git",
    "another working tree": ".git/worktrees/tree/commondir",
    "a bare repository": "bare/config",
}


@pytest.mark.parametrize("what", REPOSITORY)
@pytest.mark.parametrize("tier", LOCKING)
def test_whatever_makes_git_execute_something_is_protected(folder, tier, what):
    need_tier(tier)
    (folder / "tools/hooks").mkdir(parents=True)
    (folder / "tools/git").touch()
    (folder / "tools/more").mkdir()
    with open(folder / ".git/config", "a") as config:
        config.write("[core] hooksPath = tools/more\n")
    git(folder, "config", "--add", "core.hooksPath", "tools/hooks")
    git(folder, "config", "include.path", "../tools/git")
    git(folder, "worktree", "add", "-q", "../tree")
    git(folder, "init", "-q", "--bare", "bare")
    path = folder / REPOSITORY[what]
    run(cage_of(folder, tier), f"echo evil > {path}; mv tools t; mkdir tools; echo evil > {path}")
    assert not path.exists() or "evil" not in path.read_text()


@pytest.mark.parametrize("name", ["config", "hooks/commit-msg"])
def test_what_git_has_as_a_link_is_protected_too(folder, tier, name):
    (folder / ".git/hooks/commit-msg").write_text("good\n")
    top = name.split("/")[0]
    (folder / ".git" / top).rename(folder / top)
    (folder / ".git" / top).symlink_to(f"../{top}")
    cage, before = cage_of(folder, tier), (folder / name).read_text()
    spoil = f"echo evil >> {name}; rm -f .git/{top}; ln -s ../sub .git/{top}"
    cage.check(run(cage, spoil).launch)
    assert (folder / ".git" / name).read_text() == before


def test_a_protected_link_that_leads_nowhere_stops_no_command(folder, tier):
    (folder / "CLAUDE.md").symlink_to("no/such/file")
    (folder / ".env.link").symlink_to("no/such/secret")
    cage = cage_of(folder, tier, "read(.env*)")
    ran = run(cage, "echo ok; mkdir -p no/such; echo evil > no/such/file")
    assert ran.output == "ok\n"
    assert cage.check(ran.launch).lost == (str(folder / "no/such/file"),)


def test_a_git_directory_cannot_be_exchanged(folder):
    need_tier("namespaces")
    run(cage_of(folder, "namespaces"), "mv .git old; cp -r old .git; echo evil > .git/config")
    assert "evil" not in (folder / ".git/config").read_text()


MADE = {
    ".envrc": "echo evil > .envrc",
    ".mull": "mkdir .mull; echo evil > .mull/tools.toml",
    ".vscode": "mkdir .vscode; echo evil > .vscode/tasks.json",
    "sub/AGENTS.md": "echo evil > sub/AGENTS.md",
    ".git/commondir": "echo ../evil > .git/commondir",
    "new/.git/config": "git init -q new",
    "new/config": "git init -q --bare new",
    "bare/config.worktree": "touch bare/config.worktree",
    ".git/modules/m/config": "mkdir -p .git/modules/m; touch .git/modules/m/HEAD .git/modules/m/config",  # noqa: E501
    "sub/.envrc": "echo evil > sub/.envrc; touch -d @1000000000 sub",
    "CLAUDE.md": "ln -s a.py CLAUDE.md",
}


@pytest.mark.parametrize("path", MADE)
def test_protected_files_that_were_not_there_are_found_afterwards(folder, tier, path, monkeypatch):
    monkeypatch.setattr("mull.agent.sandbox.territory._RECENT", 0)  # all is known from before
    os.utime(folder / "sub", (1e9, 1e9))
    git(folder, "init", "-q", "--bare", "bare")
    cage = cage_of(folder, tier)
    cage.territory.look()
    checked = cage.check(run(cage, MADE[path]).launch)
    assert any(made.startswith(str(folder / path)) for made in checked.made)


@pytest.mark.parametrize("made", [".", "sub/deep"])
def test_nothing_becomes_a_virtual_environment_by_a_file(folder, tier, made):
    cage = cage_of(folder, tier)
    run(cage, f"touch {made}/pyvenv.cfg")
    ran = run(cage, "echo evil > AGENTS.md; echo evil > sub/deep/CLAUDE.md; echo >> .git/config")
    cage.check(ran.launch)
    assert kept(folder)[0] == kept(fill_repository(folder.parent / "home"))[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
def test_a_folder_made_unreadable_protects_what_is_in_it(folder, tier):
    cage = cage_of(folder, tier)
    (folder / "other").mkdir()
    checked = cage.check(run(cage, "chmod 0 sub/deep other .").launch)
    assert checked == ((), (), (str(folder / "other"),))
    spoil = "chmod 755 . sub/deep; echo evil > sub/deep/CLAUDE.md; chmod 0 sub/deep"
    cage.check(run(cage, spoil).launch)
    assert (folder / "sub/deep/CLAUDE.md").read_text() == FILES["sub/deep/CLAUDE.md"]
    (folder / "other").chmod(0o755)


def test_what_cannot_be_looked_for_afterwards_is_told(folder, tier, monkeypatch):
    cage = cage_of(folder, tier)
    told = []
    cage.warn = told.append
    ran = run(cage, "echo evil > AGENTS.md; mkdir -p x/1 x/2 x/3")
    monkeypatch.setattr("mull.agent.sandbox.territory.MOST_FOLDERS", 3)
    cage.check(ran.launch)
    assert (folder / "AGENTS.md").read_text() == FILES["AGENTS.md"]
    assert "too many folders" in told[0]


@pytest.mark.parametrize("tier", LOCKING)
def test_a_protected_file_that_somebody_replaces_meanwhile_is_told(folder, tier):
    """Then it is no longer locked."""
    need_tier(tier)
    cage = cage_of(folder, tier)
    launch = cage.launch(("bash", "-c", "echo up; exec sleep 60"), os.environ)
    with popen(launch) as process:
        process.stdout.readline()
        (folder / "new").write_text("of the user\n")
        os.replace(folder / "new", folder / "AGENTS.md")
        process.kill()
    launch.ended()
    assert cage.check(launch).lost == (str(folder / "AGENTS.md"),)


def test_one_that_must_not_be_read_either_is_found_or_put_back(folder, tier):
    cage = cage_of(folder, tier, "read(.env*)")
    checked = cage.check(run(cage, "echo evil > .envrc; echo evil > .env").launch)
    assert checked.made == (str(folder / ".envrc"),)
    assert (folder / ".env").read_text() == FILES[".env"]


def test_a_protected_file_with_another_name_is_put_back(folder, tier):
    os.link(folder / "AGENTS.md", folder / "a.md")
    os.link(folder / ".github/workflows/ci.yml", folder / "a.yml")
    cage = cage_of(folder, tier)
    checked = cage.check(run(cage, "echo evil >> a.md; echo evil >> a.yml").launch)
    assert len(checked.put_back) == 2
    assert (folder / "AGENTS.md").read_text() == FILES["AGENTS.md"]
    assert "evil" not in (folder / ".github/workflows/ci.yml").read_text()


def test_putting_back_follows_no_link(folder, tier):
    outside = folder.parent / "outside"
    outside.mkdir()
    (folder / "new").mkdir()
    (folder / "new/.envrc").symlink_to("a.py")
    (folder / "new/.bashrc").write_text("good\n")
    cage = cage_of(folder, tier)
    cage.check(run(cage, "rm -rf new; mv new old; ln -s ../outside new").launch)
    assert os.listdir(outside) == []


def test_a_protected_link_is_put_back(folder, tier):
    (folder / "CLAUDE.md").symlink_to("AGENTS.md")
    cage = cage_of(folder, tier)
    ran = run(cage, "echo evil > CLAUDE.md; rm -f CLAUDE.md; echo evil > CLAUDE.md")
    cage.check(ran.launch)
    assert os.readlink(folder / "CLAUDE.md") == "AGENTS.md"
    assert (folder / "AGENTS.md").read_text() == FILES["AGENTS.md"]


READING = {
    "cat": "cat .env",
    "copy": "cp .env x; cat x",
    "link": "ln -s .env x; cat x",
    "hard link": "ln .env x; cat x",
    "git": "git add -f .env; git show :.env",
    "archive": "tar cf x.tar . ; tar xOf x.tar ./.env",
    "another root": "cat /proc/1/root$PWD/.env /proc/self/root$PWD/.env",
    "memory": python("import mmap; print(mmap.mmap(open('.env').fileno(), 0, prot=1)[:])"),
    "renamed": "mv .env x; cat x",
    "deep": "cat sub/deep/.env.local; grep -r SECRET .",
    "folder renamed": "mv sub s2; cat s2/deep/.env.local; mv sub/deep d; cat d/.env.local",
    "modes": "chmod 644 .env; cat .env",
}


@pytest.mark.parametrize("how", READING)
def test_what_rules_deny_cannot_be_read(folder, tier, how):
    cage = cage_of(folder, tier, "read(.env*)")
    ran = run(cage, READING[how])
    assert "SECRET" not in ran.output
    again = run(cage, "cat .env sub/deep/.env.local; grep -rs SECRET .")  # nor by the next one
    assert "SECRET" not in again.output


@pytest.mark.parametrize("move", ["mv", "ln"])
def test_nothing_leaves_a_folder_that_must_not_be_read(folder, tier, move):
    cage = cage_of(folder, tier, "read(sub/**)")
    run(cage, f"{move} sub/deep/.env.local x; {move} sub/deep/.env.local .github/x")
    assert "SECRET" not in run(cage, "cat x .github/x").output


def test_a_denied_file_that_was_moved_is_told(folder):
    need_tier("landlock")
    cage = cage_of(folder, "landlock", "read(a.py)")
    assert cage.check(run(cage, "mv a.py x").launch).lost == (str(folder / "a.py"),)


def test_the_kernels_settings_cannot_be_changed(folder, tier):
    there = "/proc/sys/kernel/core_pattern"
    assert run(cage_of(folder, tier), f"cat {there} > $TMPDIR/x; cat $TMPDIR/x > {there}").status


def test_a_denied_file_has_no_other_name_from_before(folder, tier):
    for name in ("a.txt", "new/b.txt", "z.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        os.link(folder / ".env", folder / name)
    (folder / "kept").mkdir()
    (folder / "kept/x").write_text("SECRET\n")
    os.link(folder / "kept/x", folder / "y.txt")
    ran = run(cage_of(folder, tier, "read(.env*)", "read(kept/**)"), "cat *.txt new/*; cat a.py")
    assert "SECRET" not in ran.output
    assert "print(1)" in ran.output


@pytest.mark.parametrize(
    "rule", ["{}/there/", "{}/there/**", "{}/t*/id", "{}/**/id", "{}/there/ID"]
)
def test_an_absolute_path_that_rules_deny_is_hidden_outside_too(folder, tier, rule):
    (folder.parent / "there").mkdir()
    (folder.parent / "there/id").write_text("SECRET\n")
    (folder.parent / "there/ID").write_text("SECRET\n")
    (folder.parent / "beside").write_text("plain\n")
    cage = cage_of(folder, tier, f"read({rule.format(folder.parent)})")
    named = "ID" if rule.endswith("ID") else "id"
    ran = run(cage, f"cat ../there/{named} ../beside")
    assert "SECRET" not in ran.output
    assert "plain" in ran.output
    assert not granted(ran)


def granted(ran):
    return [want.words for want in wants_of(ran.output, ran.report, ran.launch)]


def test_a_rule_that_denies_the_folder_itself_leaves_no_sandbox(folder):
    assert "rules deny" in cage_of(folder, LINUX[0], f"read({folder.parent}/**)").why_not()


def test_rules_that_deny_writing_lock_what_they_name(folder):
    need_tier("namespaces")
    run(cage_of(folder, "namespaces", "edit(sub/**)"), "echo x > sub/y; echo x > ok")
    assert not (folder / "sub/y").exists()
    assert (folder / "ok").exists()


def test_keys_and_what_mull_keeps_cannot_be_read(folder, home, tier, monkeypatch):
    monkeypatch.setenv("MULL_CONFIG_DIR", str(folder.parent / "config"))
    monkeypatch.setenv("MULL_DATA_DIR", str(folder.parent / "data"))
    for path in ("home/.ssh/id", "home/.netrc", "config/keys.toml", "data/sessions.db"):
        (folder.parent / path).parent.mkdir(exist_ok=True)
        (folder.parent / path).write_text("CANARY\n")
    ran = run(
        cage_of(folder, tier),
        "cat ~/.ssh/id ~/.netrc; grep -rs CANARY ~ .. ; cat ~/.ssh/* ../config/*",
    )
    assert "CANARY" not in ran.output


def test_nor_are_they_if_the_working_folder_is_around_them(folder, tier, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("KUBECONFIG", str(folder / "elsewhere"))
    for name in ("MULL_CONFIG_DIR", "MULL_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    kept = (".config/mull/keys.toml", ".ssh/id", ".cargo/credentials", "elsewhere")
    for path in kept:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("CANARY\n")
    cage = cage_of(folder, tier)
    everything = " ".join(kept)
    assert "CANARY" not in run(cage, f"cat {everything}; cd .config && cat */keys.toml").output
    grants = Grants(reads=(str(folder / ".ssh"),))
    assert run(cage, f"cat {everything}", grants).output.count("CANARY") == 1
    ran = run(cage, "mv .cargo moved")
    assert cage.check(ran.launch).lost or "CANARY" not in run(cage, "cat moved/*").output


def test_temporary_files_are_its_own_and_stay_for_the_next_command(folder, tier, tmp_path):
    cage = cage_of(folder, tier)
    (tmp_path / "x").write_text("of others")
    ran = run(cage, f"echo mine > $TMPDIR/t; echo bad > {tmp_path}/x; echo bad > {tmp_path}/y")
    assert (tmp_path / "x").read_text() == "of others"
    assert not (tmp_path / "y").exists()
    assert run(cage, "cat $TMPDIR/t").output == "mine\n"
    own = ran.launch.order.own
    run(cage, "mkdir $TMPDIR/d; touch $TMPDIR/d/x; chmod 0 $TMPDIR/d; ln -s / $TMPDIR/root")
    assert own.exists()
    del ran, cage
    until_gone(own)


def until_gone(path):
    import gc

    gc.collect()
    assert not path.exists()


def test_caches_can_be_used_and_do_not_change(folder, home):
    need_tier("namespaces")
    (home / ".cache").mkdir()
    (home / ".cache/old").write_text("old")
    cage = cage_of(folder, "namespaces")
    assert run(cage, "cat ~/.cache/old; echo new > ~/.cache/new; rm ~/.cache/old").output == "old"
    assert run(cage, "ls ~/.cache; cat ~/.cache/new").output == "new\nnew\n"
    assert os.listdir(home / ".cache") == ["old"]


def test_a_linked_working_tree_commits(folder):
    need_tier("namespaces")
    git(folder, "worktree", "add", "-q", "../tree")
    tree = folder.parent / "tree"
    ran = run(cage_of(tree, "namespaces"), "echo 2 >> a.py; git commit -qam two; git config a.b c")
    assert "could not write config" in ran.output
    assert git(folder, "log", "--oneline", "tree").count("\n") == 2
    assert "[a]" not in (folder / ".git/config").read_text()


def test_a_git_file_that_names_another_repository_opens_nothing(folder):
    need_tier("namespaces")
    git(folder, "worktree", "add", "-q", "../tree")
    for gitdir in (f"{folder}/.git", f"{folder}/.git/worktrees/tree"):
        other = folder.parent / "other"
        other.mkdir(exist_ok=True)
        (other / ".git").write_text(f"gitdir: {gitdir}\n")
        run(cage_of(other, "namespaces"), f"echo evil > {folder}/.git/x; echo evil > {folder}/y")
        assert not (folder / ".git/x").exists()
        assert not (folder / "y").exists()


# The network


@contextlib.contextmanager
def listening(*address, family=socket.AF_INET, kind=socket.SOCK_STREAM):
    """Something outside that must not be reached; gives who came."""
    came = []
    with socket.socket(family, kind) as server:
        server.bind(*address)
        if kind == socket.SOCK_STREAM:
            server.listen()
        server.settimeout(0.1)
        over = threading.Event()

        def serve():
            while not over.is_set():
                with contextlib.suppress(TimeoutError):
                    if kind == socket.SOCK_STREAM:
                        guest, _ = server.accept()
                        guest.close()
                    else:
                        server.recv(9)
                    came.append(1)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname(), came
        finally:
            over.set()
            thread.join()


def connect(address, family="AF_INET", kind="SOCK_STREAM"):
    return python(
        f"import socket; s = socket.socket(socket.{family}, socket.{kind}); s.settimeout(5);"
        f" s.connect({address!r}); s.send(b'x'); print('sent')"
    )


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
def test_nothing_outside_is_reached(folder, tier, kind):
    with listening(("127.0.0.1", 0), kind=getattr(socket, kind)) as (address, came):
        run(cage_of(folder, tier), connect(address, kind=kind))
    assert came == []


@pytest.mark.parametrize("tier", ALONE)
def test_where_sockets_usually_are_there_is_nothing(folder, tier):
    need_tier(tier)
    ran = run(cage_of(folder, tier), "ls -A /run /var/run/ /tmp /var/tmp /dev/shm")
    names = {line for line in ran.output.splitlines() if line and not line.endswith(":")}
    shown = {one.split("/")[-1] for one in _tops(programs(os.environ["PATH"]))}
    assert names <= {"current-system", "opengl-driver", "booted-system", *shown}


def _tops(paths):
    """The entries of /tmp and /var/tmp that lead there."""
    return [re.match("(/var)?/tmp/[^/]+", path)[0] for path in paths]


@pytest.mark.parametrize("where", ["beside", "inside", "abstract"])
def test_no_socket_of_another_program_is_reached(folder, tier, where, monkeypatch):
    monkeypatch.chdir(folder)  # an address is short
    places = {"beside": "../socket", "inside": "socket", "abstract": f"\0mull-{os.getpid()}"}
    address = places[where] if where == "abstract" else os.path.abspath(places[where])
    with listening(address, family=socket.AF_UNIX) as (_, came):
        run(cage_of(folder, tier), connect(address, "AF_UNIX"))
    assert came == []


@pytest.mark.parametrize("how", ["relative", "renamed", "in tmp"])
def test_nor_one_that_the_kernel_lists_under_another_name(folder, tier, how, monkeypatch, tmp_path):
    work = tmp_path if how == "in tmp" else folder
    monkeypatch.chdir(work)
    named = "first" if how == "renamed" else "socket"
    address = named if how == "relative" else str(work / named)
    with listening(address, family=socket.AF_UNIX) as (_, came):
        os.rename(named, "socket")
        run(cage_of(work, tier), connect("socket", "AF_UNIX"))
    assert came == []


def test_a_pair_of_sockets_stays_a_pair(folder, tier, monkeypatch):
    monkeypatch.chdir(folder)
    code = "import socket; a, b = socket.socketpair(type=socket.{}); {}; print(b.recv(9))"
    with listening("socket", family=socket.AF_UNIX, kind=socket.SOCK_DGRAM) as (_, came):
        run(cage_of(folder, tier), python(code.format("SOCK_DGRAM", "a.sendto(b'x', 'socket')")))
    assert came == []
    ran = run(cage_of(folder, tier), python(code.format("SOCK_STREAM", "a.send(b'x')")))
    assert ran.output == "b'x'\n"


def test_no_abstract_socket_is_reached_with_the_network_either(folder, tier):
    address = f"\0mull-{os.getpid()}"
    if tier == "bubblewrap":
        pytest.skip("bubblewrap cannot tell abstract sockets from the network")
    with listening(address, family=socket.AF_UNIX) as (_, came):
        run(cage_of(folder, tier), connect(address, "AF_UNIX"), Grants(network=True))
    assert came == []


def test_the_network_can_be_granted(folder, tier):
    with listening(("127.0.0.1", 0)) as (address, came):
        ran = run(cage_of(folder, tier), connect(address), Grants(network=True))
    assert ran.output == "sent\n"
    assert len(came) == 1


@pytest.mark.parametrize("tier", ALONE)
def test_connections_inside_are_possible(folder, tier):
    need_tier(tier)
    code = (
        "import socket, threading; s = socket.create_server(('127.0.0.1', 0));"
        "threading.Thread(target=lambda: s.accept()[0].send(b'hello')).start();"
        "print(socket.create_connection(s.getsockname()).recv(9))"
    )
    ran = run(cage_of(folder, tier), python(code))
    assert (ran.output, ran.report.hosts) == ("b'hello'\n", ())


def test_later_commands_reach_a_server_in_the_background(folder):
    need_tier("namespaces")
    cage = cage_of(folder, "namespaces")
    code = (
        "import socket; s = socket.create_server(('127.0.0.1', 4711)); print('up', flush=True)\n"
        "while True: s.accept()[0].send(b'hello')"
    )
    launch = cage.launch(("bash", "-c", python(code)), os.environ)
    process = popen(launch)
    assert process.stdout.readline() == b"up\n"
    cage.stays(launch)
    try:
        code = "import socket; print(socket.create_connection(('127.0.0.1', 4711)).recv(9))"
        assert run(cage, python(code)).output == "b'hello'\n"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        launch.ended()


def test_where_it_wants_to_connect_is_seen(folder):
    need_tier("namespaces")
    cage = cage_of(folder, "namespaces")
    names = run(cage, "getent ahosts www.example.org").report.hosts
    assert names == ("www.example.org",)
    addresses = run(
        cage, connect(("192.0.2.7", 443)) + "; " + connect(("2001:db8::1", 80), "AF_INET6")
    )
    assert addresses.report.hosts == ("192.0.2.7:443", "2001:db8::1:80")


def test_without_namespaces_it_is_seen_that_it_wants_to_connect(folder):
    need_tier("landlock")
    assert run(cage_of(folder, "landlock"), connect(("192.0.2.7", 443))).report.hosts == ("",)


# Other processes


@pytest.fixture
def bystander():
    process = subprocess.Popen(("sleep", "600"), env={**os.environ, "CANARY": "SECRET"})
    yield process
    process.kill()
    process.wait()


def test_other_processes_are_neither_signalled_nor_read(folder, tier, bystander):
    pid = bystander.pid
    command = f"kill -9 {pid}; tr '\\0' '\\n' < /proc/{pid}/environ; ls -l /proc/{pid}/cwd/; grep -s SECRET /proc/[0-9]*/environ"  # noqa: E501
    limits = Path(f"/proc/{pid}/limits").read_text()
    limit = f"import resource; resource.prlimit({pid}, resource.RLIMIT_NOFILE, (0, 0))"
    ran = run(cage_of(folder, tier), f"{command}; {python(limit)}")
    assert "SECRET" not in ran.output
    assert bystander.poll() is None
    assert Path(f"/proc/{pid}/limits").read_text() == limits


@pytest.mark.parametrize("tier", ALONE)
def test_what_the_sandbox_tells_cannot_be_forged(folder, tier):
    need_tier(tier)
    command = "for n in /proc/1/fd/*; do echo name good.example > $n; done"
    ran = run(cage_of(folder, tier), command)
    assert "good" in ran.output  # its own output is there
    assert ran.report.hosts == ()


@pytest.mark.parametrize("tier", ALONE)
def test_other_processes_are_not_even_seen(folder, tier, bystander):
    need_tier(tier)
    ran = run(cage_of(folder, tier), "ls /proc | grep -c '^[0-9]'; cat /proc/[0-9]*/cmdline")
    assert int(ran.output.split("\n")[0]) < 10
    assert "600" not in ran.output


CALLS = {
    "ptrace": "c.syscall(101, 16, 1, 0, 0)",
    "unshare": "c.unshare(0x10000000)",
    "a new user namespace": "c.syscall(56, 0x10000011, 0, 0, 0, 0)",
    "mount": "c.mount(b'none', b'/', None, 1 << 14, None)",
    "keyctl": "c.syscall(250, 0, -3, 1)",
    "bpf": "c.syscall(321, 0, 0, 0)",
    "io_uring": "c.syscall(425, 1, 0)",
    "clone3": "c.syscall(435, 0, 0)",
    "handles": "c.syscall(304, 0, 0, 0)",
    "reading memory": "c.syscall(310, 1, 0, 0, 0, 0, 0)",
    "packet sockets": "c.socket(17, 3, 0)",
    "vsock": "c.socket(40, 1, 0)",
    "typing into a terminal": "c.ioctl(0, 0x5412, b'x')",
}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="these are its numbers")
@pytest.mark.parametrize("name", CALLS)
def test_ways_around_are_closed(folder, tier, name):
    code = (
        "import ctypes; c = ctypes.CDLL(None, use_errno=True);"
        f"print({CALLS[name]}, ctypes.get_errno())"
    )
    ran = run(cage_of(folder, tier), f"{sys.executable} -I -c {shlex.quote(code)}")
    assert ran.output in ("-1 1\n", "-1 13\n", "-1 38\n"), ran.output


# The life of a command


def test_words_of_any_bytes_arrive(folder, tier):
    odd = os.fsdecode(b"\xff \xc3\xa9\n'")
    launch = cage_of(folder, tier).launch(("printf", "%s|", odd, "é"), {**os.environ, "ODD": odd})
    process = popen(launch)
    output, _ = process.communicate(timeout=50)
    launch.ended()
    assert output == b"\xff \xc3\xa9\n'|\xc3\xa9|"


def test_it_ends_as_the_program_does(folder, tier):
    cage = cage_of(folder, tier)
    assert run(cage, "exit 3").status == 3
    assert run(cage, "no-such-program").status == 127
    if tier != "bubblewrap":
        assert run(cage, "kill -SEGV $$").status == -signal.SIGSEGV


def test_the_users_terminal_is_neither_written_nor_read(folder, tier):
    ours, theirs = os.openpty()
    os.set_blocking(ours, False)
    try:
        name = os.ttyname(theirs)
        assert run(cage_of(folder, tier), f"echo forged > {name}; : < {name}").status
        with pytest.raises(BlockingIOError):
            os.read(ours, 9)
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_daemon_ends_with_its_command(folder, tier):
    daemon = f"sleep 4711{os.getpid()}"
    ran = run(cage_of(folder, tier), f"setsid -f {daemon} >/dev/null 2>&1 </dev/null; echo ok")
    assert ran.output == "ok\n"
    while (
        subprocess.run(("pgrep", "-f", daemon), stdout=subprocess.DEVNULL, check=False).returncode
        == 0
    ):
        time.sleep(0.02)  # bubblewrap itself may be gone a moment earlier


def test_what_it_left_running_is_told(folder):
    need_tier("namespaces")
    cage = cage_of(folder, "namespaces")
    assert run(cage, "sleep 60 >/dev/null 2>&1 & echo ok").report.left
    assert not run(cage, "sleep 0.1 & wait").report.left


@pytest.mark.parametrize("tier", ["namespaces", "landlock"])
def test_who_ignores_a_request_to_end_is_ended_with_its_daemons(folder, tier):
    need_tier(tier)
    daemon = f"sleep 4712{os.getpid()}"
    launch = cage_of(folder, tier).launch(
        ("bash", "-c", f"trap '' TERM; setsid -f {daemon}; echo up; while :; do sleep 9; done"),
        os.environ,
    )
    with popen(launch) as process:
        process.stdout.readline()
        process.terminate()
    assert subprocess.run(("pgrep", "-f", daemon), check=False).returncode == 1
    launch.ended()


def test_a_request_to_end_reaches_the_program(folder):
    need_tier("namespaces")
    launch = cage_of(folder, "namespaces").launch(
        ("bash", "-c", "trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.1; done"),
        os.environ,
    )
    process = popen(launch)
    assert process.stdout.readline() == b"up\n"
    from mull.agent.processes import signal_all

    signal_all(process.pid, signal.SIGTERM)
    assert process.stdout.read().endswith(b"bye\n")
    assert process.wait() == 7
    process.stdout.close()


def test_it_ends_if_mull_is_gone(folder):
    need_tier("namespaces")
    launch = cage_of(folder, "namespaces").launch(("bash", "-c", "echo up; sleep 600"), os.environ)
    process = popen(launch)
    assert process.stdout.readline() == b"up\n"
    launch.ended()  # nobody reads what it tells
    assert process.stdout.read() == b""
    assert process.wait() == 125
    process.stdout.close()


# Grants


def test_a_path_can_be_granted(folder, tier):
    other = folder.parent / "other"
    other.mkdir()
    cage = cage_of(folder, tier)
    run(cage, "echo x > ../other/y; echo x > ../z", Grants(writes=(str(other),)))
    assert os.listdir(other) == ["y"]
    assert not (folder.parent / "z").exists()


def test_a_granted_path_that_became_a_link_grants_nothing(folder):
    """A command in the background may have put it there."""
    need_tier("landlock")
    (folder.parent / "other").mkdir()
    (folder / "sub/link").symlink_to("../../other")
    grants = Grants(writes=(str(folder / "sub/link"),))
    run(cage_of(folder, "landlock"), "echo x > ../other/y", grants)
    assert os.listdir(folder.parent / "other") == []


@pytest.mark.parametrize("tier", LOCKING)
def test_a_protected_file_can_be_granted_and_no_other(folder, tier):
    need_tier(tier)
    grants = Grants(writes=(str(folder / "AGENTS.md"), str(folder / ".github/workflows/ci.yml")))
    command = "echo new > AGENTS.md; echo new > .github/workflows/ci.yml; "
    run(cage_of(folder, tier), command + "echo x > .github/y; git config a.b c", grants)
    assert (folder / "AGENTS.md").read_text() == "new\n"
    assert (folder / ".github/workflows/ci.yml").read_text() == "new\n"
    assert not (folder / ".github/y").exists()
    assert "[a]" not in (folder / ".git/config").read_text()


def test_what_is_granted_to_be_read_cannot_be_written(folder, home, tier):
    (home / ".ssh").mkdir()
    (home / ".ssh/id").write_text("KEY\n")
    grants = Grants(reads=(str(home / ".ssh"),))
    ran = run(cage_of(folder, tier), "cat ~/.ssh/id; echo evil > ~/.ssh/id", grants)
    assert ran.output.startswith("KEY\n")
    assert (home / ".ssh/id").read_text() == "KEY\n"


@pytest.mark.parametrize("tier", ALONE)
def test_a_temporary_file_of_others_can_be_granted(folder, tier, tmp_path):
    need_tier(tier)
    (tmp_path / "log").write_text("of others\n")
    grants = Grants(reads=(str(tmp_path / "log"),))
    command = f"cat {tmp_path}/log; echo evil > {tmp_path}/log"
    assert run(cage_of(folder, tier), command, grants).output.startswith("of others\n")
    assert (tmp_path / "log").read_text() == "of others\n"


def with_program(folder, text="echo it runs"):
    """A folder of programs, with one."""
    folder.mkdir(parents=True)
    (folder / "greet").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "greet").chmod(0o755)
    return folder


def test_programs_on_the_path_are_there_although_they_lie_in_tmp(
    folder, tier, tmp_path, monkeypatch
):
    """A virtual environment in /tmp is needed whole; of other folders only the programs."""
    plain = with_program(tmp_path / "tools/bin")
    whole = with_program(tmp_path / "env/bin", 'cat "$(dirname "$0")/../lib"')
    for place in (plain, whole):
        (place.parent / "lib").write_text("its library\n")
    (whole.parent / "pyvenv.cfg").touch()
    for place, said in ((plain, "it runs\n"), (whole, "its library\n")):
        monkeypatch.setenv("PATH", f"{place}:/usr/bin:/bin")
        spoil = f"greet; echo evil > {place}/greet; echo evil > {place.parent}/lib"
        assert run(cage_of(folder, tier), spoil).output.startswith(said)
        assert "evil" not in (place / "greet").read_text()
        assert (place.parent / "lib").read_text() == "its library\n"
    monkeypatch.setenv("PATH", f"{plain}:/usr/bin:/bin")
    if tier != "landlock":  # which hides nothing but what is secret
        assert "library" not in run(cage_of(folder, tier), f"cat {plain.parent}/lib").output


def test_no_folder_of_programs_shows_a_key_or_covers_the_working_folder(
    folder, tier, tmp_path, monkeypatch
):
    home = with_program(tmp_path / "home")
    (home / ".ssh").mkdir()
    (home / ".ssh/id").write_text("CANARY\n")
    monkeypatch.setenv("HOME", str(home))
    inside = with_program(home / ".ssh/bin")
    (tmp_path / "link").symlink_to(inside)
    places = (home, inside, tmp_path / "link")
    monkeypatch.setenv("PATH", ":".join(map(str, (*places, "/usr/bin", "/bin"))))
    ran = run(
        cage_of(folder, tier), f"cat {home}/.ssh/id; for p in {tmp_path}/link; do $p/greet; done"
    )
    assert "CANARY" not in ran.output
    assert "it runs" not in ran.output
    work = tmp_path / "env/work"
    work.mkdir(parents=True)
    (work.parent / "pyvenv.cfg").touch()
    with_program(work.parent / "bin")
    monkeypatch.setenv("PATH", f"{work.parent}/bin:/usr/bin:/bin")
    assert run(cage_of(work, tier), "echo x > new; cat new").output == "x\n"
    assert (work / "new").read_text() == "x\n"


def test_the_configuration_of_git_can_be_granted(folder, tier):
    grants = Grants(writes=(str(folder / ".git/config"),))
    assert run(cage_of(folder, tier), "git config a.b c", grants).status == 0
    assert "[a]" in (folder / ".git/config").read_text()


# What mull itself runs


def test_the_launcher_gets_no_variables_of_the_command(folder, tier):
    """One of them may name a folder of libraries that a model can write to."""
    cage = cage_of(folder, tier)
    launch = cage.launch(
        ("bash", "-c", "echo $MINE"), {**os.environ, "LD_DEBUG": "libs", "MINE": "1"}
    )
    process = popen(launch)
    output, _ = process.communicate(timeout=50)
    launch.ended()
    text = output.decode("utf-8", "replace")
    assert "1\n" in text
    assert "libtinfo" in text or "libc.so" in text  # of the shell
    assert "_ctypes" not in text
    assert "bwrap" not in text


def test_programs_from_the_working_folder_are_not_mulls(folder, monkeypatch):
    planted = folder / ".venv/bin"
    planted.mkdir(parents=True)
    for name in ("git", "rg", "bash", "bwrap"):
        (planted / name).write_text(f"#!/bin/sh\ntouch {folder.parent}/ran\n")
        (planted / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{planted}:.:{os.environ['PATH']}")
    monkeypatch.chdir(folder)
    assert take_snapshot(folder) is not None
    assert not (folder.parent / "ran").exists()
    assert find_program("bash") != str(planted / "bash")
    assert find_program("git", folder / "sub") == str(planted / "git")


def test_code_that_mull_may_still_load_cannot_be_changed(folder, monkeypatch):
    need_tier("namespaces")
    (folder / "lib").mkdir()
    (folder / "lib/late.py").write_text("x = 1\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder / "lib"), str(folder)])
    own_code.cache_clear()
    try:
        run(
            cage_of(folder, "namespaces"),
            "echo evil > lib/late.py; echo evil > lib/new.py; echo x > ok",
        )
        edit = builtin_tools(Workspace(folder))["write"]
        asked = edit.prepare(
            ToolCallBlock("c", "write", {"path": "lib/late.py", "content": "evil"})
        ).asked
        plain = edit.prepare(ToolCallBlock("c", "write", {"path": "a.py", "content": "2"})).asked
    finally:
        own_code.cache_clear()
    assert os.listdir(folder / "lib") == ["late.py"]
    assert (folder / "lib/late.py").read_text() == "x = 1\n"
    assert (folder / "ok").exists()
    assert decide(asked, "auto", ()).verdict == "ask"
    assert decide(plain, "auto", ()).verdict == "run"


# Where there is none


def test_a_folder_in_a_hidden_one_has_no_sandbox(home):
    (home / ".ssh/sub").mkdir(parents=True)
    need_tier("namespaces")
    with pytest.raises(LocalError, match="hidden from commands"):
        cage_of(home / ".ssh/sub", "namespaces").launch(("true",), {})


def test_a_folder_with_too_many_folders_has_no_sandbox(folder, monkeypatch):
    need_tier("namespaces")
    monkeypatch.setattr("mull.agent.sandbox.territory.MOST_FOLDERS", 2)
    assert "too many folders" in cage_of(folder, "namespaces").why_not()
    assert "too many folders" in cage_of(Path("/"), "namespaces").why_not()


def test_switched_off_there_is_none(folder):
    assert Cage(folder, wish=lambda: "off").why_not() == "tools.sandbox is off"


def test_what_cannot_be_set_up_starts_nothing(folder, tmp_path):
    need_tier("namespaces")
    cage = cage_of(folder, "namespaces")
    launch = cage.launch(("bash", "-c", "touch ran"), os.environ, Grants(writes=("/no/such/path",)))
    process = popen(launch)
    assert process.wait(30) == 125
    process.stdout.close()
    assert "no/such" in launch.ended().failed
    assert not (folder / "ran").exists()
