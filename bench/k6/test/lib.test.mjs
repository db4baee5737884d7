import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseBlocks } from '../lib/blocks.js';
import { Follower } from '../lib/follow.js';
import { parseID } from '../lib/ids.js';
import { seconds } from '../lib/time.js';

test('ids', () => {
  const cases = [
    ['v1:', {}],
    ['v1:0-5812.1-5790.2-*~ab3f9', { '0/0': 5812, '0/1': 5790 }],
    ['v1:0-7~ab3f9,3-0~cd', { '0/0': 7, '1/3': 0 }],
    // One group without a tag; partitions 0 and 2, next offsets 1 and 300.
    ['v2.AQACAAEBrAI', { '0/0': 0, '0/2': 299 }],
    // The same behind a tag of name and id.
    ['v2.AQMBAgMEBQYCAAEBrAI', { '0/0': 0, '0/2': 299 }],
    ['v2.AQ', null],
    ['v2.AQACAAEBrAIA', null], // a byte too many
    ['v2.!', null],
    ['v1:0-', null],
    ['41', null],
  ];
  for (const [id, want] of cases) {
    const at = parseID(id);
    assert.deepEqual(at && Object.fromEntries(at), want, id);
  }
});

test('blocks', () => {
  const cases = [
    ['retry: 1000\nid: v1:0-1\n\n', [{ id: 'v1:0-1', name: '', data: '' }]],
    ['id: a\r\ndata: 1\r\ndata:2\r\n\r\n', [{ id: 'a', name: '', data: '1\n2' }]],
    [':\nevent: resync\ndata:  {}\n\n', [{ id: '', name: 'resync', data: ' {}' }]],
    [':\n\n\n', []],
    ['data: cut off\n', []],
    ['data\n\n', [{ id: '', name: '', data: '' }]],
  ];
  for (const [text, want] of cases) assert.deepEqual(parseBlocks(text), want, JSON.stringify(text));
});

test('durations', () => {
  for (const [text, want] of [['90s', 90], ['1m30s', 90], ['500ms', 0.5], ['2h', 7200]]) assert.equal(seconds(text), want);
  for (const text of ['', '10', '10 s', 's']) assert.throws(() => seconds(text), /duration/, text);
});

// Each case is a client's life: connections, "|" between them, of blocks; a
// block is its id, if it has one, with a name before it, and "." behind it when it
// has no data.
test('followers', () => {
  const cases = [
    ['0-4. 0-5 0-6', { events: 2 }],
    ['0-4. 0-5 0-7 0-8', { events: 3, gaps: 1, missing: 1 }],
    ['0-4.1-1. 0-5.1-1 0-5.1-2 0-5.1-2.2-0', { events: 3 }], // a partition is new
    ['0-4. 0-5 0-5', { events: 2, repeats: 1 }],
    ['0-4. 0-5 0-4', { events: 2, repeats: 1 }],
    ['0-4. 0-5 | 0-5. 0-6', { events: 2 }],
    ['0-4. 0-5 | 0-8. 0-9', { events: 2, gaps: 1, missing: 3 }], // the server went on elsewhere, silently
    ['0-4. 0-5 | 0-5. resync:0-8 0-9', { events: 2, resyncs: 1 }],
    ['0-4. 0-5 0-9. 0-10', { events: 2 }], // an id alone: a filter passed records over
    ['0-4. live: 0-5 challenge: 0-6', { events: 2 }], // notices without an id
    ['0-4. 0-x', { events: 1, badIDs: 1 }],
  ];
  for (const [life, want] of cases) {
    const f = new Follower();
    for (const connection of life.split(' | ')) {
      f.connect();
      for (const word of connection.split(' ')) {
        const [, name, id, bare] = /^(?:(\w+):)?(.*?)(\.)?$/.exec(word);
        f.block({ id: id && `v1:${id}`, name: name ?? '', data: bare ? '' : 'x' });
      }
    }
    const { events, gaps, missing, repeats, resyncs, badIDs } = f;
    const all = { events: 0, gaps: 0, missing: 0, repeats: 0, resyncs: 0, badIDs: 0, ...want };
    assert.deepEqual({ events, gaps, missing, repeats, resyncs, badIDs }, all, life);
  }
});
