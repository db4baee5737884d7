// Streams of tailcast with k6 as it is. http.get returns when the response has
// ended, so the server has to end its streams: run it with --max-age. Each
// virtual user is a browser that comes back with the id of its last event.
//
//	tailcast serve --max-age 10s ...
//	k6 run -e STREAM=http://127.0.0.1:8080/events -e VUS=100 -e DURATION=60s plain.js
//
// See README.md for what this can't see.
import http from 'k6/http';
import { check } from 'k6';
import { Counter, Rate } from 'k6/metrics';
import { parseBlocks } from './lib/blocks.js';
import { Follower } from './lib/follow.js';

const stream = __ENV.STREAM || 'http://127.0.0.1:8080/events';
// WAIT must be longer than the server's --max-age: of a request that times out
// k6 throws away what has come.
const wait = __ENV.WAIT || '60s';

export const options = {
  scenarios: {
    streams: {
      executor: 'constant-vus',
      vus: Number(__ENV.VUS || 50),
      duration: __ENV.DURATION || '60s',
      gracefulStop: wait,
    },
  },
  thresholds: {
    http_req_waiting: ['p(99)<500'], // until the head, which has the first block behind it
    streams_ended: ['rate>0.99'],
    events_received: ['count>0'],
    events_missing: ['count==0'],
    events_repeated: ['count==0'],
    resyncs: ['count==0'],
  },
};

const streamsEnded = new Rate('streams_ended'); // by the server, within WAIT
const eventsReceived = new Counter('events_received');
const eventsMissing = new Counter('events_missing');
const eventsRepeated = new Counter('events_repeated');
const resyncs = new Counter('resyncs');

const follower = new Follower(); // of this virtual user, whose iterations are its connections

export default function () {
  const before = { ...follower };
  const res = http.get(stream, { headers: follower.connect(), timeout: wait });
  const ok = check(res, {
    'status is 200': (r) => r.status === 200,
    'is an event stream': (r) => /^text\/event-stream/.test(r.headers['Content-Type'] || ''),
  });
  streamsEnded.add(ok && !res.error_code);
  if (ok && res.body) parseBlocks(res.body).forEach((b) => follower.block(b));
  eventsReceived.add(follower.events - before.events);
  eventsMissing.add(follower.missing - before.missing);
  eventsRepeated.add(follower.repeats - before.repeats);
  resyncs.add(follower.resyncs - before.resyncs);
}
