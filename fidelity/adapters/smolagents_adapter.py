"""smolagents: its models, with the messages that an agent's memory makes of each step."""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

from smolagents import ChatMessage, LiteLLMModel, MessageRole, OpenAIModel, tool
from smolagents.memory import ActionStep, ToolCall
from smolagents.models import agglomerate_stream_deltas
from smolagents.monitoring import Timing

from line import NotClaimed, answer, last_turns, serve

BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 8000}


@tool
def look(at: str) -> str:
    """Look at something.

    Args:
        at: what to look at
    """
    return "nothing there"


def model_of(at):
    if at["dialect"] == "openai-chat":
        return OpenAIModel(at["model"], api_base=at["url"] + "/v1", api_key="x", max_tokens=4000)
    options = BUDGET if at["dialect"] == "anthropic" else {}
    return LiteLLMModel(
        f"{at['provider']}/{at['model']}", api_base=at["url"], api_key="x", **options
    )


class Client:
    def __init__(self, case):
        apis = {at["dialect"] for at in case["endpoints"].values()}
        if not apis <= {"openai-chat", "anthropic", "gemini"}:
            raise NotClaimed("its models use Chat Completions, or litellm for other APIs")
        if case["kind"] in ("tags", "counted"):
            raise NotClaimed("has no notion of reasoning in its messages")
        self.tool, self.streams, self.history = case["tool"], case["call"] == "streaming", []

    def ask(self, at, text):
        model = model_of(at)
        self.history.append(ChatMessage(MessageRole.USER, [{"type": "text", "text": text}]))
        while True:
            if self.streams:
                deltas = list(model.generate_stream(self.history, tools_to_call_from=[look]))
                message = agglomerate_stream_deltas(deltas)
            else:
                message = model.generate(self.history, tools_to_call_from=[look])
            yield answer(message.content, self.thinking(message))
            calls = message.tool_calls or []
            step = ActionStep(1, Timing(0.0), model_output=message.content or None)
            if calls:
                step.tool_calls = [
                    ToolCall(c.function.name, c.function.arguments, c.id) for c in calls
                ]
                step.observations = "\n".join(self.tool["result"] for _ in calls)
            self.history += step.to_messages()
            if not calls:
                return

    def thinking(self, message):
        raw = getattr(message, "raw", None)
        if not raw or not getattr(raw, "choices", None):
            return None
        return getattr(raw.choices[0].message, "reasoning_content", None)

    def resume(self):
        self.history = [ChatMessage.from_dict(one.dict()) for one in self.history]

    def keep(self, turns):
        self.history = last_turns(self.history, lambda one: one.role == MessageRole.USER, turns)


serve(Client)
