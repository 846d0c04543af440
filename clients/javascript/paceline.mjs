// Permits of `paceline daemon`: leave to send, for what a proxy cannot hold.
//
//   import { Paceline } from '@paceline/client';
//   const orders = new Paceline().limit('orders');
//   await orders.run(async (permit) => { … }, { cost: { tokens: 900 } });
//   const paced = orders.fetch();   // a fetch that waits for its turn and settles by the answer
//
// One file, no dependencies: Node 18 and later, Deno, Bun. paceline.d.ts has the types and the words.
import net from 'node:net';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';

const MOST = 1000; // permits and ids of a call
const MOST_BODY = 64 << 10; // of a refusal's body that is reported
const SOON = 5; // ms until a settlement goes by itself, if no acquire takes it along
const RETRY = 50; // ms between looks for a daemon that is away

export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail || `the daemon answers ${status}`);
    this.name = 'Refused';
    this.status = status;
    this.kind = String(problem.type || '').replace(/^.*#/, '');
    this.wait = (problem.wait_ms || 0) / 1000;
    this.ahead = problem.ahead || 0;
  }
}

export class Away extends Error {
  constructor(text, options) {
    super(text, options);
    this.name = 'Away';
  }
}

// Lost means that a connection ended before its answer.
class Lost extends Error {}

function where() {
  if (process.env.PACELINE_SOCKET) return process.env.PACELINE_SOCKET;
  const run = process.env.XDG_RUNTIME_DIR || '';
  if (path.isAbsolute(run) && fs.existsSync(run)) return path.join(run, 'paceline', 'daemon.sock');
  return path.join(process.env.TMPDIR || '/tmp', `paceline-${os.userInfo().uid}`, 'daemon.sock');
}

// Only Node reads CLOCK_MONOTONIC, which the daemon reads, too; other clocks have another zero.
const sameClock = process.platform === 'linux' && !globalThis.Deno && !globalThis.Bun;
const now = sameClock ? () => Number(process.hrtime.bigint() / 1000n) : () => performance.now() * 1000; // µs

// Connection has one call at a time. After an error it is closed: the daemon frees the place of a call
// that waited.
class Connection {
  constructor(wire) {
    if (wire.path && fs.lstatSync(wire.path).uid !== os.userInfo().uid) {
      throw Object.assign(new Error(`${wire.path} is another user's, expected one of uid ${os.userInfo().uid}`), { code: 'EPERM' });
    }
    this.socket = wire.path ? net.connect(wire.path) : net.connect(wire.port, wire.host);
    this.socket.setNoDelay(true);
    this.data = null;
    this.reached = false;
    this.socket.on('connect', () => { this.reached = true; });
    this.socket.on('data', (more) => this.read(more));
    this.socket.on('error', (error) => this.end(error));
    this.socket.on('close', () => this.end(new Lost('the daemon hung up')));
  }

  call(message, signal) {
    return new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
      this.socket.ref();
      if (signal) {
        this.signal = signal;
        this.abort = () => { this.end(signal.reason); };
        signal.addEventListener('abort', this.abort, { once: true });
      }
      this.socket.write(message);
    });
  }

  read(more) {
    const data = this.data ? Buffer.concat([this.data, more]) : more;
    const head = data.indexOf('\r\n\r\n');
    if (head < 0) {
      this.data = data;
      return;
    }
    const fields = data.latin1Slice(0, head + 2);
    const found = /\r\ncontent-length: *(\d+)\r/i.exec(fields);
    if (!found) return this.end(new Lost('an answer without a length'));
    const end = head + 4 + Number(found[1]);
    if (data.length < end) {
      this.data = data;
      return;
    }
    this.data = null;
    const resolve = this.resolve;
    this.done();
    this.socket.unref(); // a program may end while a connection is idle
    if (resolve) resolve([Number(fields.slice(9, 12)), data.utf8Slice(head + 4, end)]);
  }

  end(error) {
    this.closed = true;
    const reject = this.reject;
    this.done();
    this.socket.destroy();
    if (reject) reject(error);
  }

  done() {
    if (this.signal) this.signal.removeEventListener('abort', this.abort);
    this.signal = this.resolve = this.reject = undefined;
  }
}

