// Following one client's stream across its connections: what came, and whether
// the ids say that something did not. Nothing in here needs k6.
import { parseID } from './ids.js';

// What the server says of the stream itself (docs/PROTOCOL.md, "Events").
const notices = ['resync', 'live', 'challenge'];

// Follower judges the blocks of one client.
export class Follower {
  constructor() {
    this.lastID = ''; // what the next connection sends as Last-Event-ID
    this.at = null; // the same, parsed; null when nothing is known
    this.resumed = false; // the next block is the first of a resumed stream
    this.events = 0; // blocks with data
    this.resyncs = 0; // losses the server has told of
    this.gaps = 0; // places where the ids tell of one that did not come
    this.missing = 0; // and how many
    this.repeats = 0; // events whose id is not beyond the one before
    this.badIDs = 0;
  }

  // connect notes that a connection begins, and returns the fields of its
  // request.
  connect() {
    const fields = { Accept: 'text/event-stream' };
    if (this.lastID !== '') fields['Last-Event-ID'] = this.lastID;
    this.resumed = this.lastID !== '';
    return fields;
  }

  // block takes one block: {id, name, data}, "" for what it lacks. It reports
  // whether it was an event with a record.
  block({ id, name, data }) {
    const to = id === '' ? null : parseID(id);
    if (id !== '' && !to) this.badIDs++;
    const record = data !== '' && !notices.includes(name);
    if (name === 'resync') {
      this.resyncs++;
      this.at = null; // the stream goes on elsewhere, and has said so
    } else if (record) {
      this.events++;
      this.advance(to, 1);
    } else if (this.resumed) {
      this.advance(to, 0); // the first block repeats where the client stood
    }
    if (id !== '') this.resumed = false;
    if (to) {
      this.lastID = id;
      this.at = to;
    }
    return record;
  }

  // advance compares a position with the one before, which it must be ahead of
  // by so many records.
  advance(to, records) {
    if (!to || !this.at) return;
    let ahead = 0;
    for (const [partition, last] of to) {
      // A partition that no id has named begins at offset 0.
      const before = this.at.has(partition) ? this.at.get(partition) : -1;
      if (last < before) {
        this.repeats++;
        return;
      }
      ahead += last - before;
    }
    if (ahead > records) {
      this.gaps++;
      this.missing += ahead - records;
    } else if (ahead < records) {
      this.repeats++;
    }
  }
}
