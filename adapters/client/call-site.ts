import { foldStack } from '../tasks/index.ts';

/** The place in the program at which something was submitted. */
export interface CallSite {
  readonly stack: string;
}

/**
 * Upper bound of the stacks that are captured in {@link WINDOW_MS}: one takes some microseconds, and tens of them below a
 * web server.
 */
const SITES_PER_WINDOW = 10;
const WINDOW_MS = 100;
/** Frames that are looked at, those of the client included. */
const FRAMES_MAX = 12;
const FRAMES_SHOWN = 4;

let captured = 0;
/** The place that was captured last, by what was submitted there. */
const latest = new WeakMap<object, CallSite>();

/**
 * The place in the code of the user from which the client was called. Beyond ten in a tenth of a second,
 * submissions of the same function share the place that was captured last for it.
 * @param submitted - the function; or, of graphs, what submits them
 */
export function callSite(submitted: object): CallSite {
  const before = captured < SITES_PER_WINDOW ? undefined : latest.get(submitted);
  if (before !== undefined) return before;
  if (captured === 0) setTimeout(() => (captured = 0), WINDOW_MS).unref();
  captured++;
  const site: CallSite = { stack: currentStack() };
  latest.set(submitted, site);
  return site;
}

/** As text: a stack that is not read yet keeps alive the objects whose methods are in it, and what they hold. */
function currentStack(): string {
  const captured: { readonly stack?: unknown } = {};
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = FRAMES_MAX;
  Error.captureStackTrace(captured, callSite);
  const { stack } = captured; // Whatever the `Error.prepareStackTrace` of a tool makes of it.
  Error.stackTraceLimit = limit;
  return typeof stack === 'string' ? stack : '';
}

/** The lines that follow the stack of an error; empty when the place is not known. */
export function submittedAt({ stack }: CallSite): string {
  const frames = foldStack(stack)
    .split('\n')
    .filter((line) => line.trimStart().startsWith('at '))
    .slice(0, FRAMES_SHOWN);
  return frames.length === 0 ? '' : `\n  submitted at:\n${frames.join('\n')}`;
}