const toldField = /limit|retry|quota|reset|remaining|^date$|^content-type$/i;
const secretField = /cookie|auth|key|token$|secret/i;

// Held is the permits of one acquire that are open. ids has undefined for one that has ended.
class Held {
  constructor(of, client, ids, sendBy) {
    this.of = of;
    this.client = client;
    this.ids = ids;
    this.sendBy = sendBy;
    this.began = this.renewed = now();
    this.left = ids.length;
  }

  fresh() { return now() <= this.sendBy; }

  settle(i, end) {
    const id = this.ids[i];
    if (id === undefined) return; // settled already
    this.ids[i] = undefined;
    this.#ended([id], end);
  }

  settleAll(end) {
    if (this.left === 0) return;
    const ids = this.open();
    this.ids = [];
    this.#ended(ids, end);
  }

  open() { return this.left === this.ids.length ? this.ids : this.ids.filter((id) => id !== undefined); }

  #ended(ids, end) {
    this.left -= ids.length;
    if (this.left === 0) this.of._open.delete(this);
    this.of._settled(this.client, ids, end);
  }
}

const refusal = (retryAfter) => (retryAfter === undefined ? 'refused' : { result: 'refused', retry_after: retryAfter });

// A grip is what a program has of a Held. While there is one, the permits are renewed.
export class Permit {
  #grip; #i; #actual;

  constructor(grip, i, key = '', target = '') {
    this.id = grip.held.ids[i];
    this.key = key;
    this.target = target;
    this.#grip = grip;
    this.#i = i;
  }

