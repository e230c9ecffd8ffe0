"""Trains the adapter and writes it: `python -m training.train WEIGHTS EXAMPLES ADAPTER`.

One GPU in minutes, or processors in hours: `--workers` processes of one thread each. The examples
are taken as they lie in their file, and again from its beginning if need be. The learning rate is
held, then falls over the last steps; a run that was stopped goes on from its checkpoint, with
other steps if need be, or from an adapter alone. With `--minutes` it measures its own speed, and
chooses as many steps as the time allows. Needs PyTorch and NumPy, and nothing of mull's.
"""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, distributed, multiprocessing

from training.gguf import read_fields, read_tensors, write_adapter
from training.network import Llama, Shape

ABOUT = {
    "general.name": "mull thinking adapter for SmolLM2-135M-Instruct",
    "general.license": "apache-2.0",
}
_GROUPS = 4
"""A batch is sorted by length and cut in so many groups, so that little is padding."""
_TIMED = 15
"""Steps that tell how fast it goes."""
_PATIENCE = 75
"""Seconds that compiling may take."""


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=Path, help="the base weights, a GGUF file")
    parser.add_argument("examples", type=Path, help="what training.examples wrote")
    parser.add_argument("adapter", type=Path, help="the adapter to write")
    parser.add_argument("--checkpoint", type=Path, required=True, help="go on from here, save here")
    parser.add_argument("--saved", type=int, default=25, help="steps after which it is saved")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--decay", type=int, default=1500, help="steps over which the rate falls")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--start", type=Path, help="begin with this adapter")
    parser.add_argument("--minutes", type=float, help="choose the steps so that it takes as long")
    parser.add_argument("--compile", action="store_true", help="let PyTorch compile the layers")
    options = parser.parse_args()
    if options.workers > 1:
        multiprocessing.spawn(_work, (options,), nprocs=options.workers)
    else:
        _work(0, options)


def _work(rank: int, options: argparse.Namespace) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if options.workers > 1:
        torch.set_num_threads(1)
        meeting = f"file://{options.checkpoint.resolve()}.meeting"
        distributed.init_process_group(
            "gloo", init_method=meeting, rank=rank, world_size=options.workers
        )
    torch.manual_seed(0)
    Run(options, device, rank).train()


class Example(NamedTuple):
    """Tokens, and for each whether it is learnt."""

    tokens: Tensor
    learnt: Tensor


def read_examples(path: Path) -> list[Example]:
    """What training.examples wrote."""
    held = np.load(path)
    lengths = held["lengths"].tolist()
    tokens = torch.from_numpy(held["tokens"].astype(np.int32))
    learnt = torch.from_numpy(np.unpackbits(held["learnt"], count=len(tokens)).astype(bool))
    pairs = zip(tokens.split(lengths), learnt.split(lengths), strict=True)
    return [Example(*pair) for pair in pairs]


