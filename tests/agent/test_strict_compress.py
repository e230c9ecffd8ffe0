"""Compression on servers that enforce the providers' rules: by command between turns, by itself in
the middle of a chain of tools, twice, taken back. What goes out afterwards is never refused.
"""

from __future__ import annotations

import asyncio

import pytest

from mull.agent.library import Conversation
from mull.history.log import Summary, Undone
from mull.neutral.events import Compressed
from mull.testing import Call, Say, StrictServer, Think
from mull.testing.server import Reply
from mull.testing.verdict import Verdict

MODELS = [
    ("anthropic", "anthropic/claude-sonnet-4-5"),
    ("anthropic", "anthropic/claude-opus-4-7"),
    ("anthropic-bound", "anthropic/claude-opus-5-5"),
    ("deepseek", "deepseek/deepseek-v4-pro"),
    ("gemini", "google/gemini-3-pro-preview"),
    ("kimi", "moonshotai/kimi-k2-thinking"),
    ("openai", "openai/gpt-5"),
    ("openrouter", "openrouter/anthropic/claude-sonnet-4.5"),
]
STRATEGIES = ["middle-out", "truncate", "one-shot"]
SUMMARY = Say("The user had the assistant look at several things; all were seen.")


def look(at: str) -> str:
    """Look at something."""
    return f"saw {at} " + "and more " * 150


class Summarising(StrictServer):
    """A strict server that summarises what comes without tools, and else goes on by its script."""

    def __init__(self, provider, script, summary=(SUMMARY,)):
        super().__init__(provider, self._acts(iter(script), list(summary)))
        self._beside = False
        self.summaries = 0

    def _acts(self, script, summary):
        while True:
            if self._beside:
                self.summaries += 1
                yield summary
            else:
                yield next(script, [Say("the script has ended")])

    def _reply(self, recorded) -> Reply:
        self._beside = not recorded.json.get("tools")
        return super()._reply(recorded)


def rounds(name, count=4):
    calls = [[Think(f"{name}{n}"), Call("look", {"at": f"{name}{n}"})] for n in range(count)]
    return [*calls, [Think(f"{name} end"), Say(f"{name} done")]]


def compress(talk, strategy=None):
    """Compress by command; what was said of it."""
    said = []

    async def work():
        for record in await talk._shortener().compress(talk._situation(), said.append, strategy):
            talk._keep(record)
        await talk.aclose()

    asyncio.run(work())
    return next(event for event in said if isinstance(event, Compressed))


@pytest.mark.parametrize(
    "settings", [{}, {"reasoning.includeInContext": True}], ids=["usual", "all"]
)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("provider", "model"), MODELS)
def test_g01_a_compressed_conversation_goes_on_unrefused(provider, model, strategy, settings):
    script = [*rounds("one"), *rounds("two"), *rounds("three"), *rounds("four", 1)]
    with Summarising(provider, script) as server:
        talk = Conversation(model, base_url=server.url, tools=[look], settings=settings)
        talk.ask("look around")
        talk.ask("and again")
        first = compress(talk, strategy)
        assert first.ok, first.text
        assert first.after < first.before
        assert talk.ask("once more").text == "three done"
        second = compress(talk, strategy)
        assert second.ok, second.text
        undo = next(at for at, _ in reversed([*talk.log.summaries()]))
        talk._keep(Undone(undo, undo + 1, None))
        assert talk.ask("a last time").text == "four done"
    assert [refused.reason for refused in server.refusals] == []
    assert server.summaries == (0 if strategy == "truncate" else 2)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("provider", "model"), MODELS)
def test_g01_a_small_window_is_compressed_in_the_middle_of_a_chain(provider, model, strategy):
    with Summarising(provider, rounds("one", 12)) as server:
        settings = {"context.limit": 8000, "compression.strategy": strategy}
        talk = Conversation(
            model, base_url=server.url, tools=[look], settings=settings, max_tokens=3000
        )
        assert talk.ask("look around twelve times").text == "one done"
    assert [refused.reason for refused in server.refusals] == []
    assert any(isinstance(record, Summary) for record in talk.log)


NO_SUMMARY = {
    "empty": (Say(""),),
    "thoughts only": (Think("what shall I say"),),
    "a call": (Call("look", {"at": "x"}),),
}


@pytest.mark.parametrize("acts", NO_SUMMARY.values(), ids=NO_SUMMARY)
@pytest.mark.parametrize(("provider", "model"), MODELS)
def test_g02_without_a_summary_the_next_turn_is_as_before(provider, model, acts):
    script = [*rounds("one"), *rounds("two"), *rounds("three", 1)]
    with Summarising(provider, script, acts) as server:
        talk = Conversation(model, base_url=server.url, tools=[look])
        talk.ask("look around")
        talk.ask("and again")
        records = tuple(talk.log)
        outcome = compress(talk)
        assert not outcome.ok
        assert outcome.text.startswith("not compressed: no summary from ")
        assert tuple(talk.log) == records
        assert talk.ask("once more").text == "three done"
    assert [refused.reason for refused in server.refusals] == []


def test_a_refused_summary_is_told_in_the_providers_words(monkeypatch):
    with Summarising("anthropic", [*rounds("one"), *rounds("two")]) as server:
        talk = Conversation("anthropic/claude-sonnet-4-5", base_url=server.url, tools=[look])
        talk.ask("look around")
        talk.ask("and again")
        monkeypatch.setattr(server, "_provider", _Refusing(server._provider))
        outcome = compress(talk)
    assert not outcome.ok
    assert "overloaded just now" in outcome.text


class _Refusing:
    def __init__(self, provider):
        self._provider = provider

    def __getattr__(self, name):
        return getattr(self._provider, name)

    def verdicts(self, asked, ledger):
        yield Verdict("overloaded just now")
