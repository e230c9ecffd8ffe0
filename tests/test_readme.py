"""What the README says is what happens."""

import re
import shlex
from pathlib import Path

import pytest

from mull.cli.main import main

README = (Path(__file__).parents[1] / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
COMMANDS = [
    line.split("#")[0].removeprefix("$ ").strip()
    for _, text in BLOCKS
    for line in text.splitlines()
    if line.removeprefix("$ ").startswith("mull ")
]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_of_the_tour_work(command, capsys):
    assert main(shlex.split(command)[1:]) == 0
    assert capsys.readouterr().out


def test_the_shown_output_is_the_output(capsys):
    shown = next(text for _, text in BLOCKS if text.startswith("$ mull models show"))
    main(["models", "show", "claude-sonnet-4-5"])
    out = capsys.readouterr().out.splitlines()
    for line in shown.splitlines()[1:]:
        assert line in out or line.strip() == "..."


def test_the_python_of_the_tour_runs(capsys):
    (code,) = [text for kind, text in BLOCKS if kind == "python"]
    exec(compile(code, "README", "exec"), {})
    meter, kept = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"\d+/262144", meter)
    assert "17 * 24 is 408." in kept


def test_the_make_targets_exist():
    makefile = (Path(__file__).parents[1] / "Makefile").read_text()
    named = re.findall(r"^make (\w+)", README, re.MULTILINE)
    assert named[:2] == ["demo", "test"]
    for name in named:
        assert re.search(rf"^{name}:", makefile, re.MULTILINE)


def test_the_number_of_models_is_true():
    from mull.catalog.load import load

    models = sum(len(provider.models) for provider in load().providers.values())
    assert {int(n.replace(",", "")) for n in re.findall(r"([\d,]+) models", README)} == {models}
