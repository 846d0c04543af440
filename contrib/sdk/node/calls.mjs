// Each call that an SDK has, once, against fakes with room for all: OPENAI and ANTHROPIC are their addresses.
import Anthropic from "@anthropic-ai/sdk";
import * as anthropicErrors from "@anthropic-ai/sdk";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import * as ai from "ai";
import OpenAI from "openai";
import * as openaiErrors from "openai";
import { call } from "./say.mjs";

const { OPENAI, ANTHROPIC } = process.env;
const prompt = "Der Himmel ist blau, 天空是蓝色的: why is that so? 🙂 function f(x) { return x * 0x2a; }";
const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };
const about = "The weather in a city";
const claude = "claude-sonnet-5";

async function plainFetch() {
  const ask = (url, headers, body) => fetch(url, { method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) });
  const messages = [{ role: "user", content: prompt }];
  const key = { authorization: "Bearer node" };
  await call("fetch", "chat", {}, async () => {
    const r = await ask(`${OPENAI}/v1/chat/completions`, key, { model: "gpt-4o", max_tokens: 50, messages });
    const { usage, choices } = await r.json();
    return { prompt, status: r.status, text: choices[0].message.content, input: usage.prompt_tokens, output: usage.completion_tokens };
  });
  await call("fetch", "chat of an older vocabulary", {}, async () => {
    const r = await ask(`${OPENAI}/v1/chat/completions`, key, { model: "gpt-4", max_tokens: 50, messages });
    const { usage, choices } = await r.json();
    return { prompt, status: r.status, text: choices[0].message.content, input: usage.prompt_tokens, output: usage.completion_tokens };
  });
  await call("fetch", "chat stream", {}, async () => {
    const r = await ask(`${OPENAI}/v1/chat/completions`, key, { model: "gpt-4o", max_tokens: 50, messages, stream: true, stream_options: { include_usage: true } });
    const events = (await r.text()).split("\n\n").filter((e) => e.startsWith("data: {")).map((e) => JSON.parse(e.slice(6)));
    const text = events.map((e) => e.choices[0]?.delta.content ?? "").join("");
    const { usage } = events.at(-1);
    return { prompt, status: r.status, text, input: usage.prompt_tokens, output: usage.completion_tokens };
  });
  await call("fetch", "messages", {}, async () => {
    const r = await ask(`${ANTHROPIC}/v1/messages`, { "x-api-key": "node", "anthropic-version": "2023-06-01" }, { model: claude, max_tokens: 50, messages });
    const { usage, content } = await r.json();
    return { status: r.status, text: content[0].text, input: usage.input_tokens, output: usage.output_tokens };
  });
}

