"""The refusals that are about the history: thoughts, signatures, items, fields of messages.

One row per known text, with the place where it was seen; `heal_causes` says how rows are read.
"""

from __future__ import annotations

from mull.policy.heal import history, plan, signatures
from mull.policy.heal import request as rest
from mull.policy.heal.case import Cause, known

__all__ = ["HISTORY"]

_STRIP = "set reasoning.stripFromContext=all to go on without earlier thoughts"

HISTORY: tuple[Cause, ...] = (
    known(
        history.drop_bound,
        "a thought is bound to a conversation that has changed since",
        _STRIP,
        (r"bound to a different conversation", "anomalyco/opencode#48637"),
    ),
    known(
        history.drop_unverified,
        "the signature of an earlier thought does not verify there",
        _STRIP,
        (r"invalid signature in (a )?thinking block", "claude-code-hub#576; claw#96272"),
        (r"invalid data in (a )?redacted_thinking block", "Messages API, round trip"),
    ),
    known(
        history.drop_latest,
        "the thoughts of an answer are not what the endpoint wrote",
        _STRIP,
        (
            r"thinking( or redacted_thinking)? blocks .{0,60}cannot be modified",
            "anthropics/claude-code#63284; BerriAI/litellm#23047",
        ),
        (r"first block must be thinking or redacted_thinking", "NousResearch/hermes-agent#35975"),
    ),
    known(
        history.drop_unsigned,
        "an earlier thought has no signature",
        _STRIP,
        (r"thinking\.signature: field required", "Messages API, round trip"),
    ),
    known(
        history.drop_extra_key,
        "an earlier answer holds a key that is not taken back",
        _STRIP,
        (
            r"messages\.\d+\.content\.\d+(\.\w+)?\.(?P<key>\w+): extra inputs are not permitted",
            "Messages API, round trip; anthropics/claude-code#4378",
        ),
    ),
    known(
        history.drop_blank,
        "an earlier thought is empty",
        _STRIP,
        (r"each thinking block must contain thinking", "Messages API, round trip"),
    ),
    known(
        history.drop_trailing,
        "an earlier answer ends with a thought",
        _STRIP,
        (
            r"final block in an assistant message cannot be (redacted_)?thinking",
            "tailcallhq/forgecode#2107",
        ),
    ),
    known(
        plan.stop_thinking,
        "the tool chain began without a thought, so its model cannot think on",
        "set reasoning.enabled=false for this request",
        (r"expected thinking or redacted_thinking, but found", "anomalyco/opencode#3077"),
        (
            r"final assistant message must start with a thinking block",
            "run-llama/llama_index#18834",
        ),
    ),
    known(
        history.drop_open,
        "the request does not think, but its history has thoughts",
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
        "set reasoning.enabled=false for this request",
        (
            r"encrypted content is not supported with this model",
            "OpenHands/software-agent-sdk#1208",
        ),
    ),
    known(
        signatures.sign_calls,
        "a tool call of this turn is not one the model signed",
        "start a new turn, or switch back to the model that made the call",
        (r"missing a thought_?signature", "thClaws/thClaws#65; nanbingxyz/5ire#405"),
    ),
    known(
        signatures.strip_signatures,
        "a thought signature does not verify there",
        _STRIP,
        (r"(invalid|corrupted) thought_? ?signature", "docs.apiyi.com gemini-thought-signature"),
        (r"thought_? ?signature is not valid", "Vertex, docs.apiyi.com"),
    ),
    known(
        rest.add_reasoning,
        "the endpoint wants the reasoning of earlier answers back",
        "set reasoning.includeInContext=true, or reasoning.enabled=false",
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
        "the endpoint does not take reasoning back in this field",
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
