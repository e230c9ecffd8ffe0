"""docs/library.md and docs/tour.md: every example runs, and prints what stands below it."""

import logging
import os
import re
from pathlib import Path

import pytest

import mull
from mull.agent import shared
from mull.agent.engine import Engine
from mull.testing.server import STALL, Reply, ScriptedServer

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "library.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
USAGE = {
    "prompt_tokens": 12,
    "completion_tokens": 30,
    "total_tokens": 42,
    "completion_tokens_details": {"reasoning_tokens": 24},
}


def examples(text):
    """Each piece of code with what is shown below it."""
    blocks = _BLOCK.findall(text)
    for at, (kind, code) in enumerate(blocks):
        if kind == "python":
            after = blocks[at + 1] if at + 1 < len(blocks) else ("", "")
            yield code, after[1] if after[0] == "text" else ""


def chat(*deltas, finish="stop"):
    chunks = [{"choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": USAGE}
    return Reply.events(*chunks, end, "[DONE]")


def thought(text):
    return {"reasoning_content": text}


def calls(name, arguments):
    call = {"index": 0, "id": "call_1", "function": {"name": name, "arguments": arguments}}
    return chat(thought("I have to look."), {"tool_calls": [call]}, finish="tool_calls")


ANSWERS = {
    "What is 17 * 24?": chat(
        thought("17 * 24 = 17 * 20 + 17 * 4"), thought(" = 340 + 68 = 408."), {"content": "408"}
    ),
    "And squared?": chat(thought("408 * 408 = 166,464."), {"content": "166,464"}),
    "Which city?": chat(thought("The capital."), {"content": '{"name": "Bern", "people": 134000}'}),
    "Which cities?": chat(
        {"content": '{"value": [{"name": "Be'},
        {"content": 'rn", "people": 134000}, {"name": "Uri", "peop'},
        {"content": 'le": 37000}]}'},
    ),
    "What is twice 21?": calls("double", '{"number":21}'),
    "42": chat(thought("42 it is."), {"content": "42"}),
    "How warm is it in Oslo?": calls("temperature", '{"city":"Oslo"}'),
    "4.0": chat(thought("4.0 it is."), {"content": "It is 4 °C in Oslo."}),
    "Which city is the warmest?": calls("warmest", "{}"),
    "Oslo": chat({"content": "Oslo, it seems."}),
    "Delete a.txt.": calls("delete_file", '{"name":"a.txt"}'),
    "not run: the user refused, and says: ask again on Monday": chat(
        {"content": "On Monday, then."}
    ),
    "Who can count?": calls("hand_over", "{}"),
    "What is in a.txt?": calls("read", '{"path":"a.txt"}'),
    "Write b.txt.": calls("write", '{"path":"b.txt","content":"4 °C"}'),
    "not run: the user refused, and says: not on a Friday": chat({"content": "As you wish."}),
    "What is this?": chat({"content": "A cat."}),
    "     1\t4 °C": chat(thought("There it is."), {"content": "4 °C."}),
    "Is 91 a prime?": Reply.events(
        {"choices": [{"index": 0, "delta": thought("7 * 13"), "finish_reason": None}]}, STALL
    ),
    "Stop thinking and answer now. Your thoughts so far:\n\n7 * 13": chat({"content": "No."}),
}
CLAUDE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "content": [{"type": "text", "text": "One."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 9, "output_tokens": 3},
}


def answer(request):
    body = request.json
    if request.path == "/messages":
        return Reply.json(CLAUDE)
    if body["model"] == "retired":
        error = {"message": "The model `retired` does not exist", "code": "model_not_found"}
        return Reply.json({"error": error}, status=404)
    if body["model"] == "busy":
        told = {"retry-after": "7", "x-request-id": "req_42", "x-ratelimit-remaining": "0"}
        return Reply.json({"error": {"message": "Too many requests"}}, status=429, headers=told)
    said = body["messages"][-1]["content"]
    return ANSWERS[said if isinstance(said, str) else said[0]["text"]]


@pytest.fixture
def server(monkeypatch):
    """The server of all examples, and one engine for them, as a script has it."""
    with ScriptedServer(answer) as server:
        config = Path(os.environ["MULL_CONFIG_DIR"]) / "config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(f'[providers.anthropic]\nbase_url = "{server.url}"\n')
        engine = Engine()
        monkeypatch.setattr(shared, "engine", lambda: engine)
        logger = logging.getLogger("mull")
        level = logger.level  # an example sets it
        yield server
        logger.setLevel(level)
        shared.loop().run(engine.close)


@pytest.mark.parametrize("page", ["library.md", "tour.md"])
def test_every_example_prints_what_is_shown(server, capsys, tmp_path, monkeypatch, page):
    monkeypatch.chdir(tmp_path)
    found = list(examples((DOCS / page).read_text()))
    assert len(found) > 10
    names = {
        "BASE_URL": server.url,
        "LAST_REQUEST": lambda: server.requests[-1].json,
        "LAST_HEADERS": lambda: server.requests[-1].headers,
    }
    for code, shown in found:
        exec(compile(code, page, "exec"), names)
        assert capsys.readouterr().out == shown, code


def test_the_tables_name_every_field_and_argument():
    text = PAGE.read_text()
    first = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", text, re.MULTILINE)
    named = {name for cell in first for name in re.findall(r"\w+", cell)}
    arguments = {"model"} | mull.ConversationOptions.__optional_keys__
    assert named == arguments | set(mull.Result.__struct_fields__)


@pytest.mark.parametrize("name", ["ask", "ask_async", "stream", "stream_async"])
def test_every_way_to_ask_is_on_the_page(name):
    assert f"{name}(" in PAGE.read_text()


def test_the_reader_of_examples_pairs_code_with_its_output():
    text = "```python\na\n```\n\n```text\nout\n```\n\n```python\nb\n```\n"
    assert list(examples(text)) == [("a\n", "out\n"), ("b\n", "")]
