"""Asks the embedded model what people asked, in words that nobody trained on, and grades it.

`python -m training.examine --json training/examined.json` asks every question of
`questions.toml` through mull, at the level medium and at temperature 0, each in a conversation of
its own and with nothing cached, so it answers the same each time on the same machine. It writes
every answer with its mark, and prints the table of the model card. Those about
files and functions are right only if a tool was called.
"""

from __future__ import annotations

import argparse
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import mull
from mull.agent.tools.table import builtin_tools
from mull.agent.tools.workspace import Workspace
from mull.local.server import MODEL

__all__ = ["Mark", "Question", "is_right", "questions", "read_marks", "table"]

QUESTIONS = Path(__file__).with_name("questions.toml")
EXAMINED = Path(__file__).with_name("examined.json")
LEVEL = "medium"

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?!\w)")
_FRESH = {"cache_prompt": False}
"""A prompt read in other portions rounds otherwise, and an answer would depend on the last one."""
_ROUNDS = 6
"""Requests in which it may call tools; one that has not answered by then never does."""


class Question(NamedTuple):
    """One question; `family` is the whole entry that it stands in."""

    family: dict[str, Any]
    ask: str
    right: Any
    wrong: str | None

    @property
    def needs_tool(self) -> bool:
        """Whether it cannot be answered without a call."""
        return "files" in self.family or "functions" in self.family


class Mark(NamedTuple):
    """How one question went."""

    family: str
    question: str
    thought: str
    answer: str
    called: bool
    right: bool


def questions() -> Iterator[Question]:
    """Every question of the examination."""
    for family in tomllib.loads(QUESTIONS.read_text())["family"]:
        for ask, *rest in family["questions"]:
            right, wrong = (*rest, None, None)[:2]
            yield Question(family, ask, family.get("right") if right is None else right, wrong)


def is_right(question: Question, answer: str, *, called: bool) -> bool:
    """Whether this answer to the question is right."""
    if question.needs_tool and not called:
        return False
    said, grade, right = answer.strip(), question.family["grade"], question.right
    numbers = [float(found) for found in _NUMBER.findall(re.sub(r"(?<=\d),(?=\d{3})", "", said))]
    if grade == "number":
        return numbers[-1:] == [right]
    if grade == "numbers":
        return numbers == right
    if grade == "form":
        return re.fullmatch(right, said.rstrip(".!").strip("\"'").rstrip(".!")) is not None
    flags = re.IGNORECASE | re.DOTALL
    if question.wrong is not None and re.search(question.wrong, said, flags):
        return False
    return re.search(right, said, flags) is not None


def examine(question: Question) -> Mark:
    """Ask one question."""
    settings = {"reasoning.effort": LEVEL}
    with TemporaryDirectory() as folder:
        talk = mull.Conversation(
            MODEL,
            tools=_tools(question.family, Path(folder)),
            temperature=0,
            max_rounds=_ROUNDS,
            settings=settings,
            extra_body=_FRESH,
        )
        try:
            answer = talk.ask(question.ask).text
        except mull.LocalError as error:
            answer = f"({error})"
    said = [message for message in talk.messages if message.role == "assistant"]
    called = any(message.tool_calls for message in said)
    right = is_right(question, answer, called=called)
    thought = "\n".join(one.thought.strip() for message in said for one in message.thinking)
    return Mark(question.family["name"], question.ask, thought, answer, called, right)


def _tools(family: dict[str, Any], folder: Path) -> list[Any]:
    """mull's own tools in a folder with the family's files, or its functions."""
    for name, text in family.get("files", {}).items():
        (folder / name).write_text(text)
    own = builtin_tools(Workspace(folder)) if "files" in family else {}
    return [own[name] for name in family.get("tools", ())] + [
        mull.Tool(
            name,
            about,
            {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]},
            handler=_function(key, family["gives"]),
        )
        for name, (about, key) in family.get("functions", {}).items()
    ]


def _function(key: str, gives: dict[str, str]) -> Callable[..., str]:
    """A function that knows what it gives, and nothing else."""

    def answer(**given: str) -> str:
        return gives.get(given[key], "nothing found")

    return answer


def read_marks(path: Path = EXAMINED) -> list[Mark]:
    """The marks written earlier."""
    return [Mark(**one) for one in json.loads(path.read_text())]


def table(marks: list[Mark]) -> str:
    """The result of all families, in Markdown."""
    rows = [
        "| Family | Right | Wrong | One of the questions | Its answer |",
        "|---|---|---|---|---|",
    ]
    for family in dict.fromkeys(mark.family for mark in marks):
        mine = [mark for mark in marks if mark.family == family]
        right = sum(mark.right for mark in mine)
        # the first that went wrong is shown, where one did
        shown = next((mark for mark in mine if not mark.right), mine[0])
        said = "right" if shown.right else "wrong"
        cells = (family, f"{right} of {len(mine)}", str(len(mine) - right))
        rows.append(
            f"| {' | '.join(cells)} | {_cell(shown.question)} | {_cell(shown.answer)} ({said}) |"
        )
    right = sum(mark.right for mark in marks)
    rows.append(f"| **all** | **{right} of {len(marks)}** | {len(marks) - right} | | |")
    return "\n".join(rows)


def _cell(text: str) -> str:
    short = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
    return f"{short[:70].rstrip()} …" if len(short) > 71 else short


def main() -> None:
    """Read the command line, ask, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", action="append", help="only this one; may be repeated")
    parser.add_argument("--json", type=Path, help="write every answer and its mark here")
    options = parser.parse_args()
    marks: list[Mark] = []
    for question in questions():
        if not options.family or question.family["name"] in options.family:
            marks.append(mark := examine(question))
            print("right" if mark.right else "WRONG", mark.question, "->", mark.answer, flush=True)
            if options.json:
                found = json.dumps([one._asdict() for one in marks], indent=1, ensure_ascii=False)
                options.json.write_text(found + "\n")
    print(table(marks))


if __name__ == "__main__":
    main()
