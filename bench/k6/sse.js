// Streams of tailcast with the SSE extension of k6, which hands over each event
// as it comes. Each virtual user holds a stream for HOLD, closes it, and comes
// back with the id of its last event.
//
//	xk6 build --with github.com/phymbert/xk6-sse
//	./k6 run -e STREAM=http://127.0.0.1:8080/events -e VUS=200 -e HOLD=10s -e DURATION=60s sse.js
//
// The topic should get some records a second: a stream is closed when an event
// comes after its time, and by the extension's timeout a while later.
import sse from 'k6/x/sse';
import { check } from 'k6';
import { Counter, Trend } from 'k6/metrics';
import { Follower } from './lib/follow.js';
import { seconds } from './lib/time.js';

const stream = __ENV.STREAM || 'http://127.0.0.1:8080/events';
const hold = seconds(__ENV.HOLD || '10s');
const late = 5; // seconds after which a stream without events ends, too

export const options = {
  scenarios: {
    streams: {
      executor: 'constant-vus',
      vus: Number(__ENV.VUS || 50),
      duration: __ENV.DURATION || '60s',
      gracefulStop: `${hold + 2 * late}s`,
    },
  },
  thresholds: {
    time_to_stream: ['p(99)<500'],
    time_to_first_event: ['p(99)<2000'],
    events_received: ['count>0'],
    events_missing: ['count==0'],
    events_repeated: ['count==0'],
    resyncs: ['count==0'],
    stream_errors: ['count==0'],
  },
};

const timeToStream = new Trend('time_to_stream', true); // to the first block, which tells the position
const timeToFirstEvent = new Trend('time_to_first_event', true); // to the first record
const eventsReceived = new Counter('events_received');
const eventsMissing = new Counter('events_missing');
const eventsRepeated = new Counter('events_repeated');
const resyncs = new Counter('resyncs');
const streamErrors = new Counter('stream_errors');

const follower = new Follower(); // of this virtual user, whose iterations are its connections

export default function () {
  const before = { ...follower };
  const params = { headers: follower.connect(), timeout: `${hold + late}s` };
  const began = Date.now();
  let blocks = 0;
  let events = 0;
  const res = sse.open(stream, params, (client) => {
    const over = () => Date.now() - began >= hold * 1000;
    client.on('event', (e) => {
      if (blocks++ === 0) timeToStream.add(Date.now() - began);
      if (follower.block(e) && events++ === 0) timeToFirstEvent.add(Date.now() - began);
      if (over()) client.close();
    });
    // After an error the extension reads no more, but waits until it is closed.
    client.on('error', () => {
      if (!over()) streamErrors.add(1); // else it is the timeout
      client.close();
    });
  });
  check(res, { 'status is 200': (r) => r && r.status === 200 });
  eventsReceived.add(follower.events - before.events);
  eventsMissing.add(follower.missing - before.missing);
  eventsRepeated.add(follower.repeats - before.repeats);
  resyncs.add(follower.resyncs - before.resyncs);
}
