"""Profiles on disk: names, files, the default, and that a refusal leaves the disk as it was."""

import os

import pytest

from mull.neutral.errors import ConfigError, ProfileError
from mull.settings.profile import Profile
from mull.store.profiles import Profiles

LOW = Profile(settings={"reasoning.effort": "low"})
HIGH = Profile(settings={"reasoning.effort": "high"})


@pytest.fixture
def saved(tmp_path):
    profiles = Profiles(tmp_path)
    profiles.save("work", LOW)
    return profiles


def disk(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def refused(directory, action):
    """The text of the error, once it is sure that the disk is as it was."""
    before = disk(directory)
    with pytest.raises(ProfileError) as caught:
        action()
    assert disk(directory) == before
    return str(caught.value)


def test_a_profile_is_saved_listed_loaded_and_deleted(saved, tmp_path):
    saved.save("a-second", HIGH)
    assert saved.list() == ["a-second", "work"]
    assert saved.load("work") == LOW
    assert saved.delete("work") is False
    assert saved.list() == ["a-second"]
    assert os.listdir(tmp_path) == ["a-second.json"]


def test_an_existing_profile_is_replaced_only_when_asked(saved, tmp_path):
    message = refused(tmp_path, lambda: saved.save("work", HIGH))
    assert message == 'profile "work" already exists: --overwrite replaces it'
    saved.save("work", HIGH, overwrite=True)
    assert saved.load("work") == HIGH


def test_a_missing_profile_is_told_with_what_there_is(saved, tmp_path):
    message = refused(tmp_path, lambda: saved.load("wrk"))
    assert message == 'there is no profile "wrk": did you mean work?'
    message = refused(tmp_path, lambda: saved.delete("zzz"))
    assert message == 'there is no profile "zzz": you have work'
    nowhere = Profiles(tmp_path / "nowhere")
    with pytest.raises(ProfileError, match=r'^there is no profile "x": none is saved yet$'):
        nowhere.load("x")
    assert nowhere.list() == []


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "a\\b", "a b", ".hidden", "none", "NUL", "x" * 65, "é"]
)
def test_a_name_that_could_leave_the_directory_is_refused(saved, tmp_path, name):
    for action in (saved.load, saved.delete, saved.set_default, lambda n: saved.save(n, LOW)):
        message = refused(tmp_path, lambda action=action: action(name))
        assert message.startswith("a profile cannot be called ")


def test_the_default_is_kept_changed_and_cleared(saved):
    assert saved.default() is None
    saved.set_default("work")
    assert saved.default() == "work"
    assert saved.list() == ["work"]
    saved.set_default(None)
    saved.set_default(None)
    assert saved.default() is None


def test_only_a_sound_profile_becomes_the_default(saved, tmp_path):
    (tmp_path / "bad.json").write_bytes(b'{"version": 1')
    assert "is damaged" in refused(tmp_path, lambda: saved.set_default("bad"))
    assert "there is no profile" in refused(tmp_path, lambda: saved.set_default("zzz"))


def test_deleting_the_default_clears_it(saved, tmp_path):
    saved.set_default("work")
    assert saved.delete("work") is True
    assert saved.default() is None
    assert disk(tmp_path) == {}


def test_a_damaged_default_is_told(saved, tmp_path):
    (tmp_path / ".default").write_bytes(b"\xff\x00../../etc")
    message = refused(tmp_path, saved.default)
    assert message.endswith(
        "is damaged: run `mull profile set-default NAME` or `mull profile set-default none`"
    )


def test_a_secret_leaves_the_old_profile(saved, tmp_path):
    secret = Profile(model="sk-" + "a1B2" * 8)
    message = refused(tmp_path, lambda: saved.save("work", secret, overwrite=True))
    assert "a1B2" not in message


def test_a_failed_write_leaves_the_old_profile(saved, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    before = disk(tmp_path)
    with pytest.raises(ConfigError, match="Input/output error; what was there before is unchanged"):
        saved.save("work", HIGH, overwrite=True)
    assert disk(tmp_path) == before


def test_other_files_are_not_profiles(saved, tmp_path):
    (tmp_path / "note.txt").write_text("x")
    (tmp_path / "two words.json").write_text("x")
    (tmp_path / "directory.json").mkdir()
    assert saved.list() == ["work"]
