"""Writes the training set: `python -m training.examples WEIGHTS EXAMPLES --count 400000`.

The examples come in groups, each from a seed of its own, so that they can be made by several
processes and are the same however many there are. What trains needs nothing but this file.
"""

from __future__ import annotations

import argparse
from functools import partial
from itertools import chain, islice
from multiprocessing import Pool
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from training.families import conversations
from training.render import load_tokenizer, render

__all__ = ["write_examples"]

Arrays: TypeAlias = tuple[NDArray[np.uint16], NDArray[np.bool_]]
"""The tokens of an example, and for each whether it is learnt."""
GROUP = 8
LONGEST = 640
"""Tokens of an example; longer ones are passed over."""
_tokenizer: Tokenizer | None = None


def main() -> None:
    """Read the command line and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=Path, help="the base weights, a GGUF file")
    parser.add_argument("examples", type=Path, help="the file to write")
    parser.add_argument("--count", type=int, default=400_000)
    parser.add_argument("--seed", default="practice")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    groups = range(-(-options.count // GROUP))
    with Pool(options.processes, _load, (options.weights,)) as pool:
        made = pool.imap(partial(_group, options.seed), groups, chunksize=64)
        write_examples(options.examples, list(chain.from_iterable(made))[: options.count])


def _load(weights: Path) -> None:
    global _tokenizer  # one for each process
    _tokenizer = load_tokenizer(weights)


def _group(seed: str, number: int) -> list[Arrays]:
    drawn = (render(one, _tokenizer) for one in conversations(f"{seed} {number}"))
    fitting = islice((one for one in drawn if len(one.tokens) <= LONGEST), GROUP)
    return [(np.array(one.tokens, np.uint16), np.array(one.learnt, bool)) for one in fitting]


def write_examples(path: Path, examples: list[Arrays]) -> None:
    """Put examples into one file, and say how many are not the same as another."""
    distinct = len({tokens.tobytes() for tokens, _ in examples})
    np.savez(
        path,
        lengths=np.array([len(tokens) for tokens, _ in examples], np.uint16),
        tokens=np.concatenate([tokens for tokens, _ in examples]),
        learnt=np.packbits(np.concatenate([learnt for _, learnt in examples])),
    )
    print(f"{len(examples):,} examples, {distinct:,} of them distinct")


if __name__ == "__main__":
    main()
