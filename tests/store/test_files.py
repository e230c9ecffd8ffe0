"""A file is written whole or not at all, and a failure is told by name."""

import os
import stat
import sys

import pytest

from mull.neutral.errors import ConfigError
from mull.store.files import read_bytes, remove, write_atomic
from mull.store.paths import config_dir, data_dir

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")


def test_a_file_is_written_and_replaced(tmp_path):
    path = tmp_path / "a.json"
    write_atomic(path, b"one")
    write_atomic(path, b"two")
    assert path.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["a.json"]


@posix
def test_the_file_and_new_directories_are_for_the_user_only(tmp_path):
    path = tmp_path / "x" / "y" / "a.json"
    write_atomic(path, b"one")
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (path, path.parent, path.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]


@posix
def test_a_link_stays_a_link(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    link.symlink_to(real)
    write_atomic(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_a_write_that_fails_in_the_middle_leaves_the_old_file(tmp_path, monkeypatch, step):
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    break_off(monkeypatch, step, OSError(28, "No space left on device"))
    with pytest.raises(ConfigError) as caught:
        write_atomic(path, b"new and longer")
    assert str(caught.value) == (
        f"cannot write {path}: No space left on device; what was there before is unchanged"
    )
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.json"]


def test_an_interrupt_in_the_middle_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    break_off(monkeypatch, "write", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        write_atomic(path, b"new and longer")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.json"]


def break_off(monkeypatch, step, error):
    def fail(*_args, **_kwargs):
        raise error

    if step != "write":
        monkeypatch.setattr(os, step, fail)
        return
    opened = os.fdopen

    def half_writing(*args, **kwargs):
        file = opened(*args, **kwargs)

        class Half:
            def __enter__(self):
                return self

            def __exit__(self, *_):
                file.close()

            def write(self, data):
                file.write(data[: len(data) // 2])
                raise error

        return Half()

    monkeypatch.setattr(os, "fdopen", half_writing)


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"^cannot write .*a.json: Not a directory"):
        write_atomic(tmp_path / "file" / "a.json", b"x")


def test_reading(tmp_path):
    assert read_bytes(tmp_path / "none") is None
    with pytest.raises(ConfigError, match=r"^cannot read .*: Is a directory$"):
        read_bytes(tmp_path)


def test_removing(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"")
    remove(path)
    remove(path)
    assert not path.exists()
    with pytest.raises(ConfigError, match=r"^cannot delete "):
        remove(tmp_path)


@posix
@pytest.mark.parametrize(
    ("environ", "platform", "config", "data"),
    [
        ({}, "linux", "~/.config/mull", "~/.local/share/mull"),
        (
            {"XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d"},
            "linux",
            "/c/mull",
            "/d/mull",
        ),
        ({"XDG_CONFIG_HOME": "relative"}, "linux", "~/.config/mull", "~/.local/share/mull"),
        (
            {},
            "darwin",
            "~/Library/Application Support/mull",
            "~/Library/Application Support/mull",
        ),
        (
            {"APPDATA": "/roaming", "LOCALAPPDATA": "/local"},
            "win32",
            "/roaming/mull",
            "/local/mull",
        ),
        (
            {"MULL_CONFIG_DIR": "~/m", "MULL_DATA_DIR": "/n", "XDG_CONFIG_HOME": "/c"},
            "linux",
            "~/m",
            "/n",
        ),
    ],
)
def test_directories(environ, platform, config, data):
    found = config_dir(environ, platform), data_dir(environ, platform)
    assert [str(path) for path in found] == [os.path.expanduser(p) for p in (config, data)]
