"""The vendors' own SDKs as clients of a real `mull serve`, on every upstream dialect.

Two turns of five rounds each. The strict server refuses what lost a thought; here is looked at what
the SDK made of the answers, and at the usage, compared with what the upstream said.
"""

from __future__ import annotations

from contextlib import closing

import pytest

from gateway.process import served
from gateway.test_square import CLIENTS, EACH_DIALECT, UPSTREAMS
from mull.testing import Call, Say, StrictServer, Think
from mull.testing.providers import anthropic, chat, gemini, responses
from mull.testing.script import thoughts_in
from naive_clients import TWO_TURNS
from sdk_clients import SDK_CLIENTS

pytest.importorskip("openai", reason="the official SDK is not installed")
sdk = pytest.importorskip("anthropic", reason="the official SDK is not installed")
pytest.importorskip("google.genai", reason="the official SDK is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(200),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

WAYS = {
    "replays": {"drops": False, "stream": True},
    "drops": {"drops": True, "stream": True},
    "not streaming": {"drops": False, "stream": False},
    "drops, not streaming": {"drops": True, "stream": False},
}
SHOWN = [thought.text for acts in TWO_TURNS for thought in thoughts_in(acts) if not thought.hidden]


@pytest.fixture
def billed(monkeypatch):
    """The usage of every answer, as the upstream says it."""
    said = []
    for provider in (anthropic, chat, gemini, responses):
        monkeypatch.setattr(provider, "usage_of", _noting(provider.usage_of, said))
    return said


def _noting(usage_of, said):
    def usage(*given):
        said.append(usage_of(*given))
        return said[-1]

    return usage


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("upstream", EACH_DIALECT)
@pytest.mark.parametrize("client", CLIENTS)
def test_an_sdk_keeps_its_thoughts_on_any_upstream(client, upstream, way, billed, tmp_path):
    with StrictServer(upstream, TWO_TURNS) as server:
        model = {"model": UPSTREAMS[upstream], "base_url": server.url}
        with (
            served(tmp_path, {"thinker": model}) as (url, _),
            closing(SDK_CLIENTS[client](url, **WAYS[way])) as talk,
        ):
            assert talk.ask("q") == "Done."
            assert talk.ask("and again") == "Done."
    assert [refused.reason for refused in server.refusals] == []
    assert server.answered == len(TWO_TURNS)
    longest = max(server.returned, key=len)
    assert longest == server.issued[: len(longest)]
    shown = "".join(talk.thoughts)
    for thought in SHOWN:
        assert thought in shown
        shown = shown.partition(thought)[2]
    assert len(set(talk.ids)) == len(talk.ids) == server.called
    for answer, usage in zip(talk.answers, billed, strict=True):
        assert answer.spent[:2] == (usage.input, usage.output)
        if client != "messages":  # Anthropic's API counts it in the output alone
            assert answer.spent.reasoning == usage.reasoning


TURN = [
    [Think("I have to look."), Call("look", {"at": "door"})],
    [Think("Twice."), Call("look", {"at": "a"}), Call("look", {"at": "b"})],
    [Think("Enough."), Say("It is a door.")],
]
BUDGETS = {"asks": {"thinking": {"type": "enabled", "budget_tokens": 2000}}, "does not ask": {}}


@pytest.mark.parametrize("asks", BUDGETS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("upstream", EACH_DIALECT)
def test_the_sdks_own_loop_goes_on_without_a_thread(upstream, stream, asks, tmp_path):
    @sdk.beta_tool
    def look(at: str = "") -> str:
        """Look there."""
        return f"saw {at}"

    with StrictServer(upstream, TURN) as server:
        model = {"model": UPSTREAMS[upstream], "base_url": server.url}
        with served(tmp_path, {"thinker": model}) as (url, _):
            client = sdk.Anthropic(api_key="x", base_url=url, max_retries=0)
            asked = {"messages": [{"role": "user", "content": "go"}], "max_tokens": 4000}
            asked |= {"model": "thinker", "tools": [look], "stream": stream, **BUDGETS[asks]}
            last = client.beta.messages.tool_runner(**asked).until_done()
    assert [refused.reason for refused in server.refusals] == []
    assert server.answered == len(TURN)
    assert last.content[-1].text == "It is a door."
    shown = [block for block in last.content if block.type == "thinking"]
    assert asks == "asks" or not shown
