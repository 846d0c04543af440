// What a call came to, as a line of JSON for the test that started us.

export const say = (line) => console.log(JSON.stringify(line));

// failure is an error as its SDK throws it: its class by the names that the SDK exports, and what the server said.
export function failure(e, classes = {}) {
  const last = e.lastError ?? e; // ai's RetryError has the attempts in it
  const body = last.data?.error ?? last.error?.error ?? last.error ?? {};
  const known = Object.keys(classes).filter((name) => typeof classes[name] === "function" && e.constructor === classes[name]);
  return {
    class: known.sort((a, b) => a.length - b.length)[0] ?? e.name, status: last.status ?? last.statusCode, code: last.code ?? body.code ?? undefined,
    type: body.type, param: last.param ?? body.param ?? undefined, message: last.message, retryable: last.isRetryable,
  };
}

// call runs f and says what came of it: what f returns, or its error.
export async function call(sdk, name, classes, f) {
  const began = performance.now();
  const line = { sdk, call: name };
  try {
    Object.assign(line, await f());
  } catch (e) {
    line.error = failure(e, classes);
  }
  say({ ...line, ms: Math.round(performance.now() - began) });
}
