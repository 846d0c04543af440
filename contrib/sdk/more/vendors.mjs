// The calls of more official SDKs against fakes: see run in ../node/vendor.mjs.
import { asked, fails, fits, pages, prompt, run, schema, some } from "../node/vendor.mjs";

// generated is the calls of Vercel's SDK with a vendor's models.
const generated = async (model, embedding) => {
  const ai = await import("ai");
  const about = { model, prompt, maxRetries: 0 };
  const trip = ai.jsonSchema(schema, { validate: (value) => (typeof value.city === "string" && value.days >= 3 ? { success: true, value } : { success: false, error: new Error(JSON.stringify(value)) }) });
  return {
    text: async () => { const r = await ai.generateText({ ...about, maxOutputTokens: 20 }); return some(r.text, r.usage.inputTokens, r.usage.outputTokens); },
    stream: async () => { let text = ""; for await (const part of ai.streamText(about).textStream) text += part; return some(text); },
    object: async () => fits((await ai.generateText({ ...about, output: ai.Output.object({ schema: trip }) })).output),
    tool: async () => fits((await ai.generateText({ ...about, tools: { weather: ai.tool({ description: "The weather", inputSchema: trip }) }, toolChoice: "required" })).toolCalls[0].input),
    ...(embedding && { embed: async () => some((await ai.embed({ model: embedding, value: prompt, maxRetries: 0 })).embedding.length) }),
  };
};

