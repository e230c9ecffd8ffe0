"""`mull ask` with `reasoning.maxSeconds`: what was done about the thought is told, and truly."""

import io
import json

import pytest

from mull.agent.hurry_plan import STOPPED
from mull.cli.draw import Plain
from mull.cli.draw_json import JsonLines, JsonObject
from mull.cli.main import main
from mull.neutral.events import ThinkingDelta
from mull.testing.server import STALL, Gate, Reply, ScriptedServer

AT_ONCE = "reasoning.maxSeconds=0.000001"
LEFT = "the time limit for thinking has passed, but the thinking continues: "
UNKNOWN = f"{LEFT}mull knows no way to turn its thinking off or down"

THOUGHT = {"reasoning_content": "hm"}


def chat(*deltas):
    chunks = [delta if isinstance(delta, Gate) else _chat(delta) for delta in deltas]
    return Reply.events(*chunks, _chat({}, "stop"), "[DONE]")


def _chat(delta, finish=None):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def responses(*events):
    begins = {"type": "response.created", "response": {"id": "r"}}
    ends = {"type": "response.completed", "response": {"id": "r", "status": "completed"}}
    return Reply.events(begins, *events, ends)


def summary(text):
    place = {"item_id": "rs", "output_index": 0, "summary_index": 0}
    return {"type": "response.reasoning_summary_text.delta", "delta": text, **place}


def text(text):
    place = {"item_id": "m", "output_index": 1, "content_index": 0}
    return {"type": "response.output_text.delta", "delta": text, **place}


def gemini(*parts):
    steps = [
        p if isinstance(p, Gate) else {"candidates": [{"content": {"parts": [p]}}]} for p in parts
    ]
    return Reply.events(*steps, {"candidates": [{"finishReason": "STOP"}]})


@pytest.fixture
def ask(capsys, monkeypatch):
    def ask(model, replies, *words):
        monkeypatch.setattr("sys.stdin", io.StringIO(""))
        with ScriptedServer(replies) as server:
            place = ["-m", model, "--base-url", server.url, "--no-save", "--set", AT_ONCE]
            status = main(["ask", *place, *words, "Is 91 prime?"])
        said = capsys.readouterr()
        return status, said.out, said.err, server.requests

    return ask


@pytest.fixture
def seen(monkeypatch):
    """Makes a gate for an answer that is open once the first piece of its thought was shown."""
    gates = []

    def opening(real):
        def event(self, event):
            real(self, event)
            if isinstance(event, ThinkingDelta):
                gates[-1].open()

        return event

    for show in (Plain, JsonLines, JsonObject):
        monkeypatch.setattr(show, "event", opening(show.event))
    return lambda: gates.append(Gate()) or gates[-1]


STOPPING = [
    (
        "zai/glm-4.7",
        [chat(THOUGHT, STALL), chat({"content": "No."})],
        f"{STOPPED} with thinking off",
        {"thinking": {"type": "disabled"}},
    ),
    (
        "openai/o3",
        [responses(summary("hm"), STALL), responses(text("No."))],
        f"{STOPPED} with less thinking: low effort (minimum)",
        {"reasoning": {"effort": "low", "summary": "auto"}},
    ),
    (
        "google/gemini-2.5-pro",
        [gemini({"text": "hm", "thought": True}, STALL), gemini({"text": "No."})],
        f"{STOPPED} with less thinking: minimum (128 tokens)",
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": 128, "includeThoughts": True}}},
    ),
]


@pytest.mark.parametrize(("model", "replies", "told", "sent"), STOPPING)
def test_a_stopped_thought_is_told_with_what_was_really_sent(ask, model, replies, told, sent):
    status, out, err, requests = ask(model, replies)
    assert (status, out, err) == (0, "No.\n", f"mull: {told}\n")
    assert len(requests) == 2
    assert {name: requests[1].json[name] for name in sent} == sent


@pytest.mark.parametrize(("model", "replies", "told", "sent"), STOPPING)
def test_programs_are_told_too(ask, model, replies, told, sent):
    _, out, err, _ = ask(model, replies, "--json")
    (note,) = (note for note in json.loads(out)["notes"] if note["text"] == told)
    assert note["about"] == "reasoning.maxSeconds"
    assert json.loads(note["sentAs"]) == sent
    assert err == ""
    _, out, _, _ = ask(model, replies, "--stream-json")
    lines = list(map(json.loads, out.splitlines()))
    (event,) = (line for line in lines if line["type"] == "hurried")
    assert (event["about"], event["text"]) == ("reasoning.maxSeconds", told)
    assert event["how"] == ("off" if "off" in told else "less")


@pytest.mark.parametrize(
    "model",
    [
        "moonshotai/kimi-k2-thinking",
        "deepseek/deepseek-reasoner",
        "openai-compatible/thinker",
        "openrouter/moonshotai/kimi-k2-thinking",
    ],
)
def test_a_thought_that_goes_on_is_told_and_asked_for_once(ask, seen, model):
    def reply(_):
        return chat(THOUGHT, seen(), {"reasoning_content": " hm"}, {"content": "No."})

    status, out, err, requests = ask(model, reply, "--thinking", "stderr")
    assert (status, out, err) == (0, "No.\n", f"hm\n\nmull: {UNKNOWN}\n hm\n\n")
    assert len(requests) == 1
    status, out, _, _ = ask(model, reply, "--json")
    assert UNKNOWN in [note["text"] for note in json.loads(out)["notes"]]
    _, out, _, requests = ask(model, reply, "--stream-json")
    hurried = [line for line in map(json.loads, out.splitlines()) if line["type"] == "hurried"]
    about = "reasoning.maxSeconds"
    assert hurried == [{"type": "hurried", "about": about, "how": "left", "text": UNKNOWN}]
    assert len(requests) == 1


def test_thoughts_on_a_terminal_are_not_mixed_with_it(ask, seen, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setattr("sys.stderr", screen)
    reply = chat(THOUGHT, seen(), {"reasoning_content": "so"}, {"content": "No."})
    ask("moonshotai/kimi-k2-thinking", [reply])
    assert f"\nmull: {UNKNOWN}\n" in screen.getvalue()
