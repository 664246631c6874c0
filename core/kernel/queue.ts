import type { KernelScope } from './scope.ts';
import { settle } from './transition-loop.ts';

/**
 * Sends queued tasks to open slots, the best first, each with everything that follows from it. Runs
 * after every stimulus (Dask: only after some), so that no slot stays open while tasks are queued.
 * O(1) when nothing is queued or no slot is open.
 */
export function refillFromQueue(scope: KernelScope): void {
  const { queued, openSlots } = scope.cluster;
  while (openSlots.size > 0) {
    const task = queued.peek();
    if (task === undefined) return;
    scope.recommend(task, 'processing');
    settle(scope);
    // The policy did not want the open slot after all.
    if (task.state === 'queued') return;
  }
}
