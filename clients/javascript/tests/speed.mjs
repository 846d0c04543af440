// Permits a second of one process: speed.mjs SECONDS BATCH... Each BATCH is as for tests/speed.py of the client of Python.
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { Paceline } from '../paceline.mjs';

const [seconds, ...all] = process.argv.slice(2);
const limit = new Paceline().limit('fast');
const echo = new Paceline({ socket: process.env.PERMIT_ECHO });
const message = '{"limit":"fast","client":"","settle":[{"ids":["AAAAAAAAAAAAAAAAAAAAAA"],"result":"accepted"}]}';
for (const what of all) {
  let done = 0;
  const once = what === 'echo'
    ? async () => { await echo._raw('/v1/acquire', message); done++; }
    : what.startsWith('each:')
      ? async () => { for (const p of await limit.acquire(Number(what.slice(5)))) { p.accepted(); done++; } }
      : async () => { const all = await limit.acquire(Number(what)); all.accepted(); done += all.length; };
  await once();
  done = 0;
  const began = performance.now(), end = began + Number(seconds) * 1000;
  while (performance.now() < end) await once();
  console.log(what, Math.round(done / (performance.now() - began) * 1000));
}
process.exit(0);
