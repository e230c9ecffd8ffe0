"""Long tool conversations through the library, on servers that enforce the providers' rules.

The servers' ledgers are the judges: they see every carrier that comes back, in its place, byte
for byte, and refuse what a provider would refuse.
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from conversations import wired
from mull.agent.engine import Engine
from mull.agent.library import Conversation
from mull.agent.run import Turn
from mull.history.log import Log
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock, Wire
from mull.neutral.messages import assistant, user
from mull.neutral.request import Note
from mull.testing import Call, Say, StrictServer, Think

MODELS = [
    ("anthropic", "anthropic/claude-sonnet-4-5"),
    ("anthropic", "anthropic/claude-opus-4-7"),
    ("anthropic-bound", "anthropic/claude-opus-5-5"),
    ("deepseek", "deepseek/deepseek-v4-pro"),
    ("gemini", "google/gemini-3-pro-preview"),
    ("kimi", "moonshotai/kimi-k2-thinking"),
    ("kimi", "moonshotai/kimi-k2.5"),
    ("kimi", "zai/glm-4.7"),
    ("openai", "openai/gpt-5"),
    ("openrouter", "openrouter/anthropic/claude-sonnet-4.5"),
]
ODD = ["  lead\n\n\ttail  ", "ü 那个 🌍 \u2028", '</think> "quoted" \\ & <|end|>']
INSISTENT = ("deepseek", "kimi")
"""Who refuses a later turn without what earlier ones thought."""


def look(at: str) -> str:
    """Look at something."""
    return f"saw {at}"


def ten_rounds(name):
    """Ten rounds of tools and an answer: parallel calls, thoughts between words, hidden ones."""
    answers = [[Think(f"{name}.{n}{ODD[n % 3]}"), Call("look", {"at": f"{n}"})] for n in range(10)]
    answers[3] += [Call("look", {"at": "beside"}), Call("look", {"at": "behind"})]
    answers[5][1:1] = [Say("Let me see."), Think(f"{name} between")]
    answers[7].insert(1, Think(f"{name} hidden", hidden=True))
    return [*answers, [Think(f"{name} end"), Say(f"{name} done")]]


def thoughts_of(provider, answer):
    """What of an answer's thoughts its provider shows."""
    plain = provider in ("kimi", "deepseek")
    return "".join(a.text for a in answer if isinstance(a, Think) and (plain or not a.hidden))


def stored_thoughts(talk):
    answers = [message for message in talk.messages if message.role == "assistant"]
    return ["".join(block.thought for block in message.thinking) for message in answers]


def stored_carriers(talk):
    return [c for m in talk.messages for block in m.blocks for c in carriers_of(block)]


def carriers_of(block):
    match block:
        case ThinkingBlock(source_field="reasoning_content"):
            found = [block.thought]
        case ThinkingBlock():
            entries = wired(block).get("reasoning_details", ())
            details = [entry.get("signature") or entry.get("data") for entry in entries]
            found = [block.redacted, block.signature, block.encrypted, *details]
        case ToolCallBlock() | TextBlock():
            found = [block.signature]
        case _:
            found = []
    return [carrier for carrier in found if carrier]


@pytest.mark.parametrize(("provider", "model"), MODELS)
def test_ten_tool_rounds_in_two_turns_lose_nothing(provider, model):
    first, second = ten_rounds("one"), ten_rounds("two")
    with StrictServer(provider, [*first, *second]) as server:
        talk = Conversation(model, base_url=server.url, tools=[look])
        assert talk.ask("look around").text == "one done"
        assert talk.ask("and again").text == "two done"
    assert server.refusals == []
    assert len(server.requests) == server.answered == 22
    assert stored_thoughts(talk) == [thoughts_of(provider, a) for a in (*first, *second)]
    assert stored_carriers(talk) == list(server.issued)
    assert server.returned == _issued_before(server, talk)


def _issued_before(server, talk):
    """For each request, all that was issued before it."""
    answers = [message for message in talk.messages if message.role == "assistant"]
    each = [len([c for block in m.blocks for c in carriers_of(block)]) for m in answers]
    return [server.issued[: sum(each[:n])] for n in range(len(each))]


@pytest.mark.parametrize(("provider", "model"), [m for m in MODELS if m[0] not in INSISTENT])
def test_only_the_open_chain_goes_back_where_the_user_wants_that(provider, model):
    with StrictServer(provider, [*ten_rounds("one"), *ten_rounds("two")]) as server:
        settings = {"reasoning.includeInContext": False}
        talk = Conversation(model, base_url=server.url, tools=[look], settings=settings)
        talk.ask("look around")
        after_one = len(server.issued)
        talk.ask("and again")
    assert server.refusals == []
    everything = _issued_before(server, talk)
    kept = 0 if provider == "gemini" else after_one  # its signatures sit on the calls
    assert server.returned[:11] == everything[:11]
    assert server.returned[11:] == [carriers[kept:] for carriers in everything[11:]]


