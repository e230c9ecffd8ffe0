"""The vendors' own types as judges of where each parameter stands in a body."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest

from mull.dialects.traits import TRAITS

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def openai_chat() -> set[str]:
    params = pytest.importorskip("openai.types.chat.completion_create_params")
    return set(get_type_hints(params.CompletionCreateParamsNonStreaming))


def openai_responses() -> set[str]:
    params = pytest.importorskip("openai.types.responses.response_create_params")
    text = pytest.importorskip("openai.types.responses.response_text_config_param")
    held = get_type_hints(text.ResponseTextConfigParam)
    return {*get_type_hints(params.ResponseCreateParamsNonStreaming), *_inside("text", held)}


def anthropic() -> set[str]:
    types = pytest.importorskip("anthropic.types")
    params = get_type_hints(types.message_create_params.MessageCreateParamsNonStreaming)
    choice = get_type_hints(types.ToolChoiceAutoParam)
    user = get_type_hints(types.MetadataParam)
    return {*params, *_inside("tool_choice", choice), *_inside("metadata", user)}


def gemini() -> set[str]:
    types = pytest.importorskip("google.genai.types")
    config = types.GenerationConfig.model_fields.values()
    return set(_inside("generationConfig", [field.alias for field in config]))


def bedrock() -> set[str]:
    session = pytest.importorskip("botocore.session")
    shape = session.get_session().get_service_model("bedrock-runtime").shape_for("ConverseRequest")
    config = shape.members["inferenceConfig"].members
    free = {"additionalModelRequestFields.top_k"}  # Claude's own field, which is not typed
    return {*shape.members, *_inside("inferenceConfig", config), *free}


def _inside(name: str, keys: Any) -> list[str]:
    return [f"{name}.{key}" for key in keys]


@pytest.mark.parametrize(
    ("dialect", "typed", "untyped"),
    [
        ("openai-chat", openai_chat, {"top_k"}),
        ("openai-responses", openai_responses, set()),
        ("anthropic", anthropic, {"temperature", "top_p", "top_k"}),
        ("gemini", gemini, set()),
        ("bedrock-converse", bedrock, set()),
    ],
)
def test_each_place_is_one_that_the_vendor_has_typed(dialect, typed, untyped):
    """The exceptions are parameters of other servers, and of models before the SDK's."""
    places = {paths[0].removeprefix("!") for paths in TRAITS[dialect].parameters.values()}
    assert places - typed() == untyped
