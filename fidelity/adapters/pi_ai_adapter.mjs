// pi-ai: complete() over a context that can change its model.
import { completeSimple, getModel } from "@earendil-works/pi-ai/compat";
import { answer, lastTurns, NotClaimed, serve } from "./line.mjs";

const APIS = {
  "openai-chat": "openai-completions",
  "openai-responses": "openai-responses",
  anthropic: "anthropic-messages",
  gemini: "google-generative-ai",
  "bedrock-converse": "bedrock-converse-stream",
};
const PROVIDERS = { bedrock: "amazon-bedrock", gemini: "google", kimi: "moonshotai", compatible: "acme" };

// https://github.com/earendil-works/pi/tree/main/packages/ai: a model of its list, or a custom one
function modelOf({ provider, dialect, model, url }) {
  const version = { "openai-chat": "/v1", "openai-responses": "/v1", gemini: "/v1beta" }[dialect] ?? "";
  const name = PROVIDERS[provider] ?? provider;
  const api = provider === "mistral" ? "mistral-conversations" : APIS[dialect];
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const known = getModel(name, model);
  const about = { id: model, name: model, api, provider: name, reasoning: true, input: ["text"], cost };
  const size = { contextWindow: 200000, maxTokens: 32000 };
  const baseUrl = url + (provider === "mistral" ? "" : version);
  return { ...about, ...size, ...(known?.api === api ? known : {}), baseUrl };
}

class Client {
  constructor(testCase) {
    if (testCase.kind === "tags") throw new NotClaimed("returns the content as the server sent it");
    this.tool = testCase.tool;
    this.streams = testCase.call === "streaming";
    this.messages = [];
  }

  async *ask(at, text) {
    const model = modelOf(at);
    const { name, description, parameters, result } = this.tool;
    const options = { apiKey: "x", reasoning: "medium", maxTokens: 20000, maxRetries: 0 };
    this.messages.push({ role: "user", content: text, timestamp: Date.now() });
    for (;;) {
      const context = { messages: this.messages, tools: [{ name, description, parameters }] };
      const message = await completeSimple(model, context, options);
      this.messages.push(message);
      const parts = (type) => message.content.filter((part) => part.type === type);
      const thinking = parts("thinking").map((part) => part.thinking).join("\n\n");
      const said = parts("text").map((part) => part.text).join("");
      const broken = ["error", "aborted", "length"].includes(message.stopReason);
      const tokens = message.usage?.reasoning ?? null;
      const more = { reasoningTokens: tokens, incomplete: broken };
      if (message.stopReason === "error") more.error = (message.errorMessage ?? "?").split("\n")[0];
      yield answer(said, thinking, more);
      const calls = parts("toolCall");
      if (broken || !calls.length) return;
      for (const call of calls) {
        const content = [{ type: "text", text: result }];
        const about = { toolCallId: call.id, toolName: call.name, isError: false, timestamp: Date.now() };
        this.messages.push({ role: "toolResult", content, ...about });
      }
    }
  }

  resume() {
    this.messages = JSON.parse(JSON.stringify(this.messages));
  }

  keep(turns) {
    this.messages = lastTurns(this.messages, (one) => one.role === "user", turns);
  }
}

serve(Client);
