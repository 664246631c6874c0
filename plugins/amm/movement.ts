import {
  type Clock,
  type ClusterView,
  type NewStimulus,
  type WorkerView,
  YardmasterError,
} from '../../core/api/index.ts';
import type { MemoryManager } from './memory-manager.ts';

/** What movements of data are made with. */
export interface MovementScope {
  readonly clock: Clock;
  readonly cluster: ClusterView;
  /** Aborted when the plugin goes; whatever is under way then fails. */
  readonly signal: AbortSignal;
  enqueue(stimulus: NewStimulus): void;
  /** A manager without policies that shares its requests under way with all others. */
  makeManager(): MemoryManager;
}

/** A movement without any progress for longer than this is cancelled. */
const PATIENCE_MS = 60_000;

/** Decides whether a movement still makes progress. */
export class Patience {
  private lastMs: number;
  private last: number | undefined;

  constructor(private readonly clock: Clock) {
    this.lastMs = clock.nowMs();
  }

  /**
   * @param left - what is left to do; any change is progress
   * @param bytes - that are left; large transfers have more time
   * @param bandwidth - bytes per second
   */
  isOver(left: number, bytes = 0, bandwidth = 1): boolean {
    const nowMs = this.clock.nowMs();
    if (left !== this.last) {
      this.last = left;
      this.lastMs = nowMs;
    }
    return nowMs - this.lastMs > PATIENCE_MS + (4000 * bytes) / bandwidth;
  }
}

/** @throws YardmasterError `ERR_CLOSED` when the plugin is removed before */
export function pause({ clock, signal }: MovementScope, ms: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      timer.cancel();
      reject(
        new YardmasterError('ERR_CLOSED', 'the scheduler closed before the data was moved', {}),
      );
    };
    const timer = clock.setTimer(ms, () => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    });
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort);
  });
}

/** Workers by address or name, and what fits none. */
export function findWorkers(
  { workers }: ClusterView,
  wanted: readonly string[],
  by: 'any' | 'name' = 'any',
): { readonly found: WorkerView[]; readonly unknown: string[] } {
  const byName = new Map([...workers.values()].map((worker) => [worker.name, worker]));
  const found = new Set<WorkerView>();
  const unknown = new Set<string>();
  for (const which of wanted) {
    const worker = (by === 'any' ? workers.get(which) : undefined) ?? byName.get(which);
    if (worker !== undefined) found.add(worker);
    else if (by === 'name' || !addHost(workers.values(), which, found)) unknown.add(which);
  }
  return { found: [...found], unknown: [...unknown] };
}

/** Adds the workers of a host. Returns whether there are any. */
function addHost(workers: Iterable<WorkerView>, host: string, found: Set<WorkerView>): boolean {
  let isKnown = false;
  for (const worker of workers) {
    if (worker.host !== host) continue;
    isKnown = true;
    found.add(worker);
  }
  return isKnown;
}
