"""mull without any extra: everything but what an extra is for works with msgspec and no more."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mull.cli.main import main
from mull.neutral.extras import EXTRAS, missing
from mull.testing import Say, StrictServer, Think

HERE = Path(__file__).parent
_ONLY = """
import sys
class Only:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in sys.stdlib_module_names | {"mull", "msgspec", "bare_user"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Only())
"""
BEHIND_AN_EXTRA = {
    "mull.adapters.langchain",
    "mull.adapters.llm",
    "mull.adapters.openai_agents",
    "mull.adapters.pydantic_ai",
    "mull.agent.mcp.signing",
    "mull.tui.commands.complete",
    "mull.tui.screen.app",
    "mull.tui.screen.bindings",
    "mull.tui.screen.bottom",
    "mull.tui.screen.echo",
    "mull.tui.screen.insertion",
    "mull.tui.screen.key_bytes",
    "mull.tui.screen.keyboard",
    "mull.tui.screen.layout",
    "mull.tui.screen.viewing",
}


def bare(code, *words, stdin="", cwd=None):
    """What a program prints where only msgspec can be imported."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _ONLY + code, *words],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


COMMAND = "from mull.cli.process import entry; entry()"


def test_only_the_screen_mcp_logins_and_adapters_need_more_to_be_imported():
    code = """
import importlib, pkgutil, mull
for found in pkgutil.walk_packages(mull.__path__, "mull."):
    try:
        found.name == "mull.__main__" or importlib.import_module(found.name)
    except ImportError:
        print(found.name)
"""
    assert set(bare(code).stdout.split()) == BEHIND_AN_EXTRA


def test_the_library_works_and_says_once_that_it_estimates(tmp_path):
    code = f"sys.path.insert(0, {str(HERE)!r}); import bare_user; bare_user.main()"
    found = json.loads(bare(code, cwd=tmp_path).stdout)
    assert (found["answer"], found["streamed"]) == ("It is cold.", "Yes.")
    assert found["thinking"] == "I have to look.\n\nFour degrees."
    assert found["called"] == ["weather"]
    assert found["stored"] == [4, "2"]
    (note,) = found["notes"]
    assert note.startswith("token counts are estimated from characters, on the high side: ")
    assert note.endswith("'mull-reasoning[tokens]'")


def test_a_question_on_the_command_line_needs_no_extra(tmp_path):
    with StrictServer("kimi", [[Think("Hm."), Say("Yes.")]]) as server:
        model = ("-m", "moonshotai/kimi-k2-thinking", "--base-url", server.url)
        done = bare(COMMAND, "ask", *model, "--thinking", "stderr", "Is 7 a prime?", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "Yes.\n"), done.stderr
    assert "Hm." in done.stderr


def test_a_plain_conversation_with_commands_needs_no_extra(tmp_path):
    with StrictServer("kimi", [[Think("Hm."), Say("It is.")]]) as server:
        words = ("--plain", "-m", "moonshotai/kimi-k2-thinking", "--base-url", server.url)
        done = bare(COMMAND, *words, stdin="Is 7 a prime?\n/context\n/quit\n", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "It is." in done.stdout
    assert "an estimate" in done.stdout


def test_the_terminal_says_what_to_install_and_what_works_without(monkeypatch, capsys):
    monkeypatch.setattr("mull.neutral.extras.is_installed", lambda extra: extra != "terminal")
    for stream in ("stdin", "stdout"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True, raising=False)
    assert main(["-m", "moonshotai/kimi-k2-thinking"]) == 2
    told = capsys.readouterr().err
    assert told == f"mull: {missing('terminal')}, or use `mull --plain` or `mull ask`\n"


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("serve", "-m", "moonshotai/kimi-k2-thinking", "--listen", "127.0.0.1:0"), "serve"),
        (("mcp", "test", "a"), "mcp"),
    ],
)
def test_other_commands_name_their_extra(words, extra, tmp_path):
    bare(COMMAND, "mcp", "add", "a", "--", "true")
    done = bare(COMMAND, *words, cwd=tmp_path)
    assert done.returncode != 0
    told = done.stdout + done.stderr
    assert EXTRAS[extra].feature in told
    assert f"'mull-reasoning[{extra}]'" in told
