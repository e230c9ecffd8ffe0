"""How faithfully a client or gateway keeps reasoning: cases as data, a judge, and a runner.

    with Judge() as judge, AdapterProcess([sys.executable, "my_adapter.py"]) as adapter:
        for case, outcome in run_cases(load_cases(), judge, adapter):
            print(case.id, outcome)

The cases are in `fidelity/` of the repository, with a description of their format and of the lines
that an adapter reads and writes.
"""

from __future__ import annotations

from mull.testing.fidelity.case import KINDS, Case, load_cases, load_pairs
from mull.testing.fidelity.judge import Judge
from mull.testing.fidelity.runner import AdapterFailed, AdapterProcess, run_case, run_cases
from mull.testing.fidelity.verdict import Outcome

__all__ = [
    "KINDS",
    "AdapterFailed",
    "AdapterProcess",
    "Case",
    "Judge",
    "Outcome",
    "load_cases",
    "load_pairs",
    "run_case",
    "run_cases",
]
