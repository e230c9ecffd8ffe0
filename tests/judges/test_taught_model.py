"""The embedded model with its adapter: nothing forces it, and it thinks, calls and answers.

It is asked at temperature 0, so it says the same each time on the same machine; what it says is
judged only where the model card promises it.
"""

from __future__ import annotations

import time
from itertools import islice

import pytest
from tools.demo import count, heard, taught_tools
from training.talk import OPENINGS

import mull
from mull import Conversation
from mull.catalog.resolve import resolve
from mull.local import untaught, weights
from mull.local.manage import embedded
from mull.local.place import FileLock, ServerFolder
from mull.local.server import MODEL, parameters
from mull.neutral.events import ThinkingDelta

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not weights.is_installed(), reason="`mull local install` was not run"),
    pytest.mark.skipif(weights.find_adapter() is None, reason="the adapter is not installed"),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(autouse=True)
def server(home, monkeypatch):
    """One server for all tests, in a data directory of its own."""
    monkeypatch.setenv("MULL_DATA_DIR", str(home))
    return embedded(home / "local")


@pytest.fixture(scope="module", autouse=True)
def _ended(home):
    yield
    one = embedded(home / "local")
    one.stop()
    one.close()
    with FileLock(ServerFolder(home / "local").alive_lock):
        pass


def given():
    return parameters(resolve(MODEL), weights.require(), weights.find_adapter(), "key", 1)


def test_nothing_forces_it():
    sampling = given().sampling
    assert not sampling.grammar.grammar
    assert not sampling.logit_bias
    assert sampling.penalty_repeat == 1.0


def test_without_the_adapter_the_grammar_does_it():
    forced = parameters(resolve(MODEL), weights.require(), None, "key", 1)
    assert forced.sampling.grammar.grammar == untaught.grammar()
    assert forced.chat_template == untaught.CHAT_TEMPLATE
    assert len(forced.lora_adapters) == 0


def test_the_adapter_is_small():
    assert weights.find_adapter().stat().st_size <= 10_000_000


def test_most_ordinary_openings_get_short_sensible_answers():
    """One or another may go wrong on a machine whose arithmetic rounds otherwise."""
    fair = 0
    for (question, *_), _, _, word in OPENINGS:
        result = mull.ask(question, MODEL, temperature=0)
        assert result.status == "complete"
        assert result.thinking.strip()
        assert len(result.text) < 400
        fair += word.lower() in result.text.lower()
    assert fair >= len(OPENINGS) * 9 // 10


def test_three_rounds_with_real_tools(tmp_path):
    """The file is not named: it must be found, read, and answered from."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "todo.txt").write_text("owner = anna\n")
    sent = []
    with Conversation(
        MODEL, tools=taught_tools(tmp_path), temperature=0, limits=heard(sent)
    ) as talk:
        result = talk.ask("Find the file in notes and tell me the owner.")
    calls = [(c.name, c.input) for message in result.messages for c in message.tool_calls]
    assert calls == [("list", {"path": "notes"}), ("read", {"path": "notes/todo.txt"})]
    assert "anna" in result.text
    assert len(sent) == 3
    thoughts = [one.thought for message in talk.messages for one in message.thinking]
    back = [one.get("reasoning_content") for one in sent[-1]["messages"]]
    assert [thought for thought in back if thought] == thoughts[:2]  # with the results
    for body in sent:
        assert not {"grammar", "tool_choice", "logit_bias"} & body.keys()
    assert count(talk, sent).startswith("kept 3 thoughts whole; sent 2 of them back")


def test_a_thought_begins_soon_and_a_turn_with_tools_ends(server, tmp_path, record_property):
    """The figures are recorded, not judged: the machine may be busy."""
    (tmp_path / "settings.toml").write_text("port = 8080\n")
    server.stop()
    begun = time.perf_counter()
    events = mull.stream("What is 17 + 25?", MODEL, temperature=0)
    next(event for event in events if isinstance(event, ThinkingDelta))
    first = time.perf_counter() - begun
    list(islice(events, 1000))
    begun = time.perf_counter()
    with Conversation(MODEL, tools=taught_tools(tmp_path), temperature=0) as talk:
        talk.ask("What is the port in settings.toml?")
    figures = {"first_token_s": round(first, 2), "turn_s": round(time.perf_counter() - begun, 2)}
    print(figures)
    for name, value in figures.items():
        record_property(name, value)
