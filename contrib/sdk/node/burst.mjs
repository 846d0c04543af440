// A program that asks all it has to ask at once, and thinks of no limit: node burst.mjs openai|anthropic [stream] CALLS. Where to, and with
// which key, the SDK reads from the environment, as it always does; RETRIES and TIMEOUT (ms) are for it, too. It begins when it reads a line.
import { once } from "node:events";
import Anthropic from "@anthropic-ai/sdk";
import * as anthropicErrors from "@anthropic-ai/sdk";
import OpenAI from "openai";
import * as openaiErrors from "openai";
import { call } from "./say.mjs";

const [sdk, ...rest] = process.argv.slice(2);
const calls = Number(rest.at(-1));
const streams = rest[0] === "stream";
const { RETRIES, TIMEOUT } = process.env;
const options = { ...(RETRIES && { maxRetries: Number(RETRIES) }), ...(TIMEOUT && { timeout: Number(TIMEOUT) }) }; // of a call: what openai is told of all, it does not tell the server
const size = (i) => 60 + ((37 * i) % 76); // tokens that the answer of call i may have
const messages = [{ role: "user", content: "Why is the sky blue?" }];

const openai = {
  client: () => new OpenAI(), errors: openaiErrors,
  async whole(c, i) {
    const { choices, usage } = await c.chat.completions.create({ model: "gpt-4o", max_tokens: size(i), messages }, options);
    return { text: choices[0].message.content, input: usage.prompt_tokens, output: usage.completion_tokens };
  },
  async stream(c, i) {
    let text = "", usage;
    for await (const chunk of await c.chat.completions.create({ model: "gpt-4o", max_tokens: size(i), messages, stream: true, stream_options: { include_usage: true } }, options)) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage ?? usage;
    }
    return { text, input: usage.prompt_tokens, output: usage.completion_tokens };
  },
};

const anthropic = {
  client: () => new Anthropic(), errors: anthropicErrors,
  async whole(c, i) {
    const { content, usage } = await c.messages.create({ model: "claude-sonnet-5", max_tokens: size(i), messages }, options);
    return { text: content[0].text, input: usage.input_tokens, output: usage.output_tokens };
  },
  async stream(c, i) {
    const { content, usage } = await c.messages.stream({ model: "claude-sonnet-5", max_tokens: size(i), messages }, options).finalMessage();
    return { text: content[0].text, input: usage.input_tokens, output: usage.output_tokens };
  },
};

const { client, errors, whole, stream } = { openai, anthropic }[sdk];
const c = client();
console.log("ready");
await once(process.stdin, "data");
await Promise.all(Array.from({ length: calls }, (_, i) => call(sdk, String(i), errors, () => (streams ? stream : whole)(c, i))));
