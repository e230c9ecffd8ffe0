"""A real bug in a real package, fixed by `mull ask` in every dialect.

The package is tabulate, from PyPI, with one `- 1` taken out of its 2,716 lines: 85 of its own tests
fail. The coder is a script, but one that sees only what mull sends to its provider: it finds each
next step in the results of the last one, so a result that is cut in the wrong place, mixed up with
another or lost ends the test. It calls tools by the names that models were trained on.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from mull.testing import Call, Say, StrictServer, Think

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

PACKAGE, SOURCE = "tabulate-0.9.0", "tabulate/__init__.py"
HOME = Path(sys.prefix) / "package-judge"
RIGHT, BROKEN = "return len(string) - pos - 1\n", "return len(string) - pos\n"
MODELS = {
    "anthropic": "anthropic/claude-sonnet-4-5",
    "gemini": "google/gemini-3-pro-preview",
    "kimi": "moonshotai/kimi-k2-thinking",
    "openai": "openai/gpt-5",
    "openrouter": "openrouter/anthropic/claude-sonnet-4.5",
}
TESTS = f"{sys.executable} -m pytest -q -n0 -p no:cacheprovider"
NEW_TEST = """*** Begin Patch
*** Add File: test/test_afterpoint.py
+from tabulate import _afterpoint
+
+
+def test_digits_after_the_point():
+    assert [_afterpoint(one) for one in ("1.25", "1e45", "12")] == [2, 2, -1]
*** End Patch"""


@pytest.fixture(scope="session")
def archive():
    """The package's source, fetched if it is not there."""
    found = HOME / f"{PACKAGE}.tar.gz"
    if not found.exists():
        fetch = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
        wanted = PACKAGE.replace("-", "==")
        subprocess.run([*fetch, "-d", str(HOME), wanted], check=True, timeout=300)
    return found


@pytest.fixture
def project(archive, tmp_path):
    """The package with its bug, in a repository whose last commit has it."""
    with tarfile.open(archive) as files:
        files.extractall(tmp_path, filter="data")
    folder = tmp_path / PACKAGE
    source = folder / SOURCE
    text = source.read_text(encoding="utf-8")
    assert text.count(RIGHT) == 1
    source.write_text(text.replace(RIGHT, BROKEN), encoding="utf-8")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "The package"]):
        who = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
        subprocess.run(["git", *who, *words], cwd=folder, check=True)
    return folder


class Coder:
    """What the model does. Each step is decided by what the last request brought."""

    def __init__(self) -> None:
        self.server = None

    def seen(self, pattern):
        """Where the last request has this, in any of its texts; the newest first."""
        texts = [*_texts(self.server.requests[-1].json)]
        found = (re.search(pattern, text) for text in reversed(texts))
        match = next((one for one in found if one), None)
        if match is None:
            raise LookupError(f"the model was not shown {pattern}")
        return match

    def answers(self):
        """Its steps; where one cannot be decided, it says so instead."""
        try:
            yield from self.steps()
        except LookupError as error:
            yield [Say(f"I am lost: {error}")]

    def steps(self):
        yield [
            Think("First I see what fails."),
            Call("TodoWrite", {"todos": [{"content": "mend it", "status": "in_progress"}]}),
            Call("bash", {"command": f"{TESTS} test", "timeout": 300000}),
        ]
        self.seen(r"85 failed, 184 passed")
        test = self.seen(r"FAILED test/test_output\.py::(test_\w*float\w*)")[1]
        yield [
            Think("Numbers with a point are aligned wrongly."),
            Say("I look for the code that aligns them."),
            Call("grep", {"pattern": r"def _\w*point", "path": "tabulate"}),
            Call("Grep", {"pattern": f"def {test}", "path": "test", "-A": 12}),
        ]
        line = int(self.seen(rf"{SOURCE}\n\s*(\d+)\W+def _afterpoint")[1])
        self.seen(rf"def {test}")
        yield [
            Think("This one."),
            Call("Read", {"file_path": SOURCE, "offset": line, "limit": 40}),
        ]
        wrong = self.seen(r"\t( +return len\(string\) - pos)\n")[1]
        title = self.seen(r'\t( +)"""(Symbols after a decimal point\b[^\n]*)\n')
        yield [
            Think("The point itself is counted."),
            Call(
                "MultiEdit",
                {
                    "file_path": SOURCE,
                    "edits": [
                        {"old_string": f"{wrong}\n", "new_string": f"{wrong} - 1\n"},
                        {"old_string": title[2], "new_string": f"{title[2]} Not the point."},
                    ],
                },
            ),
            Call("apply_patch", {"input": NEW_TEST}),
        ]
        yield [
            Think("All tests, while I look at the difference."),
            Call("bash", {"command": f"{TESTS} test", "run_in_background": True}),
            Call("bash", {"command": "git diff --stat && git status --short"}),
        ]
        self.seen(r"1 file changed, 2 insertions\(\+\), 2 deletions\(-\)")
        job = int(self.seen(r"\bjob (\d+)\b")[1])
        yield [Think("I wait."), Call("jobs", {"id": job, "wait": 300})]
        passed = self.seen(r"(\d+) passed, 15 skipped")[1]
        yield [Think("That is all."), Say(f"{passed} tests pass.")]
        yield [Think("It is above."), Say(f"Line {line}.")]


def _texts(value):
    """Every text in a body, in order; what is JSON inside a text is one, too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def ask(folder, server, provider, *words):
    where = ["-m", MODELS[provider], "--base-url", server.url, "--tools", "all", "--yes"]
    return subprocess.run(
        [sys.executable, "-m", "mull", "ask", *where, *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=350,
        check=False,
    )


@pytest.mark.parametrize("provider", MODELS)
def test_the_package_is_mended_and_its_own_tests_pass(provider, project):
    coder = Coder()
    with StrictServer(provider, coder.answers()) as coder.server:
        done = ask(project, coder.server, provider, "The tests fail. Find out why and mend it.")
        assert (done.returncode, done.stdout) == (0, "270 tests pass.\n"), done.stderr
        assert "run: git diff --stat && git status --short" in done.stderr
        again = ask(project, coder.server, provider, "--continue", "Which line was it?")
        assert (again.returncode, again.stdout) == (0, "Line 918.\n"), again.stderr
    assert coder.server.refusals == coder.server.doubts == []
    changed = subprocess.run(
        ["git", "diff", "-U0"], cwd=project, capture_output=True, text=True, check=True
    ).stdout
    assert f"+                {RIGHT}" in changed
    judged = subprocess.run(
        [*TESTS.split(), "test"], cwd=project, capture_output=True, text=True, check=False
    )
    assert judged.returncode == 0, judged.stdout[-500:]
    assert judged.stdout.splitlines()[-1].startswith("270 passed")
