import { type AsyncHook, createHook } from 'node:async_hooks';
import { callingRun } from '../tasks/index.ts';

/** The kinds of work that take real time, by Node's names: timers, files, names of hosts, connections, processes. */
const KINDS: ReadonlySet<string> = new Set([
  'Timeout',
  'FSREQCALLBACK',
  'FSREQPROMISE',
  'GETADDRINFOREQWRAP',
  'TCPCONNECTWRAP',
  'PIPECONNECTWRAP',
  'PROCESSWRAP',
]);

/** The real-time work that tasks of this thread wait for, while it is being watched. */
const pending = new Map<number, object>();
let watchers = 0;
let hook: AsyncHook | undefined;

/**
 * Watches what tasks that run in this thread begin. Promises are slower meanwhile.
 * @returns ends it
 */
export function watchRealWork(): () => void {
  hook ??= createHook({
    init: (id, kind, _trigger, resource) => {
      if (KINDS.has(kind) && callingRun() !== undefined) pending.set(id, resource);
    },
    // An interval counts until it was due once.
    after: (id) => void pending.delete(id),
    destroy: (id) => void pending.delete(id),
  });
  if (watchers++ === 0) hook.enable();
  let isOver = false;
  return () => {
    if (isOver) return;
    isOver = true;
    if (--watchers > 0) return;
    hook?.disable();
    pending.clear();
  };
}

/** True when a task waits for something in real time. Timers that keep no process alive do not count. */
export function isRealWorkPending(): boolean {
  for (const resource of pending.values()) {
    const { hasRef } = resource as { hasRef?: () => boolean };
    if (hasRef?.call(resource) !== false) return true;
  }
  return false;
}
