"""Every client on every upstream, whether it replays reasoning or drops it."""

from __future__ import annotations

import pytest

from mull.store.serve import ServedModel
from mull.testing import StrictServer
from mull.testing.script import thoughts_in
from naive_clients import TWO_TURNS, Chat, Contents, Messages, Responses, less, same, without

TOOL = {"type": "object", "properties": {"at": {"type": "string"}}}
CHAT_TOOLS = [{"type": "function", "function": {"name": "look", "parameters": TOOL}}]
MESSAGES_TOOLS = [{"name": "look", "input_schema": TOOL}]
CONTENTS_TOOLS = [{"functionDeclarations": [{"name": "look", "parameters": TOOL}]}]
RESPONSES_TOOLS = [{"type": "function", "name": "look", "parameters": TOOL}]

UPSTREAMS = {
    "kimi": "moonshotai/kimi-k2.5",
    "deepseek": "deepseek/deepseek-reasoner",
    "anthropic": "anthropic/claude-sonnet-4-5",
    "anthropic-bound": "anthropic/claude-opus-5-5",
    "gemini": "google/gemini-3-pro-preview",
    "openai": "openai/gpt-5",
    "openrouter": "openrouter/anthropic/claude-sonnet-4.5",
}


EACH_DIALECT = ("kimi", "anthropic", "gemini", "openai")
CLIENTS = ("chat", "messages", "contents", "responses")


def pairs(keep):
    """Every client on every upstream; in the default run one upstream for each dialect."""
    return [
        pytest.param(
            name,
            upstream,
            how,
            marks=[] if upstream in EACH_DIALECT and how == "drops" else pytest.mark.slow,
        )
        for name in CLIENTS
        for upstream in UPSTREAMS
        for how in keep
    ]


def bare_parts(parts):
    """Without thoughts and signatures."""
    kept = [{k: v for k, v in part.items() if k != "thoughtSignature"} for part in parts]
    return [part for part in kept if not part.get("thought")]


def client(name, url, keep):
    match name:
        case "chat":
            drop = less("reasoning_content", "reasoning_details", "reasoning_opaque")
            return Chat(url, drop if keep == "drops" else same, tools=CHAT_TOOLS)
        case "messages":
            drop = without("thinking", "redacted_thinking")
            return Messages(url, drop if keep == "drops" else same, tools=MESSAGES_TOOLS)
        case "contents":
            return Contents(url, bare_parts if keep == "drops" else same, tools=CONTENTS_TOOLS)
    drop = without("reasoning")
    return Responses(url, drop if keep == "drops" else same, tools=RESPONSES_TOOLS)


@pytest.mark.parametrize(("name", "upstream", "keep"), pairs(["replays", "drops"]))
def test_no_thought_is_lost_between_any_two(gateway, name, upstream, keep):
    with StrictServer(upstream, TWO_TURNS) as server:
        models = {"m": ServedModel(UPSTREAMS[upstream], base_url=server.url)}
        with gateway(models) as url:
            talk = client(name, url, keep)
            assert talk.ask("q") == "Done."
            assert talk.ask("and again") == "Done."
        assert not server.refusals
        assert server.answered == len(TWO_TURNS)


class Broken:
    """A store that cannot be reached."""

    async def find(self, scope, keys):
        raise OSError("no store")

    async def keep(self, scope, keys, data):
        raise OSError("no store")

    async def agree(self, key):
        raise OSError("no store")

    def health(self):
        return {"store": "broken"}

    async def close(self):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("name", CLIENTS)
def test_without_a_store_a_client_that_replays_keeps_its_thoughts(gateway, name, upstream):
    script = [answer for answer in TWO_TURNS if thoughts_in(answer)]
    with StrictServer(upstream, script) as server:
        models = {"m": ServedModel(UPSTREAMS[upstream], base_url=server.url)}
        with gateway(models, Broken()) as url:
            talk = client(name, url, "replays")
            assert talk.ask("q") == "Done."
            assert talk.ask("and again") == "Done."
        assert not server.refusals