class Run:
    """One process of a training run."""

    def __init__(self, options: argparse.Namespace, device: str, rank: int) -> None:
        self.begun = time.monotonic()
        self.options, self.device, self.rank = options, device, rank
        kind = torch.bfloat16 if device == "cuda" else torch.float32
        weights = {
            name: torch.from_numpy(array).to(device, kind)
            for name, array in read_tensors(options.weights).items()
        }
        fields = read_fields(options.weights)
        self.model = Llama(weights, fields, rank=options.rank, alpha=2 * options.rank).to(device)
        self.trained = list(self.model.parameters())
        self.optimizer = torch.optim.AdamW(
            self.trained,
            lr=options.rate,
            betas=(0.9, 0.98),
            weight_decay=0.0,
            fused=device == "cuda",
        )
        self.examples = read_examples(options.examples)
        self.step = 0
        if options.start:
            self.model.load(read_tensors(options.start))
        if options.checkpoint.exists():
            saved = torch.load(options.checkpoint, map_location=device)
            self.model.load_state_dict(saved["model"])
            self.optimizer.load_state_dict(saved["optimizer"])
            self.step = saved["step"]

    def train(self) -> None:
        """All steps that are left."""
        if self.options.compile:
            self._compile()
        begun, first, seen, total = time.monotonic(), self.step, 0, 0.0
        mark = begun
        while self.step < self.options.steps and not self._is_late():
            self._set_rate()
            batch = self._batch(self.step)
            loss = self._learn(batch)
            seen += sum(len(one.tokens) for one in batch)
            self.step += 1
            if self.step % 10 == 0:
                total = float(loss)
            if self.rank == 0 and self.step % 20 == 0:
                speed = seen / (time.monotonic() - begun)
                print(f"step {self.step}  loss {total:.4f}  {speed:,.0f} tokens/s", flush=True)
            if self.step == first + _TIMED:
                self._wait()
                mark = time.monotonic()
            if self.options.minutes and self.step == first + 2 * _TIMED:
                self._wait()
                self._choose_steps((time.monotonic() - mark) / _TIMED)
            if self.step % self.options.saved == 0:
                self._save()
        self._save()
        if self.rank == 0:
            print(f"stopped at step {self.step} of {self.options.steps}, saved", flush=True)

    def _left(self) -> float:
        return float(self.begun + 60 * self.options.minutes - time.monotonic())

    def _is_late(self) -> bool:
        return self.options.minutes is not None and self._left() < 0

    def _choose_steps(self, each: float) -> None:
        """As many as the time allows, with a little to spare; the rate falls in the second half."""
        self.options.steps = self.step + int(self._left() * 0.95 / each)
        self.options.decay = max(1, self.options.steps // 2)
        print(f"{each:.3f} s a step: {self.options.steps} steps", flush=True)

    def _timed(self, steps: int) -> float:
        """Seconds of a step, without learning anything by it."""
        self._wait()
        begun = time.monotonic()
        for step in range(self.step, self.step + steps):
            self._gradients(self._batch(step))
        self._wait()
        self.optimizer.zero_grad(set_to_none=True)
        return (time.monotonic() - begun) / steps

    def _wait(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()

    def _compile(self) -> None:
        """Compile the layers if that works, says the same and is faster."""
        usual = self._timed(3) and self._timed(10)
        loss = float(self._gradients(self._batch(0)))
        try:
            with _alarm(_PATIENCE):
                for layer in self.model.layers:
                    layer.compile(dynamic=True)
                other = float(self._gradients(self._batch(0)))
                self._timed(6)
                compiled = self._timed(10)
            print(f"{usual:.3f} s a step, compiled {compiled:.3f}; loss {loss:.4f}, {other:.4f}")
            if abs(other - loss) > 0.02 * loss:
                raise ArithmeticError("compiled, it says something else")
            if compiled > usual:
                raise TimeoutError("compiled, it is slower")
        except Exception as error:  # whatever it is, training goes on as it was written
            print(f"not compiled: {type(error).__name__}: {str(error)[:300]}", flush=True)
            for layer in self.model.layers:
                layer._compiled_call_impl = None
        self.optimizer.zero_grad(set_to_none=True)

    def _set_rate(self) -> None:
        left = self.options.steps - self.step
        warm = min(1.0, (self.step + 1) / 30)
        for group in self.optimizer.param_groups:
            group["lr"] = self.options.rate * warm * min(1.0, left / self.options.decay)

    def _batch(self, step: int) -> list[Example]:
        """The examples of a step, the short ones first; the same whoever asks."""
        first, count = step * self.options.batch, len(self.examples)
        drawn = [self.examples[at % count] for at in range(first, first + self.options.batch)]
        return sorted(drawn, key=lambda one: len(one.tokens))

    def _learn(self, batch: list[Example]) -> Tensor:
        """One step; the mean surprise of a token."""
        total = self._gradients(batch)
        if self.options.workers > 1:
            self._sum_gradients()
            distributed.all_reduce(total)
        torch.nn.utils.clip_grad_norm_(self.trained, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return total

    def _gradients(self, batch: list[Example]) -> Tensor:
        count = sum(int(one.learnt.sum()) for one in batch)
        mine = _share(batch, self.rank, self.options.workers)
        loss = self.model.loss(*_laid_out(mine, self.device)) / count
        loss.backward()
        return loss.detach()

    def _sum_gradients(self) -> None:
        gradients: list[Any] = [one.grad for one in self.trained]
        flat = torch.cat([one.flatten() for one in gradients])
        distributed.all_reduce(flat)
        for gradient, summed in zip(
            gradients, flat.split([one.numel() for one in gradients]), strict=True
        ):
            gradient.copy_(summed.view_as(gradient))

    def _save(self) -> None:
        if self.rank:
            return
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        beside = self.options.checkpoint.with_suffix(".new")
        torch.save({**state, "step": self.step}, beside)
        beside.replace(self.options.checkpoint)
        alpha = 2.0 * self.options.rank
        write_adapter(self.options.adapter, self.model.pairs(), alpha=alpha, about=ABOUT)


def _share(batch: list[Example], rank: int, workers: int) -> list[Example]:
    """One worker's part, about as many tokens as each other's: the longest go to the idlest."""
    if workers == 1:
        return batch
    parts: list[list[Example]] = [[] for _ in range(workers)]
    for one in reversed(batch):
        min(parts, key=lambda part: sum(len(other.tokens) for other in part)).append(one)
    return parts[rank]


def _laid_out(examples: list[Example], device: str) -> tuple[Tensor, list[Shape], Tensor, Tensor]:
    """Groups of about the same length one behind the other, and what is learnt of them.

    What is filled up is behind each example, where nobody looks.
    """
    size = max(1, -(-len(examples) // _GROUPS))
    groups: list[Shape] = []
    tokens, learnt = [], []
    for at in range(0, len(examples), size):
        group = examples[at : at + size]
        longest = -(-max(len(one.tokens) for one in group) // 8) * 8
        groups.append((len(group), longest))
        rows = torch.zeros(len(group), longest, dtype=torch.int32)
        own = torch.zeros(len(group), longest, dtype=torch.bool)
        for row, one in enumerate(group):
            rows[row, : len(one.tokens)] = one.tokens
            own[row, : len(one.tokens)] = one.learnt
        tokens.append(rows.flatten())
        learnt.append(own.flatten())
    laid = torch.cat(tokens)
    found = torch.cat(learnt).nonzero().flatten()  # never the first of an example
    next_ = laid[found].long()
    return laid.to(device), groups, (found - 1).to(device), next_.to(device)


@contextmanager
def _alarm(seconds: int) -> Iterator[None]:
    """Raise in here once so many seconds have passed."""

    def ring(*_: object) -> None:
        raise TimeoutError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


if __name__ == "__main__":
    main()
