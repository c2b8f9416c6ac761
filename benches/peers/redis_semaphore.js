// redis-semaphore's `Mutex` as a worker of the benches: loops that take a lock again and again.
//
//     redis_semaphore.js URL KEY TASKS one|each BODY-IN-MICROSECONDS ordered|any-order
//
// Speaks as `worker.rs` does: `ready`, then for each `go MICROSECONDS` what came of it.

const readline = require('node:readline');

let Redis, Mutex;
try {
  ({ Redis } = require('ioredis'));
  ({ Mutex } = require('redis-semaphore'));
} catch (error) {
  console.log('absent ' + error.message.split('\n')[0]);
  process.exit();
}

const RUN_IN = 50;
// As long as nobody gives up in a round; the pause between two attempts is its own.
const OPTIONS = { lockTimeout: 10_000, acquireTimeout: 60_000 };

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const nanos = (ms) => Math.round(ms * 1e6);

// Who had the lock last.
let last;

async function repeat(client, key, body, start, end) {
  const told = { counted: 0, all: 0, hand_offs: 0, bodies: 0, waits: [] };
  for (;;) {
    const asked = performance.now();
    if (asked >= end) return told;
    const mutex = new Mutex(client, key, OPTIONS);
    await mutex.acquire();
    const held = performance.now();
    told.all += 1;
    if (last !== told) told.hand_offs += 1;
    last = told;
    if (asked >= start) told.waits.push(nanos(held - asked));
    if (body > 0) await sleep(body);
    if (held >= start && held < end) {
      told.counted += 1;
      told.bodies += nanos(performance.now() - held);
    }
    await mutex.release();
  }
}

async function go(client, keys, body, window) {
  const start = performance.now() + RUN_IN;
  const loops = keys.map((key) => repeat(client, key, body, start, start + window));
  const told = await Promise.all(loops);
  const sum = (field) => told.reduce((total, one) => total + one[field], 0);
  const lines = [
    'tasks ' + told.map((one) => one.counted).join(' '),
    'all ' + sum('all'),
    'hand-offs ' + sum('hand_offs'),
    'bodies ' + sum('bodies'),
    ...told.flatMap((one) => one.waits.map((wait) => `wait ${wait} 1`)),
    'done',
  ];
  process.stdout.write(lines.join('\n') + '\n');
}

async function main() {
  const [url, key, tasks, which, body] = process.argv.slice(2);
  const client = new Redis(url);
  const keys = Array.from({ length: Number(tasks) }, (_, n) => (which === 'one' ? key : `${key}:${n}`));
  const warm = new Mutex(client, `${key}:warm`, OPTIONS);
  await warm.acquire();
  await warm.release();
  console.log('ready');
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const window = Number(line.split(' ')[1]) / 1000;
    await go(client, keys, Number(body) / 1000, window).catch((error) => console.log('failed ' + error.message));
  }
  client.disconnect();
}

main();
