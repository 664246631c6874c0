/** What Node, the system and Yardmaster itself need. */
const NEEDED =
  /^(?:PATH|HOME|USER|LANG|LC_\w+|TZ|TMPDIR|TMP|TEMP|SystemRoot|USERPROFILE|MALLOC_TRIM_THRESHOLD_|NODE_\w+|YARDMASTER_\w+)$/i;

/**
 * Removes all other variables from the environment of this process and of those that it starts: passwords of other
 * programs, say. Tasks run as the user of the worker, so what that user can read stays in their reach.
 * @param kept - names of further variables; undefined: nothing is removed
 */
export function limitEnvironment(kept: readonly string[] | undefined): void {
  if (kept === undefined) return;
  for (const name of Object.keys(process.env)) {
    if (!kept.includes(name) && !NEEDED.test(name)) Reflect.deleteProperty(process.env, name);
  }
}
