"""langchain: the chat model of each provider, messages given back as they came."""

from langchain.chat_models import init_chat_model
from langchain_core.messages import HumanMessage, ToolMessage, messages_from_dict, messages_to_dict
from langchain_moonshot import ChatMoonshot

from line import NotClaimed, answer, last_turns, serve

# The integration package of each, https://docs.langchain.com/oss/python/integrations/chat
NAMES = {"gemini": "google_genai", "mistral": "mistralai", "bedrock": "bedrock_converse"}
BUDGET = {"type": "enabled", "budget_tokens": 2000}
OPTIONS = {
    "anthropic": {"thinking": BUDGET, "max_tokens": 8000},
    "bedrock": {"additional_model_request_fields": {"thinking": BUDGET}, "max_tokens": 8000},
    "gemini": {"include_thoughts": True, "max_retries": 1},
    "openai": {"use_responses_api": True, "store": False, "reasoning": {"summary": "auto"}},
    "openrouter": {"reasoning": {"effort": "medium"}},
}
OPTIONS["openai"]["include"] = ["reasoning.encrypted_content"]
OPTIONS["bedrock"] |= {"aws_access_key_id": "x", "aws_secret_access_key": "x", "api_key": None}
OPTIONS["bedrock"]["region_name"] = "us-east-1"


def model_of(at):
    name, provider = at["model"], at["provider"]
    if provider in ("vllm", "llama.cpp", "zai", "compatible"):
        # https://reference.langchain.com/python/langchain-openai/chat_models/base/ChatOpenAI
        raise NotClaimed("ChatOpenAI says that it keeps only the fields of OpenAI's own API")
    url = at["url"] + ("" if provider in ("anthropic", "gemini", "bedrock") else "/v1")
    # Standard blocks, for every provider: docs.langchain.com/oss/python/langchain/messages
    about = {"base_url": url, "api_key": "x", "max_retries": 0, "output_version": "v1"}
    about |= OPTIONS.get(provider, {})
    if "-5-5" in name:
        about["thinking"] = {"type": "adaptive"}
    if provider == "kimi":
        return ChatMoonshot(model=name, **about)
    return init_chat_model(name, model_provider=NAMES.get(provider, provider), **about)


def thought_in(block):
    """Its summary, or the raw reasoning, which has no place of its own in a standard block."""
    raw = block.get("extras", {}).get("content") or []
    return block.get("reasoning") or "".join(part.get("text", "") for part in raw)


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
            message = self.streamed(model) if self.streams else model.invoke(self.history)
            self.history.append(message)
            yield self.told(message)
            if not message.tool_calls:
                return
            for call in message.tool_calls:
                self.history.append(ToolMessage(self.tool["result"], tool_call_id=call["id"]))

    def streamed(self, model):
        first, *rest = model.stream(self.history)
        return sum(rest, first)

    def told(self, message):
        blocks = [one for one in message.content_blocks if one["type"] == "reasoning"]
        thinking = "\n\n".join(filter(None, map(thought_in, blocks)))
        counted = (message.usage_metadata or {}).get("output_token_details", {}).get("reasoning")
        about = message.response_metadata
        ending = about.get("finish_reason") or about.get("stop_reason") or about.get("stopReason")
        cut = ending in ("length", "max_tokens", "MAX_TOKENS")
        return answer(message.text, thinking, reasoning_tokens=counted, incomplete=cut)

    def resume(self):
        self.history = messages_from_dict(messages_to_dict(self.history))

    def keep(self, turns):
        self.history = last_turns(self.history, lambda one: one.type == "human", turns)


serve(Client)
