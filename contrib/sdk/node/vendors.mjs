// The calls of official SDKs against fakes: see run in vendor.mjs.
import { asked, fails, fits, jsonSchema, messages, pages, prompt, run, schema, some, tools } from "./vendor.mjs";

// openAIShaped is the calls of an SDK that has OpenAI's shape.
const openAIShaped = (client, model) => ({
  chat: async () => { const r = await client.chat.completions.create({ model, messages, max_tokens: 20 }); return some(r.choices[0].message.content, r.usage.prompt_tokens, r.usage.completion_tokens); },
  stream: async () => { let text = ""; for await (const c of await client.chat.completions.create({ model, messages, stream: true })) text += c.choices[0]?.delta?.content ?? ""; return some(text); },
  "json schema": async () => { const r = await client.chat.completions.create({ model, messages, response_format: jsonSchema }); return fits(JSON.parse(r.choices[0].message.content)); },
  "json object": async () => { const r = await client.chat.completions.create({ model, messages, response_format: { type: "json_object" } }); return some(Object.keys(JSON.parse(r.choices[0].message.content))[0]); },
  tool: async () => { const r = await client.chat.completions.create({ model, messages, tools, tool_choice: "required" }); return fits(JSON.parse(r.choices[0].message.tool_calls[0].function.arguments)); },
});

