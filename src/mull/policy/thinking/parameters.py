"""What becomes of the other parameters when a model thinks.

Endpoints refuse some values beside thinking, and some models refuse them always. A value the user
gave is never dropped in silence: each change is a note.
"""

from __future__ import annotations

from mull.dialects.traits import TRAITS
from mull.neutral.blocks import Value
from mull.neutral.request import NamedTool, Note, RequestOptions, ToolChoice
from mull.neutral.target import Target
from mull.neutral.thinking import WriterName
from mull.policy.thinking.plan import Planned

__all__ = ["Parameters", "forced_tools_stop_thinking", "settle_parameters"]

REFUSES_FORCED_TOOLS: frozenset[WriterName] = frozenset(
    {"anthropic-budget", "anthropic-adaptive", "enable-thinking"}
)
"""Writers whose endpoints refuse a forced tool while the model thinks."""


class Parameters(Value, frozen=True):
    """The parameters as they are sent, and what was changed."""

    temperature: float | None = None
    tool_choice: ToolChoice | None = None
    notes: tuple[Note, ...] = ()


def forced_tools_stop_thinking(
    conversation: RequestOptions, target: Target, planned: Planned
) -> str | None:
    """Why this request must not think: the user forces a tool and the endpoint takes one only."""
    if not _is_forced(conversation.tool_choice) or not planned.thinks:
        return None
    if planned.plan.writer not in REFUSES_FORCED_TOOLS or not target.facts.can_stop_thinking:
        return None
    if target.facts.forced_tools is False or target.facts.off_type != "disabled":
        return None  # being off would not help
    return "Thinking is off for this request: the endpoint accepts no forced tool while it thinks"


def settle_parameters(conversation: RequestOptions, target: Target, planned: Planned) -> Parameters:
    """Leave out what the endpoint would refuse, and say so."""
    notes: list[Note] = []
    temperature = conversation.temperature
    if temperature is not None and (reason := _refuses_temperature(temperature, target, planned)):
        notes.append(_changed("temperature", f"{temperature:g}", "not sent", reason))
        temperature = None
    choice = conversation.tool_choice
    if choice is not None and _is_forced(choice) and (reason := _refuses_force(target, planned)):
        asked = choice.name if isinstance(choice, NamedTool) else choice
        notes.append(_changed("toolChoice", asked, "auto", reason))
        choice = "auto"
    if conversation.tools and target.compat.tools_need_responses and planned.thinks:
        text = f"{target.model} takes tools on the Responses API only, unless thinking is off"
        notes.append(Note(about="tools", text=text, warning=True))
    return Parameters(temperature, choice, tuple(notes))


def _is_forced(choice: ToolChoice | None) -> bool:
    return choice == "required" or isinstance(choice, NamedTool)


def _refuses_force(target: Target, planned: Planned) -> str | None:
    if target.facts.forced_tools is False:
        return f"{target.model} takes no forced tool"
    if planned.thinks and planned.plan.writer in REFUSES_FORCED_TOOLS:
        return f"{target.model} cannot stop thinking and accepts no forced tool while it thinks"
    return None


def _refuses_temperature(value: float, target: Target, planned: Planned) -> str | None:
    if target.facts.temperature is False:
        return f"{target.model} takes no temperature"
    if planned.thinks and TRAITS[target.dialect].thinks_at_one and value != 1:
        return f"{target.model} thinks at temperature 1 only"
    return None


def _changed(about: str, requested: str, effective: str, reason: str) -> Note:
    text = f"{about} {requested} {'→ ' + effective if effective == 'auto' else effective}: {reason}"
    return Note(about, text, warning=True, requested=requested, effective=effective)
