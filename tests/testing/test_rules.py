"""The rules refuse what the endpoints refuse, in their words."""

import pytest

from mull.testing.rules import check_anthropic, check_deepseek, refusal

USE = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": "r"}
THOUGHT = {"type": "thinking", "thinking": "x", "signature": "s"}
ON = {"type": "enabled", "budget_tokens": 2000}


def claude(*contents, thinking=None, max_tokens=4000, **more):
    roles = ["user", "assistant"] * len(contents)
    messages = [{"role": r, "content": c} for r, c in zip(roles, contents, strict=False)]
    body = {"messages": messages, "max_tokens": max_tokens, **more}
    return body | ({"thinking": thinking} if thinking else {})


def turns(*roles):
    return {"messages": [{"role": role, "content": "x"} for role in roles], "max_tokens": 9}


TEXT = {"type": "text", "text": "and now?"}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (claude("q", [THOUGHT, USE], [RESULT], thinking=ON), None),
        (claude("q", [USE], [RESULT], thinking=ON), "Expected `thinking` or `redacted_thinking`"),
        (claude("q", [USE], [RESULT]), None),
        (claude("q", [THOUGHT, USE], [RESULT]), "When thinking is disabled"),
        (claude("q", [THOUGHT], "r", thinking=ON), "The final block in an assistant message"),
        (claude("q", [USE], "r"), "`tool_use` ids were found without `tool_result`"),
        (claude("q", "a", [RESULT]), "unexpected `tool_use_id` found"),
        (claude(""), "content must be non-empty"),
        (claude([]), "content must be non-empty"),
        (claude([{"type": "text", "text": ""}]), "text content blocks must be non-empty"),
        (claude("q", [{"type": "thinking", "thinking": "x"}, USE], [RESULT]), "Field required"),
        (claude("q", thinking=ON, max_tokens=2000), "`max_tokens` must be greater"),
        (claude("q", thinking={**ON, "budget_tokens": 9}), "greater than or equal to 1024"),
        (claude("q", thinking=ON, tool_choice={"type": "any"}), "Thinking may not be enabled"),
        (claude("q", thinking=ON, temperature=0.5), "`temperature` may only be set to 1"),
        (claude("q", [USE], [RESULT, TEXT], thinking=ON), None),
        (turns("user", "user"), 'found multiple "user" roles in a row'),
        (turns("user", "assistant", "assistant"), 'found multiple "assistant" roles in a row'),
        (turns("assistant"), 'first message must use the "user" role'),
        (turns(), 'first message must use the "user" role'),
    ],
)
def test_anthropic(body, said):
    told = refusal("anthropic", body)
    assert told is None if said is None else said in told


def test_a_call_that_the_endpoint_made_without_a_thought_needs_none():
    body = claude("q", [THOUGHT, USE], [RESULT], [{**USE, "id": "u"}], thinking=ON)
    body["messages"].append(
        {"role": "user", "content": [{**RESULT, "tool_use_id": "u"}]},
    )
    assert "messages.3.content.0.type: Expected" in check_anthropic(body)
    assert check_anthropic(body, own={"u"}) is None


CALL = {"functionCall": {"name": "f"}, "thoughtSignature": "s"}
ANSWER = {"functionResponse": {"name": "f", "response": {}}}


def gemini(*parts, config=None):
    roles = ["user", "model"] * len(parts)
    contents = [{"role": r, "parts": list(p)} for r, p in zip(roles, parts, strict=False)]
    return {"contents": contents, "generationConfig": {"thinkingConfig": config or {}}}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (gemini([{"text": "q"}], [CALL], [ANSWER]), None),
        (gemini([{"text": "q"}], [CALL, {"functionCall": {"name": "g"}}], [ANSWER, ANSWER]), None),
        (gemini([{"text": "q"}], [{"functionCall": {"name": "f"}}], [ANSWER]), "missing a thought"),
        (
            gemini(
                [{"text": "q"}],
                [{"functionCall": {"name": "f"}}],
                [ANSWER],
                [{"text": "a"}],
                [{"text": "r"}],
            ),
            None,
        ),
        (gemini([{"text": "q"}], [CALL, CALL], [ANSWER]), "number of function response parts"),
        (gemini([{"text": "q"}], [{"text": "a"}], [ANSWER]), "immediately after a function call"),
        (gemini([], [CALL], [ANSWER], config={}), None),
        (
            {"contents": [{"role": "model", "parts": [CALL]}, {"role": "user", "parts": [ANSWER]}]},
            "immediately after a user turn",
        ),
        (gemini([{"text": "q"}], config={"thinkingLevel": 1, "thinkingBudget": 1}), "only one of"),
    ],
)
def test_gemini(body, said):
    told = refusal("gemini", body)
    assert told is None if said is None else said in told


ASK = {"role": "user", "content": "q"}
FC = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
OUT = {"type": "function_call_output", "call_id": "c", "output": "r"}
RS = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "g"}


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([ASK, RS, FC, OUT], None),
        ([ASK, RS, ASK], "without its required following item"),
        ([ASK, RS], "without its required following item"),
        ([ASK, {**RS, "encrypted_content": None}, FC, OUT], "Items are not persisted"),
        ([ASK, FC], "No tool output found for function call c"),
        ([ASK, OUT], "No tool call found for function call output"),
        ([ASK, RS, FC, OUT, RS, FC, OUT], "Duplicate item found with id rs_1"),
        ([ASK, {k: v for k, v in RS.items() if k != "summary"}, FC, OUT], "'input[1].summary'"),
        ("q", None),
    ],
)
def test_responses(items, said):
    told = refusal("openai-responses", {"input": items})
    assert told is None if said is None else said in told


def chat(*messages, **more):
    return {"messages": list(messages), **more}


CALLS = {"role": "assistant", "tool_calls": [{"id": "c"}], "reasoning_content": "x"}
SILENT = {"role": "assistant", "tool_calls": [{"id": "c"}]}
TOOL = {"role": "tool", "tool_call_id": "c", "content": "r"}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (chat(ASK, CALLS, TOOL), None),
        (chat(ASK, SILENT, TOOL), "reasoning_content is missing in assistant tool call message"),
        (chat(ASK, SILENT, TOOL, thinking={"type": "disabled"}), None),
        (chat(ASK, TOOL), "must be a response to a preceding message"),
        (chat(ASK, CALLS, ASK), "must be followed by tool messages"),
        (chat(ASK, CALLS), "tool calls without an answer: c"),
    ],
)
def test_chat(body, said):
    told = refusal("openai-chat", body)
    assert told is None if said is None else said in told


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (chat(ASK, CALLS, TOOL), None),
        (chat(ASK, SILENT, TOOL), "must be passed back to the API"),
        (chat(ASK, {**SILENT, "reasoning_content": ""}, TOOL), None),
        (chat(ASK, SILENT, TOOL, thinking={"type": "disabled"}), None),
        (chat(ASK, SILENT, TOOL, {"role": "assistant", "content": "a"}, ASK), None),
        (chat(ASK, SILENT, TOOL, ASK, CALLS, TOOL), None),
        (chat(SILENT, TOOL), "must be passed back to the API"),
        (chat(ASK, TOOL), "must be a response to a preceding message"),
    ],
)
def test_deepseek(body, said):
    told = check_deepseek(body)
    assert told is None if said is None else said in told
