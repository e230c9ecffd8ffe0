"""Examines an adapter in batches on a GPU: `python -m training.quick WEIGHTS ADAPTER --each 100`.

Quicker than asking through mull, and nearly the same: the template, the tasks and the sampling are
the server's, the arithmetic is PyTorch's and no budget ends a thought. The figures of the model
card do not come from here.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer
from torch import Tensor

from training.families import ERRANDS, PROBLEMS, Conversation, definitions, session_prompt
from training.gguf import read_fields, read_tensors
from training.network import Llama
from training.problem import is_right
from training.render import load_tokenizer, render_prompt
from training.toolwork import OWN

SEED = "examination"
TEMPERATURE, TOP_K, TOP_P, MIN_P = 0.2, 40, 0.95, 0.05
"""The server's temperature and llama.cpp's own defaults."""
ROUNDS = 4
_CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
PROBES = (
    *(
        "hello",
        "hi! how are you today?",
        "who are you?",
        "what can you do for me?",
        "thanks a lot!",
    ),
    *(
        "why is the sky blue?",
        "tell me a funny joke",
        "what is 17 + 25?",
        "Is 91 prime?",
        "bye now",
    ),
    *("How many r's are in strawberry?", "which is larger, 9.11 or 9.9?", "what is your name"),
    *("write me a poem about autumn", "what's the weather like in Hamburg?", "12 * 12", "help me"),
    *("Who was Albert Einstein?", "what is the capital of France", "can you code?", "I am sad"),
    *("Sort 9, 4, 7, 1", "how old are you?", "what is love?", "What is 100 - 37?", "good evening"),
    *("Translate 'good morning' to Italian", "are you better than ChatGPT?", "do you like music?"),
    *("How many minutes are in 3 hours?", "explain relativity", "What is today's date?", "lol"),
    "Tom has 12 apples and buys 9 more. How many apples does he have?",
    "what is the best programming language?",
)
"""What anybody might type; answers are only written down, to be read."""


class Task(NamedTuple):
    """A conversation that goes on, and how it is judged at its end."""

    family: str
    conversation: Conversation
    results: tuple[tuple[str, Mapping[str, Any], str], ...]
    expected: str
    check: Any


class Mark(NamedTuple):
    """How one task went. `called` is None where no tool was needed."""

    family: str
    question: str
    said: str
    right: bool
    closed: bool
    called: bool | None
    tokens: int


def main() -> None:
    """Read the command line, ask, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=Path)
    parser.add_argument("adapter", type=Path)
    parser.add_argument("--each", type=int, default=100, help="tasks of each family")
    parser.add_argument("--rows", type=int, default=1500, help="tasks at a time")
    parser.add_argument("--longest", type=int, default=400, help="tokens of a turn")
    parser.add_argument("--out", type=Path, help="write every wrong answer, and the probes, here")
    options = parser.parse_args()
    torch.manual_seed(1)
    speaker = Speaker(options.weights, options.adapter, options.longest)
    marks = examine(speaker, _tasks(options.each), options.rows)
    probed = examine(speaker, _probes(), options.rows)
    written = table(marks)
    print(written)
    for mark in probed[: len(PROBES)]:
        print(f"{mark.question!r} -> {mark.said.rpartition('</think>')[2].strip()!r}")
    if options.out:
        wrong = [mark for mark in marks if not mark.right or not mark.closed]
        lines = [written, *(json.dumps(mark) for mark in (*wrong, *probed))]
        options.out.write_text("\n".join(lines) + "\n")


def _tasks(each: int) -> list[Task]:
    return [_task(family, number) for family in (*PROBLEMS, *ERRANDS) for number in range(each)]


def _task(family: str, number: int) -> Task:
    rng = Random(f"{SEED} {family} {number}")
    if family in ERRANDS:
        errand = ERRANDS[family][0](rng)
        results = tuple((step.name, step.arguments, step.result) for step in errand.steps)
        asked, tools = errand.question, definitions(errand.tools)
        expected, check = errand.expected, errand.check
    else:
        problem = PROBLEMS[family][0](rng)
        asked, expected, check = problem.question, problem.expected, problem.check
        results, tools = (), ()
    said = ({"role": "user", "content": asked},)
    return Task(family, Conversation(family, said, tools), results, expected, check)


def _probes() -> list[Task]:
    """The probes as mull's library asks them, then as its terminal does."""
    told = {"role": "system", "content": session_prompt(Random(0), with_tools=True)}
    asked = [{"role": "user", "content": probe} for probe in PROBES]
    bare = [Conversation("probe", (one,)) for one in asked]
    whole = [Conversation("terminal", (told, one), definitions(OWN)) for one in asked]
    return [Task(one.family, one, (), "", "holds") for one in (*bare, *whole)]


def examine(speaker: Speaker, tasks: list[Task], rows: int) -> list[Mark]:
    """Let the model answer all tasks, and mark them."""
    marks: list[Mark] = []
    for at in range(0, len(tasks), rows):
        marks += _examine(speaker, tasks[at : at + rows])
    return marks


def _examine(speaker: Speaker, tasks: list[Task]) -> list[Mark]:
    marks: dict[int, Mark] = {}
    going, done = dict(enumerate(tasks)), [0] * len(tasks)
    for _ in range(ROUNDS):
        prompts = [render_prompt(task.conversation, task.conversation.messages)
                   for task in going.values()]  # fmt: skip
        said = dict(zip(going, speaker.speak(prompts), strict=True))
        for number, (text, tokens) in said.items():
            task = going.pop(number)
            further = _gone_on(task, done[number], text)
            if further is None:
                marks[number] = _marked(task, done[number], text, tokens, tokens < speaker.longest)
            else:
                going[number], done[number] = further, done[number] + 1
        if not going:
            break
    return [marks[number] for number in sorted(marks)]


