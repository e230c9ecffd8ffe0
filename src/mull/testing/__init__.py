"""For your own tests: providers with their real rules, without a provider.

    from mull.testing import Call, Say, StrictServer, Think

    script = [
        [Think("I have to look."), Call("read", {"path": "a.py"})],
        [Think("That is all."), Say("It is empty.")],
    ]
    with StrictServer("anthropic", script) as server:
        ...  # let your client talk to server.url
    assert not server.refusals and not server.doubts

`ScriptedServer` sends what it is told and refuses nothing; `refusal` judges a single body;
`FaultProxy` breaks what passes it, at the position it is told.
"""

from __future__ import annotations

from mull.testing.faults import Fault
from mull.testing.proxy import FaultProxy
from mull.testing.rules import refusal
from mull.testing.script import Call, Say, Think
from mull.testing.server import CUT, RESET, STALL, Gate, Pause, Recorded, Reply, ScriptedServer
from mull.testing.strict import Answered, Doubt, Refused, StrictServer, UntestedWarning

__all__ = [
    "CUT",
    "RESET",
    "STALL",
    "Answered",
    "Call",
    "Doubt",
    "Fault",
    "FaultProxy",
    "Gate",
    "Pause",
    "Recorded",
    "Refused",
    "Reply",
    "Say",
    "ScriptedServer",
    "StrictServer",
    "Think",
    "UntestedWarning",
    "refusal",
]
