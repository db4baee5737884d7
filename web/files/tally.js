// tally.js judges a stream by what it carries: were records missed, or did any
// come twice? It has two witnesses. Every event's id is the stream's position
// after it, so between two events exactly one partition moves, by one offset.
// And the sample producer numbers its records, partition by partition.

/**
 * Reads an id: a Map from partition to the last offset delivered or passed
 * over, undefined where that is not known. null if the id is of a form this
 * page doesn't read (an id of many partitions is packed).
 *
 *   v1:0-5812.1-5790~ab3f9      v1:0-12~ab3f9,0-7.1-*~c9d11
 */
export function parsePosition(id) {
  if (!id.startsWith("v1:")) return null;
  const position = new Map();
  for (const group of id.slice(3).split(",")) {
    const [pairs, tag = ""] = group.split("~");
    for (const pair of pairs.split(".")) {
      if (pair === "") continue; // nothing of this topic read yet
      const m = /^(\d+)-(\d+|\*)$/.exec(pair);
      if (!m) return null;
      position.set(`${tag}/${m[1]}`, m[2] === "*" ? undefined : Number(m[2]));
    }
  }
  return position;
}

/** Tally counts what was missed and what came twice. */
export class Tally {
  twice = 0;
  #position = null; // the furthest seen
  #sequence = new Map(); // partition's key → the producer's highest number
  #missing = { offsets: new Map(), numbers: new Map() }; // by each witness, by the partition's key

  /** How many were missed: of each partition what the witness who saw more says. */
  get missing() {
    const { offsets, numbers } = this.#missing;
    let n = 0;
    for (const key of new Set([...offsets.keys(), ...numbers.keys()])) {
      n += Math.max(offsets.get(key) ?? 0, numbers.get(key) ?? 0);
    }
    return n;
  }

  /**
   * Takes one event with its id and, for a record of the sample producer, its
   * partition and number. Returns what this event says: {partition, offset}
   * where the ids tell, how many were missed before it, and whether it came
   * before.
   */
  take(id, { p, seq } = {}) {
    const before = this.missing;
    const { own, repeated } = this.#byOffsets(parsePosition(id), p);
    const sample = own === undefined || own.partition === p; // else somebody else's record, with a p and a seq of its own
    const twice = (sample && this.#byNumber(this.#keyOf(p), seq)) || repeated === true;
    this.twice += twice ? 1 : 0;
    return { partition: own?.partition, offset: own?.offset, missing: this.missing - before, twice };
  }

  /** Goes on from a resync: what it announced is not missing, it is known to be gone. */
  resync(id) {
    this.#position = parsePosition(id);
    this.#sequence.clear();
  }

  /** Finds the partition that the event is of (own), and counts what else has moved. */
  #byOffsets(position, p) {
    const seen = this.#position;
    if (!seen || !position) {
      this.#position = position; // the first event, or ids we don't read
      return {};
    }
    const moves = [];
    let found = false; // a partition whose place was not known
    for (const [key, offset] of position) {
      // A partition that an id leaves out has been read up to nowhere.
      const last = seen.has(key) ? seen.get(key) : -1;
      if (last === undefined && offset !== undefined) found = true;
      else if (offset > last) moves.push({ key, partition: partitionOf(key), offset, steps: offset - last });
      else continue; // where it was, or a repetition
      seen.set(key, offset);
    }
    const own = moves.find((m) => m.partition === p) ?? moves.find((m) => m.steps === 1) ?? moves[0];
    if (found) return { own };
    for (const m of moves) add(this.#missing.offsets, m.key, m.steps - (m === own ? 1 : 0));
    return { own, repeated: moves.length === 0 };
  }

  /** Counts what the producer's number skips, and says whether it came before. */
  #byNumber(key, seq) {
    if (!Number.isInteger(seq)) return false;
    const last = this.#sequence.get(key);
    if (last !== undefined && seq <= last) return true;
    if (last !== undefined) add(this.#missing.numbers, key, seq - last - 1);
    this.#sequence.set(key, seq);
    return false;
  }

  #keyOf(partition) {
    for (const key of this.#position?.keys() ?? []) if (partitionOf(key) === partition) return key;
    return `/${partition}`;
  }
}

const partitionOf = (key) => Number(key.slice(key.indexOf("/") + 1));
const add = (counts, key, n) => counts.set(key, (counts.get(key) ?? 0) + n);
