"""The embedded model without its adapter, never taught to think: a template and a grammar make it.

Left alone, it ends its turn inside the thought. The grammar forbids that: it lets no thinking turn
end before the closing tag and an answer. A blank line ends the thought.
"""

from __future__ import annotations

from msgspec.structs import replace

from mull.local.weights import find_adapter
from mull.neutral.target import ModelFacts, ReasoningOption, Target

__all__ = ["CHAT_TEMPLATE", "as_installed"]

_MOST = 256
"""Tokens of a thought: it runs in circles, and more of them are no better."""
_FRAME, _TOOL_FRAME = 160, -84


def as_installed(target: Target) -> Target:
    """The embedded model as it is on this machine: the catalog knows it with its adapter."""
    if find_adapter() is not None:
        return target
    return replace(target, facts=_without_adapter(target.facts))


def _without_adapter(facts: ModelFacts) -> ModelFacts:
    """It makes nothing of tools, thinks less, and its template shows examples, which count."""
    return replace(
        facts,
        offer_tools=False,
        taught_tools=None,
        frame_tokens=_FRAME,
        tool_frame_tokens=_TOOL_FRAME,
        reasoning_options=tuple(_narrow(option) for option in facts.reasoning_options),
    )


def _narrow(option: ReasoningOption) -> ReasoningOption:
    return replace(option, max=_MOST) if option.type == "budget_tokens" else option


# Each function is shown in use, because a model this small copies and does not follow. After a
# result the calls are told as words: seeing another call, it would only call again. For the same
# reason it sees three thoughts that only say what is asked: left alone, it answers in its thought.
CHAT_TEMPLATE = r"""
{%- set thinks = enable_thinking is not defined or enable_thinking -%}
{%- set has_result = messages[-1].role == 'tool' -%}
{%- set own = messages[0].role == 'system' -%}
{{- '<|im_start|>system\n' -}}
{{- messages[0].content if own else 'You are a helpful assistant.' -}}
{%- if tools -%}
{{- '\n\nYou can call these functions:\n' -}}
{%- for tool in tools -%}{{- tool.function | tojson + '\n' -}}{%- endfor -%}
{%- endif -%}
{{- '<|im_end|>\n' -}}
{%- if tools and not has_result -%}
{%- for tool in tools -%}
{%- set shown = tool.function -%}
{{- '<|im_start|>user\nPlease use ' + shown.name + '.<|im_end|>\n<|im_start|>assistant\n' -}}
{%- if thinks -%}{{- '<think>I should call ' + shown.name + '.</think>' -}}{%- endif -%}
{{- '\n<tool_call>\n{"name": "' + shown.name + '", "arguments": {' -}}
{%- for key in (shown.parameters.properties or {}) -%}
{{- ('' if loop.first else ', ') + '"' + key + '": "..."' -}}
{%- endfor -%}
{{- '}}\n</tool_call><|im_end|>\n' -}}
{%- endfor -%}
{%- endif -%}
{%- if thinks and not tools -%}
{{- '<|im_start|>user\nWrite a Python function that adds two numbers.<|im_end|>\n' -}}
{{- '<|im_start|>assistant\n<think>The user asks for a Python function that adds two ' -}}
{{- 'numbers.</think>\n\n```python\ndef add(a, b):\n    return a + b\n```<|im_end|>\n' -}}
{{- '<|im_start|>user\nWrite two lines about the sea.<|im_end|>\n' -}}
{{- '<|im_start|>assistant\n<think>The user asks for two lines about the sea.</think>\n\n' -}}
{{- 'The sea is wide and blue,\nits waves are always new.<|im_end|>\n' -}}
{{- '<|im_start|>user\nWhat colour is grass?<|im_end|>\n<|im_start|>assistant\n' -}}
{{- '<think>The user asks what colour grass is.</think>\n\n' -}}
{{- 'Grass is green.<|im_end|>\n' -}}
{%- endif -%}
{%- for message in messages -%}
{%- if message.role == 'tool' -%}
{{- '<|im_start|>user\nThe function says: ' + (message.content or '') + '<|im_end|>\n' -}}
{%- elif not (own and loop.first) -%}
{{- '<|im_start|>' + message.role + '\n' -}}
{%- if message.reasoning_content -%}
{{- '<think>' + message.reasoning_content + '</think>\n\n' -}}
{%- endif -%}
{{- message.content or '' -}}
{%- for call in message.tool_calls or [] -%}
{%- if has_result -%}
{{- 'I call ' + call.function.name + '.' -}}
{%- else -%}
{{- '\n<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' -}}
{%- set given = call.function.arguments -%}
{{- given if given is string else given | tojson -}}
{{- '}\n</tool_call>' -}}
{%- endif -%}
{%- endfor -%}
{{- '<|im_end|>\n' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\n' -}}
{%- if thinks -%}{{- '<think>' -}}{%- endif -%}
{%- endif -%}
""".lstrip("\n")
