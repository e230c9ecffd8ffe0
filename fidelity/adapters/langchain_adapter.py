"""langchain: the chat model of each provider, messages given back as they came."""

import os

from langchain_core.messages import HumanMessage, ToolMessage, messages_from_dict, messages_to_dict

from line import NotClaimed, answer, last_turns, serve

os.environ |= {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1"}
BUDGET = {"type": "enabled", "budget_tokens": 2000}


def model_of(at):
    """The class that langchain recommends for a provider."""
    name, url = at["model"], at["url"]
    about = {"model": name, "base_url": f"{url}/v1", "api_key": "x", "max_retries": 0}
    match at["provider"]:
        case "anthropic":
            from langchain_anthropic import ChatAnthropic

            thinking = {"type": "adaptive"} if "-5-5" in name else BUDGET
            return ChatAnthropic(**about | {"base_url": url}, thinking=thinking, max_tokens=8000)
        case "openai":
            from langchain_openai import ChatOpenAI

            include = ["reasoning.encrypted_content"]
            kept = {"store": False, "include": include, "reasoning": {"summary": "auto"}}
            return ChatOpenAI(**about, use_responses_api=True, **kept)
        case "gemini":
            from langchain_google_genai import ChatGoogleGenerativeAI

            reach = {"base_url": url, "google_api_key": "x", "max_retries": 1}
            return ChatGoogleGenerativeAI(model=name, include_thoughts=True, **reach)
        case "deepseek":
            from langchain_deepseek import ChatDeepSeek

            about["api_base"] = about.pop("base_url")
            return ChatDeepSeek(**about)
        case "openrouter":
            from langchain_openrouter import ChatOpenRouter

            return ChatOpenRouter(**about, reasoning={"effort": "medium"})
        case "mistral":
            from langchain_mistralai import ChatMistralAI

            return ChatMistralAI(**about)
        case "bedrock":
            from langchain_aws import ChatBedrockConverse

            fields = {"additional_model_request_fields": {"thinking": BUDGET}}
            return ChatBedrockConverse(model=name, endpoint_url=url, max_tokens=8000, **fields)
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(**about, stream_usage=True)


class Client:
    def __init__(self, case):
        if case["kind"] == "tags":
            raise NotClaimed("returns the content as the server sent it")
        self.tool, self.streams, self.history = case["tool"], case["call"] == "streaming", []

    def ask(self, at, text):
        function = {key: self.tool[key] for key in ("name", "description", "parameters")}
        model = model_of(at).bind_tools([{"type": "function", "function": function}])
        self.history.append(HumanMessage(text))
        while True:
            if self.streams:
                message = None
                for chunk in model.stream(self.history):
                    message = chunk if message is None else message + chunk
            else:
                message = model.invoke(self.history)
            self.history.append(message)
            yield self.told(message)
            if not message.tool_calls:
                return
            for call in message.tool_calls:
                self.history.append(ToolMessage(self.tool["result"], tool_call_id=call["id"]))

    def told(self, message):
        blocks = [one for one in message.content_blocks if one["type"] == "reasoning"]
        thoughts = [one.get("reasoning", "") for one in blocks]
        usage = message.usage_metadata or {}
        counted = usage.get("output_token_details", {}).get("reasoning")
        about = message.response_metadata
        ending = about.get("finish_reason") or about.get("stop_reason") or about.get("stopReason")
        cut = ending in ("length", "max_tokens", "MAX_TOKENS")
        thinking = "\n\n".join(filter(None, thoughts))
        return answer(message.text, thinking, reasoning_tokens=counted, incomplete=cut)

    def resume(self):
        self.history = messages_from_dict(messages_to_dict(self.history))

    def keep(self, turns):
        self.history = last_turns(self.history, lambda one: one.type == "human", turns)


serve(Client)
