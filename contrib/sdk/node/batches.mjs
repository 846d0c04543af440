// Batches by the official SDKs: node batches.mjs openai|anthropic LINES makes one and reads its results to their end, then cancels another.
// node batches.mjs people SECONDS asks twice a second. A server that is away for a moment is asked again.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI, { toFile } from "openai";
import { call, say } from "./say.mjs";

const [what, size] = process.argv.slice(2);
const n = Number(size);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const messages = [{ role: "user", content: "Why?" }];

// until asks until there is what is wanted. Errors without a status are of the way to the server.
async function until(ask, wanted) {
  for (;;) {
    try {
      const it = await ask();
      if (wanted(it)) return it;
    } catch (e) {
      if (e.status) throw e;
    }
    await sleep(200);
  }
}

// summary is how many results there are, and of how many requests.
const summary = (ids, failed, rest) => ({ size: ids.length + failed.length + rest.length, input: new Set([...ids, ...failed, ...rest]).size, output: failed.length });

const openai = {
  client: new OpenAI({ maxRetries: 20 }),
  async create(c, lines) {
    const all = lines.map((i) => JSON.stringify({ custom_id: `p${i}`, method: "POST", url: "/v1/chat/completions", body: { model: i % 100 === 99 ? "gpt-nope" : "gpt-4o", max_tokens: 9, messages } }));
    const file = await c.files.create({ file: await toFile(Buffer.from(all.join("\n")), "prompts.jsonl"), purpose: "batch" });
    return c.batches.create({ input_file_id: file.id, endpoint: "/v1/chat/completions", completion_window: "24h" });
  },
  at: (c, id) => until(() => c.batches.retrieve(id), (b) => ["completed", "failed", "expired", "cancelled"].includes(b.status)),
  async results(c, b) {
    const lines = async (id) => (id ? (await (await until(() => c.files.content(id), () => true)).text()).trim().split("\n").map((l) => JSON.parse(l)) : []);
    const errors = await lines(b.error_file_id);
    const ids = (all) => all.map((l) => l.custom_id);
    const unserved = (l) => l.error?.code === "batch_cancelled";
    return summary(ids(await lines(b.output_file_id)), ids(errors.filter((l) => !unserved(l))), ids(errors.filter(unserved)));
  },
  status: (b) => b.status,
  some: (c, id) => until(() => c.batches.retrieve(id), (b) => b.request_counts.completed >= 10),
  cancel: (c, id) => c.batches.cancel(id),
  async list(c) {
    const all = [];
    for await (const b of c.batches.list({ limit: 1 })) all.push(b.id);
    return all.length;
  },
  remove: (c, b) => c.files.delete(b.input_file_id),
};

const anthropic = {
  client: new Anthropic({ maxRetries: 20 }),
  create: (c, lines) => c.messages.batches.create({ requests: lines.map((i) => ({ custom_id: `p${i}`, params: { model: i % 100 === 99 ? "claude-nope" : "claude-sonnet-5", max_tokens: 9, messages } })) }),
  at: (c, id) => until(() => c.messages.batches.retrieve(id), (b) => b.processing_status === "ended"),
  async results(c, b) {
    const of = { succeeded: [], errored: [], canceled: [] };
    for await (const l of await until(() => c.messages.batches.results(b.id), () => true)) of[l.result.type].push(l.custom_id);
    return summary(of.succeeded, of.errored, of.canceled);
  },
  status: (b) => b.processing_status,
  some: () => sleep(2500),
  cancel: (c, id) => c.messages.batches.cancel(id),
  async list(c) {
    const all = [];
    for await (const b of c.messages.batches.list({ limit: 1 })) all.push(b.id);
    return all.length;
  },
  remove: (c, b) => c.messages.batches.delete(b.id),
};

if (what === "people") {
  const c = new OpenAI({ maxRetries: 20 });
  const all = [];
  for (let i = 0; i < 2 * n; i++) {
    all.push(call(what, String(i), {}, async () => ({ text: (await c.chat.completions.create({ model: "gpt-4o", max_tokens: 9, messages })).choices[0].message.content })));
    await sleep(500);
  }
  await Promise.all(all);
} else {
  const { client: c, ...sdk } = { openai, anthropic }[what];
  const lines = Array.from({ length: n }, (_, i) => i);
  await call(what, "whole", {}, async () => {
    const b = await sdk.at(c, (await sdk.create(c, lines)).id);
    return { text: sdk.status(b), ...(await sdk.results(c, b)) };
  });
  await call(what, "cancelled", {}, async () => {
    const { id } = await sdk.create(c, lines);
    await sdk.some(c, id);
    await sdk.cancel(c, id);
    const b = await sdk.at(c, id);
    const listed = await sdk.list(c);
    const r = await sdk.results(c, b);
    await sdk.remove(c, b);
    if (listed !== 2) throw new Error(`${listed} batches are listed`);
    return { text: sdk.status(b), ...r };
  });
  say({ sdk: what, call: "done" });
}
