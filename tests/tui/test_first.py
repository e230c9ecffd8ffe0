"""What is offered where no model given."""

from __future__ import annotations

import asyncio

from mull.agent.engine import Engine
from mull.tui.first import offers

GATE = "openrouter"


def test_of_a_provider_with_a_key_models_that_call_tools_come_first(monkeypatch):
    """The newest models of a gateway are often ones that draw or judge."""
    monkeypatch.setenv("OPENROUTER_API_KEY", "k")
    engine = Engine()
    catalog = engine.setup.catalog()
    found = [item.name.partition("/") for item in asyncio.run(offers(engine))]
    entries = [catalog.entry(provider, model) for provider, _, model in found if provider == GATE]
    calls = [entry["tool_call"] for entry in entries]
    assert len(calls) > 30
    assert calls == sorted(calls, reverse=True)
    assert len(found) == len(set(found))
