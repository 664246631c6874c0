import { foldStack } from '../../tasks/index.ts';

/** Where something was submitted; the text is made when it is read. */
export interface CallSite {
  readonly stack?: string;
}

/** Submissions of one turn that remember their own place; the others take that of the last of them. */
const SITES_PER_TURN = 100;
/** Frames that are looked at, those of the client included. */
const FRAMES_MAX = 12;
const FRAMES_SHOWN = 4;

let ofTurn = 0;
let latest: CallSite = {};

/**
 * The place in the code of the user from which the client was called. A loop that submits a hundred thousand tasks in a turn costs no hundred
 * thousand stacks: after the first hundred they share one.
 */
export function callSite(): CallSite {
  if (ofTurn >= SITES_PER_TURN) return latest;
  if (ofTurn === 0) setImmediate(() => (ofTurn = 0)).unref();
  ofTurn++;
  const site: CallSite = {};
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = FRAMES_MAX;
  Error.captureStackTrace(site, callSite);
  Error.stackTraceLimit = limit;
  latest = site;
  return site;
}

/** The lines that follow the stack of an error; empty when the place is not known. */
export function submittedAt({ stack = '' }: CallSite): string {
  const frames = foldStack(stack)
    .split('\n')
    .filter((line) => line.trimStart().startsWith('at '))
    .slice(0, FRAMES_SHOWN);
  return frames.length === 0 ? '' : `\n  submitted at:\n${frames.join('\n')}`;
}
