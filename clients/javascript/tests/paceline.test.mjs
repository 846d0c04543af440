// Tests against a real daemon: go test ./cmd/paceline -run TestJavaScript. PACELINE_SOCKET is its socket.
import assert from 'node:assert/strict';
import http from 'node:http';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Away, Paceline, Refused } from '../paceline.mjs';

// counts are how the requests of a client have ended.
async function counts(p, client = p.limit('').client) {
  await p.flush();
  const said = ((await p.limits()).clients ?? []).find((c) => c.client === client) ?? {};
  return Object.fromEntries(['accepted', 'limited', 'failed', 'unknown', 'unsent'].map((k) => [k, said[k] ?? 0]));
}

async function more(p, before) {
  const now = await counts(p);
  return Object.fromEntries(Object.entries(now).map(([k, n]) => [k, n - before[k]]).filter(([, n]) => n !== 0));
}

async function until(f) {
  for (let end = Date.now() + 30_000; !await f();) {
    assert.ok(Date.now() < end, 'it did not come');
    await sleep(5);
  }
}

test('run settles by how it ends', async () => {
  const p = new Paceline({ client: 'run' });
  const fast = p.limit('fast'), before = await counts(p);
  assert.equal(await fast.run((permit) => { assert.ok(permit.fresh()); return 7; }), 7);
  await assert.rejects(fast.run(() => { throw new RangeError('x'); }, { cost: { tokens: 900 } }), RangeError);
  await fast.run((permit) => permit.unsent());
  assert.deepEqual(await more(p, before), { accepted: 1, unknown: 1, unsent: 1 });
  p.close();
});

test('each end is reported once', async () => {
  const p = new Paceline({ client: 'ends' });
  for (const [end, said] of [['accepted', 'accepted'], ['refused', 'limited'], ['failed', 'failed'], ['unknown', 'unknown']]) {
    const before = await counts(p);
    const [permit] = await p.limit('answers').acquire();
    permit.actual({ tokens: 3 })[end]();
    assert.ok(permit.settled);
    permit.failed();
    assert.deepEqual(await more(p, before), { [said]: 1 });
  }
  p.close();
});

test('batches, and many at once', async () => {
  const p = new Paceline({ client: 'batches' });
  const before = await counts(p);
  const permits = await p.limit('fast').acquire(1000);
  assert.equal(new Set(permits.map((x) => x.id)).size, 1000);
  for (const x of permits) x.accepted();
  await Promise.all(Array.from({ length: 200 }, () => p.limit('fast').run(() => sleep(1))));
  const { unsent, ...ended } = await more(p, before); // on a busy machine a permit may come too late, and another is taken
  assert.deepEqual(ended, { accepted: 1200 });
  p.close();
});

test('what is settled together was not settled before', async () => {
  const p = new Paceline({ client: 'together' });
  const before = await counts(p);
  for (let i = 0; i < 3; i++) (await p.limit('fast').acquire(400)).accepted();
  const permits = await p.limit('fast').acquire(10);
  permits[3].unsent();
  permits.at(-1).actual({ tokens: 3 }).failed();
  assert.deepEqual([permits.length, permits[3].settled, permits[4].settled, permits.fresh()], [10, true, false, true]);
  permits.unknown();
  permits.accepted();
  permits[4].accepted();
  assert.ok(permits.every((permit) => permit.settled));
  assert.ok(permits.filter(() => true).constructor === Array);
  (await p.limit('refusing').acquire(2)).refused(0);
  assert.deepEqual(await more(p, before), { accepted: 1200, limited: 2, failed: 1, unknown: 8, unsent: 1 });
  p.close();
});

test('a batch that is held is renewed, and what is dropped is not', { skip: !globalThis.gc && 'node --expose-gc' }, async () => {
  let renewed = '';
  const daemon = http.createServer((req, res) => {
    let body = '';
    req.on('data', (part) => { body += part; });
    req.on('end', () => {
      if (req.url.startsWith('/v1/renew')) renewed = JSON.parse(body).sort().join();
      const { n = 1 } = req.url === '/v1/acquire' ? JSON.parse(body) : {};
      const permits = Array.from({ length: n }, (_, i) => `${n}-${i}`);
      res.end(JSON.stringify({ permits, send_within_ms: 1000, ttl_ms: 40, waited_ms: 0 }));
    });
  });
  await new Promise((resolve) => { daemon.listen(0, '127.0.0.1', resolve); });
  const p = new Paceline({ url: `http://127.0.0.1:${daemon.address().port}` });
  const any = p.limit('any');
  try {
    const [, kept] = await any.acquire(3);
    const whole = await any.acquire(2);
    await any.acquire(4); // dropped
    whole[0].accepted();
    await until(() => { globalThis.gc(); return renewed === '2-1,3-0,3-1,3-2'; });
    assert.ok(!kept.settled && !whole[1].settled);
  } finally {
    p.close();
    daemon.close();
  }
});

