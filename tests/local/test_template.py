"""What the embedded model is told of thinking, and that it agrees with the catalog."""

from __future__ import annotations

import re
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from mull.agent.tools.table import TOOL_NAMES
from mull.catalog.resolve import resolve
from mull.dialects.grammar import turn_grammar
from mull.local import server, template, untaught
from mull.local.metrics import Metrics, read_metrics
from mull.local.server import MODEL, default_budget
from mull.policy.thinking.budget import budget_for_level
from mull.policy.thinking.plan import level_table
from mull.settings.layers import Settings

TEMPLATES = (template.CHAT_TEMPLATE, untaught.CHAT_TEMPLATE)


@pytest.mark.parametrize("text", TEMPLATES, ids=("taught", "untaught"))
def test_the_generation_prompt_of_the_template_is_the_one_the_grammar_expects(text):
    end = text.partition("{%- if add_generation_prompt -%}")[2]
    written = [text.replace("\\n", "\n") for text in re.findall(r"\{\{- '(.*?)' -\}\}", end)]
    form = resolve(MODEL).compat.grammar
    assert written == [form.prompt, form.open]
    assert end.count("{%- if thinks -%}") == 1


@pytest.mark.parametrize("text", TEMPLATES, ids=("taught", "untaught"))
def test_the_template_leaves_no_space_of_its_own(text):
    for line in text.splitlines():
        assert line.startswith(("{%-", "{{-"))
        assert line.endswith(("-%}", "-}}"))


def test_what_the_levels_become():
    rows = level_table(resolve(MODEL), Settings().snapshot())
    assert {row.level: row.text for row in rows} == {
        "unset": "default (medium)",
        "none": "off",
        "minimal": "minimal (32 tokens)",
        "low": "low (192 tokens)",
        "medium": "medium (352 tokens)",
        "high": "high (512 tokens)",
        "xhigh": "xhigh (512 tokens)",
        "max": "max (512 tokens)",
    }
    sent = {row.level: row.sent_as for row in rows}
    assert sent["none"] == '{"chat_template_kwargs":{"enable_thinking":false,"thinking":false}}'
    assert sent["low"] == (
        '{"chat_template_kwargs":{"enable_thinking":true,"thinking":true,"thinking_budget":192},'
        '"reasoning_budget_tokens":192}'
    )


def test_only_the_lowest_level_is_told_to_be_brief():
    budget = resolve(MODEL).facts.budget
    levels = ("minimal", "low", "medium", "high")
    worth = {level: budget_for_level(budget, level) for level in levels}
    assert [level for level in levels if worth[level] < template.BRIEF_BELOW] == ["minimal"]
    assert f"thinking_budget < {template.BRIEF_BELOW} " in template.CHAT_TEMPLATE


def test_the_tools_it_was_taught_are_tools_that_there_are():
    assert set(resolve(MODEL).facts.taught_tools) <= set(TOOL_NAMES)


def test_without_its_adapter_it_is_offered_no_tools_and_thinks_less(monkeypatch):
    taught = resolve(MODEL)
    monkeypatch.setattr(untaught, "find_adapter", lambda: Path("thinking.gguf"))
    assert untaught.as_installed(taught) == taught
    monkeypatch.setattr(untaught, "find_adapter", lambda: None)
    facts = untaught.as_installed(taught).facts
    assert (facts.offer_tools, facts.taught_tools) == (False, None)
    assert default_budget(facts) == 181
    assert facts.budget.max == 256
    assert facts.frame_tokens > taught.facts.frame_tokens


def test_without_a_level_the_server_thinks_as_the_catalog_says():
    assert default_budget(resolve(MODEL).facts) == 352


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Metrics()),
        (
            "# HELP llamacpp:prompt_tokens_total x\n"
            "llamacpp:prompt_tokens_total 12\nllamacpp:tokens_predicted_total 30\n"
            "llamacpp:requests_processing 0\n",
            Metrics(12, 30, False),
        ),
        ("llamacpp:requests_deferred 1", Metrics(0, 0, True)),
        ("llamacpp:requests_processing 1\nllamacpp:prompt_tokens_total odd", Metrics(0, 0, True)),
        ("other:prompt_tokens_total 9", Metrics()),
    ],
)
def test_metrics(text, expected):
    assert read_metrics(text) == expected


def test_all_tokens_count_as_work():
    assert Metrics(2, 3).tokens == 5


@pytest.mark.parametrize("adapter", [Path("thinking.gguf"), None], ids=["taught", "untaught"])
def test_the_server_starts_with_the_grammar_of_a_plain_turn(monkeypatch, adapter):
    llama = MagicMock()
    monkeypatch.setattr(server, "_llama", lambda: llama)
    target = resolve(MODEL)
    served = server.parameters(target, Path("weights.gguf"), adapter, "key", 1)
    kind = llama.common_grammar_type.COMMON_GRAMMAR_TYPE_OUTPUT_FORMAT
    llama.CommonGrammar.assert_called_once_with(kind, turn_grammar(target.compat.grammar))
    assert served.sampling.grammar is llama.CommonGrammar.return_value
