// Runs the scripts in Node.js, with stand-ins for the modules of k6.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { register } from 'node:module';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

register('./standin/hooks.mjs', import.meta.url);
const { values } = await import('k6/metrics');

let server;
let origin;

before(async () => {
  server = spawn(process.execPath, [fileURLToPath(new URL('standin/server.mjs', import.meta.url))], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [port] = await once(server.stdout, 'data');
  origin = `http://127.0.0.1:${String(port).trim()}`;
});

after(() => server.kill());

// load is one virtual user of a script.
async function load(script, env) {
  globalThis.__ENV = env;
  return import(`../${script}?${JSON.stringify(env)}`);
}

const sum = (name) => values[name].reduce((a, b) => a + b, 0);

for (const script of ['plain.js', 'sse.js']) {
  test(`${script} follows a stream across connections and finds the gap`, async () => {
    const vu = await load(script, { STREAM: `${origin}/events` });
    for (let i = 0; i < 3; i++) vu.default(); // records 5 to 8; 10 and 11
    assert.equal(sum('events_received'), 6);
    assert.equal(sum('events_missing'), 1);
    assert.equal(sum('events_repeated') + sum('resyncs'), 0);
    for (const name of Object.keys(vu.options.thresholds)) {
      assert.ok(name === 'http_req_waiting' || name in values, `a threshold on ${name}, which is no metric`);
    }
  });
}

test('plain.js counts a stream that the server does not end', async () => {
  const vu = await load('plain.js', { STREAM: `${origin}/endless`, WAIT: '500ms' });
  vu.default();
  assert.deepEqual(values.streams_ended, [0]);
});

test('sse.js ends a stream without events by the timeout, not as an error', async () => {
  const vu = await load('sse.js', { STREAM: `${origin}/endless`, HOLD: '1s' });
  vu.default();
  assert.equal(values.time_to_first_event.length, 0);
  assert.equal(sum('stream_errors'), 0);
});