def test_a_long_turn_says_each_thing_once_with_its_newest_number():
    with StrictServer("anthropic", ten_rounds("one")) as server:
        settings = {"reasoning.includeInContext": False}
        model = "anthropic/claude-sonnet-4-5"
        talk = Conversation(model, base_url=server.url, tools=[look], settings=settings)
        result = talk.ask("look around")
    kept = [note.text for note in result.notes if note.kind == "required"]
    assert len(server.issued) == 13  # the last of them with the answer
    assert kept == [
        "12 thoughts of the open tool chain sent anyway: the endpoint requires them; when the"
        " chain ends they are left out, which ends the prompt cache"
    ]
    assert len({(note.about, note.kind) for note in result.notes}) == len(result.notes)


def test_notes_of_one_kind_take_each_others_place_and_a_warning_stays_one():
    turn = Turn(Log(), situation=None, now=None)
    turn.note(Note("a", "1 thing", warning=True, kind="k"), Note("b", "other"))
    turn.note(Note("b", "other"), Note("a", "2 things", kind="k"), Note("c", "3 things", kind="k"))
    assert turn.notes == [
        Note("a", "2 things", warning=True, kind="k"),
        Note("b", "other"),
        Note("c", "3 things", kind="k"),
    ]


def test_calls_at_once_are_answered_at_once():
    seen = []

    def note(at: str) -> str:
        """Note something."""
        seen.append(at)
        return at

    calls = [Call("note", {"at": "a"}), Call("note", {"at": "b"}), Call("note", {"at": "c"})]
    with StrictServer("gemini", [[Think("all"), *calls], [Say("done")]]) as server:
        talk = Conversation("google/gemini-3-pro-preview", base_url=server.url, tools=[note])
        talk.ask("go")
    assert sorted(seen) == ["a", "b", "c"]
    answers = server.requests[1].json["contents"][-1]["parts"]
    assert [part["functionResponse"]["response"]["result"] for part in answers] == ["a", "b", "c"]


@pytest.mark.parametrize(("provider", "model"), MODELS)
def test_a_round_without_a_thought_is_no_obstacle(provider, model):
    script = [
        [Think("a"), Call("look", {"at": "1"})],
        [Call("look", {"at": "2"})],
        [Say("Hm."), Call("look", {"at": "3"})],
        [Say("done")],
    ]
    with StrictServer(provider, script) as server:
        talk = Conversation(model, base_url=server.url, tools=[look])
        assert talk.ask("go").text == "done"
    lenient = ("moonshotai/kimi-k2-thinking", "zai/glm-4.7")  # these would take "", or nothing
    assert len(server.refusals) == (model in lenient)
    assert [message.status for message in talk.messages if message.role == "assistant"] == [
        "complete"
    ] * 4


def test_claude_thinks_on_after_a_round_without_a_thought():
    script = [
        [Think("a"), Call("look", {"at": "1"})],
        [Call("look", {"at": "2"})],
        [Think("b"), Say("done")],
    ]
    with StrictServer("anthropic", script) as server:
        talk = Conversation("anthropic/claude-sonnet-4-5", base_url=server.url, tools=[look])
        talk.ask("go")
    assert server.refusals == []
    assert [body.json["thinking"]["type"] for body in server.requests] == ["enabled"] * 3
    assert stored_thoughts(talk) == ["a", "", "b"]


ROUTE = {
    "anthropic": "anthropic/claude-opus-4-7",
    "openai": "openai/gpt-5",
    "gemini": "google/gemini-3-pro-preview",
    "kimi": "moonshotai/kimi-k2.5",
}
"""One model in each dialect."""
IDS = {"anthropic": "anthropic", "openai": "openai", "gemini": "google", "kimi": "moonshotai"}