// traded is the calls of ccxt at an exchange, with ccxt's own throttler off.
const traded = (id, symbol) => async (url) => {
  const { default: ccxt } = await import("ccxt");
  const make = (keys) => {
    const exchange = new ccxt[id]({ ...keys, enableRateLimit: false, maxRetriesOnFailure: 0 });
    const api = JSON.stringify(exchange.urls.api).replace(/https:\/\/[^/"]+/g, url);
    exchange.urls.api = JSON.parse(api);
    return exchange;
  };
  const open = make({});
  return {
    time: async () => some(await open.fetchTime()),
    markets: async () => some(Object.keys(await open.loadMarkets()).includes(symbol)),
    ticker: async () => some((await open.fetchTicker(symbol)).last),
    book: async () => some((await open.fetchOrderBook(symbol)).bids[0][0]),
    balance: async () => { const keyed = make({ apiKey: "any", secret: "c2VjcmV0", password: "any" }); keyed.setMarkets(open.markets, open.currencies); keyed.fetchCurrencies = async () => ({}); return some((await keyed.fetchBalance()).BTC.total); },
    "no key": async () => { const e = await (async () => { const stranger = make({}); stranger.checkRequiredCredentials = () => true; stranger.apiKey = ""; stranger.secret = "c2VjcmV0"; stranger.password = "any"; stranger.setMarkets(open.markets, open.currencies); await stranger.fetchBalance(); throw new Error("no error"); })().catch((e) => e); if (!(e instanceof ccxt.AuthenticationError)) throw e; return e.name; },
  };
};

const sdks = {
  "ccxt, binance": traded("binance", "BTC/USDT"),
  "ccxt, okx": traded("okx", "BTC/USDT"),
  "ccxt, bybit": traded("bybit", "BTC/USDT"),
  "ccxt, kraken": traded("kraken", "BTC/USD"),
  "ccxt, coinbaseexchange": traded("coinbaseexchange", "BTC/USD"),
  "@ai-sdk/groq": async (url) => {
    const { createGroq } = await import("@ai-sdk/groq");
    return generated(createGroq({ apiKey: "any", baseURL: `${url}/openai/v1` })("llama-3.3-70b-versatile"));
  },
  "@ai-sdk/mistral": async (url) => {
    const { createMistral } = await import("@ai-sdk/mistral");
    const mistral = createMistral({ apiKey: "any", baseURL: `${url}/v1` });
    return generated(mistral("mistral-small-latest"), mistral.embedding("mistral-embed"));
  },
  "@ai-sdk/google": async (url) => {
    const { createGoogleGenerativeAI } = await import("@ai-sdk/google");
    const google = createGoogleGenerativeAI({ apiKey: "any", baseURL: `${url}/v1beta` });
    return generated(google("gemini-2.5-flash"), google.embedding("gemini-embedding-001"));
  },
  "@ai-sdk/azure": async (url) => {
    const { createAzure } = await import("@ai-sdk/azure");
    const azure = createAzure({ apiKey: "any", baseURL: `${url}/openai/v1` });
    return generated(azure("mine"), azure.embedding("small"));
  },
  "@notionhq/client": async (url) => {
    const { Client, collectPaginatedAPI } = await import("@notionhq/client");
    const client = new Client({ auth: "any", baseUrl: url, retry: false, logLevel: "error" });
    const page = { parent: { page_id: "1" }, properties: { title: { title: [{ text: { content: "Fig" } }] } } };
    return {
      users: async () => some((await client.users.list({ page_size: 3 })).results.length),
      pages: async () => pages(await collectPaginatedAPI(client.users.list, { page_size: 10 }), (u) => u.id),
      query: async () => pages(await collectPaginatedAPI(client.dataSources.query, { data_source_id: "1", page_size: 20 }), (p) => p.id),
      search: async () => some((await client.search({ query: "fig" })).results.length),
      children: async () => some((await client.blocks.children.list({ block_id: "1" })).results.length),
      create: async () => some((await client.pages.create(page)).properties.title.title[0].text.content),
      update: async () => some((await client.pages.update({ page_id: "7", properties: {} })).id),
      upload: async () => { const f = await client.fileUploads.create({ mode: "single_part" }); return some((await client.fileUploads.send({ file_upload_id: f.id, file: { filename: "fig.txt", data: new Blob(["fig"]) } })).status); },
      "no key": () => fails(401, "API token is invalid", () => new Client({ baseUrl: url, retry: false, logLevel: "error" }).users.list()),
    };
  },
  "@slack/web-api": async (url) => {
    const { WebClient } = await import("@slack/web-api");
    const client = new WebClient("xoxb-any", { slackApiUrl: `${url}/api/`, retryConfig: { retries: 0 }, rejectRateLimitedCalls: true, logLevel: "error" });
    return {
      channels: async () => some((await client.conversations.list()).channels.length),
      pages: async () => { const all = []; for await (const page of client.paginate("users.list", { limit: 10 })) all.push(...page.members); return pages(all, (u) => u.id); },
      history: async () => some((await client.conversations.history({ channel: "C1" })).messages.length),
      post: async () => some((await client.chat.postMessage({ channel: "C1", text: "Fig" })).channel),
      upload: async () => some((await client.filesUploadV2({ file: Buffer.from("fig"), filename: "fig.txt" })).files.length),
      "no key": async () => { const e = await new WebClient(undefined, { slackApiUrl: `${url}/api/`, logLevel: "error" }).auth.test().then(() => { throw new Error("no error"); }, (e) => e); if (e.data?.error !== "not_authed") throw e; return e.data.error; },
    };
  },
  "@octokit/rest": async (url) => {
    const { Octokit } = await import("@octokit/rest");
    const quiet = { debug() {}, info() {}, warn() {}, error() {} };
    const client = new Octokit({ auth: "any", baseUrl: url, log: quiet, retry: { enabled: false } });
    const at = { owner: "fig", repo: "fig-1" };
    return {
      issues: async () => some((await client.issues.listForRepo(at)).data.length),
      pages: async () => pages(await client.paginate(client.issues.listForRepo, { ...at, per_page: 10 }), (i) => i.id),
      repos: async () => pages(await client.paginate(client.repos.listForAuthenticatedUser), (r) => r.id),
      search: async () => pages(await client.paginate(client.search.issuesAndPullRequests, { q: "fig", per_page: 20 }), (r) => r.id),
      user: async () => some((await client.users.getAuthenticated()).data.login),
      create: async () => some((await client.issues.create({ ...at, title: "Fig" })).data.title),
      upload: async () => some((await client.repos.uploadReleaseAsset({ ...at, release_id: 1, name: "fig.txt", data: "fig", baseUrl: url })).data.name),
      "no key": () => fails(401, "Requires authentication", () => new Octokit({ baseUrl: url, log: quiet }).users.getAuthenticated()),
    };
  },
  "@hubspot/api-client": async (url) => {
    const { Client } = await import("@hubspot/api-client");
    const client = new Client({ accessToken: "any", basePath: url, numberOfApiCallRetries: 0 });
    const { contacts } = client.crm;
    return {
      list: async () => some((await contacts.basicApi.getPage(3)).results.length),
      pages: async () => pages(await contacts.getAll(10), (c) => c.id),
      retrieve: async () => some((await contacts.basicApi.getById("7")).id),
      create: async () => some((await contacts.basicApi.create({ properties: { email: "fig@example.com" } })).properties.email),
      update: async () => some((await contacts.basicApi.update("7", { properties: { email: "fig@example.com" } })).id),
      search: async () => some((await contacts.searchApi.doSearch({ filterGroups: [], limit: 3, after: 0, sorts: [], properties: [] })).total),
      "no key": () => fails(401, "Authentication credentials not found", () => new Client({ basePath: url }).crm.contacts.basicApi.getPage(3)),
    };
  },
  "@shopify/admin-api-client": async (url) => {
    const { createAdminApiClient } = await import("@shopify/admin-api-client");
    const customFetchApi = (to, options) => fetch(String(to).replace(/^https?:\/\/[^/]+/, url), options);
    const client = (accessToken) => createAdminApiClient({ storeDomain: "fig.myshopify.com", apiVersion: "2026-07", accessToken, customFetchApi, retries: 0, logger: undefined });
    const list = "query ($after: String) { products(first: 10, after: $after) { edges { cursor node { ...one } } pageInfo { hasNextPage endCursor } } } fragment one on Product { id title }";
    const ask = async (query, variables) => { const r = await client("any").request(query, { variables }); if (r.errors) throw Object.assign(new Error(JSON.stringify(r.errors)), { status: r.errors.networkStatusCode }); return r; };
    return {
      query: async () => some((await ask("{ shop { name } }")).data.shop.name),
      cost: async () => some((await ask("{ products(first: 3) { nodes { id } } }")).extensions.cost.requestedQueryCost),
      pages: async () => {
        const all = [];
        for (let after; ;) {
          const { products } = (await ask(list, { after })).data;
          all.push(...products.edges.map((e) => e.node));
          if (!products.pageInfo.hasNextPage) return pages(all, (p) => p.id);
          after = products.pageInfo.endCursor;
        }
      },
      mutation: async () => { const { productCreate } = (await ask('mutation { productCreate(input: { title: "Fig" }) { product { id } userErrors { message } } }')).data; if (productCreate.userErrors.length) throw new Error("errors"); return some(productCreate.product.id); },
      "syntax error": async () => { const e = await ask("{ shop { ").then(() => { throw new Error("no error"); }, (e) => e); if (!e.message.includes("syntax error")) throw e; return "syntax error"; },
      "no key": () => fails(401, "Invalid API key or access token", () => asked(`${url}/admin/api/2026-07/graphql.json`, { method: "POST", body: "{}" })),
    };
  },
};

await run(sdks);
