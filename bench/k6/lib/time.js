// seconds reads a duration as k6 writes it: "90s", "1m30s", "500ms", "2h".
export function seconds(text) {
  const unit = { ms: 0.001, s: 1, m: 60, h: 3600 };
  if (!/^(\d+(?:\.\d+)?(?:ms|s|m|h))+$/.test(text)) throw new Error(`"${text}" is no duration, such as 90s or 1m30s`);
  let sum = 0;
  for (const [, n, u] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)) sum += Number(n) * unit[u];
  return sum;
}
