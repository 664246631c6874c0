import type { Problem } from './errors.ts';
import { isPlainObject } from '../util/plain-object.ts';

/** What Dask has in `worker.memory` though the scheduler reads it, and we in `scheduler`. */
const MOVED = ['rebalance', 'recentToOldTime'] as const;

/**
 * Moves Dask's `worker.memory.rebalance` and `worker.memory.recent-to-old-time` to the section
 * `scheduler`, with keys in camel case.
 */
export function moveDaskPlaces(root: unknown): { value: unknown; problems: Problem[] } {
  const problems: Problem[] = [];
  const { worker, scheduler = {} } = isPlainObject(root) ? root : {};
  const memory = isPlainObject(worker) ? worker['memory'] : undefined;
  if (!isPlainObject(root) || !isPlainObject(worker) || !isPlainObject(memory)) {
    return { value: root, problems };
  }
  const kept: Record<string, unknown> = {};
  const moved: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(memory)) {
    const name = MOVED.find((known) => known === camelCase(key));
    if (name === undefined) kept[key] = value;
    else if (isPlainObject(scheduler) && scheduler[name] !== undefined) {
      const message = `is written in scheduler.${name} as well; leave one out`;
      problems.push({ at: ['worker', 'memory', key], message, aboutKey: true });
    } else moved[name] = isPlainObject(value) ? camelKeys(value) : value;
  }
  if (Object.keys(kept).length === Object.keys(memory).length || !isPlainObject(scheduler)) {
    return { value: root, problems };
  }
  const value = {
    ...root,
    worker: { ...worker, memory: kept },
    scheduler: { ...scheduler, ...moved },
  };
  return { value, problems };
}

/** `sender-min` and `sender_min` are `senderMin`. */
function camelCase(key: string): string {
  return key.replace(/[-_]([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function camelKeys(written: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(written).map(([key, value]) => [camelCase(key), value]));
}
