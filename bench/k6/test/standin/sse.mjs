import { parseBlocks } from '../../lib/blocks.js';
import { seconds } from '../../lib/time.js';
import { fetchSync } from './fetch.mjs';

// open is sse.open of xk6-sse, but for time: handlers run when the stream has
// ended, and after an error open does not return until it is closed.
export default {
  open(url, { headers, timeout }, setup) {
    const handlers = {};
    let closed = false;
    const client = { on: (event, handler) => { handlers[event] = handler; }, close: () => { closed = true; } };
    const res = fetchSync(url, headers, seconds(timeout) * 1000);
    setup(client);
    for (const block of res.error ? [] : parseBlocks(res.body)) {
      if (!closed) handlers.event(block);
    }
    if (res.error) {
      handlers.error({ error: () => res.error });
      if (!closed) throw new Error('the extension would wait for ever: an error, and no close');
    }
    return { status: res.status ?? 200, error: '' };
  },
};
