// What tailcast's event ids say (docs/PROTOCOL.md): where the stream stands
// behind the event, as the last offset of each partition. Nothing in here
// needs k6.

// parseID reads an id, in either of its forms, into a Map from
// "topic/partition" to last offset; topics are numbered in the order of the
// id. A partition whose offset is unknown ("p-*") is left out. It returns null
// for what is no id.
export function parseID(id) {
  if (id.startsWith('v1:')) return parsePlain(id.slice(3));
  if (id.startsWith('v2.')) return parsePacked(id.slice(3));
  return null;
}

function parsePlain(text) {
  const at = new Map();
  const groups = text.split(',');
  for (let topic = 0; topic < groups.length; topic++) {
    const pairs = groups[topic].split('~')[0];
    for (const pair of pairs === '' ? [] : pairs.split('.')) {
      const m = /^(\d+)-(\d+|\*)$/.exec(pair);
      if (!m) return null;
      if (m[2] !== '*') at.set(`${topic}/${m[1]}`, Number(m[2]));
    }
  }
  return at;
}

// The tags behind a group's flags, in bytes: none, of the name, of the id too.
const tagBytes = { 0: 0, 1: 2, 3: 6 };

function parsePacked(text) {
  const bytes = decodeBase64URL(text);
  if (!bytes) return null;
  let pos = 0;
  const uvarint = () => {
    let v = 0;
    for (let scale = 1; pos < bytes.length; scale *= 128) {
      const b = bytes[pos++];
      v += (b & 127) * scale;
      if (b < 128) return v;
    }
    return NaN;
  };
  const at = new Map();
  const groups = uvarint();
  for (let topic = 0; topic < groups; topic++) {
    const tag = tagBytes[bytes[pos++]];
    if (tag === undefined) return null;
    pos += tag;
    let partition = -1;
    for (let pairs = uvarint(); pairs > 0; pairs--) {
      partition += 1 + uvarint();
      const next = uvarint();
      if (Number.isNaN(next)) return null;
      if (next > 0) at.set(`${topic}/${partition}`, next - 1);
    }
  }
  return groups > 0 && pos === bytes.length ? at : null;
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

function decodeBase64URL(text) {
  const bytes = [];
  let bits = 0;
  let held = 0;
  for (const c of text) {
    const v = alphabet.indexOf(c);
    if (v < 0) return null;
    held = ((held << 6) | v) & 0xffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes.push((held >> bits) & 255);
    }
  }
  return bytes;
}