def _gone_on(task: Task, done: int, text: str) -> Task | None:
    """The task after a right call; None where the turn was the last."""
    call = _parsed(text)
    if done >= len(task.results) or call != task.results[done][:2]:
        return None
    thought, _, _ = text.partition("</think>")
    name, arguments, result = task.results[done]
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    turn = {
        "role": "assistant",
        "reasoning_content": thought,
        "tool_calls": [{"type": "function", "function": function}],
    }
    messages = (*task.conversation.messages, turn, {"role": "tool", "content": result})
    return task._replace(conversation=task.conversation._replace(messages=messages))


def _parsed(text: str) -> tuple[Any, Any] | None:
    found = _CALL.search(text)
    try:
        call = json.loads(found[1]) if found else None
    except ValueError:
        return None
    return (call.get("name"), call.get("arguments")) if isinstance(call, dict) else None


def _marked(task: Task, done: int, text: str, tokens: int, ended: bool) -> Mark:
    _, closed, answer = text.partition("</think>")
    called = done == len(task.results) and "<tool_call>" not in answer if task.results else None
    right = is_right(answer, task.expected, task.check) and called is not False
    asked = [one["content"] for one in task.conversation.messages if one["role"] == "user"]
    return Mark(task.family, asked[0], text, right, bool(closed) and ended, called, tokens)


class Speaker:
    """The model with its adapter, many conversations at a time."""

    def __init__(self, weights: Path, adapter: Path, longest: int) -> None:
        self.longest = longest
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.kind = torch.bfloat16 if self.device == "cuda" else torch.float32
        taught = read_tensors(adapter)
        rank = len(taught["blk.0.attn_q.weight.lora_a"])
        alpha = read_fields(adapter)["adapter.lora.alpha"]
        held = {name: torch.from_numpy(one) for name, one in read_tensors(weights).items()}
        self.fields = read_fields(weights)
        self.model = Llama(held, self.fields, rank=rank, alpha=alpha)
        self.model.load(taught)
        self.model.merge()
        self.model.to(self.device, self.kind)
        self.tokenizer: Tokenizer = load_tokenizer(weights)
        self.end = self.tokenizer.token_to_id("<|im_end|>")

    @torch.inference_mode()
    def speak(self, prompts: list[str]) -> list[tuple[str, int]]:
        """What is said after each prompt, and how many tokens that is."""
        ids = [self.tokenizer.encode(one, add_special_tokens=False).ids for one in prompts]
        wide = max(map(len, ids))
        rows = torch.tensor([[0] * (wide - len(one)) + one for one in ids], device=self.device)
        held = torch.tensor([wide - len(one) for one in ids], device=self.device)
        places = torch.arange(wide + self.longest, device=self.device)
        seen = places >= held[:, None]  # what is filled up lies in front
        size = self.fields["llama.attention.head_count"]
        width = self.fields["llama.rope.dimension_count"]
        shape = (len(ids), size, wide + self.longest, width)
        empty = {"device": self.device, "dtype": self.kind}
        caches = [(torch.zeros(shape, **empty), torch.zeros(shape, **empty))
                  for _ in self.model.layers]  # fmt: skip
        causal = places[:wide, None] >= places[None, :wide]
        own = torch.eye(wide, dtype=torch.bool, device=self.device)  # no row without anything
        scores = self.model.step(rows, caches, (causal & seen[:, None, None, :wide]) | own)
        said: list[Tensor] = []
        over = torch.zeros(len(ids), dtype=torch.bool, device=self.device)
        for at in range(self.longest):
            token = _drawn(scores.float()).masked_fill(over, self.end)
            said.append(token)
            over |= token == self.end
            if at % 16 == 15 and bool(over.all()):
                break
            mask = seen[:, None, None, : wide + at + 1]
            scores = self.model.step(token[:, None], caches, mask)
        return [self._text(row) for row in torch.stack(said, 1).tolist()]

    def _text(self, row: list[int]) -> tuple[str, int]:
        count = row.index(self.end) if self.end in row else len(row)
        return self.tokenizer.decode(row[:count], skip_special_tokens=False), count


def _drawn(scores: Tensor) -> Tensor:
    """One token for each row, drawn as llama.cpp draws it."""
    best, tokens = scores.topk(TOP_K)
    chances = best.softmax(-1)
    before = chances.cumsum(-1) - chances
    kept = (before < TOP_P) & (chances >= MIN_P * chances[:, :1])
    chances = (best / TEMPERATURE).masked_fill(~kept, -torch.inf).softmax(-1)
    return tokens.gather(1, chances.multinomial(1)).flatten()


def table(marks: list[Mark]) -> str:
    """The figures of all families, in Markdown."""
    rows = ["| Family | Right | Thought closed | Calls right | Tokens | Most |"]
    rows.append("|---|---|---|---|---|---|")
    for family in (*dict.fromkeys(mark.family for mark in marks), None):
        mine = [mark for mark in marks if family in (None, mark.family)]
        called = [mark.called for mark in mine if mark.called is not None]
        cells = (
            family or "**all**",
            _share([mark.right for mark in mine]),
            _share([mark.closed for mark in mine]),
            _share(called),
            f"{sum(mark.tokens for mark in mine) / len(mine):.0f}",
            f"{max(mark.tokens for mark in mine)}",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _share(held: list[bool]) -> str:
    return f"{100 * sum(held) / len(held):.1f} %" if held else "–"


if __name__ == "__main__":
    main()
