"""What mull sends to a real llama.cpp, rendered by the chat templates that families ship.

The templates come with the source package of llama-cpp-python, which is fetched once. The model
behind them is the small one: what it says is worth nothing, but whether it thinks, how long, and
what stands in its prompt is decided by the server, the template and the request.
"""

from __future__ import annotations

import json
import subprocess
import urllib.request

import pytest
from tools import chat_templates
from tools.llama_server import running

from mull.catalog.load import load
from mull.catalog.resolve import resolve
from mull.dialects.registry import decoder, encode_request
from mull.history.log import Log
from mull.local import weights
from mull.neutral.blocks import ThinkingBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.events import Finished, ThinkingDelta
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import RequestOptions, Tool
from mull.policy.prepare import prepare
from mull.settings.layers import Settings
from mull.settings.presets import preset_values

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(960),
    pytest.mark.skipif(not weights.is_installed(), reason="`mull local install` was not run"),
]

THOUGHT = "The river bends twice before the mill."
CATALOG = load()
DIALECTS = ("openai-chat", "openai-responses", "anthropic")

# template, the name under which people serve it, whether it shows the open chain's thoughts
FAMILIES = [
    ("Qwen-Qwen3-0.6B", "qwen3-0.6b", True),
    ("Qwen3.5-4B", "qwen3.5-4b", True),
    ("Qwen-QwQ-32B", "qwq-32b", False),
    ("GLM-4.6", "glm-4.6", True),
    ("GLM-4.7-Flash", "glm-4.7-flash", True),
    ("google-gemma-4-31B-it", "gemma-4-31b-it", True),
    ("deepseek-ai-DeepSeek-V3.1", "deepseek-v3.1", False),
    ("deepseek-ai-DeepSeek-V3.2", "deepseek-v3.2", True),
    ("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nemotron-3-nano", True),
    ("HuggingFaceTB-SmolLM3-3B", "smollm3-3b", False),
    ("ByteDance-Seed-OSS", "seed-oss-36b", True),
    ("StepFun3.5-Flash", "step-3.5-flash", True),
    ("Kimi-K3", "kimi-k3", True),
    ("MiniMax-M3", "minimax-m3", True),
    ("tencent-Hy3", "hy3", True),
    ("openai-gpt-oss-120b", "gpt-oss-120b", True),
]
NO_SWITCH = ("step-3.5-flash",)
"""What the server's budget ends all the same."""
HAS_WORDS = ("gpt-oss-120b", "hy3", "kimi-k3", "seed-oss-36b")
"""Families whose template says how much to think."""
NOT_SPOKEN = ("gpt-oss-120b", "kimi-k3", "seed-oss-36b")
"""Seed-OSS writes a thought of its own into the prompt: that there is no budget for one."""


@pytest.fixture(scope="session")
def templates():
    try:
        return chat_templates.templates()
    except subprocess.SubprocessError as error:
        pytest.skip(f"{chat_templates.PACKAGE} cannot be fetched: {error}")


@pytest.fixture(scope="module", params=FAMILIES, ids=[name for _, name, _ in FAMILIES])
def family(request, templates):
    file, name, shows = request.param
    with running(templates / f"{file}.jinja") as url:
        yield url, name, shows


def post(url, body):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as reply:
        return reply.read()


def prompt(server, body):
    return json.loads(post(f"{server}/apply-template", body))["prompt"]


HELLO = (user("Hi"),)


def encode(name, level=None, messages=HELLO, dialect="openai-chat", **more):
    target = resolve(f"llama.cpp/{name}", catalog=CATALOG, dialect=dialect)
    settings = Settings()
    if level is not None:
        key = "reasoning.maxTokens" if isinstance(level, int) else "reasoning.effort"
        settings.set(key, level)
    snapshot = settings.snapshot(preset=preset_values(target.facts))
    tools = (Tool("look", "Look.", {"type": "object", "properties": {}}),)
    options = RequestOptions(tools=tools if len(messages) > 1 else (), **more)
    prepared = prepare(Log(messages), snapshot, target, options)
    return encode_request(prepared.request, target), target


def body_of(*asked, **more):
    return json.loads(encode(*asked, **more)[0].body)


def chain(name):
    target = resolve(f"llama.cpp/{name}", catalog=CATALOG)
    call = ToolCallBlock("call_1", "look", {})
    thought = ThinkingBlock(THOUGHT, "reasoning_content")
    result = Message("tool", blocks=(ToolResultBlock("call_1", "a mill"),))
    return [user("Look."), assistant(thought, call, origin=target.origin), result]


def test_the_thoughts_of_an_open_chain_are_in_the_prompt_wherever_the_template_shows_them(family):
    server, name, shows = family
    assert (THOUGHT in prompt(server, body_of(name, None, chain(name)))) is shows


def test_a_model_that_nobody_knows_gets_them_too(family):
    server, _, shows = family
    assert (THOUGHT in prompt(server, body_of("my-own", None, chain("my-own")))) is shows


def test_off_is_another_prompt_than_on(family):
    server, name, _ = family
    differs = prompt(server, body_of(name, "none")) != prompt(server, body_of(name, "high"))
    assert differs or name in NO_SWITCH


def test_on_is_the_same_prompt_at_every_level_or_the_level_is_in_it(family):
    server, name, _ = family
    prompts = {prompt(server, body_of(name, level)) for level in ("low", "high")}
    assert len(prompts) == (2 if name in HAS_WORDS else 1)
    if name not in HAS_WORDS:
        bodies = [body_of(name, level) for level in ("low", "medium", "high")]
        assert [body["reasoning_budget_tokens"] for body in bodies] == [512, 2048, 8192]


def answer(server, *asked, **more):
    wire, target = encode(*asked, max_tokens=80, temperature=0.0, **more)
    body = post(f"{server}/v1{wire.path.removeprefix('/v1')}", wire.body)
    events = [*(one := decoder(target)).feed(body), *one.close()]
    assert any(isinstance(event, Finished) for event in events)
    thoughts = [event.text for event in events if isinstance(event, ThinkingDelta)]
    return "".join(thoughts).strip()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_off_is_obeyed_in_every_dialect(family, dialect):
    server, name, _ = family
    if name in NOT_SPOKEN:
        pytest.skip("the small model cannot write this family's format")
    for model in (name, "my-own"):
        assert answer(server, model, "none", dialect=dialect) == "", model


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_budget_is_kept_in_every_dialect(templates, dialect):
    with running(templates / "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16.jinja") as server:
        for model in ("nemotron-3-nano", "my-own"):
            short, long = (answer(server, model, n, dialect=dialect) for n in (8, 60))
            assert 0 < len(short) < len(long)
