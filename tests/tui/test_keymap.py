"""Keys of the user's own: what they are written as, what they do, and what is refused."""

from __future__ import annotations

import pytest

from mull.neutral.errors import ConfigError
from mull.store.config import read_config
from mull.tui.screen.keymap import keymap
from mull.tui.screen.keys import KEYS, LONE_ESC


def pressed(action, **own):
    return [key.pressed for key in keymap(own) if key.action == action]


def test_without_a_table_the_keys_are_the_usual_ones():
    assert keymap({}) == KEYS


@pytest.mark.parametrize(
    ("written", "keys"),
    [
        ("ctrl-y", ("c-y",)),
        ("Ctrl-Y", ("c-y",)),
        ("alt-v", ("escape", "v")),
        ("f5", ("f5",)),
        ("alt-left", ("escape", "left")),
        ("ctrl-alt-b", ("escape", "c-b")),
        ("shift-up", ("s-up",)),
        ("ctrl-x v", ("c-x", "v")),
        ("ctrl-x ctrl-v", ("c-x", "c-v")),
        ("alt--", ("escape", "-")),
    ],
)
def test_keys_are_written_as_people_write_them(written, keys):
    assert pressed("view", view=[written]) == [keys]


def test_an_action_may_have_several_keys_or_none():
    assert pressed("newline", newline=["shift-enter", "f6"]) == [("escape", "enter"), ("f6",)]
    assert pressed("level", level=[]) == []
    assert pressed("stop", stop=["esc", "f9"]) == [(LONE_ESC,), ("f9",)]
    assert ("<sigint>",) in pressed("interrupt", interrupt=["f10"])
    shown = [key.shown for key in keymap({"edit": ["ctrl-x ctrl-v"]}) if key.action == "edit"]
    assert shown == ["Ctrl-X Ctrl-V"]


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (
            {"veiw": ["ctrl-y"]},
            r"config.toml: keys.veiw: unknown action: did you mean view",
        ),
        ({"view": ["x"]}, r"keys.view cannot be \"x\": give a key"),
        ({"view": ["ctrl-shift-y"]}, "give a key"),
        ({"view": [""]}, "give a key"),
        ({"view": ["ctrl-x nokey"]}, "give a key"),
        ({"view": ["ctrl-l"]}, "Ctrl-L is assigned to both view and redraw"),
        ({"view": ["ctrl-x"]}, "to both view and edit"),
        ({"view": ["ctrl-m"]}, "to both enter and view"),
        ({"enter": []}, "keys.enter needs a key"),
    ],
)
def test_what_cannot_be_is_refused_and_says_why(own, said):
    with pytest.raises(ConfigError, match=said):
        keymap(own)


def test_the_config_file_takes_a_key_or_a_list_of_keys():
    config = read_config(b'[keys]\nview = "ctrl-y"\nlevel = []\n', "config.toml")
    assert config.keys == {"view": ("ctrl-y",), "level": ()}
    with pytest.raises(ConfigError, match=r"config.toml: keys: view cannot be 3: use a key"):
        read_config(b"[keys]\nview = 3\n", "config.toml")
