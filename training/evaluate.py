"""Asks the embedded model through mull, and writes the table of the model card.

`python -m training.evaluate --each 20 --json figures.json`: the tasks come from a seed that no
training run uses; the embedded server runs on this machine's processor, with the adapter if its
package can be imported and without it otherwise. `--compare` sets an earlier file beside it.
"""

from __future__ import annotations

import argparse
import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

from mull.agent.library import Conversation
from mull.agent.results import Result
from mull.catalog.resolve import resolve
from mull.local.manage import ensure
from mull.local.server import MODEL
from mull.local.untaught import as_installed
from mull.local.weights import find_adapter
from mull.neutral.blocks import ToolCallBlock
from mull.policy.thinking.budget import budget_for_level
from mull.store.paths import data_dir
from training.families import ERRANDS, PROBLEMS, definitions
from training.problem import is_right
from training.toolwork import Errand

SEED = "examination"
LEVEL = "medium"


class Mark(NamedTuple):
    """How one task went. `called` is None where no tool was needed."""

    family: str
    question: str
    answer: str
    thought: str
    right: bool
    closed: bool
    called: bool | None
    thought_tokens: int


def main() -> None:
    """Read the command line, ask, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=20, help="tasks of each family")
    parser.add_argument("--first", type=int, default=0, help="the number of the first of them")
    parser.add_argument("--level", default=LEVEL)
    parser.add_argument("--family", action="append", help="only this one; may be repeated")
    parser.add_argument("--json", type=Path, help="write every task and its mark here")
    parser.add_argument("--compare", type=Path, help="figures written earlier, for the base")
    options = parser.parse_args()
    marks: list[Mark] = []
    for family in options.family or (*PROBLEMS, *ERRANDS):
        for number in range(options.first, options.first + options.each):
            marks.append(examine(family, number, options.level))
        done = [mark for mark in marks if mark.family == family]
        print(f"{family}: {sum(mark.right for mark in done)} of {len(done)}", flush=True)
        if options.json:
            found = {"adapter": find_adapter() is not None, "level": options.level}
            marked = [mark._asdict() for mark in marks]
            options.json.write_text(json.dumps({**found, "marks": marked}, indent=1))
    before = [Mark(**one) for one in _read(options.compare)] if options.compare else None
    print(table(marks, before))


def _read(path: Path) -> Any:
    return json.loads(path.read_text())["marks"]


def examine(family: str, number: int, level: str) -> Mark:
    """Set one task and mark what comes back."""
    rng = Random(f"{SEED} {family} {number}")
    settings = {"reasoning.effort": level}
    if family in ERRANDS:
        errand = ERRANDS[family][0](rng)
        talk = Conversation(MODEL, tools=_scripted(errand), settings=settings)
        result = talk.ask(errand.question)
        expected, check, question = errand.expected, errand.check, errand.question
        called: bool | None = _calls(result) == [(s.name, dict(s.arguments)) for s in errand.steps]
    else:
        problem = PROBLEMS[family][0](rng)
        result = Conversation(MODEL, settings=settings).ask(problem.question)
        expected, check, question = problem.expected, problem.check, problem.question
        called = None
    right = is_right(result.text, expected, check) and called is not False
    return _marked(family, question, result, right, called, level)


def _marked(
    family: str, question: str, result: Result, right: bool, called: bool | None, level: str
) -> Mark:
    target = as_installed(resolve(MODEL))
    assert target.facts.budget is not None
    budget = budget_for_level(target.facts.budget, level)  # type: ignore[arg-type]
    answers = [message for message in result.messages if message.role == "assistant"]
    lengths = [_tokens("".join(one.thought for one in answer.thinking)) for answer in answers]
    # a thought that fills its budget was ended by the server
    closed = max(lengths) < budget - 2 and bool(result.text.strip())
    return Mark(family, question, result.text, result.thinking, right, closed, called, max(lengths))


def _tokens(text: str) -> int:
    """How many tokens of the model's own a text has."""
    running = ensure(data_dir() / "local")
    asked = Request(
        running.base_url.removesuffix("/v1") + "/tokenize",
        json.dumps({"content": text}).encode(),
        {"Authorization": f"Bearer {running.key}"},
    )
    with urlopen(asked) as response:
        return len(json.load(response)["tokens"])


def _calls(result: Result) -> list[tuple[str, Mapping[str, Any]]]:
    return [
        (block.name, block.input)
        for message in result.messages
        for block in message.blocks
        if isinstance(block, ToolCallBlock)
    ]


def _scripted(errand: Errand) -> list[Callable[..., str]]:
    """The tools on offer; each knows only the results that the right calls would have."""
    return [_function(one["function"], errand) for one in definitions(errand.tools)]


def _function(defined: Mapping[str, Any], errand: Errand) -> Callable[..., str]:
    keys = list(defined["parameters"]["properties"])
    known = [step for step in errand.steps if step.name == defined["name"]]

    def answer(**given: str) -> str:
        fitting = [step.result for step in known if dict(step.arguments) == given]
        return fitting[0] if fitting else "there is nothing of this name"

    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(key, kind, annotation=str) for key in keys]
    answer.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    answer.__annotations__ = {**dict.fromkeys(keys, str), "return": str}
    answer.__name__, answer.__doc__ = defined["name"], defined["description"]
    return answer


def table(marks: list[Mark], before: list[Mark] | None) -> str:
    """The figures of all families, in Markdown."""
    rows = ["| Family | Right | Base | Thought closed | Calls right | Tokens of a thought |"]
    rows.append("|---|---|---|---|---|---|")
    families = list(dict.fromkeys(mark.family for mark in marks))
    for family in (*families, None):
        mine = [mark for mark in marks if family in (None, mark.family)]
        base = [mark for mark in before or () if family in (None, mark.family)]
        called = [mark.called for mark in mine if mark.called is not None]
        cells = (
            family or "**all**",
            _share([mark.right for mark in mine]),
            _share([mark.right for mark in base]),
            _share([mark.closed for mark in mine]),
            _share(called),
            f"{sum(mark.thought_tokens for mark in mine) / len(mine):.0f}",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _share(held: list[bool]) -> str:
    return f"{100 * sum(held) / len(held):.0f} % ({sum(held)}/{len(held)})" if held else "–"


if __name__ == "__main__":
    main()
