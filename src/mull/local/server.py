"""The process that is the embedded model: llama.cpp's own HTTP server on loopback.

Run as `python -m mull.local.server DIRECTORY PIPE ...` by manage.py. The port is the system's
choice, the key is made here and leaves only through the state file. One model, one slot, and one
thread unless told otherwise: on a busy machine two threads are much slower than one.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path
from typing import Any

from mull.catalog.resolve import resolve
from mull.dialects.grammar import turn_grammar
from mull.local import template, untaught
from mull.local.life import live
from mull.local.metrics import read_metrics
from mull.local.place import ServerFolder
from mull.local.weights import LIBRARY_MODULE, find_adapter, require
from mull.neutral.target import ModelFacts, Target
from mull.neutral.thinking import as_level
from mull.policy.thinking.budget import budget_for_level

__all__ = ["MODEL", "default_budget", "main"]

MODEL = "local/smollm2"

_ANSWER = 768
"""Tokens of an answer, thought included, where the request sets no limit: it may never end."""
_TEMPERATURE = 0.2
_UNTAUGHT_TEMPERATURE = 0.3
_UNTAUGHT_REPEAT_PENALTY = 1.05
"""Untaught, the model runs in circles; taught, it must be free to write a digit again."""


class LlamaServer:
    """llama.cpp's server inside this process."""

    def __init__(self, parameters: Any) -> None:
        self._server: Any = _llama().Server(parameters)
        self.base_url = f"{self._server.listening_address}/v1"

    def work(self) -> tuple[int, bool]:
        """Tokens read and written so far, and whether a request is being answered or waits."""
        metrics = read_metrics(self._server.handle_metrics())
        return metrics.tokens, metrics.busy


def default_budget(facts: ModelFacts) -> int:
    """The thinking budget where a request names none: what the catalog's default level is worth."""
    level = as_level(facts.default_effort or "")
    assert facts.budget is not None
    assert level is not None
    return budget_for_level(facts.budget, level)


def parameters(target: Target, weights: Path, adapter: Path | None, key: str, threads: int) -> Any:
    """llama.cpp's parameters for the embedded model, taught to think if there is an adapter."""
    llama = _llama()
    p = llama.CommonParams()
    p.model.path = str(weights)
    p.model_alias = {target.model}
    p.hostnames, p.port, p.api_keys = ["127.0.0.1"], 0, [key]
    p.n_ctx, p.n_parallel, p.n_predict = target.facts.limit.context, 1, _ANSWER
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = threads
    p.n_gpu_layers = 0
    p.cache_ram_mib = 0  # its default keeps gigabytes of old prompts
    p.ui, p.endpoint_metrics, p.verbosity = False, True, 1
    p.sampling.reasoning_budget_tokens = default_budget(target.facts)
    # only a grammar of this kind is fed the generation prompt, which says whether it thinks
    kind = llama.common_grammar_type.COMMON_GRAMMAR_TYPE_OUTPUT_FORMAT
    assert target.compat.grammar is not None
    p.sampling.grammar = llama.CommonGrammar(kind, turn_grammar(target.compat.grammar))
    if adapter is None:
        p.chat_template = untaught.CHAT_TEMPLATE
        p.sampling.temp, p.sampling.penalty_repeat = _UNTAUGHT_TEMPERATURE, _UNTAUGHT_REPEAT_PENALTY
    else:
        p.chat_template = template.CHAT_TEMPLATE
        p.lora_adapters = [llama.CommonAdapterLoraInfo(str(adapter), 1.0)]
        p.sampling.temp = _TEMPERATURE
    return p


def _llama() -> Any:
    """The library; it has no types."""
    return import_module(LIBRARY_MODULE)


def main(argv: list[str]) -> None:
    """Serve until the end."""
    parser = ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("ready", type=int)
    parser.add_argument("--idle", type=float, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--kept", action="store_true")
    options = parser.parse_args(argv)

    def launch(key: str) -> LlamaServer:
        adapter, target = find_adapter(), untaught.as_installed(resolve(MODEL))
        return LlamaServer(parameters(target, require(), adapter, key, options.threads))

    place = ServerFolder(options.directory)
    live(place, launch, options.ready, model=MODEL, idle=options.idle, kept=options.kept)


if __name__ == "__main__":
    main(sys.argv[1:])
