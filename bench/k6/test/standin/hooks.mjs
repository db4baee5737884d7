// Lets Node.js load scripts for k6: its modules are those beside this file.
const modules = { k6: 'k6', 'k6/http': 'http', 'k6/metrics': 'metrics', 'k6/x/sse': 'sse' };

export function resolve(specifier, context, next) {
  const name = modules[specifier];
  if (!name) return next(specifier, context);
  return { url: new URL(`${name}.mjs`, import.meta.url).href, shortCircuit: true };
}
