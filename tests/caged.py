"""A working folder with files that matter, and commands run for real in the sandbox."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from mull.agent.sandbox.cage import Cage, Launch, Report, find_tier
from mull.agent.sandbox.order import Grants
from mull.policy.approval import parse_rule

FILES = {
    "AGENTS.md": "be good\n",
    ".env": "SECRET=1\n",
    "a.py": "print(1)\n",
    "sub/deep/.env.local": "SECRET=2\n",
    "sub/deep/CLAUDE.md": "be good\n",
    ".github/workflows/ci.yml": "on: push\n",
}
_WHO = {f"GIT_{a}_{b}": "a@b" for a in ("AUTHOR", "COMMITTER") for b in ("NAME", "EMAIL")}
_PLACES = (Path(__file__).parent.parent / ".pytest_cache", Path.home() / ".cache/mull-tests")


def need_tier(*names: str) -> None:
    """Skip loudly if this machine lacks it."""
    found = find_tier(names)
    if found.tier is None:
        pytest.skip(f"NOT TESTED: {found.words}")


def make_place() -> Iterator[Path]:
    """A folder apart from temporary files, deleted at the end."""
    apart = next((one for one in _PLACES if not one.is_relative_to("/tmp")), None)
    if apart is None:
        pytest.skip(
            "NOT TESTED: the checkout and the home are in /tmp, and the sandbox has its own"
        )
    apart.mkdir(parents=True, exist_ok=True)
    place = Path(os.path.realpath(tempfile.mkdtemp(dir=apart, prefix="sandbox-")))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place, ignore_errors=True)


def fill_repository(folder: Path) -> Path:
    """A git repository with those files."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(folder, "init", "-q")
    git(folder, "add", "AGENTS.md", "a.py", ".github")
    git(folder, "commit", "-qm", "first")
    return folder


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ("git", *words), cwd=folder, check=True, env={**os.environ, **_WHO}, stdout=subprocess.PIPE
    )
    return done.stdout.decode()


def cage_of(folder: Path, tier: str, *denied: str) -> Cage:
    return Cage(folder, [parse_rule("deny", rule) for rule in denied], tiers=(tier,))


class Ran(NamedTuple):
    status: int
    output: str
    report: Report
    launch: Launch


def popen(launch: Launch, **more: object) -> subprocess.Popen[bytes]:
    """Start it as mull does."""
    process = subprocess.Popen(
        launch.program,
        env=launch.environment,
        pass_fds=launch.passed,
        cwd=launch.order.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        **more,
    )
    launch.started()
    return process


def run(cage: Cage, command: str, grants: Grants | None = None) -> Ran:
    """The command, run to its end in the sandbox."""
    launch = cage.launch(("bash", "-c", command), {**os.environ, **_WHO}, grants)
    process = popen(launch)
    output, _ = process.communicate(timeout=50)
    report = launch.ended()
    assert not report.failed, report
    return Ran(process.returncode, output.decode("utf-8", "replace"), report, launch)


def main(folder: str, how: str, command: str) -> None:
    """`python caged.py FOLDER HOW COMMAND`: what happens to a command here. `HOW` plays a kernel:
    `as-it-is`, `no-namespaces` as in most containers, or `no-landlock` either.
    """
    import json

    if how != "as-it-is":
        _forbid(landlock=how == "no-landlock")
    verdict = find_tier()
    told: dict[str, object] = {"tier": verdict.tier and verdict.tier.name, "why": verdict.words}
    if verdict.tier is not None:
        ran = run(Cage(Path(folder)), command)
        told |= {"status": ran.status, "output": ran.output, "hosts": ran.report.hosts}
    print(json.dumps(told))


def _forbid(*, landlock: bool) -> None:
    """What the filter of most containers forbids: for this process, and all that it starts."""
    import ctypes

    from mull.agent.sandbox import filter as calls

    code = calls.filter_program(os.uname().machine, range(64), told="nothing")
    lines = [code[at : at + 8] for at in range(0, len(code), 8)]
    if landlock:
        lines[-1:-1] = calls._when(444, [calls._line(6, 0x50000 | 38)])
    code = b"".join(lines)
    kept = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HxxxxxxP", len(lines), ctypes.addressof(kept))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()


if __name__ == "__main__":
    main(*sys.argv[1:])
