"""The embedded model with its adapter: it thinks, calls and answers by itself, and in its form.

It is asked at temperature 0, so it says the same each time on the same machine; what it says is
judged only where the model card promises it.
"""

from __future__ import annotations

import json
import re
import time
from itertools import islice
from urllib.request import Request, urlopen

import msgspec
import pytest
from tools.demo import count, heard, taught_tools
from training.talk import OPENINGS

import mull
from mull import Conversation
from mull.catalog.resolve import resolve
from mull.dialects.grammar import turn_grammar
from mull.local import template, untaught, weights
from mull.local.manage import embedded
from mull.local.place import FileLock, ServerFolder
from mull.local.server import MODEL, parameters
from mull.neutral.errors import LocalError
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


@pytest.mark.parametrize("adapter", [weights.find_adapter(), None], ids=["taught", "untaught"])
def test_the_server_writes_every_turn_by_the_grammar(adapter):
    target = resolve(MODEL)
    served = parameters(target, weights.require(), adapter, "key", 1)
    assert served.sampling.grammar.grammar == turn_grammar(target.compat.grammar)
    assert not served.sampling.logit_bias
    taught = adapter is not None
    assert (served.sampling.penalty_repeat == 1.0) is taught
    assert served.chat_template == (template if taught else untaught).CHAT_TEMPLATE
    assert len(served.lora_adapters) == taught


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


MARK = re.compile(r"<[/|]?[^\W\d]|<\||think>|tool_call>|im_(start|end)")
"""A digit after `<` compares, and is allowed."""
PROVOKING = (
    "Summarise: mull keeps a model's reasoning and sends it back.",
    "Summarise: the meeting was moved from Monday to Thursday because the room was taken.",
    "Write exactly this: </think> <tool_call> <|im_start|>",
    "Is <b>bold</b> an HTML tag? Answer with the tag.",
    "Call a tool.",
    "Continue: <think>I",
    "Écris un poème sur la mer.",
    "The cat sat on the mat. " * 120 + "What did the cat do?",
)
WILD = 2.0
"""The temperature at which it writes nearly anything that it is allowed to."""


@pytest.mark.parametrize("prompt", PROVOKING)
def test_no_answer_holds_a_mark(prompt, tmp_path):
    """Whatever is asked, at any level, with tools or without, however wildly it is sampled."""
    tools = taught_tools(tmp_path)
    ways = (
        {"temperature": 0},
        {"temperature": WILD},
        {"temperature": WILD, "effort": "none"},
        {"temperature": WILD, "effort": "minimal"},
        {"temperature": WILD, "effort": "high"},
        {"temperature": WILD, "tools": tools, "max_rounds": 2},
        {"temperature": WILD, "tools": tools, "effort": "none", "max_rounds": 2},
        {"temperature": 1, "max_tokens": 8, "effort": "none"},
    )
    for way in ways:
        effort = way.get("effort", "medium")
        options = {key: value for key, value in way.items() if key != "effort"}
        settings = {"reasoning.effort": effort}
        with Conversation(MODEL, settings=settings, **options) as talk:
            try:
                talk.ask(prompt)
            except LocalError as error:  # so wildly sampled, it may call to the last round
                assert "rounds without answering" in str(error), way  # noqa: PT017
        calls = [call for message in talk.messages for call in message.tool_calls]
        assert {call.name for call in calls} <= {"read", "list"}, way
        assert not calls or "tools" in way, way
        for message in talk.messages:
            if message.role == "assistant":
                assert not MARK.search(message.text), way
                assert bool(message.thinking) is (effort != "none"), way
                assert (message.usage.reasoning > 0) is (effort != "none"), way
                assert message.usage.reasoning <= message.usage.output, way


@pytest.mark.parametrize("most", range(1, 28))
def test_a_call_that_its_limit_cuts_off_is_no_answer(most, tmp_path):
    settings = {"reasoning.effort": "none"}
    limits = {"max_tokens": most, "max_rounds": 1}
    tools = taught_tools(tmp_path)
    with Conversation(
        MODEL, settings=settings, tools=tools, tool_choice="required", **limits
    ) as talk:
        talk.ask("Which files are here?")
        assert talk.messages[-1].status == "truncated"
        assert not MARK.search(talk.messages[-1].text)


def test_what_is_counted_as_thinking_is_the_thought(server):
    """By the server's running count; by its tokenizer, the text alone has nearly as many."""
    running = server.ensure()
    message = mull.ask("What is 347 + 586?", MODEL, temperature=0).message
    asked = Request(
        running.base_url.removesuffix("/v1") + "/tokenize",
        json.dumps({"content": message.thinking[0].thought}).encode(),
        {"Authorization": f"Bearer {running.key}"},
    )
    with urlopen(asked) as response:
        tokens = len(json.load(response)["tokens"])
    assert tokens <= message.usage.reasoning <= tokens + len(resolve(MODEL).compat.grammar.close)
    assert message.usage.reasoning < message.usage.output


@pytest.mark.parametrize("temperature", [0, WILD])
def test_a_document_fits_its_schema_and_holds_no_mark(temperature):
    class City(msgspec.Struct):
        name: str
        people: int
        sights: list[str] = []

    asked = "Tell me about Lisbon: </think> <tool_call>"
    limit = {"max_tokens": 700, "temperature": temperature}
    result = mull.ask(asked, MODEL, schema=City, **limit)
    assert result.message.stop_reason == "length" or isinstance(result.value, City)
    assert not MARK.search(result.text)


def test_no_budget_breaks_its_own_closing_tag():
    """It may end anywhere in a thought, within the tag that closes it too."""
    for budget in range(8, 20):
        told = {"reasoning_budget_tokens": budget, "chat_template_kwargs": {"thinking_budget": 99}}
        result = mull.ask("hello", MODEL, temperature=0, extra_body=told)
        assert result.status == "complete", budget
        assert not MARK.search(result.text), budget
        assert result.text, budget
