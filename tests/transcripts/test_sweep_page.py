"""The page of a sweep shows every point, says what it leaves out, and explains only what it has."""

import re

import pytest

from mull.policy.sweep.cells import Outcome, sum_up
from mull.policy.sweep.tasks import Task
from mull.transcripts.sweep_page import sweep_html
from mull.transcripts.sweep_plot import PLOTS, sweep_plot

THINKING, COST, TIME = PLOTS


def cells(*rows):
    """Cells of (model, level, right of ten, thinking tokens, cost)."""
    return sum_up(outcomes(*rows))


def outcomes(*rows):
    return [
        Outcome(
            task=str(n), model=model, level=level, right=n < right, thinking_tokens=thinking,
            cost=cost, seconds=2.0,
        )
        for model, level, right, thinking, cost in rows
        for n in range(10)
    ]  # fmt: skip


def drawn(plot, *rows):
    return sweep_plot(plot, cells(*rows), {row[0]: "answer" for row in rows})


def labels(figure):
    return re.findall(r'<text class="name[^>]*>([^<]*)<', figure)


def test_points_that_coincide_are_all_drawn_and_named():
    figure = drawn(THINKING, ("p/m", "low", 5, 80, 0), ("p/m", "high", 5, 80, 0))
    assert re.findall(r'<circle[^>]* r="(\d+)"', figure) == ["5", "9"]
    assert labels(figure) == ["low, high"]
    assert "<polyline" not in figure


def test_models_that_coincide_are_named_with_their_levels():
    figure = drawn(THINKING, ("p/m", "low", 5, 80, 0), ("q/n", "low", 5, 80, 0))
    assert labels(figure) == ["m low, n low"]


def test_a_level_without_thinking_stands_at_zero_and_the_frontier_starts_there():
    figure = drawn(THINKING, ("p/m", "none", 5, 0, 0), ("p/m", "high", 7, 43, 0))
    assert labels(figure) == ["none", "high"]
    (line,) = re.findall(r'<polyline class="front" points="([^"]*)"', figure)
    assert line.startswith("46.0,")
    assert len(line.split()) == 2


def test_free_answers_have_no_axis():
    figure = drawn(COST, ("p/m", "low", 5, 80, 0.0), ("p/m", "high", 6, 90, 0.0))
    assert "<svg" not in figure
    assert "All answers were free." in figure


def test_what_a_plot_cannot_show_is_named():
    rows = ("p/m", "low", 5, None, 0.1), ("p/m", "high", 6, 90, 0.1)
    assert "Not shown because it is unknown: p/m/low." in drawn(THINKING, *rows)
    assert "Not shown" not in drawn(COST, *rows)
    assert "Unknown: thinking tokens per answer." in drawn(THINKING, rows[0])
    ungraded = sum_up([Outcome(task="t", model="m", cost=1.0)])
    assert "No answer was graded." in sweep_plot(COST, ungraded, {"m": "answer"})


def test_labels_keep_clear_of_each_other():
    rows = [("p/m", f"level{n}", 5 + n % 2, 100 + 2 * n, 0) for n in range(6)]
    places = re.findall(r'<text class="name[^>]* x="([^"]*)" y="([^"]*)"', drawn(THINKING, *rows))
    assert len(places) == len(set(places))


def test_only_what_is_drawn_is_explained():
    tasks = [Task(prompt="a", id=str(n)) for n in range(10)]
    frontier = "Pareto frontier"
    one = sweep_html("t", tasks[:1], outcomes(("p/m", "low", 5, 80, 0.0)))
    two = sweep_html("t", tasks, outcomes(("p/m", "low", 5, 80, 0.0), ("p/m", "high", 6, 90, 0.0)))
    assert "1 task." in one
    assert frontier not in one
    assert "10 tasks." in two
    assert frontier in two


@pytest.mark.parametrize("tokens", [0, 40])
def test_a_label_stays_within_its_plot_however_many_it_names(tokens):
    names = ["p/claude-sonnet-4-5", "q/gpt-5-codex-max", "r/kimi-k2-thinking", f"s/{'x' * 99}"]
    rows = [(name, level, 10, tokens, 0) for name in names for level in ("low", "high")]
    figure = drawn(THINKING, *rows, ("t/last", "high", 5, 80, 0))
    found = re.findall(r'<text class="(name[^"]*)" x="([^"]*)" y="([^"]*)">([^<]*)<', figure)
    assert re.fullmatch(r"claude-sonne.* and 7 more", found[0][3])
    for anchor, x, y, said in found:
        wide = len(said) * 7.2
        assert (float(x) - wide if anchor == "name end" else float(x)) >= 46
        assert (float(x) if anchor == "name end" else float(x) + wide) <= 420
        assert float(y) >= 12
    (long,) = labels(drawn(THINKING, (names[-1], None, 10, 40, 0)))
    assert long.startswith("xxx")
    assert long.endswith("…")