async function openai() {
  const client = new OpenAI({ baseURL: `${OPENAI}/v1`, apiKey: "node" });
  const go = (name, f) => call("openai", name, openaiErrors, f);
  const chat = { model: "gpt-4o", max_completion_tokens: 50, messages: [{ role: "user", content: prompt }] };
  const tools = [{ type: "function", function: { name: "weather", description: about, parameters: schema } }];
  const chatted = (r) => ({ prompt, text: r.choices[0].message.content, input: r.usage.prompt_tokens, output: r.usage.completion_tokens });
  await go("chat", async () => chatted(await client.chat.completions.create(chat)));
  await go("chat stream", async () => {
    let text = "", usage;
    for await (const chunk of await client.chat.completions.create({ ...chat, stream: true, stream_options: { include_usage: true } })) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage ?? usage;
    }
    return { prompt, text, input: usage.prompt_tokens, output: usage.completion_tokens };
  });
  await go("chat with tools", async () => {
    const called = { role: "assistant", content: null, tool_calls: [{ id: "call_1", type: "function", function: { name: "weather", arguments: '{"city":"Graz"}' } }] };
    const messages = [{ role: "developer", content: "Be brief." }, ...chat.messages, called, { role: "tool", tool_call_id: "call_1", content: "rain" }];
    return { ...chatted(await client.chat.completions.create({ ...chat, tools, messages })), prompt: undefined };
  });
  await go("chat that calls", async () => {
    const r = await client.chat.completions.create({ ...chat, tools, tool_choice: "required" });
    return { ...chatted(r), prompt: undefined, text: JSON.parse(r.choices[0].message.tool_calls[0].function.arguments).city };
  });
  await go("chat stream that calls", async () => {
    const r = await client.chat.completions.stream({ ...chat, tools, tool_choice: "required", stream_options: { include_usage: true } }).finalChatCompletion();
    return { ...chatted(r), prompt: undefined, text: JSON.parse(r.choices[0].message.tool_calls[0].function.arguments).city };
  });
  await go("responses stream that calls", async () => {
    const called = [{ type: "function", name: "weather", parameters: schema, strict: true }];
    const r = await client.responses.stream({ model: "gpt-4o", input: prompt, max_output_tokens: 50, tools: called, tool_choice: { type: "function", name: "weather" } }).finalResponse();
    return { text: JSON.parse(r.output[0].arguments).city, input: r.usage.input_tokens, output: r.usage.output_tokens };
  });
  await go("responses", async () => {
    const r = await client.responses.create({ model: "gpt-4o", max_output_tokens: 50, input: prompt });
    return { prompt, text: r.output_text, input: r.usage.input_tokens, output: r.usage.output_tokens };
  });
  await go("responses stream", async () => {
    let text = "", usage;
    for await (const e of await client.responses.create({ model: "gpt-4o", max_output_tokens: 50, input: prompt, stream: true })) {
      if (e.type === "response.output_text.delta") text += e.delta;
      usage = e.response?.usage ?? usage;
    }
    return { prompt, text, input: usage.input_tokens, output: usage.output_tokens };
  });
  await go("responses with tools", async () => {
    const input = [{ role: "user", content: prompt }, { type: "function_call", call_id: "call_1", name: "weather", arguments: "{}" }, { type: "function_call_output", call_id: "call_1", output: "rain" }];
    const r = await client.responses.create({ model: "gpt-4o", max_output_tokens: 50, input, tools: [{ type: "function", name: "weather", parameters: schema, strict: true }] });
    return { text: r.output_text, input: r.usage.input_tokens, output: r.usage.output_tokens };
  });
  await go("embeddings", async () => {
    const r = await client.embeddings.create({ model: "text-embedding-3-small", input: prompt, dimensions: 256 });
    return { prompt, size: r.data[0].embedding.length, input: r.usage.prompt_tokens };
  });
  await go("moderations", async () => {
    const r = await client.moderations.create({ model: "omni-moderation-latest", input: [prompt, "again"] });
    return { size: r.results.length, text: String(r.results[0].flagged) };
  });
  await go("bad role", async () => client.chat.completions.create({ ...chat, messages: [{ role: "wizard", content: "x" }] }));
  await go("unknown model", async () => client.chat.completions.create({ ...chat, model: "gpt-nope" }));
  await go("temperature 5", async () => client.chat.completions.create({ ...chat, temperature: 5 }));
  await go("too much output", async () => client.chat.completions.create({ ...chat, max_completion_tokens: undefined, max_tokens: 40_000 }));
  await go("too much output of responses", async () => client.responses.create({ model: "gpt-4o", max_output_tokens: 40_000, input: prompt }));
  await go("no key", async () => new OpenAI({ baseURL: `${OPENAI}/v1`, apiKey: "stranger" }).chat.completions.create(chat));
}

async function anthropic() {
  const client = new Anthropic({ baseURL: ANTHROPIC, apiKey: "node" });
  const go = (name, f) => call("anthropic", name, anthropicErrors, f);
  const message = { model: claude, max_tokens: 50, messages: [{ role: "user", content: prompt }] };
  const told = (r) => ({ text: r.content[0].text, input: r.usage.input_tokens, output: r.usage.output_tokens });
  await go("messages", async () => told(await client.messages.create(message)));
  await go("messages stream", async () => told(await client.messages.stream(message).finalMessage()));
  await go("messages with tools", async () => {
    const messages = [...message.messages, { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "weather", input: { city: "Graz" } }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "rain" }] }];
    return told(await client.messages.create({ ...message, messages, system: "Be brief.", tools: [{ name: "weather", description: about, input_schema: schema }] }));
  });
  const called = { ...message, tools: [{ name: "weather", description: about, input_schema: schema }], tool_choice: { type: "any" } };
  await go("messages that call", async () => {
    const r = await client.messages.create(called);
    return { text: r.content[0].input.city, input: r.usage.input_tokens, output: r.usage.output_tokens };
  });
  await go("messages stream that calls", async () => {
    const r = await client.messages.stream(called).finalMessage();
    return { text: r.content[0].input.city, input: r.usage.input_tokens, output: r.usage.output_tokens };
  });
  await go("bad role", async () => client.messages.create({ ...message, messages: [{ role: "wizard", content: "x" }] }));
  await go("system first", async () => client.messages.create({ ...message, messages: [{ role: "system", content: "x" }] }));
  await go("unknown model", async () => client.messages.create({ ...message, model: "claude-nope" }));
  await go("temperature 5", async () => client.messages.create({ ...message, temperature: 5 }));
  await go("too much output", async () => client.messages.stream({ ...message, max_tokens: 200_000 }).finalMessage());
  await go("no key", async () => new Anthropic({ baseURL: ANTHROPIC, apiKey: "stranger" }).messages.create(message));
}

