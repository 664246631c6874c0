/** The invariants of limits. */
import { byPriority } from '../../state/task.ts';
import type { KernelScope } from '../scope.ts';

/** Counts are right, and nothing waits for a limit that has room. O(tasks). */
export function validateLimits(scope: KernelScope, fail: (complaint: string) => void): void {
  const { limits, tasks, running } = scope.cluster;
  const members = limits.members(tasks.values());
  const isHeld = scope.holdsQueue || scope.isRefillLeft || running.size === 0;
  for (const [limit, its] of members) {
    const { name, hasRoom } = limit;
    if (limits.get(name) !== limit) fail(`${its[0]?.key ?? name} has a limit that is not known`);
    const queue = limits.queueOf(limit);
    const processing = its.filter(({ state }) => state === 'processing').length;
    const runningCount = processing + limits.endingRunsOf(limit).length;
    if (its.length !== limit.taskCount) fail(`limit ${name} counts ${limit.taskCount} tasks`);
    if (limit.runningCount !== runningCount) fail(`limit ${name} counts ${limit.runningCount}`);
    const isOpen = hasRoom && queue.size > 0;
    if (queue.size !== limit.queuedCount) fail(`limit ${name} counts ${limit.queuedCount} queued`);
    if (limits.open.has(limit) !== isOpen) fail(`limit ${name} is open, or not`);
    if (isOpen && !isHeld) fail(`${queue.size} tasks wait for limit ${name}, which has room`);
    if (its.length + runningCount === 0) fail(`limit ${name} is known although no task has it`);
    const best = queue.peek();
    for (const task of queue) {
      if (task.state !== 'queued') fail(`${task.key} waits for a limit in state ${task.state}`);
      if (best !== undefined && byPriority(best, task) <= 0) continue;
      fail(`${task.key} is behind ${best?.key ?? 'nothing'}, which is worse`);
    }
  }
  for (const limit of limits.open) if (!members.has(limit)) fail(`${limit.name} is open, and gone`);
}
