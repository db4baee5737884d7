export function check(value, conditions) {
  return Object.values(conditions).every((holds) => holds(value));
}
