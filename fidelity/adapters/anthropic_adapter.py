"""The Anthropic SDK: the content of each message is given back as it came."""

import anthropic

from apis import read_message, results_for
from line import NotClaimed, Talk, serve

# https://github.com/anthropics/anthropic-sdk-python#aws-bedrock
AWS = {"aws_access_key": "x", "aws_secret_key": "x", "aws_region": "us-east-1"}
# https://docs.claude.com/en/docs/build-with-claude/extended-thinking
BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 8000}
# https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking
ADAPTIVE = {"thinking": {"type": "adaptive", "display": "summarized"}, "max_tokens": 8000}


class Client(Talk):
    def __init__(self, case):
        super().__init__(case)
        apis = {at["dialect"] for at in case["endpoints"].values()}
        if not apis <= {"anthropic", "bedrock-converse"}:
            raise NotClaimed("speaks only the Messages API")

    def ask(self, at, text):
        client = anthropic.Anthropic(base_url=at["url"], api_key="x", max_retries=0)
        if at["provider"] == "bedrock":
            client = anthropic.AnthropicBedrock(base_url=at["url"], max_retries=0, **AWS)
        schema = {"name": self.tool["name"], "description": self.tool["description"]}
        schema["input_schema"] = self.tool["parameters"]
        options = {"model": at["model"], "tools": [schema]}
        options |= ADAPTIVE if "-5-5" in at["model"] else BUDGET
        self.history.append({"role": "user", "content": text})
        results = True
        while results:
            options["messages"] = self.history
            if self.streams:
                with client.messages.stream(**options) as stream:
                    message = stream.get_final_message()
            else:
                message = client.messages.create(**options)
            content, report = read_message(message.model_dump(exclude_none=True))
            self.history.append({"role": "assistant", "content": content})
            yield report
            results = results_for(content, self.result)
            self.history += results


serve(Client)