  fresh() { return this.#grip.held.fresh(); }
  get settled() { return this.#grip.held.ids[this.#i] === undefined; }
  actual(cost) { this.#actual = cost; return this; }
  accepted() { this.#settle('accepted'); }
  failed() { this.#settle('failed'); }
  unsent() { this.#settle('unsent'); }
  unknown() { this.#settle('unknown'); }
  refused(retryAfter) { this.#settle(refusal(retryAfter)); }

  answered(status, headers = [], body = '') {
    const end = { status, took_ms: Math.round(now() - this.#grip.held.began) / 1000 };
    const pairs = typeof headers[Symbol.iterator] === 'function' ? headers : Object.entries(headers);
    for (const [name, value] of pairs) {
      if (!toldField.test(name) || secretField.test(name)) continue;
      end.header ??= {};
      (end.header[name] ??= []).push(String(value));
    }
    if (body) end.body = body.slice(0, MOST_BODY);
    this.#settle(end);
  }

  #settle(end) {
    if (this.#actual) end = { ...(typeof end === 'string' ? { result: end } : end), actual: this.#actual };
    this.#grip.held.settle(this.#i, end);
  }
}

// Permits are those of one acquire. Its own methods settle together those that are not settled yet.
export class Permits extends Array {
  static get [Symbol.species]() { return Array; } // what map and filter return has no such methods
  #grip;

  constructor(grip, keys, targets) {
    super();
    this.#grip = grip;
    for (let i = 0; i < grip.held.ids.length; i++) this.push(new Permit(grip, i, keys?.[i], targets?.[i]));
  }

  fresh() { return this.#grip.held.fresh(); }
  accepted() { this.#grip.held.settleAll('accepted'); }
  failed() { this.#grip.held.settleAll('failed'); }
  unsent() { this.#grip.held.settleAll('unsent'); }
  unknown() { this.#grip.held.settleAll('unknown'); }
  refused(retryAfter) { this.#grip.held.settleAll(refusal(retryAfter)); }
}

// neverSent are the codes of a fetch that reached nobody: of Node and of Bun. Deno's errors have none.
const neverSent = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'ConnectionRefused'];

export class Limit {
  #of; #plain;

  constructor(of, name, client, credential) {
    this.#of = of;
    this.name = name;
    this.client = client;
    this.#plain = JSON.stringify({ limit: name, client, credential }).slice(0, -1);
  }

  async acquire(n = 1, { cost, maxWait, signal } = {}) {
    let want = this.#plain;
    if (n !== 1) want += `,"n":${JSON.stringify(n)}`;
    if (cost) want += `,"cost":${JSON.stringify(cost)}`;
    if (maxWait !== undefined) want += `,"max_wait":${JSON.stringify(maxWait)}`;
    for (;;) {
      const permits = await this.#of._acquire(want, this.client, signal);
      if (permits.fresh()) return permits;
      permits.unsent(); // this process was stopped meanwhile
    }
  }

  async run(f, wait) {
    const [permit] = await this.acquire(1, wait);
    try {
      const result = await f(permit);
      permit.accepted();
      return result;
    } finally {
      permit.unknown();
    }
  }

  fetch(inner = globalThis.fetch, wait = {}) {
    return async (input, init) => {
      const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined) ?? wait.signal;
      const [permit] = await this.acquire(1, { ...wait, signal });
      try {
        const answer = await inner(input, init);
        permit.answered(answer.status, answer.headers, answer.status >= 400 ? await beginning(answer.clone()) : '');
        return answer;
      } catch (error) {
        if (neverSent.includes(error?.cause?.code ?? error?.code)) permit.unsent();
        throw error;
      } finally {
        permit.unknown();
      }
    };
  }

  async ask(cost = {}) {
    const words = Object.entries(cost).map(([unit, n]) => `${unit}=${n}`).join(',');
    const said = await this.#of._get(`/v1/ask?${new URLSearchParams({ limit: this.name, client: this.client, cost: words })}`);
    return { wait: said.wait_ms / 1000, ahead: said.ahead };
  }
}

// beginning is the first part of a body, whose rest is left to the program.
async function beginning(answer) {
  if (!answer.body) return '';
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  while (text.length < MOST_BODY) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
  }
  reader.cancel().catch(() => {});
  return text;
}

const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

// settlements is a batch as JSON: ids that ended alike are together.
function settlements(batch) {
  const parts = [];
  for (let i = 0; i < batch.length;) {
    const end = batch[i].end;
    if (typeof end !== 'string') {
      parts.push(JSON.stringify({ ids: batch[i++].ids, ...end }));
      continue;
    }
    const ids = [];
    while (i < batch.length && batch[i].end === end) ids.push(batch[i++].ids.join('","'));
    parts.push(`{"ids":["${ids.join('","')}"],"result":"${end}"}`);
  }
  return `[${parts.join(',')}]`;
}

export class Paceline {
  #wire; #client; #daemonWait; #fields; #idle = []; #pending = new Map(); #soon; #reported = Promise.resolve(); #renews; #ttl = 10_000;
  #dropped = new FinalizationRegistry((held) => this._open.delete(held)); // what is open ends as unknown

  constructor({ socket, url, key, client = '', daemonWait = 30 } = {}) {
    this._open = new Set(); // each Held; renewed until settled or dropped
    this.#client = client;
    this.#daemonWait = daemonWait;
    let host = 'paceline';
    if (url) {
      const u = new URL(url);
      if (u.protocol !== 'http:' || !u.port) throw new TypeError(`url ${url}, expected http://127.0.0.1:PORT`);
      host = u.host;
      this.#wire = { host: u.hostname.replace(/^\[|\]$/g, ''), port: Number(u.port) };
    } else {
      this.#wire = { path: socket || where() };
    }
    this.#fields = `Host: ${host}\r\n${key ? `Authorization: Bearer ${key}\r\n` : ''}`;
  }

  limit(name, client = this.#client, credential = undefined) { return new Limit(this, name, client, credential); }

  limits() { return this._get('/v1/limits'); }

  // A report is under way before its answer comes: whoever flushes meanwhile waits for it, too.
  flush() {
    clearTimeout(this.#soon);
    this.#soon = undefined;
    this.#reported = this.#reported.then(() => this.#report());
    return this.#reported;
  }

  async #report() {
    for (const client of [...this.#pending.keys()]) {
      for (let batch = this.#take(client); batch.length > 0; batch = this.#take(client)) {
        try {
          await this.#once(this.#post(`/v1/settle?client=${encodeURIComponent(client)}`, settlements(batch)));
        } catch {
          return; // the daemon takes them as unknown
        }
      }
    }
  }

  close() {
    clearTimeout(this.#soon);
    clearInterval(this.#renews);
    for (const c of this.#idle) c.end();
    this.#idle = [];
  }

  #post(to, body) {
    return `POST ${to} HTTP/1.1\r\n${this.#fields}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  }

  _raw(to, body, signal) { return this.#call(this.#post(to, body), signal); }

  _get(to) {
    return this.#call(`GET ${to} HTTP/1.1\r\n${this.#fields}\r\n`).then(([status, body]) => this.#answer(status, body));
  }

  async _acquire(want, client, signal) {
    signal?.throwIfAborted();
    const batch = this.#take(client);
    const message = batch.length > 0 ? `${want},"settle":${settlements(batch)}}` : `${want}}`;
    const began = now();
    let said;
    try {
      said = this.#answer(...await this._raw('/v1/acquire', message, signal));
    } catch (error) {
      if (!(error instanceof Refused)) for (const { ids, end } of batch) this._settled(client, ids, end);
      throw error;
    }
    const same = sameClock && this.#wire.path;
    // From before the call, it is never too late.
    const sendBy = same ? said.send_by / 1000 : began + (said.waited_ms + said.send_within_ms) * 1000;
    this.#ttl = said.ttl_ms;
    if (!this.#renews) {
      this.#renews = setInterval(() => this.#renew(), this.#ttl / 4);
      this.#renews.unref?.();
    }
    const held = new Held(this, client, said.permits, sendBy), grip = { held };
    this._open.add(held);
    this.#dropped.register(grip, held);
    return new Permits(grip, said.keys, said.targets);
  }

  _settled(client, ids, end) {
    const list = this.#pending.get(client);
    if (list) list.push({ ids, end });
    else this.#pending.set(client, [{ ids, end }]);
    this.#soon ??= setTimeout(() => { this.flush(); }, SOON);
  }

  #take(client) {
    const list = this.#pending.get(client);
    if (!list) return [];
    let n = 0, room = MOST;
    while (n < list.length && list[n].ids.length <= room) room -= list[n++].ids.length;
    if (n < list.length) return list.splice(0, n);
    this.#pending.delete(client);
    return list;
  }

  async #renew() {
    const old = new Map();
    for (const held of this._open) {
      if (now() - held.renewed < this.#ttl * 250) continue; // µs of a quarter
      if (!old.has(held.client)) old.set(held.client, []);
      old.get(held.client).push(...held.open().map((id) => [id, held]));
    }
    for (const [client, all] of old) {
      for (let i = 0; i < all.length; i += MOST) {
        const part = all.slice(i, i + MOST);
        try {
          await this.#once(this.#post(`/v1/renew?client=${encodeURIComponent(client)}`, JSON.stringify(part.map(([id]) => id))));
        } catch {
          return;
        }
        for (const [, held] of part) held.renewed = now();
      }
    }
  }

  #answer(status, body) {
    let said;
    try {
      said = JSON.parse(body);
    } catch {
      said = { detail: body.trim() };
    }
    if (status !== 200) throw new Refused(status, said);
    return said;
  }

  // A call without a wait for the daemon.
  async #once(message, signal) {
    const c = this.#idle.pop() ?? new Connection(this.#wire);
    try {
      return await c.call(message, signal);
    } catch (error) {
      if (error && typeof error === 'object') seen.set(error, c.reached);
      throw error;
    } finally {
      if (!c.closed) this.#idle.push(c);
    }
  }

  // A call that waits for a daemon that is away.
  async #call(message, signal) {
    for (let from = Date.now(); ;) {
      let failed;
      try {
        const [status, body] = await this.#once(message, signal);
        if (status !== 503 || !body.includes('#stopping')) return [status, body];
        failed = new Lost('the daemon is stopping');
        from = Date.now();
      } catch (error) {
        signal?.throwIfAborted();
        if (!(error instanceof Lost) && !['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'EAGAIN'].includes(error?.code)) throw error;
        failed = error;
        if (seen.get(error)) from = Date.now();
      }
      if (Date.now() - from >= this.#daemonWait * 1000) {
        throw new Away(`the daemon is away for ${this.#daemonWait} s, and nothing goes without a permit: ${failed.message}`,
          { cause: failed });
      }
      await sleep(RETRY);
      signal?.throwIfAborted();
    }
  }
}

const seen = new WeakMap(); // errors of connections that had reached the daemon
