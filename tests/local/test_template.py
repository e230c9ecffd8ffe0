"""What the embedded model is told of thinking, and that it agrees with the catalog."""

from __future__ import annotations

import re

import pytest

from mull.catalog.resolve import resolve
from mull.local import template
from mull.local.metrics import Metrics, read_metrics
from mull.local.server import MODEL, default_budget
from mull.policy.thinking.plan import level_table
from mull.settings.layers import Settings


def test_the_grammar():
    assert template.grammar() == (
        'root ::= "<|im_start|>assistant\\n" '
        '( "<think>" thought <[9617]> <[17400]> <[46]> "\\n\\n" answer | answer )\n'
        'thought ::= line? ("\\n" line)* ("\\n" "\\n"?)?\n'
        "line ::= [^<\\n]+\n"
        "answer ::= [^<\\n\\r\\t ] .*\n"
    )


def test_every_rule_of_the_grammar_is_defined_once_and_used():
    text = template.grammar()
    defined = re.findall(r"^(\w+) ::=", text, re.MULTILINE)
    used = {word for word in defined if len(re.findall(rf"\b{word}\b", text)) > 1}
    assert len(defined) == len(set(defined))
    assert used == set(defined) - {"root"}


def test_the_generation_prompt_of_the_template_is_the_one_the_grammar_expects():
    end = template.CHAT_TEMPLATE.partition("{%- if add_generation_prompt -%}")[2]
    written = [text.replace("\\n", "\n") for text in re.findall(r"\{\{- '(.*?)' -\}\}", end)]
    assert written == [template.GENERATION_PROMPT, template.OPEN]
    assert end.count("{%- if thinks -%}") == 1


def test_the_template_leaves_no_space_of_its_own():
    for line in template.CHAT_TEMPLATE.splitlines():
        assert line.startswith(("{%-", "{{-"))
        assert line.endswith(("-%}", "-}}"))


def test_what_the_levels_become():
    rows = level_table(resolve(MODEL), Settings().snapshot())
    assert {row.level: row.text for row in rows} == {
        "unset": "default (medium)",
        "none": "off",
        "minimal": "minimal (32 tokens)",
        "low": "low (106 tokens)",
        "medium": "medium (181 tokens)",
        "high": "high (256 tokens)",
        "xhigh": "xhigh (256 tokens)",
        "max": "max (256 tokens)",
    }
    sent = {row.level: row.sent_as for row in rows}
    assert sent["none"] == '{"chat_template_kwargs":{"enable_thinking":false,"thinking":false}}'
    assert sent["low"].endswith('"reasoning_budget_tokens":106}')


def test_without_a_level_the_server_thinks_as_the_catalog_says():
    assert default_budget(resolve(MODEL).facts) == 181


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
