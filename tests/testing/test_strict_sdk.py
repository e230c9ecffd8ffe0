"""The vendors' own SDKs hold a tool conversation with the strict servers, streaming.

That shows two things: the streams are such as the SDKs read, and a client that sends back what
its SDK gives it is not refused.
"""

from __future__ import annotations

import pytest

from mull.testing import Call, Say, StrictServer, Think

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

SCRIPT = [
    [Think("I have to look."), Call("look", {"at": "door"})],
    [Think("Twice."), Call("look", {"at": "a"}), Call("look", {"at": "b"})],
    [Think("secret", hidden=True), Say("Wait."), Think("Now."), Call("look", {"at": "c"})],
    [Think("Enough."), Say("It is a door.")],
]
PARAMETERS = {"type": "object", "properties": {"at": {"type": "string"}}}
ROUNDS = 10


def finished(server, text):
    assert text == "It is a door."
    assert server.refusals == []
    assert server.answered == len(SCRIPT)
    assert server.returned[-1] == server.issued[: len(server.returned[-1])] != ()


def test_the_anthropic_sdk():
    import anthropic

    history = [{"role": "user", "content": "what is it?"}]
    tool = {"name": "look", "input_schema": PARAMETERS}
    with (
        StrictServer("anthropic", SCRIPT) as server,
        anthropic.Anthropic(api_key="none", base_url=server.url, max_retries=0) as client,
    ):
        for _ in range(ROUNDS):
            with client.messages.stream(
                model="claude-sonnet-4-5",
                max_tokens=4000,
                thinking={"type": "enabled", "budget_tokens": 2000},
                tools=[tool],
                messages=history,
            ) as stream:
                message = stream.get_final_message()
            history.append({"role": "assistant", "content": message.content})
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": str(block.input)}
                for block in message.content
                if block.type == "tool_use"
            ]
            if not results:
                break
            history.append({"role": "user", "content": results})
    finished(server, message.content[-1].text)
    assert message.content[0].thinking == "Enough."


def test_the_openai_sdk_on_responses():
    import openai

    history = [{"role": "user", "content": "what is it?"}]
    tool = {"type": "function", "name": "look", "parameters": PARAMETERS, "strict": False}
    with (
        StrictServer("openai", SCRIPT) as server,
        openai.OpenAI(api_key="none", base_url=server.url, max_retries=0) as client,
    ):
        for _ in range(ROUNDS):
            with client.responses.stream(
                model="gpt-5",
                input=history,
                tools=[tool],
                store=False,
                include=["reasoning.encrypted_content"],
                reasoning={"summary": "auto"},
            ) as stream:
                response = stream.get_final_response()
            history += [
                item.model_dump(exclude_none=True, exclude={"parsed_arguments"})
                for item in response.output
            ]
            results = [
                {"type": "function_call_output", "call_id": item.call_id, "output": item.arguments}
                for item in response.output
                if item.type == "function_call"
            ]
            if not results:
                break
            history += results
    finished(server, response.output_text)


@pytest.mark.parametrize("provider", ["kimi", "deepseek"])
def test_the_openai_sdk_on_chat_completions(provider):
    import openai

    history = [{"role": "user", "content": "what is it?"}]
    tool = {"type": "function", "function": {"name": "look", "parameters": PARAMETERS}}
    with (
        StrictServer(provider, SCRIPT) as server,
        openai.OpenAI(api_key="none", base_url=server.url, max_retries=0) as client,
    ):
        for _ in range(ROUNDS):
            with client.chat.completions.stream(
                model="m", messages=history, tools=[tool]
            ) as stream:
                message = stream.get_final_completion().choices[0].message
            kept = message.model_dump(exclude_none=True, exclude={"parsed"})
            for call in kept.get("tool_calls", ()):
                call["function"].pop("parsed_arguments", None)
            history.append(kept)
            calls = message.tool_calls or ()
            if not calls:
                break
            history += [
                {"role": "tool", "tool_call_id": call.id, "content": call.function.arguments}
                for call in calls
            ]
    finished(server, message.content)


def test_the_google_sdk():
    from google import genai
    from google.genai import types

    history = [types.Content(role="user", parts=[types.Part(text="what is it?")])]
    declared = types.FunctionDeclaration(name="look", parameters_json_schema=PARAMETERS)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declared])],
        thinking_config=types.ThinkingConfig(include_thoughts=True),
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    with StrictServer("gemini", SCRIPT) as server:
        options = types.HttpOptions(base_url=server.url, api_version="v1beta")
        with genai.Client(api_key="none", http_options=options) as client:
            for _ in range(ROUNDS):
                chunks = client.models.generate_content_stream(
                    model="gemini-3-pro-preview", contents=history, config=config
                )
                parts = [p for chunk in chunks for p in chunk.candidates[0].content.parts]
                history.append(types.Content(role="model", parts=parts))
                results = [
                    types.Part(
                        function_response=types.FunctionResponse(
                            id=part.function_call.id, name=part.function_call.name, response={}
                        )
                    )
                    for part in parts
                    if part.function_call
                ]
                if not results:
                    break
                history.append(types.Content(role="user", parts=results))
    finished(server, "".join(part.text for part in parts if not part.thought))