const sdks = {
  "groq-sdk": async (url) => {
    const { default: Groq } = await import("groq-sdk");
    const model = "llama-3.3-70b-versatile";
    const client = new Groq({ apiKey: "gsk_any", baseURL: url, maxRetries: 0 });
    return {
      ...openAIShaped(client, model),
      models: async () => some((await client.models.list()).data[0].id),
      model: async () => some((await client.models.retrieve(model)).id),
      "no key": () => fails(401, "Invalid API Key", () => new Groq({ apiKey: "", baseURL: url, maxRetries: 0, defaultHeaders: { Authorization: null } }).models.list()),
      "no messages": () => fails(400, "messages", () => client.chat.completions.create({ model })),
    };
  },
  "openai, of Azure": async (url) => {
    const { AzureOpenAI, OpenAI } = await import("openai");
    const apiVersion = "2024-10-21";
    const client = new AzureOpenAI({ endpoint: url, apiKey: "any", apiVersion, deployment: "mine", maxRetries: 0 });
    const newer = new OpenAI({ apiKey: "any", baseURL: `${url}/openai/v1`, maxRetries: 0 });
    return {
      ...openAIShaped(client, "mine"),
      embeddings: async () => some((await new AzureOpenAI({ endpoint: url, apiKey: "any", apiVersion, deployment: "small" }).embeddings.create({ model: "small", input: prompt })).data[0].embedding.length),
      "responses of v1": async () => some((await newer.responses.create({ model: "mine", input: prompt, max_output_tokens: 20 })).output_text),
      "models of v1": async () => some((await newer.models.list()).data[0].id),
      "no key": () => fails(401, "Access denied due to invalid subscription key", () => asked(`${url}/openai/deployments/mine/chat/completions?api-version=${apiVersion}`, { method: "POST", body: JSON.stringify({ messages }) })),
    };
  },
  "@mistralai/mistralai": async (url) => {
    const { Mistral } = await import("@mistralai/mistralai");
    const model = "mistral-small-latest";
    const client = new Mistral({ apiKey: "any", serverURL: url, retryConfig: { strategy: "none" } });
    return {
      chat: async () => { const r = await client.chat.complete({ model, messages, maxTokens: 20 }); return some(r.choices[0].message.content, r.usage.promptTokens, r.usage.completionTokens); },
      stream: async () => { let text = "", usage; for await (const e of await client.chat.stream({ model, messages })) { text += e.data.choices[0].delta.content; usage = e.data.usage ?? usage; } return some(text, usage.completionTokens); },
      "json schema": async () => { const r = await client.chat.complete({ model, messages, responseFormat: { type: "json_schema", jsonSchema: { name: "trip", schemaDefinition: schema } } }); return fits(JSON.parse(r.choices[0].message.content)); },
      tool: async () => { const r = await client.chat.complete({ model, messages, tools, toolChoice: "any" }); return fits(JSON.parse(r.choices[0].message.toolCalls[0].function.arguments)); },
      embeddings: async () => some((await client.embeddings.create({ model: "mistral-embed", inputs: [prompt, "again"] })).data[1].embedding.length),
      models: async () => some((await client.models.list()).data[0].id),
      model: async () => some((await client.models.retrieve({ modelId: model })).id),
      "no key": () => fails(401, "Unauthorized", () => new Mistral({ serverURL: url }).models.list()),
      "no messages": () => fails(422, "Field required", () => asked(`${url}/v1/chat/completions`, { method: "POST", headers: { authorization: "Bearer any" }, body: JSON.stringify({ model }) })),
    };
  },
  "@google/genai": async (url) => {
    const { GoogleGenAI } = await import("@google/genai");
    const model = "gemini-2.5-flash";
    const client = new GoogleGenAI({ apiKey: "any", httpOptions: { baseUrl: url } });
    const config = { responseMimeType: "application/json", responseJsonSchema: schema };
    return {
      generate: async () => { const r = await client.models.generateContent({ model, contents: prompt, config: { maxOutputTokens: 20 } }); return some(r.text, r.usageMetadata.promptTokenCount, r.usageMetadata.candidatesTokenCount); },
      stream: async () => { let text = ""; for await (const c of await client.models.generateContentStream({ model, contents: prompt })) text += c.text; return some(text); },
      "json schema": async () => fits(JSON.parse((await client.models.generateContent({ model, contents: prompt, config })).text)),
      tool: async () => {
        const config = { tools: [{ functionDeclarations: [{ name: "weather", parametersJsonSchema: schema }] }], toolConfig: { functionCallingConfig: { mode: "ANY" } } };
        return fits((await client.models.generateContent({ model, contents: prompt, config })).functionCalls[0].args);
      },
      "count tokens": async () => some((await client.models.countTokens({ model, contents: prompt })).totalTokens),
      embed: async () => some((await client.models.embedContent({ model: "gemini-embedding-001", contents: [prompt, "again"] })).embeddings[1].values.length),
      models: async () => { const names = []; for await (const m of await client.models.list({ config: { pageSize: 2 } })) names.push(m.name); if (names.length < 4) throw new Error(`${names}`); return names[0]; },
      model: async () => some((await client.models.get({ model })).name),
      "no key": () => fails(403, "unregistered callers", () => asked(`${url}/v1beta/models`)),
      "no contents": () => fails(400, "contents is not specified", () => asked(`${url}/v1beta/models/${model}:generateContent?key=any`, { method: "POST", body: "{}" })),
    };
  },
  openai: async (url) => {
    const { OpenAI, toFile } = await import("openai");
    const { zodResponseFormat, zodTextFormat } = await import("openai/helpers/zod");
    const { z } = await import("zod");
    const model = "gpt-4o";
    const client = new OpenAI({ apiKey: "any", baseURL: `${url}/v1`, maxRetries: 0 });
    const trip = z.object({ city: z.string().min(5), days: z.number().int().min(3), tags: z.array(z.enum(["sea", "snow"])).min(2), next: z.object({ on: z.iso.date() }).nullable() });
    const line = (n, more) => JSON.stringify({ custom_id: `n${n}`, method: "POST", url: "/v1/chat/completions", body: { model, max_tokens: 20, messages, ...more } });
    const upload = async (lines) => client.files.create({ purpose: "batch", file: await toFile(Buffer.from(lines.join("\n")), "lines.jsonl") });
    const batch = async (lines) => client.batches.create({ input_file_id: (await upload(lines)).id, endpoint: "/v1/chat/completions", completion_window: "24h" });
    const ended = async (b) => { for (;;) { const now = await client.batches.retrieve(b.id); if (now.completed_at ?? now.cancelled_at ?? now.failed_at) return now; await new Promise((r) => setTimeout(r, 30)); } };
    const lines = async (id) => (await (await client.files.content(id)).text()).trim().split("\n").map((l) => JSON.parse(l));
    return {
      ...openAIShaped(client, model),
      zod: async () => some((await client.chat.completions.parse({ model, messages, response_format: zodResponseFormat(trip, "trip") })).choices[0].message.parsed.tags.length),
      "zod, streamed": async () => some((await client.chat.completions.stream({ model, messages, response_format: zodResponseFormat(trip, "trip") }).finalChatCompletion()).choices[0].message.parsed.city),
      "zod of responses": async () => some((await client.responses.parse({ model, input: prompt, text: { format: zodTextFormat(trip, "trip") } })).output_parsed.days),
      models: async () => { const names = []; for await (const m of await client.models.list()) names.push(m.id); return some(names.find((n) => n === model)); },
      "no such model": () => fails(404, "does not exist", () => client.models.retrieve("gpt-nope")),
      files: async () => {
        const f = await upload(["fig"]);
        const got = await client.files.retrieve(f.id), names = [];
        for await (const one of await client.files.list({ limit: 1 })) names.push(one.id);
        if (!names.includes(f.id) || (await (await client.files.content(f.id)).text()) !== "fig" || got.bytes !== 3) throw new Error(JSON.stringify(got));
        await client.files.delete(f.id);
        return fails(404, "No such File object", () => client.files.retrieve(f.id));
      },
      batch: async () => {
        const b = await ended(await batch([...Array(12).keys()].map((n) => line(n, n === 7 && { temperature: 5 }))));
        const [served, failed] = [await lines(b.output_file_id), await lines(b.error_file_id)];
        if (b.status !== "completed" || served.length !== 11 || b.request_counts.failed !== 1 || failed[0].custom_id !== "n7" || failed[0].response.status_code !== 400) throw new Error(JSON.stringify(b));
        return some(served[0].response.body.choices[0].message.content, served[0].response.body.usage.prompt_tokens);
      },
      "batch, canceled": async () => {
        const b = await batch([...Array(500).keys()].map((n) => line(n)));
        await client.batches.cancel(b.id);
        const now = await ended(b);
        const kept = await lines(now.error_file_id);
        if (now.status !== "cancelled" || kept.at(-1).error.code !== "batch_cancelled" || now.request_counts.total !== 500) throw new Error(JSON.stringify(now));
        return now.status;
      },
      "batch of mistakes": async () => { const now = await ended(await batch([line(1), line(1), "{"])); if (now.status !== "failed" || now.errors.data.map((e) => e.line).join() !== "2,3") throw new Error(JSON.stringify(now)); return now.errors.data[0].code; },
      batches: async () => { const ids = []; for await (const b of await client.batches.list({ limit: 2 })) ids.push(b.id); return some(ids.length >= 3 && ids.length); },
      "no key": () => fails(401, "You didn't provide an API key", () => asked(`${url}/v1/models`)),
    };
  },
  "@anthropic-ai/sdk": async (url) => {
    const { default: Anthropic } = await import("@anthropic-ai/sdk");
    const model = "claude-sonnet-5";
    const client = new Anthropic({ apiKey: "any", baseURL: url, maxRetries: 0 });
    const message = { model, max_tokens: 20, messages };
    const { batches } = client.messages;
    const ended = async (b) => { for (;;) { const now = await batches.retrieve(b.id); if (now.processing_status === "ended") return now; await new Promise((r) => setTimeout(r, 30)); } };
    const results = async (b) => { const all = []; for await (const r of await batches.results(b.id)) all.push(r); return all; };
    return {
      message: async () => { const r = await client.messages.create(message); return some(r.content[0].text, r.usage.input_tokens, r.usage.output_tokens); },
      stream: async () => some((await client.messages.stream(message).finalMessage()).content[0].text),
      "json schema": async () => fits(JSON.parse((await client.messages.create({ ...message, max_tokens: 99, output_config: { format: { type: "json_schema", schema } } })).content[0].text)),
      tool: async () => fits((await client.messages.create({ ...message, tools: [{ name: "weather", input_schema: schema }], tool_choice: { type: "any" } })).content[0].input),
      "count tokens": async () => some((await client.messages.countTokens({ model, messages })).input_tokens),
      models: async () => { const names = []; for await (const m of await client.models.list({ limit: 5 })) names.push(m.id); return some(names.find((n) => n === model)); },
      batch: async () => {
        const b = await ended(await batches.create({ requests: [...Array(12).keys()].map((n) => ({ custom_id: `n${n}`, params: n === 7 ? { ...message, temperature: 5 } : message })) }));
        const all = await results(b);
        if (b.request_counts.succeeded !== 11 || all[7].result.type !== "errored" || all.length !== 12) throw new Error(JSON.stringify(b));
        return some(all[0].result.message.content[0].text, all[0].result.message.usage.output_tokens);
      },
      "batch, canceled": async () => {
        const b = await batches.create({ requests: [...Array(500).keys()].map((n) => ({ custom_id: `n${n}`, params: message })) });
        await batches.cancel(b.id);
        const now = await ended(b);
        if (now.request_counts.canceled < 1 || (await results(b)).at(-1).result.type !== "canceled") throw new Error(JSON.stringify(now));
        return (await batches.delete(b.id)).type;
      },
      batches: async () => { const ids = []; for await (const b of await batches.list({ limit: 1 })) ids.push(b.id); return some(ids.length); },
      "no key": () => fails(401, "x-api-key", () => asked(`${url}/v1/models`)),
    };
  },
  stripe: async (url) => {
    const { default: Stripe } = await import("stripe");
    const { hostname: host, port } = new URL(url);
    const client = new Stripe("sk_test_any", { host, port, protocol: "http", maxNetworkRetries: 0, telemetry: false });
    return {
      list: async () => some((await client.customers.list({ limit: 3 })).data.length),
      pages: async () => pages(await client.customers.list({ limit: 10 }).autoPagingToArray({ limit: 100 }), (c) => c.id),
      retrieve: async () => some((await client.customers.retrieve("cus_000000000000000000000001")).id),
      create: async () => { const c = await client.customers.create({ email: "fig@example.com" }); if (c.email !== "fig@example.com") throw new Error(JSON.stringify(c)); return c.id; },
      update: async () => some((await client.customers.update("cus_000000000000000000000001", { name: "Fig" })).name),
      del: async () => some((await client.customers.del("cus_000000000000000000000001")).deleted),
      pay: async () => some((await client.paymentIntents.create({ amount: 100, currency: "eur" })).amount),
      upload: async () => some((await client.files.create({ purpose: "dispute_evidence", file: { data: Buffer.from("fig"), name: "fig.png", type: "image/png" } })).id),
      "no such customer": () => fails(404, "No such customer: 'cus_0'", () => client.customers.retrieve("cus_0")),
      "no key": () => fails(401, "You did not provide an API key", () => asked(`${url}/v1/customers`)),
    };
  },
};

await run(sdks);
