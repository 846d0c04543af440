// Permits a second of one process: speed.mjs SECONDS BATCH... Each BATCH is as for tests/speed.py of the client of Python, and
// so is what it prints.
import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { Paceline } from '../paceline.mjs';

const [seconds, ...all] = process.argv.slice(2);
const limit = new Paceline().limit('fast');
const echo = new Paceline({ socket: process.env.PERMIT_ECHO });
// cpu is the CPU time of this process and of the daemon, in µs. The kernel counts in ticks of 10 ms.
const cpu = () => {
  const { user, system } = process.cpuUsage();
  const fields = readFileSync(`/proc/${process.env.PERMIT_DAEMON}/stat`, 'latin1').split(') ').at(-1).split(' ');
  return [user + system, (Number(fields[11]) + Number(fields[12])) * 10_000];
};
const message = '{"limit":"fast","client":"","settle":[{"ids":["AAAAAAAAAAAAAAAAAAAAAAAA"],"result":"accepted"}]}';
for (const what of all) {
  let done = 0;
  const once = what === 'echo'
    ? async () => { await echo._raw('/v1/acquire', message); done++; }
    : what.startsWith('each:')
      ? async () => { for (const p of await limit.acquire(Number(what.slice(5)))) { p.accepted(); done++; } }
      : async () => { const all = await limit.acquire(Number(what)); all.accepted(); done += all.length; };
  await once();
  done = 0;
  const before = cpu();
  const began = performance.now(), end = began + Number(seconds) * 1000;
  while (performance.now() < end) await once();
  const rate = done / (performance.now() - began) * 1000;
  const [mine, its] = cpu().map((now, i) => (now - before[i]) / done);
  console.log(what, Math.round(rate), mine.toFixed(3), its.toFixed(3));
}
process.exit(0);
