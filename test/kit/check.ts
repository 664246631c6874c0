/** As `expect(…).toBe(true)`, but cheap enough for millions of checks. */
export function check(condition: boolean, complaint: () => string): asserts condition {
  if (!condition) throw new Error(complaint());
}
