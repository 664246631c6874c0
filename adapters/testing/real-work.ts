import { type AsyncHook, AsyncLocalStorage, createHook } from 'node:async_hooks';
import { phases } from '../../core/plugin-host/plugin-host.ts';
import { callingRun } from '../tasks/index.ts';

/** Files, by Node's names: reads and writes of whatever in this thread, since one that a hook began may end in `close`. */
const FILES: ReadonlySet<string> = new Set(['FSREQCALLBACK', 'FSREQPROMISE']);
/** Other work that takes real time: timers, names of hosts, connections, processes. */
const KINDS: ReadonlySet<string> = new Set([
  'Timeout',
  'GETADDRINFOREQWRAP',
  'TCPCONNECTWRAP',
  'PIPECONNECTWRAP',
  'PROCESSWRAP',
]);

/** Set within the phases of plugins. */
const pluginPhase = new AsyncLocalStorage<true>();
phases.call = (phase) => pluginPhase.run(true, phase);

/** The real-time work that is under way, while it is being watched. */
const pending = new Map<number, object>();
let watchers = 0;
let hook: AsyncHook | undefined;

/**
 * Watches files, and what else tasks that run in this thread begin, and plugins that are set up, started or closed. Promises are slower meanwhile.
 * @returns ends it
 */
export function watchRealWork(): () => void {
  hook ??= createHook({
    init: (id, kind, _trigger, resource) => {
      const isAwaited = (): boolean =>
        callingRun() !== undefined || pluginPhase.getStore() !== undefined;
      if (FILES.has(kind) || (KINDS.has(kind) && isAwaited())) pending.set(id, resource);
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

/** True when something takes real time. Timers that keep no process alive do not count. */
export function isRealWorkPending(): boolean {
  for (const resource of pending.values()) {
    const { hasRef } = resource as { hasRef?: () => boolean };
    if (hasRef?.call(resource) !== false) return true;
  }
  return false;
}
