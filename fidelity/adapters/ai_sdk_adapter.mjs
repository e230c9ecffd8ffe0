// The AI SDK: its own tool loop, response messages passed on.
import { createAmazonBedrock } from "@ai-sdk/amazon-bedrock";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createDeepSeek } from "@ai-sdk/deepseek";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createMistral } from "@ai-sdk/mistral";
import { createMoonshotAI } from "@ai-sdk/moonshotai";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { createOpenRouter } from "@openrouter/ai-sdk-provider";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { answer, lastTurns, NotClaimed, serve } from "./line.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;
const BUDGET = { type: "enabled", budgetTokens: 2000 };

function modelOf({ provider, model, url }) {
  const about = { baseURL: `${url}/v1`, apiKey: "x" };
  const aws = { baseURL: url, region: "us-east-1", accessKeyId: "x", secretAccessKey: "x" };
  const adaptive = { type: "adaptive", display: "summarized" };
  switch (provider) {
    case "anthropic":
      return [createAnthropic(about)(model), { anthropic: { thinking: model.includes("-5-5") ? adaptive : BUDGET } }];
    case "openai":
      return [
        createOpenAI(about).responses(model),
        { openai: { store: false, include: ["reasoning.encrypted_content"], reasoningSummary: "auto" } },
      ];
    case "gemini":
      return [
        createGoogleGenerativeAI({ ...about, baseURL: `${url}/v1beta` })(model),
        { google: { thinkingConfig: { includeThoughts: true } } },
      ];
    case "bedrock":
      return [createAmazonBedrock(aws)(model), { bedrock: { reasoningConfig: BUDGET } }];
    case "openrouter":
      return [createOpenRouter(about)(model, { reasoning: { effort: "medium" } }), {}];
    case "deepseek":
      return [createDeepSeek(about)(model), {}];
    case "kimi":
      return [createMoonshotAI(about)(model), {}];
    case "mistral":
      return [createMistral(about)(model), {}];
  }
  return [createOpenAICompatible({ ...about, name: "compatible", includeUsage: true })(model), {}];
}

class Client {
  constructor(testCase) {
    if (testCase.kind === "tags") throw new NotClaimed("separates tags only with its extractReasoningMiddleware");
    this.tool = testCase.tool;
    this.streams = testCase.call === "streaming";
    this.history = [];
  }

  async *ask(at, text) {
    const [model, providerOptions] = modelOf(at);
    this.history.push({ role: "user", content: text });
    const look = tool({
      description: this.tool.description,
      inputSchema: z.object({ at: z.string() }),
      execute: async () => this.tool.result,
    });
    const options = { model, providerOptions, messages: this.history, tools: { look }, maxRetries: 0 };
    Object.assign(options, { stopWhen: stepCountIs(6), maxOutputTokens: 8000 });
    let failure;
    const result = this.streams
      ? streamText({ ...options, onError: ({ error }) => (failure = error) })
      : await generateText(options);
    if (this.streams) await result.consumeStream({ onError: (error) => (failure = error) });
    if (failure) throw failure;
    const steps = await result.steps;
    this.history.push(...(await result.responseMessages));
    for (const step of steps) {
      const thinking = step.reasoning.map((part) => part.text).join("\n\n");
      const reasoningTokens = step.usage.outputTokenDetails?.reasoningTokens ?? step.usage.reasoningTokens;
      const incomplete = ["length", "error", "other", "unknown"].includes(step.finishReason);
      yield answer(step.text, thinking, { reasoningTokens: reasoningTokens ?? null, incomplete });
    }
  }

  resume() {
    this.history = JSON.parse(JSON.stringify(this.history));
  }

  keep(turns) {
    this.history = lastTurns(this.history, (one) => one.role === "user", turns);
  }
}

serve(Client);