class Route:
    """A server for each dialect, and a conversation that reaches all of them by config.toml."""

    def __init__(self, scripts, models=ROUTE, **settings):
        self.models = models
        self._stack = ExitStack()
        self.servers = {
            name: self._stack.enter_context(StrictServer(name, script))
            for name, script in scripts.items()
        }
        config = Path(os.environ["MULL_CONFIG_DIR"]) / "config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(
            "".join(
                f'[providers.{IDS[name]}]\nbase_url = "{server.url}"\n'
                for name, server in self.servers.items()
            )
        )
        self.talk = Conversation(
            models["anthropic"],
            engine=Engine(),
            tools=[self.go],
            settings={f"reasoning.{key}": value for key, value in settings.items()},
        )

    def go(self, to: str) -> str:
        """Go on with another model."""
        if to in self.models:
            self.talk.switch(self.models[to])
        return f"at {to}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.talk.close()
        self._stack.close()

    def assert_nothing_was_refused_or_mixed_up(self):
        for name, server in self.servers.items():
            assert server.refusals == [], name
            bodies = "\n".join(json.dumps(request.json) for request in server.requests)
            for other, foreign in self.servers.items():
                for carrier in foreign.issued:
                    assert (carrier in bodies) <= (other == name), (name, other, carrier)


def turn_at(name, number):
    """A turn of two rounds and an answer."""
    thoughts = [f"{name} thinks {number}.{n}" for n in range(3)]
    calls = [[Think(thoughts[n]), Call("go", {"to": "nowhere"})] for n in range(2)]
    return [*calls, [Think(thoughts[2]), Say(f"{name} says {number}")]]


@pytest.mark.parametrize("include", [None, True])
def test_switching_through_all_four_dialects_and_back_between_turns(include):
    scripts = {name: [*turn_at(name, 1), *turn_at(name, 2)] for name in ROUTE}
    settings = {} if include is None else {"includeInContext": include}
    with Route(scripts, **settings) as route:
        for number in (1, 2):
            for name, model in ROUTE.items():
                route.talk.switch(model)
                result = route.talk.ask(f"go on at {name}")
                assert result.text == f"{name} says {number}"
                first = (name, number) == ("anthropic", 1)
                said = [note.text for note in result.notes if note.about == "reasoning.handoff"]
                assert any("of another model left out" in text for text in said) != first
        route.assert_nothing_was_refused_or_mixed_up()
        for server in route.servers.values():
            half = len(server.issued) // 2
            assert server.returned[3:] == [server.issued[: half + n] for n in range(3)]


def test_switching_through_all_four_dialects_and_back_inside_one_tool_chain():
    """Each model hands over by a tool call; the whole way round twice is one turn."""
    order = list(ROUTE)
    scripts = {
        name: [
            [Think(f"{name} thinks {n}"), Call("go", {"to": order[(at + 1) % 4]})] for n in range(2)
        ]
        for at, name in enumerate(order)
    }
    scripts["anthropic"].append([Think("anthropic ends"), Say("round and round")])
    with Route(scripts) as route:
        result = route.talk.ask("go round")
        assert result.text == "round and round"
        route.assert_nothing_was_refused_or_mixed_up()
        for name, server in route.servers.items():
            assert server.returned[1] == server.issued[:1], name
        claude = route.servers["anthropic"]
        assert claude.returned[2] == claude.issued[:2]
        answers = [message for message in result.messages if message.role == "assistant"]
        assert [m.origin.provider for m in answers] == [IDS[n] for n in [*order, *order, order[0]]]
        left_out = [note.text for note in result.notes if note.about == "reasoning.handoff"]
        assert left_out == ["6 thoughts of another model left out"]


def test_a_claude_with_a_budget_stops_thinking_in_a_foreign_chain_and_says_so():
    """It cannot think on in a chain whose last call has no thought of its own; the thoughts that
    it had are there again in the next turn."""
    models = {**ROUTE, "anthropic": "anthropic/claude-sonnet-4-5"}
    scripts = {name: [] for name in ROUTE}
    scripts["anthropic"] = [
        [Think("one"), Call("go", {"to": "kimi"})],
        [Think("two"), Say("back")],
        [Think("three"), Say("later")],
    ]
    scripts["kimi"] = [[Think("foreign"), Call("go", {"to": "anthropic"})]]
    with Route(scripts, models, includeInContext=True) as route:
        result = route.talk.ask("go there and back")
        assert any("Thinking is off for this request" in note.text for note in result.notes)
        route.talk.ask("and now?")
        route.assert_nothing_was_refused_or_mixed_up()
        claude = route.servers["anthropic"]
        assert ["thinking" in request.json for request in claude.requests] == [True, False, True]
        assert claude.returned == [(), (), claude.issued[:1]]
        assert len(claude.issued) == 2  # the second thought was not to be thought


