// What each SDK's own retries do at a limit: 20 calls at once against fakes that let 5 a second through. OPENAI, ANTHROPIC,
// GROQ and GEMINI are their addresses.
import Anthropic from "@anthropic-ai/sdk";
import * as anthropicErrors from "@anthropic-ai/sdk";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import * as ai from "ai";
import OpenAI from "openai";
import * as openaiErrors from "openai";
import { call } from "./say.mjs";

const { OPENAI, ANTHROPIC, GROQ, GEMINI } = process.env;
const messages = [{ role: "user", content: "Why?" }];

// at makes n calls at once. Each SDK has a model of its own, and so a limit of its own.
const at = (n, sdk, name, classes, f) => Promise.all(Array.from({ length: n }, () => call(sdk, name, classes, async () => { await f(); return {}; })));

const openai = new OpenAI({ baseURL: `${OPENAI}/v1`, apiKey: "node" });
const anthropic = new Anthropic({ baseURL: ANTHROPIC, apiKey: "node" });
const gpt = createOpenAI({ baseURL: `${OPENAI}/v1`, apiKey: "node" });
const claudes = createAnthropic({ baseURL: `${ANTHROPIC}/v1`, apiKey: "node" });
const groq = new OpenAI({ baseURL: `${GROQ}/openai/v1`, apiKey: "node", maxRetries: 0 });
const gemini = new OpenAI({ baseURL: `${GEMINI}/v1beta/openai`, apiKey: "node", maxRetries: 0 });

await Promise.all([
  at(20, "openai", "gpt-4o", openaiErrors, () => openai.chat.completions.create({ model: "gpt-4o", max_tokens: 20, messages })),
  at(20, "openai", "gpt-4.1", openaiErrors, () => openai.chat.completions.create({ model: "gpt-4.1", max_tokens: 20, messages }, { maxRetries: 0 })),
  at(20, "ai", "gpt-4o-mini", ai, () => ai.generateText({ model: gpt("gpt-4o-mini"), prompt: "Why?", maxOutputTokens: 20 })),
  at(20, "anthropic", "claude-sonnet-5", anthropicErrors, () => anthropic.messages.create({ model: "claude-sonnet-5", max_tokens: 20, messages })),
  at(20, "anthropic", "claude-opus-5", anthropicErrors, () => anthropic.messages.create({ model: "claude-opus-5", max_tokens: 20, messages }, { maxRetries: 0 })),
  at(20, "ai", "claude-haiku-5-5", ai, () => ai.generateText({ model: claudes("claude-haiku-5-5"), prompt: "Why?", maxOutputTokens: 20 })),
  at(8, "openai", "groq", openaiErrors, () => groq.chat.completions.create({ model: "llama-3.3-70b-versatile", max_tokens: 20, messages })),
  at(8, "openai", "gemini", openaiErrors, () => gemini.chat.completions.create({ model: "gemini-2.5-flash", max_tokens: 20, messages })),
]);
