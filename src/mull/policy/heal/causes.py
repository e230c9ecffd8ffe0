"""The rejections that mull knows: what the endpoint says, why, and the fix.

One row per known text, with the place where it was seen. A pattern is matched against the text
without quotation marks and backticks, in any case; the first cause whose fix changes something is
used, so specific rows come before general ones. No row depends on a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mull.policy.failure import Failure, plain, stated
from mull.policy.heal import history, plan
from mull.policy.heal import request as rest
from mull.policy.heal.case import Cause, known

__all__ = ["CAUSES", "causes_of"]

_OFF = "set reasoning.enabled=false for this request"
_STRIP = "set reasoning.stripFromContext=all to continue without earlier thinking"
_ROW = "describe it in a compat row of the config file"
_SAMPLING = r"(?P<name>temperature|top_?p|top_?k|presence_?penalty|frequency_?penalty)"

_HISTORY = (
    known(
        history.plain_calls,
        "an earlier tool call has a name or arguments that the endpoint does not take",
        "undo the turn, or start a new conversation",
        (r"failed to parse tool call arguments", "llama.cpp, llama-server"),
        (
            r"tool_calls\[\d+\]\.function\.(name|arguments)\b.{0,40}"
            r"(pattern|too long|too short|empty|json|object)",
            "OpenAI, Chat Completions",
        ),
        (r"input\[\d+\]\.(name|arguments)\b.{0,40}(pattern|too long|json)", "OpenAI, Responses"),
        (
            r"tool_use\.(name|input): (string should|input should be a valid dict)",
            "Messages API, round trip",
        ),
        (r"invalid function name\. must start with a letter", "Gemini API, INVALID_ARGUMENT"),
        (r"tool.?call.{0,40}arguments .{0,20}(must be|is not|are not) (a )?valid json", "vLLM"),
    ),
    known(
        history.drop_bound,
        "the thinking is bound to a conversation that has changed since",
        _STRIP,
        (r"bound to a different conversation", "anomalyco/opencode#48637"),
    ),
    known(
        history.drop_unverified,
        "the endpoint cannot verify the signature of earlier thinking",
        _STRIP,
        (r"invalid signature in (a )?thinking block", "claude-code-hub#576; claw#96272"),
        (r"invalid data in (a )?redacted_thinking block", "Messages API, round trip"),
    ),
    known(
        history.drop_latest,
        "the thinking in an answer is not what the endpoint sent",
        _STRIP,
        (
            r"thinking( or redacted_thinking)? blocks .{0,60}cannot be modified",
            "anthropics/claude-code#63284; BerriAI/litellm#23047",
        ),
        (r"first block must be thinking or redacted_thinking", "NousResearch/hermes-agent#35975"),
    ),
    known(
        history.drop_unsigned,
        "earlier thinking has no signature",
        _STRIP,
        (r"thinking\.signature: field required", "Messages API, round trip"),
    ),
    known(
        history.drop_extra_key,
        "an earlier answer has a field that the endpoint does not accept back",
        _STRIP,
        (
            r"messages\.\d+\.content\.\d+(\.\w+)?\.(?P<key>\w+): extra inputs are not permitted",
            "Messages API, round trip; anthropics/claude-code#4378",
        ),
    ),
    known(
        history.drop_blank,
        "an earlier thinking block is empty",
        _STRIP,
        (r"each thinking block must contain thinking", "Messages API, round trip"),
    ),
    known(
        history.drop_trailing,
        "an earlier answer ends with thinking",
        _STRIP,
        (
            r"final block in an assistant message cannot be (redacted_)?thinking",
            "tailcallhq/forgecode#2107",
        ),
    ),
    known(
        plan.off_unheard,
        "the endpoint thinks although thinking is off, and wants its thinking back",
        "choose a model whose thinking can be turned off",
        (r"expected thinking or redacted_thinking, but found", "anomalyco/opencode#3077"),
        (
            r"final assistant message must start with a thinking block",
            "run-llama/llama_index#18834",
        ),
        (r"provided without its required reasoning item", "npm @ai-sdk/openai 4.0.114 changelog"),
    ),
    known(
        plan.stop_thinking,
        "the tool chain began without thinking, so the model cannot think in it",
        _OFF,
        (r"expected thinking or redacted_thinking, but found", "anomalyco/opencode#3077"),
        (
            r"final assistant message must start with a thinking block",
            "run-llama/llama_index#18834",
        ),
    ),
    known(
        history.drop_open,
        "thinking is off in the request, but its history has thinking",
        _STRIP,
        (r"when thinking is disabled, an assistant message", "tailcallhq/forgecode#1853"),
    ),
    known(
        history.drop_items,
        "the endpoint cannot use the reasoning that was sent back",
        _STRIP,
        (r"provided without its required following item", "vercel/ai#7099; coder/xum#59"),
        (r"provided without its required reasoning item", "npm @ai-sdk/openai 4.0.114 changelog"),
        (r"item with id \S+ not found", "anomalyco/opencode#7724"),
        (r"invalid_encrypted_content", "openai/codex#8119; Wei-Shaw/sub2api#3138"),
        (
            r"encrypted content .{0,120}could not be (verified|decrypted)",
            "openai/codex#8128; Wei-Shaw/sub2api#2863",
        ),
        (r"encrypted_content was not issued to this caller", "can1357/oh-my-pi#11928"),
        (r"item\[content\] is empty", "ggml-org/llama.cpp /v1/responses"),
        (
            r"doesn.?t support the reasoningContent\.reasoningText\.signature",
            "npm @earendil-works/pi-ai 1.5.0, Converse",
        ),
    ),
    known(
        rest.no_encrypted_reasoning,
        "the model does not reason",
        _OFF,
        (
            r"encrypted content is not supported with this model",
            "OpenHands/software-agent-sdk#1208",
        ),
    ),
    known(
        history.sign_calls,
        "the model did not sign a tool call of this turn",
        "start a new turn, or switch back to the model that made the call",
        (r"missing a thought_?signature", "thClaws/thClaws#65; nanbingxyz/5ire#405"),
    ),
    known(
        history.strip_signatures,
        "the endpoint cannot verify a thought signature",
        _STRIP,
        (r"(invalid|corrupted) thought_? ?signature", "docs.apiyi.com gemini-thought-signature"),
        (r"thought_? ?signature is not valid", "Vertex, docs.apiyi.com"),
    ),
    known(
        rest.add_reasoning,
        "the endpoint requires the reasoning of earlier answers",
        "set reasoning.includeInContext=true, or set reasoning.enabled=false",
        (
            r"reasoning_content is (?P<blank>missing) in assistant tool call message",
            "anomalyco/opencode#25758; MoonshotAI/kimi-agent-sdk#169",
        ),
        (
            r"(?P<all>(?P<blank>requires) reasoning_content on every assistant message)",
            "MoonshotAI/kimi-cli#2446",
        ),
        (
            r"(?P<all>reasoning_content in the thinking mode must be passed back)",
            "api-docs.deepseek.com; anomalyco/opencode#24135",
        ),
        (
            r"(?P<all>content\[\]\.thinking in the thinking mode must be passed back)",
            "api-docs.deepseek.com, Anthropic route",
        ),
        (r"(?P<all>missing reasoning_content field in the assistant message)", "block/goose#6902"),
    ),
    known(
        rest.keep_reasoning_home,
        "the endpoint does not accept reasoning in this field",
        "set reasoning.includeInContext=false",
        (
            r"messages[.\[, ]+\d+.{0,200}?\b(reasoning\w*|thinking)\b.{0,120}?"
            r"(unsupported|not permitted|not supported|extra_forbidden|unknown|unrecognized)",
            "janhq/jan#8136 (Groq); Kilo-Org/kilocode#10375 (Cerebras); charmbracelet/crush#1590",
        ),
        (
            r"(extra_forbidden|not permitted).{0,120}messages[.\[, ]+\d+.{0,60}"
            r"\b(reasoning\w*|thinking)\b",
            "BerriAI/litellm#30835 (Mistral); earendil-works/pi#4514",
        ),
    ),
)

_PLAN = (
    known(
        plan.other_shape,
        "the model decides how long to think and accepts no budget",
        _ROW,
        (r"(?P<budget>thinking\.type\.enabled) is not supported", "anomalyco/opencode#22863"),
    ),
    known(
        plan.other_shape,
        "the model's thinking is controlled by a budget",
        _ROW,
        (
            r"(?P<adaptive>thinking\.type\.adaptive|adaptive thinking) is not supported",
            "mirror of anomalyco/opencode#22863; docker/docker-agent#3362",
        ),
        (
            r"thinking[_ ]?(?P<level>level) is not supported",
            "RooCodeInc/Roo-Code#10700; gemini-cli#14025",
        ),
    ),
    known(
        plan.other_shape,
        "the model's thinking is controlled by levels",
        _ROW,
        (
            r"thinking[_ ]?(?P<budget>budget) is not supported",
            "mirror of RooCodeInc/Roo-Code#10700",
        ),
    ),
    known(
        plan.must_think,
        "the model cannot stop thinking",
        "set reasoning.effort=low, or another level",
        (r"thinking\.type\.disabled is not supported", "dev.to/persimmoq"),
        (r"reasoning is mandatory for this (endpoint|model)", "openrouter.ai; zed#58980"),
        (r"enable_thinking parameter is restricted to true", "help.aliyun.com error-code"),
        (r"does not support reasoning effort none", "sgl-project/sglang @cce0a12"),
        (r"invalid reasoning effort: none\b", "PyPI fireworks-ai 1.2.30, gpt-oss"),
        (r"budget 0 is invalid|only works in thinking mode", "ChatLunaLab/chatluna#519"),
    ),
    known(
        plan.nearest_effort,
        "the model does not have this level",
        "set reasoning.effort to one of its levels",
        (
            r"unsupported value: .{0,120}supported values are:? (?P<values>.{0,120})",
            "egoist/chatwise-releases#1257; anomalyco/opencode#4451",
        ),
        (
            r"invalid reasoning_?effort: .{0,40}valid values are:? (?P<values>.{0,120})",
            "discuss.ai.google.dev/t/118724",
        ),
        (
            r"invalid think value: .{0,40}must be (?P<values>.{0,120})",
            "ollama/ollama @fb30760 api/types.go",
        ),
        (
            r"effort .{0,100}supported values:? (?P<values>.{0,120})",
            "microsoft/vscode#312711 (Copilot)",
        ),
        (r"effort level .{0,40}supported levels:? (?P<values>.{0,120})", "askalf/dario#491"),
        (
            r"reasoning_?effort.{0,60}input should be (?P<values>[\w, ]{0,120}?),? input: ",
            "router-for-me/CLIProxyAPI#1572 (SGLang; vLLM's is the same)",
        ),
        (
            r"reasoning_?effort.{0,40}expected one of (?P<values>[\w,| ]{0,120}?),? received",
            "router-for-me/CLIProxyAPI#1307",
        ),
        (r"level \w+ not supported, valid levels: (?P<values>.{0,120})", "quotio#287"),
        (
            r"reasoning_?effort.{0,80}(must be|expected|should be) one of:? (?P<values>.{0,120})",
            "servers of OpenAI's shape; serde's words: unknown variant, expected one of",
        ),
    ),
    known(
        plan.other_level,
        "the model does not have this level",
        "set reasoning.effort to another level",
        (r"thinking[_ ]?level \w+ is not supported", "theJayTea/WritingTools#282"),
        (r"think value \w+ is not supported", "ollama/ollama#12561"),
    ),
    known(
        plan.drop_effort,
        "the model accepts no effort",
        "unset reasoning.effort",
        (r"does not support the effort parameter", "anthropics/claude-code#30795"),
        (r"effort .{0,60}does not support reasoning effort", "caozhiyuan/copilot-api#296"),
    ),
    known(
        plan.drop_summary,
        "the account may not request reasoning summaries",
        "set reasoning.summary=none",
        (r"must be verified to generate reasoning summaries", "openai/codex, issue threads"),
    ),
    known(
        plan.lower_budget,
        "the thinking budget leaves no room for the answer",
        "raise max_tokens or lower reasoning.maxTokens",
        (r"max_tokens must be greater than thinking\.budget_tokens", "BerriAI/litellm#9001"),
        (
            r"max_(completion_)?tokens \[(?P<limit>\d{1,9})\] must be greater than thinking_budget",
            "BerriAI/litellm#39627",
        ),
    ),
    known(
        plan.clamp_budget,
        "the thinking budget is outside the model's range",
        "set reasoning.maxTokens to a number in its range",
        (
            r"thinking_budget parameter must be .{0,40}not greater than (?P<high>[\d,]{1,11})",
            "help.aliyun.com error-code",
        ),
        (
            r"budget_tokens: input should be greater than or equal to (?P<low>[\d,]{1,11})",
            "Messages API",
        ),
        (
            r"thinking ?budget .{0,60}between (?P<low>\d{1,9}) and (?P<high>\d{1,9})",
            "generateContent, the range of a model",
        ),
        (r"the thinking budget \(?\d+\)? is invalid", "RooCodeInc/Roo-Code#4399"),
    ),
    known(
        plan.lower_limit,
        "the answer limit is too high for the endpoint",
        "set a smaller max_tokens, or compress the conversation",
        (
            r"max_tokens: \d{1,9} > (?P<limit>\d{1,9}), which is the maximum allowed",
            "Messages API, the output limit of a model",
        ),
        (
            r"maximum tokens you requested exceeds? the model limit of (?P<limit>\d{1,9})",
            "Bedrock: vercel/ai#2772; RooCodeInc/Roo-Code#248",
        ),
        (
            r"max_tokens is too large: \d{1,9}\..{0,40}at most (?P<limit>\d{1,9}) completion",
            "OpenAI Chat Completions",
        ),
        (
            r"range of max_\w{0,12}tokens (is|should be) \[\d{1,3}, ?(?P<limit>\d{1,9})\]",
            "DeepSeek; Alibaba Cloud",
        ),
        (r"max_tokens must be less than or equal to (?P<limit>\d{1,9})", "Groq"),
        (
            r"max_?output_?tokens value of \d{1,9} but the supported range is from 1 \(inclusive\)"
            r" to (?P<over>\d{1,9}) \(exclusive\)",
            "Vertex",
        ),
    ),
    known(
        plan.drop_budget,
        "the server is not set up for thinking budgets",
        "unset reasoning.maxTokens",
        (r"thinking_token_budget is set but reasoning_config is not", "vllm-project/vllm @a014e35"),
    ),
)

_FORMAT = r"(response_?format|response_?(json_)?schema|json_schema|output_(config\.)?format)"
_FORMATS = (
    known(
        rest.format_in_words_once,
        "the endpoint does not accept this schema, or accepts none together with tools",
        "use a simpler schema, or no tools",
        (
            r"(function calling|tool use) with a response mime type: \S{0,40} is unsupported",
            "googleapis/python-genai#867; snailyp/gemini-balance#264",
        ),
        (r"invalid schema for response.?format", "OpenAI; i-am-bee/beeai-framework#1215 (Groq)"),
        (rf"{_FORMAT}\.schema\b", "veryfront/veryfront-code#3918, Messages API"),
        (r"schema .{0,60}too (complex|large|many)", "Messages API, Gemini API"),
    ),
    known(
        rest.format_in_words,
        "the endpoint does not enforce schemas",
        _ROW,
        (
            rf"{_FORMAT}\b.{{0,80}}(unavailable now|not (available|supported)|unsupported)",
            "llm-exe/llm-exe#662; BerriAI/litellm#7580 (DeepSeek); OpenAI, older models",
        ),
        (
            r"response_format.{0,60}not one of the allowed values",
            "dzhng/deep-research#127 (Groq)",
        ),
        (
            rf"does not support .{{0,40}}({_FORMAT}|response format|structured output)",
            "ItzCrazyKns/Vane#980 (Groq); laurent22/joplin#15801 (older Claude)",
        ),
        (r"structured outputs? (is|are) not (supported|available)", "Messages API, older models"),
    ),
)

_REST = (
    known(
        rest.drop_betas,
        "the endpoint does not have a beta feature that the client asks for",
        "leave it out of the header anthropic-beta",
        (r"unexpected value\(?s?\)? .{0,400}anthropic-beta header", "Messages API"),
        (r"invalid beta flag", "Bedrock and Vertex"),
    ),
    known(
        rest.to_responses,
        "the model supports tools with reasoning only on the Responses API",
        "choose the dialect openai-responses",
        (
            r"function tools with reasoning_effort are not supported",
            "pipecat-ai/pipecat#4043; BerriAI/litellm#34569",
        ),
        (r"only supported in /?v1/responses", "OpenAI, models of the Responses API alone"),
    ),
    known(
        rest.to_stream,
        "the endpoint supports thinking only in streams",
        "leave streaming on",
        (
            r"enable_thinking (must be set to false for non-streaming|only supports? stream)",
            "vybestack/llxprt-code#229; langchain4j#3974",
        ),
        (r"only supports? stream (call|mode)", "help.aliyun.com error-code"),
    ),
    known(
        rest.free_tools,
        "a forced tool and thinking exclude each other",
        "set reasoning.enabled=false, or leave the tool to the model",
        (r"thinking may not be enabled when tool_choice forces", "can1357/oh-my-pi#341"),
        (r"tool_choice parameter does not support being set to", "BerriAI/litellm#17129"),
        (r"tool_choice \w+ is incompatible with thinking", "can1357/oh-my-pi#827"),
        (r"thinking mode does not support this tool_choice", "tickernelz/opencode-mem#253"),
    ),
    known(
        plan.stop_thinking,
        "thinking and JSON mode exclude each other",
        _OFF,
        (r"json mode response is not supported when enable_thinking", "help.aliyun.com error-code"),
    ),
    known(
        rest.end_with_user,
        "the model does not support a prefilled answer",
        "end the conversation with a user message",
        (r"prefill is incompatible with enable_thinking", "ggml-org/llama.cpp#20861"),
        (r"does not support assistant message prefill", "anomalyco/opencode#13768"),
        (r"conversation must end with a user message", "langchain-ai/deepagents#1585"),
    ),
    known(
        rest.answer_results,
        "the endpoint accepts only an answer after tool results",
        _ROW,
        (
            r"unexpected role user after role tool",
            "avante-corp/avante.nvim#2562; mistralai/mistral-vibe#578 (vLLM)",
        ),
    ),
    known(
        rest.rename_limit,
        "the endpoint has another name for the answer limit",
        _ROW,
        (
            r"max_tokens is not supported .{0,40}use (?P<name>max_\w*tokens)",
            "OpenAI, o-series: max_tokens is not supported with this model",
        ),
    ),
    known(
        rest.one_sampling,
        "the model accepts a temperature or a top_p, not both",
        "leave one of them out",
        (r"temperature and top_p cannot both be specified", "BerriAI/litellm#15097"),
    ),
    known(
        rest.system_first,
        "the model's template accepts a system message at the beginning only",
        _ROW,
        (r"system message must be at the beginning", "ggml-org/llama.cpp#27367; vllm#46976"),
    ),
    known(
        rest.drop_parameter,
        "the model does not accept this value, or not with thinking",
        "leave the parameter out",
        (rf"{_SAMPLING} may only be set to", "MartialBE/one-hub#529"),
        (rf"unsupported value: {_SAMPLING}\b", "OpenAI, reasoning models"),
        (rf"invalid {_SAMPLING}: only", "anomalyco/opencode#10811 (Kimi)"),
        (rf"{_SAMPLING} is deprecated for this model", "Messages API, newer models"),
        (rf"{_SAMPLING}\b.{{0,40}}not supported", "aaif-goose/goose#9281"),
    ),
    known(
        plan.take_back,
        "the model does not think, or not on request",
        "set reasoning.enabled=false",
        (
            r"does not support (thinking|reasoning)\b",
            "ollama/ollama @fb30760; taketwo/llm-ollama#54",
        ),
        (r"thinking is not (configurable|supported)", "CherryHQ/cherry-studio#6319"),
        (r"thinking_?config is not supported", "immersive-translate#2976"),
    ),
    known(
        rest.drop_parameter,
        "the endpoint does not accept this parameter",
        _ROW,
        (r"unsupported parameter:? (?P<name>[\w.]{1,80})", "OpenAI, code unsupported_parameter"),
        (r"does not support parameters: \[?(?P<name>[\w.]{1,80})", "BerriAI/litellm#10108"),
        (
            r"un(known|recognized|expected) (parameter|field|key|argument|property):?"
            r" (?P<name>[\w.]{1,80})",
            "servers of OpenAI's shape; BerriAI/litellm#14225",
        ),
        (r"unrecognized request argument supplied: (?P<name>[\w.]{1,80})", "OpenAI"),
        (r"argument not supported on this model: (?P<name>[\w.]{1,80})", "xAI; hermes-agent#23435"),
        (
            r"property (?P<name>[\w.]{1,80}) is unsupported",
            "musistudio/claude-code-router#1204 (Groq)",
        ),
        (
            r"(?<![\w.])(?P<name>[\w.]{1,80}): extra inputs are not permitted",
            "Wei-Shaw/claude-relay-service#660",
        ),
        (
            r"request: #: extraneous key \[(?P<name>[\w.]{1,80})\] is not permitted",
            "Bedrock: BerriAI/litellm#14021",
        ),
        (r"extra_forbidden.{0,20}loc: ?[\[(]body, ?(?P<name>\w+)", "partITech/php-mistral#76"),
        (
            r"unknown name (?P<name>\w{1,80})( at [^:]{1,200})?: cannot find field",
            "Google: google-gemini/gemini-cli#13972",
        ),
        (
            r"(?P<name>reasoning[_.]effort|enable_thinking|thinking|reasoning|chat_template_kwargs)"
            r" (is|are) (not supported|unsupported|not allowed)",
            "servers of OpenAI's shape",
        ),
    ),
)

CAUSES: tuple[Cause, ...] = (*_HISTORY, *_FORMATS, *_PLAN, *_REST)


def causes_of(failure: Failure) -> Iterator[tuple[Cause, re.Match[str]]]:
    """Possible causes of a rejection, the most likely first; none if it states another subject."""
    if stated(failure) is not None:
        return
    said = plain(failure)
    for cause in CAUSES:
        found = next((hit for text in cause.texts if (hit := text.pattern.search(said))), None)
        if found is not None:
            yield cause, found
