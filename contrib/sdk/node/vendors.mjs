// The calls of one official SDK against a fake: node vendors.mjs SDK URL [N]. Each call of the list is made once; with N, the first
// one N times at once.
import { call, say } from "./say.mjs";

const prompt = "Why is the sky blue?";
const messages = [{ role: "user", content: prompt }];
const schema = { type: "object", properties: { city: { type: "string" }, days: { type: "integer", minimum: 3 } }, required: ["city", "days"], additionalProperties: false };
const jsonSchema = { type: "json_schema", json_schema: { name: "trip", schema, strict: true } };
const tools = [{ type: "function", function: { name: "weather", description: "The weather", parameters: schema } }];

// fits checks a value of the schema above.
const fits = (v) => { if (typeof v.city !== "string" || !Number.isInteger(v.days) || v.days < 3) throw new Error(`no trip: ${JSON.stringify(v)}`); return v.city; };
// some checks that there is something, and counted.
const some = (text, ...counts) => { if (!text || counts.some((n) => !(n > 0))) throw new Error(`nothing: ${text} ${counts}`); return String(text).slice(0, 40); };
// fails checks that a call fails so.
const fails = async (status, words, f) => {
  const e = await f().then(() => { throw new Error("no error"); }, (e) => e);
  const said = `${e.message} ${JSON.stringify(e.error ?? e.body ?? e.data ?? "")}`;
  const got = e.status ?? e.statusCode ?? e.code;
  if (got !== status || !said.includes(words)) throw new Error(`want ${status} ${words}, got ${got} ${said}`);
  return words;
};

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
      "no key": () => fails(401, "Access denied due to invalid subscription key", async () => { const r = await fetch(`${url}/openai/deployments/mine/chat/completions?api-version=${apiVersion}`, { method: "POST", body: JSON.stringify({ messages }) }); throw { status: r.status, message: await r.text() }; }),
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
      "no messages": () => fails(422, "Field required", () => fetch(`${url}/v1/chat/completions`, { method: "POST", headers: { authorization: "Bearer any" }, body: JSON.stringify({ model }) }).then(async (r) => { throw { status: r.status, message: await r.text() }; })),
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
      "no key": () => fails(403, "unregistered callers", async () => { const r = await fetch(`${url}/v1beta/models`); throw { status: r.status, message: await r.text() }; }),
      "no contents": () => fails(400, "contents is not specified", async () => { const r = await fetch(`${url}/v1beta/models/${model}:generateContent?key=any`, { method: "POST", body: "{}" }); throw { status: r.status, message: await r.text() }; }),
    };
  },
};

const [name, url, n] = process.argv.slice(2);
const calls = Object.entries(await sdks[name](url.replace(/\/$/, "")));
if (n) {
  await Promise.all(Array.from({ length: Number(n) }, () => call(name, calls[0][0], {}, async () => ({ text: await calls[0][1]() }))));
} else {
  for (const [what, f] of calls) await call(name, what, {}, async () => ({ text: await f() }));
}
