"""How much of the examination was practised: `python -m training.overlap --each 25`.

The examination comes from a seed that no training run uses, which does not keep a question from
being drawn twice: some families have few questions. This draws the training set again and counts
the tasks whose question, word for word, is among its questions; and those of the examination that
was written by hand.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from itertools import islice
from random import Random

from training.evaluate import SEED
from training.examine import questions
from training.examples import GROUP
from training.families import ERRANDS, PROBLEMS, conversations


def main() -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=25, help="tasks of each family")
    parser.add_argument("--count", type=int, default=600_000, help="examples of the training set")
    parser.add_argument("--seed", default="practice", help="the training set's")
    options = parser.parse_args()
    asked = {family: _questions(family, options.each) for family in (*PROBLEMS, *ERRANDS)}
    written = [question.ask for question in questions()]
    practised = _practised(options.seed, options.count, {*written}.union(*asked.values()))
    print("| Family | Practised word for word |\n|---|---|")
    for family, drawn in asked.items():
        print(f"| {family} | {sum(one in practised for one in drawn)}/{len(drawn)} |")
    every = [one for drawn in asked.values() for one in drawn]
    print(f"| **all** | {sum(one in practised for one in every)}/{len(every)} |")
    print(f"| written by hand | {sum(one in practised for one in written)}/{len(written)} |")


def _questions(family: str, each: int) -> list[str]:
    draw = (PROBLEMS.get(family) or ERRANDS[family])[0]
    return [draw(Random(f"{SEED} {family} {number}")).question for number in range(each)]


def _practised(seed: str, count: int, wanted: Iterable[str]) -> set[str]:
    """Those of the wanted questions that an example answers."""
    sought, found = set(wanted), set[str]()
    for group in range(-(-count // GROUP)):
        for one in islice(conversations(f"{seed} {group}"), GROUP):
            asked = next(m["content"] for m in reversed(one.messages) if m["role"] == "user")
            if asked in sought:
                found.add(asked)
    return found


if __name__ == "__main__":
    main()
