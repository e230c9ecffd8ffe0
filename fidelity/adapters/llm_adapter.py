"""llm: a conversation runs the tools itself."""

import os
import tempfile

os.environ["LLM_USER_PATH"] = tempfile.mkdtemp()

from llm import Conversation
from llm.default_plugins.openai_models import Chat, Responses
from llm_anthropic import ClaudeMessages

from line import NotClaimed, answer, serve


def look(at: str) -> str:
    """Look at something."""
    return "nothing there"


def model_of(at):
    """A model at another address, as its configuration declares one."""
    name, url = at["model"], at["url"] + "/v1"
    if at["dialect"] == "anthropic":
        model = ClaudeMessages(name, supports_thinking=True, default_max_tokens=8000)
        model.base_url = at["url"]
        return model
    kind = Chat if at["dialect"] == "openai-chat" else Responses
    options = {} if kind is Chat else {"reasoning": True}
    return kind(name, model_name=name, key="x", api_base=url, supports_tools=True, **options)


class Client:
    def __init__(self, case):
        apis = {at["dialect"] for at in case["endpoints"].values()}
        if apis & {"gemini", "bedrock-converse"}:
            raise NotClaimed("its plugins for these APIs take no address")
        if case["kind"] == "tags":
            raise NotClaimed("returns the content as the server sent it")
        if len(case["endpoints"]) > 1 or any("keep" in step for step in case["steps"]):
            raise NotClaimed("its conversations keep their model and all their turns")
        self.streams, self.talk = case["call"] == "streaming", None

    def ask(self, at, text):
        if self.talk is None:
            self.talk = Conversation(model=model_of(at))
        options = {"thinking": True} if at["dialect"] == "anthropic" else {}
        chain = self.talk.chain(text, tools=[look], stream=self.streams, options=options, key="x")
        for response in chain.responses():
            response.text()
            yield self.told(response)

    def told(self, response):
        parts = response.to_dict().get("messages", [])
        thoughts = [
            part.get("text", "")
            for message in parts
            for part in message.get("parts", [])
            if part.get("type") == "reasoning"
        ]
        details = response.token_details or {}
        counted = details.get("completion_tokens_details", {}).get("reasoning_tokens")
        counted = details.get("output_tokens_details", {}).get("reasoning_tokens", counted)
        return answer(response.text(), "\n\n".join(thoughts), reasoning_tokens=counted)

    def resume(self):
        raise NotClaimed("stores conversations by its command only")


serve(Client)
