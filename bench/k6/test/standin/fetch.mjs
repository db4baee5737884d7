// One request that blocks, as those of k6 do: another process makes it.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const self = fileURLToPath(import.meta.url);

// fetchSync returns {status, headers, body}, or {error} after timeoutMS.
export function fetchSync(url, headers, timeoutMS) {
  const args = [self, JSON.stringify({ url, headers, timeoutMS })];
  return JSON.parse(spawnSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 1 << 28 }).stdout);
}

if (process.argv[1] === self) {
  const { url, headers, timeoutMS } = JSON.parse(process.argv[2]);
  try {
    const res = await fetch(url, { headers, signal: AbortSignal.timeout(timeoutMS) });
    const body = await res.text();
    console.log(JSON.stringify({ status: res.status, headers: Object.fromEntries(res.headers), body }));
  } catch (e) {
    console.log(JSON.stringify({ error: String(e) }));
  }
}
