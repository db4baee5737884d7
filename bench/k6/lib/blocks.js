// Reading an event stream that is there as a whole. Nothing in here needs k6.

// parseBlocks reads text (WHATWG HTML 9.2.6) into blocks of {id, name, data};
// "" stands for what a block lacks. A block that the end cuts off is dropped,
// as a browser does.
export function parseBlocks(text) {
  const blocks = [];
  let block = { id: '', name: '', data: null };
  for (const line of text.replace(/^\uFEFF/, '').split(/\r\n|\n|\r/).slice(0, -1)) {
    if (line === '') {
      if (block.id !== '' || block.data !== null) {
        blocks.push({ ...block, data: block.data ?? '' });
      }
      block = { id: '', name: '', data: null };
      continue;
    }
    const [field, value] = parseLine(line);
    if (field === 'id') block.id = value;
    if (field === 'event') block.name = value;
    if (field === 'data') block.data = block.data === null ? value : `${block.data}\n${value}`;
  }
  return blocks;
}

function parseLine(line) {
  const colon = line.indexOf(':');
  if (colon < 0) return [line, ''];
  return [line.slice(0, colon), line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1))];
}
