import { seconds } from '../../lib/time.js';
import { fetchSync } from './fetch.mjs';

// get is http.get of k6: of a request that times out nothing is left.
export default {
  get(url, { headers, timeout }) {
    const res = fetchSync(url, headers, seconds(timeout) * 1000);
    if (res.error) return { status: 0, headers: {}, body: null, error: res.error, error_code: 1050 };
    return { status: res.status, headers: { 'Content-Type': res.headers['content-type'] }, body: res.body, error_code: 0 };
  },
};
