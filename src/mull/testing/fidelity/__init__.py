"""How faithfully a client or gateway keeps reasoning: cases as data, a judge, and a runner.

    with Judge() as judge, AdapterProcess([sys.executable, "my_adapter.py"]) as adapter:
        for case in load_cases():
            print(case.id, run_case(case, judge, adapter))

The cases are in `fidelity/` of the repository, with a description of their format and of the lines
that an adapter reads and writes.
"""

from __future__ import annotations

from mull.testing.fidelity.case import KINDS, Case, load_cases
from mull.testing.fidelity.judge import Judge
from mull.testing.fidelity.runner import AdapterProcess, run_case
from mull.testing.fidelity.verdict import Outcome

__all__ = ["KINDS", "AdapterProcess", "Case", "Judge", "Outcome", "load_cases", "run_case"]
