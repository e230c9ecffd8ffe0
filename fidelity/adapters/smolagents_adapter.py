"""smolagents: its models, with the messages that an agent's memory makes of each step."""

from smolagents import ChatMessage, LiteLLMModel, MessageRole, OpenAIModel, tool
from smolagents.memory import ActionStep, ToolCall
from smolagents.models import agglomerate_stream_deltas
from smolagents.monitoring import Timing

from line import NotClaimed, answer, last_turns, serve

# Agents force a call by default, which Claude refuses while it thinks; the models take another
# choice: https://huggingface.co/docs/smolagents/reference/models
BUDGET = {"type": "enabled", "budget_tokens": 2000}


@tool
def look(at: str) -> str:
    """Look at something.

    Args:
        at: what to look at
    """
    return "nothing there"


def model_of(at):
    if at["dialect"] == "openai-chat" and at["provider"] != "mistral":
        return OpenAIModel(at["model"], api_base=at["url"] + "/v1", api_key="x", max_tokens=4000)
    url = at["url"] + ("/v1" if at["provider"] == "mistral" else "")
    options = {"api_base": url, "api_key": "x", "max_tokens": 8000}
    if at["dialect"] == "anthropic":
        thinking = {"type": "adaptive"} if "-5-5" in at["model"] else BUDGET
        options |= {"thinking": thinking, "tool_choice": "auto"}
    return LiteLLMModel(f"{at['provider']}/{at['model']}", **options)


class Client:
    def __init__(self, case):
        apis = {at["dialect"] for at in case["endpoints"].values()}
        if "openai-responses" in apis:
            raise NotClaimed("its model for OpenAI uses Chat Completions")
        if "bedrock-converse" in apis:
            raise NotClaimed("its model for Bedrock sends no tools")
        if case["kind"] == "tags":
            raise NotClaimed("returns the content as the server sent it")
        if case["kind"] == "counted":
            raise NotClaimed("its token usage has input and output only")
        self.tool, self.streams, self.history = case["tool"], case["call"] == "streaming", []

    def ask(self, at, text):
        model = model_of(at)
        self.history.append(ChatMessage(MessageRole.USER, [{"type": "text", "text": text}]))
        while True:
            about = {"messages": self.history, "tools_to_call_from": [look]}
            if self.streams:
                message = agglomerate_stream_deltas(list(model.generate_stream(**about)))
            else:
                message = model.generate(**about)
            yield answer(message.content, self.thinking(message))
            calls = message.tool_calls or []
            step = ActionStep(1, Timing(0.0), model_output=message.content or None)
            if calls:
                made = [(one.function.name, one.function.arguments, one.id) for one in calls]
                step.tool_calls = [ToolCall(*one) for one in made]
                step.observations = "\n".join(self.tool["result"] for _ in calls)
            self.history += step.to_messages()
            if not calls:
                return

    def thinking(self, message):
        choices = getattr(message.raw, "choices", None) or [None]
        return getattr(getattr(choices[0], "message", None), "reasoning_content", None)

    def resume(self):
        self.history = [ChatMessage.from_dict(one.dict()) for one in self.history]

    def keep(self, turns):
        self.history = last_turns(self.history, lambda one: one.role == MessageRole.USER, turns)


serve(Client)
