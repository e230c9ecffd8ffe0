"""One table added or taken out: every other byte of the user's file stays."""

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mull.neutral.errors import ConfigError
from mull.store.config_edit import add_table, remove_table

BEFORE = """\
[mcp.keep]
command = "k"
"""
TABLE = """
[ mcp . "x" ]   # mine
command = "c" # why
# more
args = [
  "a]", # [mcp.keep]
]

[mcp.x.env]
A = '''
[mcp.keep]'''
"""
AFTER = """
# about settings
[settings]
reasoning.effort = "high"
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "config.toml"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_table_goes_with_what_is_below_it_and_nothing_else(path, newline, mark):
    whole = (mark + BEFORE + TABLE + AFTER).replace("\n", newline)
    path.write_bytes(whole.encode())
    remove_table(path, ("mcp", "x"))
    assert path.read_bytes().decode() == (mark + BEFORE + AFTER).replace("\n", newline)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\ufeff",
        "# only words\n",
        BEFORE,
        BEFORE + AFTER,
        BEFORE + AFTER + "\n\n",
        AFTER.replace("\n", "\r\n"),
        'model = """a/b"""\n',
        "[models.\"a/b\"]\nname = '''\n[mcp.x]\n'''\n",
        '[models."a/b"]\nname = """\n\\"""[mcp.x]\n"""\n',
    ],
)
def test_adding_and_removing_leaves_the_file_as_it_was(path, text):
    path.write_bytes(text.encode())
    add_table(path, ("mcp", "x"), {"command": "c", "args": ["a"], "env": {"A": "b"}})
    assert path.read_bytes().startswith(text.encode())
    assert tomllib.loads(path.read_text("utf-8-sig"))["mcp"]["x"] == {
        "command": "c",
        "args": ["a"],
        "env": {"A": "b"},
    }
    remove_table(path, ("mcp", "x"))
    assert path.read_bytes() == text.encode()


def test_a_last_line_without_an_end_gets_one(path):
    path.write_text('model = "a/b"')
    add_table(path, ("mcp", "x"), {"command": "c"})
    assert path.read_text() == 'model = "a/b"\n\n[mcp.x]\ncommand = "c"\n'


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@settings(max_examples=30)
@given(args=st.lists(TEXTS), env=st.dictionaries(st.sampled_from(["A", "B_1"]), TEXTS))
def test_any_text_is_written_so_that_it_is_read_back(tmp_path, args, env):
    path = tmp_path / "config.toml"
    path.write_text(BEFORE)
    add_table(path, ("mcp", "x"), {"command": "c", "args": args, "env": env})
    assert tomllib.loads(path.read_bytes().decode())["mcp"]["x"] == {
        "command": "c",
        "args": args,
        "env": env,
    }
    remove_table(path, ("mcp", "x"))
    assert path.read_text() == BEFORE


@pytest.mark.parametrize(
    "text",
    [
        'mcp.x.command = "c"\n',
        'mcp = { x = { command = "c" } }\n',
        '[mcp]\nx = { command = "c" }\n',
        '[mcp]\nx.command = "c"\n',
    ],
)
def test_what_is_no_table_of_its_own_is_left_to_the_user(path, text):
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        remove_table(path, ("mcp", "x"))
    assert str(caught.value) == f"mcp.x is not a table of its own there; edit {path} by hand"
    assert path.read_text() == text


def test_a_file_that_cannot_take_the_table_is_left_alone(path):
    path.write_text("mcp = {}\n")
    with pytest.raises(ConfigError) as caught:
        add_table(path, ("mcp", "x"), {"command": "c"})
    assert str(caught.value) == f"[mcp.x] cannot be added to it; edit {path} by hand"
    with pytest.raises(ConfigError, match="cannot be added to it"):
        add_table(path, ("mcp", "x"), {"command": "\udc80"})
    assert path.read_text() == "mcp = {}\n"


def test_what_mull_could_not_read_is_not_written(path):
    with pytest.raises(ConfigError, match=r"^config.toml: mcp.x: \"commnd\" is unknown"):
        add_table(path, ("mcp", "x"), {"commnd": "c"})
    assert not path.exists()


def test_names_there_are_and_names_there_are_not(path):
    path.write_text(BEFORE)
    with pytest.raises(ConfigError, match=r"^config.toml has a table \[mcp.keep\] already$"):
        add_table(path, ("mcp", "keep"), {"command": "c"})
    with pytest.raises(ConfigError, match=r"^config.toml has no table \[mcp.x\]$"):
        remove_table(path, ("mcp", "x"))
