"""The sandbox as root and as an ordinary user, with and without user namespaces, in a container."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import caged
import mull
from caged import fill_repository, make_place, need_tier

ESCAPE = (
    "echo in > ok; cat ok; touch ../beside; cat ~/.ssh/id; kill -9 {pid}; cat /proc/{pid}/environ;"
    " getent ahosts www.example.org; true"
)


@pytest.fixture
def folder():
    for place in make_place():
        (place / "work").mkdir()
        fill_repository(place / "work")
        (place / "home/.ssh").mkdir(parents=True)
        (place / "home/.ssh/id").write_text("SECRET\n")
        yield place / "work"


@pytest.fixture
def bystander():
    with subprocess.Popen(("sleep", "600"), env={"CANARY": "SECRET"}) as process:
        yield process
        process.kill()


def play(folder, how, command, *before, python=sys.executable):
    """What `caged.py` tells, run by another process."""
    places = (Path(caged.__file__).parent, Path(mull.__file__).parent.parent)
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    done = subprocess.run(
        (*before, python, caged.__file__, str(folder), how, command),
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder.parent / "home"),
            "PYTHONPATH": ":".join([*map(str, places), *libraries]),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        stdout=subprocess.PIPE,
        timeout=60,
        check=True,
    )
    return json.loads(done.stdout)


def confined(told, folder, bystander):
    assert told["output"].startswith("in\n"), told
    assert "SECRET" not in told["output"]
    assert not (folder.parent / "beside").exists()
    assert bystander.poll() is None


def test_with_everything_the_strongest_is_used(folder, bystander):
    need_tier("namespaces")
    told = play(folder, "as-it-is", ESCAPE.format(pid=bystander.pid))
    assert told["tier"] == "namespaces"
    assert told["hosts"] == ["www.example.org"]
    confined(told, folder, bystander)


def test_without_namespaces_landlock_is_used(folder, bystander):
    need_tier("landlock")
    told = play(folder, "no-namespaces", ESCAPE.format(pid=bystander.pid))
    assert told["tier"] == "landlock"
    assert "namespaces: not allowed here" in told["why"]
    confined(told, folder, bystander)


def test_without_either_there_is_none_and_nothing_runs(folder):
    told = play(folder, "no-landlock", "touch ran")
    assert told["tier"] is None
    assert "landlock: there is no Landlock" in told["why"]
    assert not (folder / "ran").exists()


def test_in_a_container_that_covers_parts_of_proc(folder, bystander):
    """There a new /proc cannot be mounted."""
    need_tier("namespaces")
    need_tier("landlock")
    cover = f'mount -t tmpfs none /proc/{bystander.pid}/task && exec "$@"'
    root = () if os.geteuid() == 0 else ("-Ur",)
    container = (shutil.which("unshare") or pytest.skip("NOT TESTED: no unshare"), *root, "-m")
    command = (
        ESCAPE.format(pid=bystander.pid) + "; echo x > /proc/sys/kernel/hostname; ls /proc/self/fd"
    )
    told = play(folder, "as-it-is", command, *container, "sh", "-c", cover, "-")
    assert told["tier"] == "namespaces"
    assert "0\n1\n2\n" in told["output"]
    confined(told, folder, bystander)


NOBODY = 65534


def nobodys_python():
    """A Python of this version that any user may start."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for path in (sys.executable, f"/usr/bin/python{version}", f"/usr/local/bin/python{version}"):
        try:
            subprocess.run((path, "-c", "import json"), user=NOBODY, check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return path
    pytest.skip("NOT TESTED: no Python that an ordinary user may start")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
@pytest.mark.parametrize("how", ["as-it-is", "no-namespaces"])
def test_as_an_ordinary_user(folder, how):
    python = nobodys_python()
    need_tier("namespaces" if how == "as-it-is" else "landlock")
    for path in (folder.parent, *folder.parent.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    become = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    if subprocess.run((*become, "test", "-r", folder), check=False).returncode:
        pytest.skip(f"NOT TESTED: an ordinary user may not enter {folder}")
    sleep = subprocess.Popen((*become, "sleep", "600"), env={**os.environ, "CANARY": "SECRET"})
    try:
        command = ESCAPE.format(pid=sleep.pid) + "; id -u; git status --short"
        told = play(folder, how, command, *become, python=python)
        confined(told, folder, sleep)
    finally:
        sleep.kill()
        sleep.wait()
    assert f"{NOBODY}\n" in told["output"]
    assert "?? ok" in told["output"]
    assert os.stat(folder / "ok").st_uid == NOBODY
