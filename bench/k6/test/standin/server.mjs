// A server whose topic has one partition: a stream gets two records from where
// the client stands, and ends. Record 9 is lost. It prints its port.
import { createServer } from 'node:http';

const server = createServer((req, res) => {
  if (req.url === '/endless') {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    res.write('retry: 1000\nid: v1:0-4\n\n');
    return;
  }
  const last = Number((req.headers['last-event-id'] ?? 'v1:0-4').slice('v1:0-'.length));
  const records = [last + 1, last + 2].map((n) => (n >= 9 ? n + 1 : n));
  res.writeHead(200, { 'Content-Type': 'text/event-stream' });
  res.end(`retry: 1000\nid: v1:0-${last}\n\n${records.map((n) => `id: v1:0-${n}\ndata: x\n\n`).join(':\n')}`);
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
