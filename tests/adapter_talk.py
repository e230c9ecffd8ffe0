"""The talk that every adapter must get through on the strict servers of five providers."""

from __future__ import annotations

from contextlib import contextmanager

from mull.testing import Call, Say, StrictServer, Think

MODELS = {
    "kimi": "moonshotai/kimi-k2-thinking",
    "anthropic": "anthropic/claude-sonnet-4-5",
    "gemini": "google/gemini-3-pro-preview",
    "openai": "openai/gpt-5",
    "deepseek": "deepseek/deepseek-v4-pro",
}
TURN = (
    [Think("I must look."), Call("price", {"item": "milk"})],
    [
        Think("Two more."),
        Say("Let me see."),
        Call("price", {"item": "bread"}),
        Call("price", {"item": "tea"}),
    ],
    [Think("That is all."), Say("Milk, bread and tea cost 6.")],
)
ANSWER = "Milk, bread and tea cost 6."


def price(item: str) -> str:
    """The price of an item.

    Args:
        item: What is bought.
    """
    return {"milk": "1", "bread": "2", "tea": "3"}[item]


@contextmanager
def strict(provider: str, *turns):
    """A strict server that plays the turns; nothing that is sent may be refused or doubtful."""
    with StrictServer(provider, [answer for turn in turns for answer in turn]) as server:
        yield server
    assert [refused.reason for refused in server.refusals] == []
    assert [doubt.reason for doubt in server.doubts] == []
    assert server.answered == sum(map(len, turns))


def check_returned(server: StrictServer) -> None:
    """Each request within a turn brought back more reasoning than the one before it."""
    rounds = len(TURN)
    for start in range(0, len(server.returned), rounds):
        counts = [len(one) for one in server.returned[start : start + rounds]]
        assert sorted(set(counts)) == counts
        assert set(server.returned[start + rounds - 1]) <= set(server.issued)
