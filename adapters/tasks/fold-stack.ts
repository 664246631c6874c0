/** Where this package is, on this machine: what is in a stack from here is not the user's. */
const PACKAGE = new URL('../../', import.meta.url).href;
const PACKAGE_PATH = decodeURIComponent(new URL(PACKAGE).pathname);
/** Folders of the package whose frames say nothing about a task. */
const INTERNAL = /^(?:dist\/)?(?:core|adapters|bundle)\//;
const FRAME = /^\s+at /;

/**
 * A stack without the frames of this package and of Node, except when nothing else would be left. Their count is not
 * kept: the call begins with the first frame that is shown.
 */
export function foldStack(stack: string): string {
  const lines = stack.split('\n');
  const kept = lines.filter((line) => !FRAME.test(line) || !isInternal(line));
  return kept.some((line) => FRAME.test(line)) ? kept.join('\n') : stack;
}

function isInternal(frame: string): boolean {
  if (/\(?node:/.test(frame)) return true;
  for (const root of [PACKAGE, PACKAGE_PATH]) {
    const at = frame.indexOf(root);
    if (at >= 0) return INTERNAL.test(frame.slice(at + root.length));
  }
  return false;
}
