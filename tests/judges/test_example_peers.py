"""`examples/peers/`: the same programs with the libraries that they are compared with."""

import importlib.util

import pytest

from example_runs import FOLDER, PROGRAMS, run_apart, world

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
NEEDS = {
    "batch": ["litellm"],
    "chat_server": ["anthropic", "fastapi"],
    "agent": ["pydantic_ai"],
    "invoice": ["openai"],
    "attachments": ["anthropic"],
    "switching": ["litellm"],
}
PRINTS = {
    "batch": "200/200, 0 failed",
    "chat_server": 'event: text\ndata: "Fo"',
    "agent": "You get your 40 euros back.",
    "invoice": "Brew & Co, 03 March 2026: 75.50 euros\nThinking: 40 and 35.50 are 75.50.",
    "attachments": "Yes: both say that sales doubled.",
    "switching": "Go to Lisbon.\nBy train, overnight.\nOn Friday, then.",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_peers_program_does_the_same(name, monkeypatch, tmp_path):
    for package in NEEDS[name]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    with world(name, monkeypatch, tmp_path):
        said = run_apart(FOLDER / "peers" / f"{PROGRAMS[name].peer}.py", name)
    assert PRINTS[name] in said