test('refusals have a kind', async () => {
  const p = new Paceline({ client: 'refusals' });
  const kind = (k, status) => (e) => e instanceof Refused && e.kind === k && e.status === status;
  await assert.rejects(p.limit('pair').acquire(1, { cost: { requests: 3 } }), kind('never-fits', 413));
  await p.limit('pair').acquire(2);
  await assert.rejects(p.limit('pair').acquire(1, { maxWait: 5 }), (e) => kind('wait-too-long', 429)(e) && e.wait > 5);
  await assert.rejects(p.limit('none').acquire(), kind('no-limit', 404));
  await assert.rejects(p.limit('fast').acquire(1, { cost: { token: 1 } }), kind('bad-message', 400));
  assert.deepEqual(await p.limit('fast').ask({ tokens: 9 }), { wait: 0, ahead: 0 });
  p.close();
});

test('a signal leaves the line', async () => {
  const p = new Paceline({ client: 'signal' });
  await p.limit('left').acquire();
  const leave = new AbortController();
  const waits = p.limit('left').acquire(1, { signal: leave.signal });
  await until(async () => (await p.limits()).waiting === 1);
  leave.abort(new Error('enough'));
  await assert.rejects(waits, /enough/);
  await until(async () => (await p.limits()).waiting === 0);
  await assert.rejects(p.limit('fast').acquire(1, { signal: AbortSignal.abort() }), { name: 'AbortError' });
  p.close();
});

test('fetch waits, and settles by the answer', async () => {
  const server = http.createServer((req, res) => {
    if (req.url === '/slow') return; // never answers
    res.writeHead(req.url === '/1' ? 429 : 200, { ...(req.url === '/1' && { 'Retry-After': '1' }), 'Set-Cookie': 'secret=1' });
    res.end('ok');
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  const url = `http://127.0.0.1:${server.address().port}`;
  const p = new Paceline({ client: 'fetch' });
  const before = await counts(p);
  const paced = p.limit('http').fetch();
  const served = await paced(`${url}/0`), refused = await paced(`${url}/1`);
  assert.deepEqual([served.status, await served.text(), refused.status, await refused.text()], [200, 'ok', 429, 'ok']);
  assert.deepEqual(await more(p, before), { accepted: 1, limited: 1 });
  const began = performance.now();
  await p.limit('http').run(() => {});
  assert.ok(performance.now() - began > 500, `after ${performance.now() - began} ms`);
  await assert.rejects(paced(`${url}/slow`, { signal: AbortSignal.timeout(50) }), { name: 'TimeoutError' });
  server.closeAllConnections?.();
  await new Promise((resolve) => { server.close(resolve); });
  await assert.rejects(paced(`${url}/0`));
  assert.deepEqual(await more(p, before), globalThis.Deno
    ? { accepted: 2, limited: 1, unknown: 2 } : { accepted: 2, limited: 1, unknown: 1, unsent: 1 });
  p.close();
});

test('flush waits for a report that is under way', async () => {
  let report;
  const daemon = http.createServer((req, res) => {
    if (req.url.startsWith('/v1/settle')) report = res;
    else res.end(JSON.stringify({ permits: ['one'], send_within_ms: 1000, ttl_ms: 10_000, waited_ms: 0 }));
  });
  await new Promise((resolve) => { daemon.listen(0, '127.0.0.1', resolve); });
  const p = new Paceline({ url: `http://127.0.0.1:${daemon.address().port}` });
  await p.limit('any').run(() => {});
  await until(() => report); // it began by itself
  let flushed = false;
  const flush = p.flush().then(() => { flushed = true; });
  await new Promise(setImmediate); // all promises that are kept have been heard
  assert.equal(flushed, false);
  report.end('{}');
  await flush;
  p.close();
  await new Promise((resolve) => { daemon.close(resolve); });
});

test('without a daemon nothing goes', async () => {
  const p = new Paceline({ socket: '/nonexistent/daemon.sock', daemonWait: 0.1 });
  await assert.rejects(p.limit('fast').run(() => assert.fail('it has no permit')), Away);
});

test('a port with a key', async () => {
  const { PERMIT_URL: url, PERMIT_KEY: key } = process.env;
  const p = new Paceline({ url, key, client: 'port' });
  await p.limit('fast').run((permit) => assert.ok(permit.fresh()));
  await assert.rejects(new Paceline({ url, key: 'another' }).limit('fast').acquire(), (e) => e.kind === 'no-key');
  await p.flush();
  p.close();
});

test('a server tells keys apart', async () => {
  const p = new Paceline();
  for (const key of ['one', 'two']) {
    const limit = p.limit('127.0.0.1:9', undefined, `Bearer ${key}`);
    await limit.run(() => {}, { maxWait: 0 });
    await assert.rejects(limit.acquire(2, { maxWait: 0 }), (error) => error instanceof Refused && error.kind === 'wait-too-long');
  }
  await p.flush();
  p.close();
});

test('a permit names the key that its request has to use', async () => {
  const p = new Paceline();
  const permits = await p.limit('127.0.0.1:8').acquire(5, { maxWait: 0 });
  assert.deepEqual(permits.map((permit) => permit.key).sort(), ['K_ONE', 'K_TWO']);
  const [other] = await p.limit('fast').acquire();
  assert.deepEqual([other.key, other.target], ['', '']);
  p.close();
});
