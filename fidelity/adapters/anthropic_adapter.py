"""The Anthropic SDK: the content of each message is given back as it came."""

import json

import anthropic

from line import NotClaimed, answer, last_turns, serve

BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 8000}
ADAPTIVE = {"thinking": {"type": "adaptive", "display": "summarized"}, "max_tokens": 8000}


class Client:
    def __init__(self, case):
        if any(at["dialect"] != "anthropic" for at in case["endpoints"].values()):
            raise NotClaimed("speaks only the Messages API")
        self.tool, self.streams, self.history = case["tool"], case["call"] == "streaming", []

    def ask(self, at, text):
        client = anthropic.Anthropic(base_url=at["url"], api_key="x", max_retries=0)
        schema = {"name": self.tool["name"], "description": self.tool["description"]}
        schema["input_schema"] = self.tool["parameters"]
        options = {"model": at["model"], "tools": [schema]}
        options |= ADAPTIVE if "-5-5" in at["model"] else BUDGET
        self.history.append({"role": "user", "content": text})
        while True:
            options["messages"] = self.history
            if self.streams:
                with client.messages.stream(**options) as stream:
                    message = stream.get_final_message()
            else:
                message = client.messages.create(**options)
            content = [block.model_dump(exclude_none=True) for block in message.content]
            self.history.append({"role": "assistant", "content": content})
            yield self.told(message)
            calls = [block for block in message.content if block.type == "tool_use"]
            if not calls:
                return
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": self.tool["result"]}
                for call in calls
            ]
            self.history.append({"role": "user", "content": results})

    def told(self, message):
        text = "".join(block.text for block in message.content if block.type == "text")
        thoughts = [block.thinking for block in message.content if block.type == "thinking"]
        details = getattr(message.usage, "output_tokens_details", None)
        counted = getattr(details, "thinking_tokens", None)
        cut = message.stop_reason == "max_tokens"
        return answer(text, "\n\n".join(thoughts), reasoning_tokens=counted, incomplete=cut)

    def resume(self):
        self.history = json.loads(json.dumps(self.history))

    def keep(self, turns):
        self.history = last_turns(self.history, lambda one: isinstance(one["content"], str), turns)


serve(Client)
