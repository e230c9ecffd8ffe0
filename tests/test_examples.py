"""`examples/`: every program runs, prints what its page shows, and is shorter than its peer's."""

import os
from pathlib import Path

import pytest

from example_runs import FOLDER, PROGRAMS, lines_of_code, run, world
from mull.agent import shared
from mull.agent.engine import Engine
from page_examples import blocks

PAGE = Path(__file__).parents[1] / "docs/examples.md"
NEEDS = {"chat_server": "fastapi", "agent": "pydantic", "invoice": "pydantic"}
PROVIDERS = {"kimi": "moonshotai"}


@pytest.fixture(autouse=True)
def _own_engine(monkeypatch):
    made = []

    def engine():
        made[:] = made or [Engine()]
        return made[0]

    monkeypatch.setattr(shared, "engine", engine)
    yield
    for one in made:
        shared.loop().run(one.close)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if NEEDS.get(name) == "fastapi" else name
        for name in PROGRAMS
    ],
)
def test_a_program_runs_and_prints_what_is_shown(name, monkeypatch, capsys, tmp_path):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    with world(name, monkeypatch, tmp_path) as servers:
        config = Path(os.environ["MULL_CONFIG_DIR"]) / "config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(
            "".join(
                f'[providers.{PROVIDERS.get(provider, provider)}]\nbase_url = "{server.url}"\n'
                for provider, server in servers.items()
            )
        )
        said = run(FOLDER / f"{name}.py", name, monkeypatch, capsys)
    assert said == shown(name)


def shown(name):
    """The output on the page, below the program."""
    found = blocks(PAGE)
    at = next(at for at, one in enumerate(found) if one.text == code(f"{name}.py"))
    return found[at + 1].text


def code(path):
    """A program without its docstring, as pages show it."""
    return (FOLDER / path).read_text().split('"""\n', 1)[1].lstrip("\n")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_shorter_than_with_its_peer(name):
    own = lines_of_code(FOLDER / f"{name}.py")
    peer = lines_of_code(FOLDER / "peers" / f"{PROGRAMS[name].peer}.py")
    assert own < peer
    assert f"{own} lines, {peer} with" in PAGE.read_text()


def test_the_page_shows_every_program_and_its_peer():
    on_page = [one.text for one in blocks(PAGE) if one.kind == "python"]
    pairs = [(f"{name}.py", f"peers/{one.peer}.py") for name, one in PROGRAMS.items()]
    assert on_page == [code(path) for pair in pairs for path in pair]
