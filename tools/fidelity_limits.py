"""The part of docs/fidelity.md that says what a score does not say, and how to quote one."""

from __future__ import annotations

from collections.abc import Sequence

from mull.testing.fidelity import Case
from tools.fidelity_results import Result

__all__ = ["limits_section"]

_LIMITS = """\
## Limits

- mull's authors wrote the suite, and mull's own tests run it. 100 % says that mull meets this
  suite, not that it has no faults: a report that is not in the suite yet may well break it.
- No provider was asked. Of the {count} cases {captured} have answers in a form that a report
  captured; the others were written after the providers' documentation and the reports. Endpoints
  refuse only what the [rules](#rules) list, each with its evidence.
- The cases are {scenes} scenes, most of them on several endpoints, some in both calls. One fault
  can therefore cost many cases: [the reasons](#reasons) group them. A few points between two
  systems mean little; which kinds are lost means more.
- A share is of what a system claims, so one that claims less can have a higher share. Compare two
  systems by the kinds that both claim. No case weighs more because users meet it more often.
- Some losses are choices: to keep a field that only one server uses, or a thought that the next
  request does not need, costs code and tokens. The suite asks whether the reasoning came back, not
  whether a user would have noticed.
- The forgetful client tests memory. Only mull's gateway claims to remember what a client did not
  send back; for other gateways that row shows what such a client loses, not a broken promise.
"""
_QUOTE = """
To quote a score, name the system, its version, the number of claimed cases and the date:

> litellm {version} kept {kept} of the {claimed} cases that it claims (mull's reasoning fidelity
> suite, {date}).

`mull fidelity litellm=={version}` checks that.
"""


def limits_section(cases: Sequence[Case], example: Result | None) -> str:
    """The section; the example of a quotation is of these results."""
    text = _LIMITS.format(
        count=len(cases),
        captured=sum(case.evidence == "captured" for case in cases),
        scenes=len({case.id.split("/")[1] for case in cases}),
    )
    return text if example is None else text + _quote(example)


def _quote(example: Result) -> str:
    marks = [mark for mark, _ in example.outcomes.values()]
    claimed = sum(mark not in ("not claimed", "not measured") for mark in marks)
    about = {"version": example.version, "date": example.date}
    return _QUOTE.format(kept=marks.count("kept"), claimed=claimed, **about)
