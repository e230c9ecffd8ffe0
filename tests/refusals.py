"""Every refusal that healing knows, with a request that provokes it and the change that mends it.

ROWS has at least one row for every text in `CAUSES`; a test sees to that.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from conversations import target
from healing import ASK, call, open_turn, plain_turn, signed, steered, thoughts
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolResultBlock, Wire
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import AnswerFormat
from mull.neutral.target import Target
from mull.policy.failure import Failure

TOGGLE = {"type": "toggle"}
LEVELS = {"type": "effort", "values": ("none", "low", "medium", "high")}
LADDER = {"type": "effort", "values": ("minimal", "low", "medium", "high", "xhigh", "max")}
BUDGET = {"type": "budget_tokens", "min": 1024, "max": 64_000}
NEEDS = {"requires_reasoning": "tool_calls"}
ALL = {"requires_reasoning": "all"}


def claude(writer: str = "anthropic-adaptive", *options: dict[str, Any], **more: Any) -> Target:
    more.setdefault("compat", NEEDS)
    return target(writer, dialect="anthropic", options=list(options or (LADDER,)), **more)


def gemini(writer: str, *options: dict[str, Any], **more: Any) -> Target:
    return target(writer, dialect="gemini", options=list(options), compat=NEEDS, **more)


def chat(writer: str, *options: dict[str, Any], **more: Any) -> Target:
    return target(writer, options=list(options), **more)


ADAPTIVE = claude()
BUDGETED = claude("anthropic-budget", TOGGLE, BUDGET, output=128_000)
RESPONSES = target("responses", dialect="openai-responses", options=[LEVELS], compat=NEEDS)
KIMI = chat("thinking-type", TOGGLE, compat=NEEDS)
EFFORT = chat("openai-effort", LEVELS)
UNKNOWN = target("none", reasoning=False, known=False)


@dataclass(frozen=True)
class Row:
    """A refusal, the request it answers, and what must be seen of the repaired body.

    `lasts` says that a later conversation is not refused again.
    """

    target: Target
    text: str
    seen: Callable[[dict[str, Any]], bool]
    history: list[Message] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, Any] = field(default_factory=dict)
    status: int = 400
    code: str | None = None
    lasts: bool = True

    @property
    def refusal(self) -> Failure:
        return Failure(self.text, self.status, self.code)


def row(where: Target, text: str, seen: Callable[[dict[str, Any]], bool], **more: Any) -> Row:
    return Row(where, text, seen, **more)


def left(*names: str) -> Callable[[dict[str, Any]], bool]:
    """The thoughts that an Anthropic body still holds."""
    return lambda body: thoughts(body) == [f"T{name}" for name in names]


def sends(**fragment: Any) -> Callable[[dict[str, Any]], bool]:
    """What a body says of thinking, exactly."""
    return lambda body: steered(body) == fragment


def without(*words: str) -> Callable[[dict[str, Any]], bool]:
    return lambda body: not any(word in json.dumps(body) for word in words)


def no_items(body: dict[str, Any]) -> bool:
    kinds = {item.get("type", "message") for item in body["input"]}
    return "reasoning" not in kinds and not any("id" in item for item in body["input"])


def skipped(body: dict[str, Any]) -> bool:
    return "skip_thought_signature_validator" in json.dumps(body) and without("SIG-c")(body)


def reasoning_of(body: dict[str, Any]) -> list[str | None]:
    return [m.get("reasoning_content") for m in body["messages"] if m["role"] == "assistant"]


def bare_turn(where: Target) -> list[Message]:
    """Answers without their thoughts, the last of them a call whose result is there."""
    step = assistant(call(where, "c"), origin=where.origin)
    result = Message(role="tool", blocks=(ToolResultBlock("call_c", "saw c"),))
    return [
        user("hi"),
        assistant(TextBlock("hello"), origin=where.origin),
        *plain_turn(where, "a"),
        user("q"),
        step,
        result,
    ]


def said(where: Target, *blocks: Any) -> list[Message]:
    return [user("q"), assistant(*blocks, origin=where.origin), user("q2")]


DEMANDING = claude("anthropic-budget", TOGGLE, BUDGET, compat=ALL, output=128_000)
OFF = {"enabled": False}
HIGH = {"effort": "high"}
ADAPT = {"type": "adaptive", "display": "summarized"}
ONCE = {"lasts": False}

HISTORY = [
    row(
        ADAPTIVE,
        "messages.3.content.0: Invalid `signature` in `thinking` block. The block is bound to a"
        " different conversation. Remove the block.",
        left("a"),
    ),
    row(ADAPTIVE, "messages.1.content.0: Invalid `signature` in `thinking` block", left("c")),
    row(ADAPTIVE, "messages.3.content.0: Invalid `data` in `redacted_thinking` block", left(*"ac")),
    row(
        ADAPTIVE,
        "messages.5.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant"
        " message cannot be modified. These blocks must remain as they were.",
        left("a", "b"),
        **ONCE,
    ),
    row(
        ADAPTIVE,
        "messages.5: If an assistant message contains any thinking blocks, the first block must be"
        " `thinking` or `redacted_thinking`. Found `text`.",
        left("a", "b"),
        **ONCE,
    ),
    row(
        DEMANDING,
        "messages.1.content.0.thinking.signature: Field required",
        left("a"),
        history=[
            *said(DEMANDING, ThinkingBlock("Tx"), TextBlock("x"))[:2],
            *plain_turn(DEMANDING, "a"),
            user("q"),
        ],
        **ONCE,
    ),
    row(
        ADAPTIVE,
        "messages.1.content.0.text.signature: Extra inputs are not permitted",
        lambda body: (
            body["messages"][1]["content"][0] == {"type": "text", "text": "a", "citations": []}
        ),
        history=said(
            ADAPTIVE, TextBlock("a", wire=Wire("anthropic", {"signature": "S", "citations": []}))
        ),
        **ONCE,
    ),
    row(
        DEMANDING,
        "messages.1.content.0.thinking: each thinking block must contain thinking",
        left(),
        history=said(DEMANDING, ThinkingBlock(""), TextBlock("x")),
        **ONCE,
    ),
    row(
        chat("openrouter", TOGGLE, compat=NEEDS),
        "messages.1: The final block in an assistant message cannot be `thinking`.",
        lambda body: body["messages"][1] == {"role": "assistant", "content": "a"},
        history=said(
            chat("openrouter", TOGGLE, compat=NEEDS),
            TextBlock("a"),
            ThinkingBlock("late", "reasoning_content"),
        ),
        **ONCE,
    ),
    row(
        BUDGETED,
        "messages.5.content.0.type: Expected `thinking` or `redacted_thinking`, but found"
        " `tool_use`. To avoid this requirement, disable `thinking`.",
        lambda body: body.get("thinking") == {"type": "disabled"} and left()(body),
        **ONCE,
    ),
    row(
        BUDGETED,
        "messages.5: a final `assistant` message must start with a thinking block (preceeding the"
        " lastmost set of `tool_use` and `tool_result` blocks).",
        lambda body: body.get("thinking") == {"type": "disabled"} and left()(body),
        **ONCE,
    ),
    row(
        claude("anthropic-adaptive", LADDER, off_type="between_tools", can_be_off=True),
        "When thinking is disabled, an `assistant` message in the final position cannot contain"
        " `thinking`. To use thinking blocks, enable `thinking` in your request.",
        left(),
        settings=OFF,
        **ONCE,
    ),
    *(
        row(RESPONSES, text, no_items, **more)
        for text, more in (
            (
                "Item 'rs_c' of type 'reasoning' was provided without its required following item.",
                {},
            ),
            (
                "Item 'fc_c' of type 'function_call' was provided without its required"
                " 'reasoning' item",
                {},
            ),
            (
                "Item with id 'rs_a' not found. Items are not persisted when `store` is set to"
                " false.",
                {"status": 404},
            ),
            ("That reasoning is not yours.", {"code": "invalid_encrypted_content"}),
            ("The encrypted content for item rs_a could not be verified. Reason: other", {}),
            ("Encrypted content for item rs_a could not be decrypted or parsed.", {}),
            ("reasoning `encrypted_content` was not issued to this caller", {}),
            ("item['content'] is empty", {}),
        )
    ),
    row(
        KIMI,
        "This model doesn't support the reasoningContent.reasoningText.signature field.",
        without("Ta", "Tb", "Tc"),
        **ONCE,
    ),
    row(
        RESPONSES,
        "Encrypted content is not supported with this model.",
        lambda body: "include" not in body and "reasoning" not in body,
        history=ASK,
    ),
    *(
        row(gemini("gemini-budget", BUDGET), text, skipped, history=history)
        for text in (
            "Function call is missing a thought_signature in functionCall parts. This is required"
            " for tools to work correctly.",
            "Unable to submit request because function call `look` in the 3. content block is"
            " missing a `thought_signature`",
        )
        for history in [open_turn(gemini("gemini-budget", BUDGET), "c", signature=None)]
    ),
    row(
        KIMI,
        "Function call is missing a thought_signature in functionCall parts.",
        skipped,
        **ONCE,
    ),
    *(
        row(gemini("gemini-level", LEVELS), text, skipped)
        for text in (
            "Invalid thought signature",
            "Corrupted thought signature.",
            "Unable to submit request because Thought signature is not valid",
        )
    ),
    *(
        row(UNKNOWN, text, lambda body, want=want: reasoning_of(body) == want, history=history)
        for history in [bare_turn(UNKNOWN)]
        for text, want in (
            (
                "thinking is enabled but reasoning_content is missing in assistant tool call"
                " message at index 5",
                [None, "Ta", " "],
            ),
            (
                "preserved thinking (thinking.keep=all) requires reasoning_content on every"
                " assistant message, but assistant message at index 1 is missing reasoning_content",
                [" ", "Ta", " "],
            ),
            (
                "The `reasoning_content` in the thinking mode must be passed back to the API.",
                ["", "Ta", ""],
            ),
            (
                "Missing reasoning_content field in the assistant message at message index 1",
                ["", "Ta", ""],
            ),
        )
    ),
    row(
        BUDGETED,
        "The `content[].thinking` in the thinking mode must be passed back to the API.",
        lambda body: body["messages"][1]["content"][0]["type"] == "thinking",
        history=said(BUDGETED, TextBlock("a")),
    ),
    *(
        row(KIMI, text, without("Ta", "Tb", "Tc"), status=status)
        for text, status in (
            (
                '{"detail":[{"type":"extra_forbidden","loc":["body","messages",1,"assistant",'
                '"reasoning_content"],"msg":"Extra inputs are not permitted","input":"Ta"}]}',
                422,
            ),
            ("'messages.1' : property 'reasoning_content' is unsupported", 400),
            (
                "Extra inputs are not permitted, field: 'messages[1].reasoning', value: 'Ta'",
                400,
            ),
        )
    ),
]

PLAN = [
    row(
        BUDGETED,
        '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive".',
        sends(thinking=ADAPT, output_config={"effort": "high"}),
        history=ASK,
        settings=HIGH,
    ),
    *(
        row(
            ADAPTIVE,
            text,
            lambda body: (
                steered(body)["thinking"]["type"] == "enabled" and "output_config" not in body
            ),
            history=ASK,
            settings=HIGH,
        )
        for text in (
            '"thinking.type.adaptive" is not supported for this model.',
            "adaptive thinking is not supported on this model",
        )
    ),
    row(
        gemini("gemini-level", LADDER),
        "Thinking level is not supported for this model.",
        sends(thinkingConfig={"thinkingBudget": 24_576, "includeThoughts": True}),
        history=ASK,
        settings=HIGH,
    ),
    row(
        gemini("gemini-budget", BUDGET),
        "Thinking budget is not supported for this model.",
        sends(thinkingConfig={"thinkingLevel": "LOW", "includeThoughts": True}),
        history=ASK,
        settings={"effort": "low"},
    ),
    row(
        claude("anthropic-adaptive", TOGGLE),
        '"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive".',
        sends(thinking=ADAPT, output_config={"effort": "low"}),
        history=ASK,
        settings=OFF,
    ),
    *(
        row(chat(writer, *options), text, sends(**sent), history=ASK, settings=OFF)
        for writer, options, text, sent in (
            (
                "openrouter",
                [TOGGLE, LEVELS],
                "Reasoning is mandatory for this endpoint and cannot be disabled.",
                {"reasoning": {"effort": "low"}},
            ),
            (
                "enable-thinking",
                [TOGGLE],
                "The value of the enable_thinking parameter is restricted to True.",
                {},
            ),
            (
                "openai-effort",
                [LEVELS],
                "Harmony does not support reasoning effort none",
                {"reasoning_effort": "low"},
            ),
            (
                "openai-effort",
                [LEVELS],
                "Invalid reasoning effort: none",
                {"reasoning_effort": "low"},
            ),
        )
    ),
    row(
        gemini("gemini-budget", {"type": "budget_tokens", "min": 0, "max": 24_576}),
        "Budget 0 is invalid. This model only works in thinking mode.",
        lambda body: steered(body)["thinkingConfig"].get("thinkingBudget") != 0,
        history=ASK,
        settings=OFF,
    ),
    *(
        row(where, text, sends(**sent), history=ASK, settings={"effort": asked})
        for where, asked, text, sent in (
            (
                chat("openai-effort", LADDER),
                "high",
                "Unsupported value: 'reasoning_effort' does not support 'high' with this model."
                " Supported values are: 'medium'.",
                {"reasoning_effort": "medium"},
            ),
            (
                chat("openai-effort", LADDER),
                "minimal",
                "Invalid reasoning_effort: minimal. Valid values are: high, low, medium, none",
                {"reasoning_effort": "low"},
            ),
            (
                chat("ollama-think", LADDER),
                "xhigh",
                'invalid think value: "xhigh" (must be "high", "medium", "low", "max", true)',
                {"think": "max"},
            ),
            (
                ADAPTIVE,
                "xhigh",
                'output_config.effort "xhigh" is not supported by model m; supported values:'
                " [medium]",
                {"thinking": ADAPT, "output_config": {"effort": "medium"}},
            ),
            (
                ADAPTIVE,
                "max",
                "This model does not support effort level 'max'. Supported levels: high, low.",
                {"thinking": ADAPT, "output_config": {"effort": "high"}},
            ),
            (
                gemini("gemini-level", known=False),
                "minimal",
                "Thinking level MINIMAL is not supported for this model. Please retry with other"
                " thinking level.",
                {"thinkingConfig": {"thinkingLevel": "LOW", "includeThoughts": True}},
            ),
            (
                chat("ollama-think", known=False),
                "medium",
                'think value "medium" is not supported for this model',
                {"think": True},
            ),
            (
                ADAPTIVE,
                "high",
                "This model does not support the effort parameter.",
                {"thinking": ADAPT},
            ),
            (
                ADAPTIVE,
                "high",
                'output_config.effort "high" was provided, but model m does not support reasoning'
                " effort",
                {"thinking": ADAPT},
            ),
        )
    ),
    row(
        RESPONSES,
        "Your organization must be verified to generate reasoning summaries.",
        lambda body: "summary" not in body.get("reasoning", {}),
        history=ASK,
        settings={"effort": "low"},
        **ONCE,
    ),
    row(
        claude("anthropic-budget", known=False, can_be_off=True),
        "`max_tokens` must be greater than `thinking.budget_tokens`.",
        lambda body: body["thinking"]["budget_tokens"] < 8_000,
        history=ASK,
        settings={"maxTokens": 9_000},
        parts={"max_tokens": 8_000},
        **ONCE,
    ),
    row(
        BUDGETED,
        "max_completion_tokens [13107] must be greater than thinking_budget [32768]",
        lambda body: body["thinking"]["budget_tokens"] < 13_107,
        history=ASK,
        settings=HIGH,
        **ONCE,
    ),
    *(
        row(
            target(writer, dialect=dialect, known=False),
            text,
            lambda body, asked=asked, sent=sent: (
                str(asked) not in json.dumps(steered(body))
                and (sent is None or str(sent) in json.dumps(steered(body)))
            ),
            history=ASK,
            settings={"maxTokens": asked},
            parts={"max_tokens": 64_000},
            lasts=sent is not None,
        )
        for writer, dialect, asked, text, sent in (
            (
                "enable-thinking",
                "openai-chat",
                60_000,
                "The thinking_budget parameter must be a positive integer and not greater than"
                " 38912",
                38_912,
            ),
            (
                "anthropic-budget",
                "anthropic",
                512,
                "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
                1_024,
            ),
            (
                "gemini-budget",
                "gemini",
                60_000,
                "The thinking budget 60000 is invalid. Please choose a value between 128 and"
                " 32768.",
                32_768,
            ),
            ("gemini-budget", "gemini", 52_428, "The thinking budget (52428) is invalid.", None),
        )
    ),
    *(
        row(
            chat("openai-effort", LADDER),
            text,
            sends(reasoning_effort="high"),
            history=ASK,
            settings={"effort": "max"},
        )
        for text in (
            "1 validation error: {'type': 'literal_error', 'loc': ('body', 'reasoning_effort'),"
            " 'msg': \"Input should be 'low', 'medium' or 'high'\", 'input': 'max', 'ctx': {}}",
            "Validation error for `reasoning_effort`: expected one of `'low' | 'medium' | 'high'`,"
            " received `'max'`.",
            'level "max" not supported, valid levels: low, medium, high',
        )
    ),
    row(
        BUDGETED,
        "max_tokens: 128000 > 32000, which is the maximum allowed number of output tokens for m",
        lambda body: (
            body["max_tokens"] == 32_000 and body["thinking"]["budget_tokens"] == 32_000 - 1_024
        ),
        history=ASK,
        settings=HIGH,
    ),
    row(
        BUDGETED,
        "The maximum tokens you requested exceeds the model limit of 32000. Try again with a"
        " maximum tokens value that is lower than 32000.",
        lambda body: body["max_tokens"] == 32_000,
        history=ASK,
        settings=HIGH,
    ),
    row(
        BUDGETED,
        "The model returned the following errors: Malformed input request: #: extraneous key"
        " [thinking] is not permitted, please reformat your input and try again.",
        lambda body: "thinking" not in body,
        history=ASK,
        settings=HIGH,
    ),
    row(
        BUDGETED,
        "max_tokens is too large: 128000. This model supports at most 32000 completion tokens",
        lambda body: body["max_tokens"] == 32_000,
        history=ASK,
        settings=HIGH,
    ),
    row(
        BUDGETED,
        "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
        lambda body: body["max_tokens"] == 8_192,
        history=ASK,
        settings=HIGH,
    ),
    row(
        BUDGETED,
        "`max_tokens` must be less than or equal to `32768`, the maximum value for `max_tokens`",
        lambda body: body["max_tokens"] == 32_768,
        history=ASK,
        settings=HIGH,
    ),
    row(
        BUDGETED,
        "Unable to submit request because it has a maxOutputTokens value of 128000 but the"
        " supported range is from 1 (inclusive) to 65537 (exclusive). Update the value.",
        lambda body: body["max_tokens"] == 65_536,
        history=ASK,
        settings=HIGH,
    ),
    row(
        chat("template-kwargs", TOGGLE, BUDGET, compat={"budget_field": "thinking_token_budget"}),
        "thinking_token_budget is set but reasoning_config is not configured. Please set it.",
        lambda body: "thinking_token_budget" not in body,
        history=ASK,
        settings={"maxTokens": 2_000},
    ),
]

QWEN = chat("enable-thinking", TOGGLE)
WHOLE = {"stream": False}
FORCED = {"tool_choice": "required"}

REST = [
    *(
        row(
            EFFORT,
            text,
            lambda body: (
                body.get("reasoning") == {"effort": "high", "summary": "auto"}
                and "input" in body
                and "messages" not in body
            ),
            settings=HIGH,
        )
        for text in (
            "Function tools with reasoning_effort are not supported for gpt-5.4 in"
            " /v1/chat/completions. Please use /v1/responses instead.",
            "This model is only supported in v1/responses and not in v1/chat/completions.",
        )
    ),
    *(
        row(QWEN, text, lambda body: body["stream"] is True, history=ASK, parts=WHOLE)
        for text in (
            "parameter.enable_thinking must be set to false for non-streaming calls",
            "parameter.enable_thinking only support stream call",
            "This model only support stream mode, please enable the stream parameter.",
        )
    ),
    *(
        row(
            KIMI,
            text,
            lambda body: (
                body.get("thinking") == {"type": "disabled"} and body["tool_choice"] == "required"
            ),
            history=ASK,
            parts=FORCED,
            **ONCE,
        )
        for text in (
            "Thinking may not be enabled when tool_choice forces tool use.",
            "The tool_choice parameter does not support being set to required or object in"
            " thinking mode",
            "tool_choice 'specified' is incompatible with thinking enabled",
            "Thinking mode does not support this tool_choice",
        )
    ),
    row(
        QWEN,
        "Json mode response is not supported when enable_thinking is true",
        lambda body: body["enable_thinking"] is False,
        history=ASK,
        settings=HIGH,
        **ONCE,
    ),
    row(
        chat("template-kwargs", TOGGLE),
        "Assistant response prefill is incompatible with enable_thinking.",
        lambda body: body["chat_template_kwargs"]["enable_thinking"] is False,
        history=[*ASK, assistant(TextBlock("The answer is"))],
        settings=HIGH,
        status=500,
        **ONCE,
    ),
    *(
        row(
            claude("anthropic-adaptive", TOGGLE, compat={}),
            text,
            lambda body: [m["role"] for m in body["messages"]] == ["user"],
            history=[
                *ASK,
                assistant(
                    signed("x"),
                    TextBlock(" "),
                    origin=claude("anthropic-adaptive", TOGGLE, compat={}).origin,
                ),
            ],
            **ONCE,
        )
        for text in (
            "This model does not support assistant message prefill.",
            "The conversation must end with a user message.",
        )
    ),
    row(
        EFFORT,
        "Unexpected role 'user' after role 'tool'",
        lambda body: (
            [m["role"] for m in body["messages"]][-4:] == ["assistant", "tool", "assistant", "user"]
        ),
        history=[*open_turn(EFFORT, "a"), user("hurry")],
    ),
    row(
        chat("openai-effort", LEVELS),
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use"
        " 'max_completion_tokens' instead.",
        lambda body: body.get("max_completion_tokens") == 100 and "max_tokens" not in body,
        history=ASK,
        parts={"max_tokens": 100},
    ),
    *(
        row(
            EFFORT,
            text,
            lambda body: "temperature" not in body,
            history=ASK,
            parts={"temperature": 0.2},
            lasts=lasts,
        )
        for text, lasts in (
            ("`temperature` may only be set to 1 when thinking is enabled.", False),
            ("Unsupported value: 'temperature' does not support 0.2 with this model.", True),
            ("invalid temperature: only 1 is allowed for this model", True),
            ("`temperature` is deprecated for this model.", True),
            ("temperature and top_p are not supported while thinking", False),
        )
    ),
    *(
        row(EFFORT, text, lambda body, key=key: key not in body, history=ASK, parts=parts)
        for key, parts, text in (
            ("top_p", {"top_p": 0.5}, "invalid top_p: only 0.95 is allowed for this model"),
            (
                "stop",
                {"stop": ("END",)},
                "Unsupported parameter: 'stop' is not supported with this model.",
            ),
            (
                "parallel_tool_calls",
                {"parallel_calls": False},
                "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
            ),
            (
                "presence_penalty",
                {"presence_penalty": 1.0},
                "Unsupported parameter: 'presence_penalty' is not supported with this model.",
            ),
            ("top_k", {"top_k": 5}, "Unrecognized request argument supplied: top_k"),
        )
    ),
    row(
        target("none", dialect="anthropic", reasoning=False),
        "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
        lambda body: "top_p" not in body and body["temperature"] == 0.5,
        history=ASK,
        parts={"temperature": 0.5, "top_p": 0.9},
    ),
    row(
        target("openai-effort", options=[LEVELS], compat={"system_inside": "system"}),
        "Chat template error: System message must be at the beginning.",
        lambda body: [m["role"] for m in body["messages"]] == ["user", "user"],
        history=[*ASK, Message(role="system", blocks=(TextBlock("Be brief."),))],
    ),
    *(
        row(target(writer, dialect=dialect, options=[TOGGLE, LEVELS]), text, sends(), **more)
        for writer, dialect, text in (
            ("ollama-think", "openai-chat", '"qwen2" does not support thinking'),
            ("openai-effort", "openai-chat", "Unsupported parameter: 'reasoning_effort' is not ok"),
            ("responses", "openai-responses", "Unknown parameter: 'reasoning'."),
            (
                "openai-effort",
                "openai-chat",
                "litellm.UnsupportedParamsError: openai does not support parameters:"
                " ['reasoning_effort'], for model=m.",
            ),
            (
                "openai-effort",
                "openai-chat",
                "Unrecognized request argument supplied: reasoning_effort",
            ),
            (
                "openai-effort",
                "openai-chat",
                "Argument not supported on this model: reasoningEffort",
            ),
            ("openrouter", "openai-chat", "property 'reasoning' is unsupported"),
            ("openai-effort", "openai-chat", "reasoning_effort is not supported by this model"),
            ("gemini-level", "gemini", "thinking_config is not supported."),
            (
                "gemini-level",
                "gemini",
                "Unable to submit request because thinking is not configurable in this model;"
                " please remove the thinking_config setting and try it again.",
            ),
            (
                "enable-thinking",
                "openai-chat",
                '{"detail":[{"type":"extra_forbidden","loc":["body","enable_thinking"]}]}',
            ),
        )
        for more in [{"history": ASK, "settings": HIGH}]
    ),
    row(
        EFFORT,
        "stream_options: Extra inputs are not permitted",
        lambda body: "stream_options" not in body,
        history=ASK,
        status=422,
    ),
    row(
        gemini("gemini-level", LEVELS),
        "Invalid JSON payload received. Unknown name \"xNew\" at 'generation_config': Cannot find"
        " field.",
        lambda body: "xNew" not in body["generationConfig"],
        parts={"wire": Wire("gemini", {"generationConfig": {"xNew": 1}})},
    ),
    *(
        row(
            ADAPTIVE,
            text,
            without("x_new"),
            parts={"headers": {"anthropic-beta": "x-1"}, "wire": Wire("anthropic", {"x_new": 1})},
            lasts=False,
        )
        for text in (
            "Unexpected value(s) `x-1` for the `anthropic-beta` header.",
            "invalid beta flag",
        )
    ),
]

CALLS = [
    row(
        where,
        text,
        lambda body: "Called look with" in json.dumps(body) and "saw c" in json.dumps(body),
        history=open_turn(where, "c"),
        status=status,
        lasts=False,
    )
    for where, text, status in (
        (EFFORT, "Failed to parse tool call arguments as JSON: parse error at line 1", 500),
        (EFFORT, "Invalid 'messages[1].tool_calls[0].function.name': does not match pattern", 400),
        (RESPONSES, "Invalid 'input[2].name': string does not match pattern", 400),
        (ADAPTIVE, "messages.1.content.1.tool_use.name: String should match pattern", 400),
        (
            gemini("gemini-level", LEVELS),
            "Invalid function name. Must start with a letter or an underscore",
            400,
        ),
        (EFFORT, "tool_call arguments must be valid JSON", 400),
    )
]

FORM = AnswerFormat({"type": "object", "properties": {"a": {"type": "string"}}}, "form")
HOLDS = {"structured_output": True}


def in_words(body: dict[str, Any]) -> bool:
    """Whether the schema stands in the instructions and nowhere else."""
    fields = ("response_format", "text", "outputConfig", "responseJsonSchema", "format")
    said = json.dumps(body)
    return "JSON schema below" in said and not any(f'"{name}": {{' in said for name in fields)


FORMATS = [
    row(where, text, in_words, history=ASK, parts={"format": FORM}, status=status, lasts=lasts)
    for where, text, status, lasts in (
        (
            gemini("gemini-level", LEVELS, **HOLDS),
            "Function calling with a response mime type: 'application/json' is unsupported",
            400,
            False,
        ),
        (
            chat("openai-effort", LEVELS, **HOLDS),
            "Invalid schema for response_format 'form': 'oneOf' is not permitted.",
            400,
            False,
        ),
        (
            claude(**HOLDS),
            "output_config.format.schema: For 'object' type, 'additionalProperties' must be"
            " explicitly set to false",
            400,
            False,
        ),
        (claude(**HOLDS), "Schema is too complex for compilation.", 400, False),
        (
            chat("thinking-type", TOGGLE, **HOLDS),
            "This response_format type is unavailable now",
            400,
            True,
        ),
        (
            chat("openai-effort", LEVELS, **HOLDS),
            "'response_format.type' : value is not one of the allowed values ['text']",
            400,
            True,
        ),
        (
            chat("openai-effort", LEVELS, **HOLDS),
            "This model does not support response format `json_schema`.",
            400,
            True,
        ),
        (claude(**HOLDS), "Structured outputs are not supported for this model.", 400, True),
        (
            target("responses", dialect="openai-responses", options=[LEVELS], **HOLDS),
            "Unknown parameter: 'text.format'.",
            400,
            True,
        ),
    )
]

ROWS = [*HISTORY, *CALLS, *FORMATS, *PLAN, *REST]

ANYWHERE = target("usual", reasoning=False, known=False)
GUESSED = [
    row(ANYWHERE, text, sends(), history=ASK, settings=settings, status=status)
    for settings in (HIGH, OFF, {"maxTokens": 5_000}, {"enabled": True})
    for text, status in (
        ("Unsupported parameter: 'reasoning_effort'", 400),
        ("reasoning_effort: Extra inputs are not permitted", 422),
        ("Additional properties are not allowed ('reasoning_effort' was unexpected)", 400),
        ("This deployment cannot set a reasoning effort", 500),
        ("Bad Request", 400),
        ("Invalid request body.", 422),
    )
]
"""What an endpoint that nobody knows may say to the dialect's usual shape."""