async function vercel() {
  const go = (name, f) => call("ai", name, ai, f);
  const gpt = createOpenAI({ baseURL: `${OPENAI}/v1`, apiKey: "node" });
  const claudes = createAnthropic({ baseURL: `${ANTHROPIC}/v1`, apiKey: "node" });
  const ask = (model, more) => ({ model, prompt, maxOutputTokens: 50, ...more });
  const told = (r) => ({ text: r.text, input: r.usage.inputTokens, output: r.usage.outputTokens, warnings: r.warnings?.length || undefined });
  const tools = { weather: ai.tool({ description: about, inputSchema: ai.jsonSchema(schema), execute: async () => "rain" }) };
  const streamed = async (options) => {
    let failed;
    const s = ai.streamText({ ...options, onError: ({ error }) => (failed = error) });
    let text = "";
    for await (const part of s.textStream) text += part;
    if (failed) throw failed;
    const usage = await s.usage;
    return { text, input: usage.inputTokens, output: usage.outputTokens };
  };
  await go("responses", async () => ({ prompt, ...told(await ai.generateText(ask(gpt("gpt-4o")))) }));
  await go("responses stream", async () => ({ prompt, ...(await streamed(ask(gpt("gpt-4o")))) }));
  await go("chat", async () => ({ prompt, ...told(await ai.generateText(ask(gpt.chat("gpt-4o")))) }));
  await go("chat stream", async () => ({ prompt, ...(await streamed(ask(gpt.chat("gpt-4o")))) }));
  await go("chat with tools", async () => told(await ai.generateText(ask(gpt.chat("gpt-4o"), { tools }))));
  const ran = (r) => ({ text: `${r.toolCalls[0].input.city}: ${r.toolResults[0].output}`, input: r.usage.inputTokens, output: r.usage.outputTokens });
  for (const [name, model] of [["responses", gpt("gpt-4o")], ["chat", gpt.chat("gpt-4o")], ["messages", claudes(claude)]]) {
    await go(`${name} that calls`, async () => ran(await ai.generateText(ask(model, { tools, toolChoice: "required" }))));
    await go(`${name} stream that calls`, async () => {
      const s = ai.streamText(ask(model, { tools, toolChoice: "required" }));
      await s.consumeStream();
      return ran({ toolCalls: await s.toolCalls, toolResults: await s.toolResults, usage: await s.usage });
    });
  }
  await go("embeddings", async () => {
    const r = await ai.embed({ model: gpt.embedding("text-embedding-3-small"), value: prompt });
    return { prompt, size: r.embedding.length, input: r.usage.tokens };
  });
  await go("messages", async () => told(await ai.generateText(ask(claudes(claude)))));
  await go("messages stream", async () => streamed(ask(claudes(claude))));
  await go("messages with tools", async () => told(await ai.generateText(ask(claudes(claude), { tools }))));
  await go("unknown model", async () => ai.generateText(ask(gpt("gpt-nope"))));
  await go("unknown model of messages", async () => ai.generateText(ask(claudes("claude-nope"))));
  await go("temperature 5", async () => ai.generateText(ask(gpt("gpt-4o"), { temperature: 5 })));
  await go("too much output", async () => ai.generateText(ask(gpt.chat("gpt-4o"), { maxOutputTokens: 40_000 })));
  await go("too much output, streamed", async () => streamed(ask(gpt("gpt-4o"), { maxOutputTokens: 40_000 })));
}

await Promise.all([plainFetch(), openai(), anthropic(), vercel()]);
