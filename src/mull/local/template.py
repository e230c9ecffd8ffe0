"""The chat template of the embedded model with its adapter: what it was trained to read and write.

The generation prompt ends in exactly `<think>`, which makes llama.cpp split thought from answer;
with `enable_thinking` false it ends before. How long a thought may be is the server's own budget.
Whoever changes the template must train the adapter again.
"""

from __future__ import annotations

__all__ = ["BRIEF_BELOW", "CHAT_TEMPLATE"]

BRIEF_BELOW = 64
"""A budget of fewer tokens has room for a hint only, so the model is told to be brief."""

# A function is shown as one line, its arguments and the first sentence about it: a model this
# small is not helped by more, and on one thread every hundred tokens are half a second.
CHAT_TEMPLATE = r"""
{%- set thinks = enable_thinking is not defined or enable_thinking -%}
{%- set brief = thinks and thinking_budget is defined and thinking_budget < 64 -%}
{%- set own = messages[0].role == 'system' -%}
{%- if own or tools or brief -%}
{{- '<|im_start|>system\n' -}}
{%- if own -%}{{- messages[0].content + '\n' -}}{%- endif -%}
{%- if brief -%}{{- 'Think in a few words.\n' -}}{%- endif -%}
{%- if tools -%}
{{- 'Tools:\n' -}}
{%- for tool in tools -%}
{%- set shown = tool.function -%}
{{- shown.name + '(' + (shown.parameters.required or []) | join(', ') -}}
{%- if not shown.parameters.required -%}
{%- for key in shown.parameters.properties or {} -%}
{%- if loop.first -%}{{- key -}}{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{- '): ' + (shown.description or '').split('. ')[0].split(',')[0].rstrip('.') + '\n' -}}
{%- endfor -%}
{%- endif -%}
{{- '<|im_end|>\n' -}}
{%- endif -%}
{%- for message in messages -%}
{%- if message.role == 'tool' -%}
{{- '<|im_start|>user\n<tool_response>\n' + (message.content or '') -}}
{{- '\n</tool_response><|im_end|>\n' -}}
{%- elif not (own and loop.first) -%}
{{- '<|im_start|>' + message.role + '\n' -}}
{%- if message.reasoning_content -%}
{{- '<think>' + message.reasoning_content.strip() + '\n</think>\n\n' -}}
{%- endif -%}
{{- message.content or '' -}}
{%- for call in message.tool_calls or [] -%}
{{- '' if loop.first and not message.content else '\n' -}}
{{- '<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' -}}
{%- set given = call.function.arguments -%}
{{- given if given is string else given | tojson -}}
{{- '}\n</tool_call>' -}}
{%- endfor -%}
{{- '<|im_end|>\n' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\n' -}}
{%- if thinks -%}{{- '<think>' -}}{%- endif -%}
{%- endif -%}
""".lstrip("\n")
