// What the calls of vendors.mjs have in common, here and in ../more.
import { call } from "./say.mjs";

export const prompt = "Why is the sky blue?";
export const messages = [{ role: "user", content: prompt }];
export const schema = { type: "object", properties: { city: { type: "string" }, days: { type: "integer", minimum: 3 } }, required: ["city", "days"], additionalProperties: false };
export const jsonSchema = { type: "json_schema", json_schema: { name: "trip", schema, strict: true } };
export const tools = [{ type: "function", function: { name: "weather", description: "The weather", parameters: schema } }];

// fits checks a value of the schema above.
export const fits = (v) => { if (typeof v.city !== "string" || !Number.isInteger(v.days) || v.days < 3) throw new Error(`no trip: ${JSON.stringify(v)}`); return v.city; };
// some checks that there is something, and counted.
export const some = (text, ...counts) => { if (!text || counts.some((n) => !(n > 0))) throw new Error(`nothing: ${text} ${counts}`); return String(text).slice(0, 40); };
// fails checks that a call fails so.
export const fails = async (status, words, f) => {
  const e = await f().then(() => { throw new Error("no error"); }, (e) => e);
  const said = `${e.message} ${JSON.stringify(e.error ?? e.body ?? e.data ?? "")}`;
  const got = e.status ?? e.statusCode ?? e.code;
  if (got !== status || !said.includes(words)) throw new Error(`want ${status} ${words}, got ${got} ${said}`);
  return words;
};


// pages checks that a list is read to its end.
export const pages = (all, id) => {
  const ids = new Set(all.map(id));
  if (all.length !== 35 || ids.size !== 35) throw new Error(`${all.length} entries, ${ids.size} of them different, want 35`);
  return `${all.length} entries`;
};

// asked is a plain request, for mistakes that an SDK does not let through.
export const asked = async (url, options = {}) => {
  const r = await fetch(url, options);
  throw { status: r.status, message: await r.text() };
};

// run makes the calls of one SDK: node vendors.mjs SDK URL [N]. Each call is made once; with N, the first one N times at once.
export async function run(sdks) {
  const [name, url, n] = process.argv.slice(2);
  const calls = Object.entries(await sdks[name](url.replace(/\/$/, "")));
  if (n) {
    await Promise.all(Array.from({ length: Number(n) }, () => call(name, calls[0][0], {}, async () => ({ text: await calls[0][1]() }))));
  } else {
    for (const [what, f] of calls) await call(name, what, {}, async () => ({ text: await f() }));
  }
}
