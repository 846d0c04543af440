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
