"""What a command wanted, read from the messages of many programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from mull.agent.sandbox.cage import Launch, Report
from mull.agent.sandbox.order import Grants, Order, Started
from mull.agent.sandbox.territory import Bounds
from mull.agent.sandbox.tiers import TIERS
from mull.agent.sandbox.wants import Want, granting, is_denial, wants_of


@pytest.fixture
def launch(tmp_path, monkeypatch):
    """A folder that is not in /tmp, as far as its name goes."""
    home, root = tmp_path / "home/me", tmp_path / "home/me/work"
    for folder in (root / ".git", root / ".github", home / ".ssh", home / "lib/deep"):
        folder.mkdir(parents=True)
    for file in (root / "AGENTS.md", root / ".git/config", root / ".env", home / "lib/a.txt"):
        file.write_text("x")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("mull.agent.sandbox.wants._OWN_PLACES", ("/dev", "/proc"))
    locked = tuple(str(root / name) for name in ("AGENTS.md", ".git/config", ".github"))
    bounds = Bounds((str(root),), locked, (str(root / ".env"),))
    order = Order((), {}, str(root), bounds, [str(home / ".ssh")], tmp_path / "own", tmp_path)
    return Launch(Started([], {}), order, TIERS["bubblewrap"])


AGENTS = ["to write AGENTS.md"]
LIB = ["to write ~/lib/b.txt (all of ~/lib)"]
MESSAGES = {
    "/usr/bin/bash: line 1: AGENTS.md: Read-only file system": AGENTS,
    "sh: 1: cannot create AGENTS.md: Read-only file system": AGENTS,
    "cp: cannot create regular file 'AGENTS.md': Read-only file system": AGENTS,
    "mv: cannot move 'x' to 'AGENTS.md': Device or resource busy": AGENTS,
    "sed: couldn't open file AGENTS.md: Read-only file system": AGENTS,
    "OSError: [Errno 30] Read-only file system: 'AGENTS.md'": AGENTS,
    "Error: EROFS: read-only file system, open 'AGENTS.md'": AGENTS,
    "open AGENTS.md: read-only file system": AGENTS,
    "error: unable to unlink old 'AGENTS.md': Device or resource busy": AGENTS,
    "zsh: read-only file system: AGENTS.md": AGENTS,
    "error: could not write config file .git/config: Device or resource busy": [
        "to write .git/config"
    ],
    "mkdir: cannot create directory ‘.github/x’: Read-only file system": [
        "to write .github/x (all of .github)"
    ],
    "touch: cannot touch '{home}/lib/b.txt': Read-only file system": LIB,
    "PermissionError: [Errno 13] Permission denied: '{home}/lib/b.txt'": LIB,
    "tee: {home}/lib/a.txt: Read-only file system": ["to write ~/lib/a.txt"],
    "touch: cannot touch '{home}/.newrc': Read-only file system": [
        "to write ~/.newrc, outside the sandbox"
    ],
    "cat: {home}/.ssh/id: Permission denied": ["to read ~/.ssh"],
    "git@github.com: Permission denied (publickey).": ["to read ~/.ssh"],
    "cat: .env: Permission denied": [],
    "touch: cannot touch '/proc/sys/x': Permission denied": [],
    "bash: ./a.sh: Permission denied": [],
    "cat: missing.txt: No such file or directory": [],
    "3 tests failed": [],
    "curl: (6) Could not resolve host: example.org": ["the network: example.org"],
    "fatal: unable to access 'https://a.b/': Could not resolve host: a.b": ["the network: a.b"],
    "ssh: Could not resolve hostname github.com: Name or service not known": [
        "the network: github.com"
    ],
    "npm error getaddrinfo EAI_AGAIN registry.npmjs.org": ["the network: registry.npmjs.org"],
    "wget: unable to resolve host address ‘example.com’": ["the network: example.com"],
    "W: Failed to fetch x  Temporary failure resolving 'deb.debian.org'": [
        "the network: deb.debian.org"
    ],
    "dial tcp: lookup proxy.golang.org on 1.1.1.1:53: no such host": [
        "the network: proxy.golang.org"
    ],
    "connect: Network is unreachable": ["the network"],
}


@pytest.mark.parametrize("message", MESSAGES)
def test_messages_of_programs(launch, message):
    text = f"before\n{message.replace('{home}', str(Path.home()))}\nafter\n"
    assert [want.words for want in wants_of(text, Report(), launch)] == MESSAGES[message]


def test_what_was_seen_counts_more_than_what_was_said(launch):
    said = "could not resolve host: evil.example"
    seen = wants_of(said, Report(hosts=("good.example", "192.0.2.1:443")), launch)
    assert [want.words for want in seen] == ["the network: good.example"]
    addresses = wants_of("", Report(hosts=("192.0.2.1:443", "192.0.2.2:80")), launch)
    assert [want.words for want in addresses] == ["the network: 192.0.2.1:443, 192.0.2.2:80"]
    (unnamed,) = wants_of("", Report(hosts=("",)), launch)
    assert unnamed.words == "the network"


def test_a_flood_of_denials_is_a_short_question(launch):
    home = Path.home()
    lines = [f"touch: cannot touch '{home}/lib/{n}': Read-only file system" for n in range(5000)]
    assert len(wants_of("\n".join(lines), Report(), launch)) == 5


def test_wants_become_grants_or_the_whole_outside():
    wants = [Want("network", "a"), Want("write", "b", "/b"), Want("read", "c", "/c")]
    assert granting(Grants(writes=("/a",)), wants) == Grants(True, ("/a", "/b"), ("/c",))
    assert granting(Grants(), [*wants, Want("write", "~/.x")]) is None


def test_what_reads_like_a_denial():
    assert is_denial("x: Permission denied")
    assert is_denial("Network is unreachable")
    assert not is_denial("AssertionError")
