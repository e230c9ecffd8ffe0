"""llama.cpp's own server, with the small model of `mull local install` and a template of choice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["last_prompt", "running"]

SERVER = """
import sys
from pathlib import Path
import xllamacpp as llama
from mull.local.weights import require
p = llama.CommonParams()
p.model.path = str(require())
p.chat_template = Path(sys.argv[1]).read_text()
if sys.argv[2]:
    kind = llama.common_grammar_type.COMMON_GRAMMAR_TYPE_USER
    p.sampling.grammar = llama.CommonGrammar(kind, sys.argv[2])
p.hostnames, p.port, p.n_ctx, p.n_parallel = ["127.0.0.1"], 0, 4096, 1
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
p.cache_ram_mib, p.ui, p.verbosity, p.endpoint_slots = 0, False, 1, True
server = llama.Server(p)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@contextmanager
def running(template: Path, words: str = "") -> Iterator[str]:
    """A server with that template, while it is needed; its address. With `words`, a grammar lets
    the model say only those.
    """
    grammar = f"root ::= {json.dumps(words)}" if words else ""
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(template), grammar],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "LLAMA_SERVER_SLOTS_DEBUG": "1"},
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        if not url:
            raise SystemExit("the server did not start: run `mull local install`")
        yield url


def last_prompt(url: str) -> str:
    """The last prompt as the model got it."""
    with urllib.request.urlopen(f"{url}/slots", timeout=120) as reply:
        return str(json.load(reply)[0]["prompt"])