def _poisoned(name, target):
    blocks = {
        "anthropic": [ThinkingBlock("hm", "thinking", signature="Zm9v"), TextBlock("a")],
        "gemini": [TextBlock("a", signature="Zm9v")],
        "openai": [
            ThinkingBlock(
                "hm",
                "reasoning",
                encrypted="Zm9v",
                id="rs_1",
                kind="summary",
                wire=Wire("openai-responses", {"parts": [{"type": "summary_text", "text": "hm"}]}),
            ),
            TextBlock("a", wire=Wire("openai-responses", {"id": "msg_1"})),
        ],
    }
    return [user("q"), assistant(*blocks[name], origin=target.origin, stop_reason="stop")]


@pytest.mark.parametrize("name", ["anthropic", "gemini", "openai"])
def test_s02_a_poisoned_history_heals_once_and_stays_well(name):
    script = [[Think("b"), Say("well")], [Think("c"), Say("still well")]]
    settings = {"reasoning.includeInContext": True}
    with StrictServer(name, script) as server:
        where = {"base_url": server.url, "settings": settings, "engine": Engine()}
        target = Conversation(ROUTE[name], **where).target
        history = _poisoned(name, target)
        talk = Conversation(ROUTE[name], messages=history, **where)
        first, second = talk.ask("and?"), talk.ask("and then?")
    assert (first.text, second.text) == ("well", "still well")
    assert len(server.refusals) == 1
    assert len(server.requests) == 3
    assert len([note for note in first.notes if note.about == "healed"]) == 1
    assert talk.messages[:2] == tuple(history)  # what was stored stays as it was
    assert server.returned[1] == server.issued[:1]  # and what is sound goes back


def go(to: str) -> str:
    """Go on."""
    return to


BOUND = "anthropic/claude-opus-5-5"
CHANGED = "left out: bound to a conversation that has changed since"


def changed(result):
    """What was said of thoughts that no longer fit: how many, and whether it is news."""
    said = [note for note in result.notes if CHANGED in note.text]
    return [(int(note.text.partition(" ")[0]), note.warning) for note in said]


def test_s02_thoughts_bound_to_a_conversation_that_changed_are_left_out_and_never_refused():
    """Turn two was held without the thoughts of turn one; turn three brings them back."""
    script = [turn for number in range(4) for turn in turn_at("claude", number)]
    said = []
    with StrictServer("anthropic-bound", script) as server:
        talk = Conversation(BOUND, base_url=server.url, tools=[go], engine=Engine())
        for number, include in enumerate((True, False, True, True)):
            talk.set("reasoning.includeInContext", include)
            result = talk.ask(f"turn {number}")
            assert result.text == f"claude says {number}"
            said.append(changed(result))
    assert server.refusals == []
    first, second, third = (server.issued[at : at + 3] for at in (0, 3, 6))
    assert server.returned[3:6] == [(), second[:1], second[:2]]
    assert server.returned[6:9] == [first + third[:n] for n in range(3)]  # not the second's
    assert server.returned[9] == first + third
    assert said == [[], [], [(3, True)], [(3, False)]]


def test_s02_another_system_prompt_costs_the_bound_thoughts_until_it_is_the_old_one_again():
    script = [[Think(f"thought {n}"), Say(f"answer {n}")] for n in range(4)]
    with StrictServer("anthropic-bound", script) as server:
        where = {"base_url": server.url, "engine": Engine()}
        talk = Conversation(BOUND, system="Be brief.", **where)
        assert changed(talk.ask("one")) == []
        other = Conversation(BOUND, system="Be kind.", **where)
        other.log = talk.log
        assert changed(other.ask("two")) == [(1, True)]
        assert changed(other.ask("three")) == [(1, False)]
        again = talk.ask("four")
    assert server.refusals == []
    one, two, *_ = server.issued
    assert server.returned == [(), (), (two,), (one,)]
    assert changed(again) == [(2, True)]


def test_s02_bound_thoughts_of_which_nothing_is_known_are_refused_once_and_not_sent_again():
    """A conversation from elsewhere: its thoughts came, but not what they were thought after."""
    script = [[Think(f"thought {n}"), Say(f"answer {n}")] for n in range(4)]
    with StrictServer("anthropic-bound", script) as server:
        where = {"base_url": server.url, "engine": Engine()}
        before = Conversation(BOUND, system="Be brief.", **where)
        before.ask("one")
        talk = Conversation(BOUND, system="Be kind.", messages=before.messages, **where)
        for text in ("two", "three", "four"):
            talk.ask(text)
    (refused,) = server.refusals
    assert "bound to a different conversation" in refused.reason
    _, two, three, _ = server.issued
    assert server.returned[-2:] == [(two,), (two, three)]
