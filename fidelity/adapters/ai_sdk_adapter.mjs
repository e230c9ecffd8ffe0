// The AI SDK: its own tool loop, response messages passed on.
import { createAmazonBedrock } from "@ai-sdk/amazon-bedrock";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createDeepSeek } from "@ai-sdk/deepseek";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createMistral } from "@ai-sdk/mistral";
import { createMoonshotAI } from "@ai-sdk/moonshotai";
import { createOpenResponses } from "@ai-sdk/open-responses";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { createOpenRouter } from "@openrouter/ai-sdk-provider";
import { extractReasoningMiddleware, generateText, stepCountIs, streamText, tool, wrapLanguageModel } from "ai";
import { z } from "zod";
import { answer, lastTurns, serve } from "./line.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;
// https://ai-sdk.dev/docs/ai-sdk-core/reasoning and the page of each provider
const BUDGET = { type: "enabled", budgetTokens: 2000 };
const ADAPTIVE = { type: "adaptive", display: "summarized" };
const OPTIONS = {
  anthropic: { anthropic: { thinking: BUDGET } },
  bedrock: { bedrock: { reasoningConfig: BUDGET } },
  gemini: { google: { thinkingConfig: { includeThoughts: true } } },
  openai: { openai: { store: false, include: ["reasoning.encrypted_content"], reasoningSummary: "auto" } },
};
const CREATE = { anthropic: createAnthropic, deepseek: createDeepSeek, kimi: createMoonshotAI, mistral: createMistral };
const AWS = { region: "us-east-1", accessKeyId: "x", secretAccessKey: "x" };

function modelOf({ provider, model, url }, kind) {
  const about = { baseURL: `${url}/v1`, apiKey: "x" };
  if (CREATE[provider]) return CREATE[provider](about)(model);
  if (model.startsWith("gpt-oss")) return createOpenResponses({ name: "open", url: `${url}/v1/responses` })(model);
  if (provider === "openai") return createOpenAI(about).responses(model);
  if (provider === "gemini") return createGoogleGenerativeAI({ ...about, baseURL: `${url}/v1beta` })(model);
  if (provider === "bedrock") return createAmazonBedrock({ ...AWS, baseURL: url })(model);
  if (provider === "openrouter") return createOpenRouter(about)(model, { reasoning: { effort: "medium" } });
  const plain = createOpenAICompatible({ ...about, name: "compatible", includeUsage: true })(model);
  const middleware = extractReasoningMiddleware({ tagName: "think" });
  return kind === "tags" ? wrapLanguageModel({ model: plain, middleware }) : plain;
}

class Client {
  constructor(testCase) {
    Object.assign(this, { tool: testCase.tool, kind: testCase.kind, history: [] });
    this.streams = testCase.call === "streaming";
  }

  async *ask(at, text) {
    const model = modelOf(at, this.kind);
    const providerOptions = at.model.includes("-5-5") ? { anthropic: { thinking: ADAPTIVE } } : OPTIONS[at.provider];
    this.history.push({ role: "user", content: text });
    const { description, result: found } = this.tool;
    const look = tool({ description, inputSchema: z.object({ at: z.string() }), execute: async () => found });
    const options = { model, providerOptions, messages: this.history, tools: { look }, maxRetries: 0 };
    Object.assign(options, { stopWhen: stepCountIs(6), maxOutputTokens: 8000 });
    let failure;
    const onError = (error) => (failure = error.error ?? error);
    const result = this.streams ? streamText({ ...options, onError }) : await generateText(options);
    if (this.streams) await result.consumeStream({ onError });
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
