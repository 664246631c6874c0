import type { TaskLimit } from '../../state/limits/task-limit.ts';
import type { TaskState } from '../../state/task.ts';
import { validWorkers } from '../placement/restrictions.ts';
import type { KernelScope } from '../scope.ts';
import { unsatisfied } from '../placement/describe-restrictions.ts';

const NAMED_MAX = 5;

/** The present situation of a task in sentences: what it waits for, and who waits for it. */
export function explainState(scope: KernelScope, task: TaskState): string[] {
  const lines = [...aboutRecovery(scope, task), ...aboutState(scope, task)];
  const clients = task.whoWants.items.map((client) => client.key);
  if (clients.length > 0) lines.push(`wanted by ${some(clients)}`);
  const waiters = task.waiters.map((waiter) => waiter.key);
  if (waiters.length > 0) lines.push(`kept for ${some(waiters)}`);
  if (clients.length + waiters.length === 0) lines.push('its result is not needed now');
  return lines;
}

/** Between the reading of a journal and the return of its workers nothing starts. */
function aboutRecovery({ recovery }: KernelScope, { state }: TaskState): string[] {
  if (recovery === undefined || state === 'memory' || state === 'erred') return [];
  const awaited = Array.from(recovery.awaited, ({ address }) => address);
  return [
    `nothing starts yet: the scheduler has read its journal, and waits for ${awaited.length} of the workers that it had (${some(awaited)}) until they are back or count as lost (--journal-wait)`,
  ];
}

function aboutState(scope: KernelScope, task: TaskState): string[] {
  const { cluster } = scope;
  switch (task.state) {
    case 'waiting': {
      const missing = task.waitingOn.map(({ key, state }) => `${key} (${state})`);
      return [
        `waits for ${missing.length} of ${task.dependencies.length} inputs: ${some(missing)}`,
      ];
    }
    case 'queued':
      if (task.limit !== undefined) return [aboutLimit(task.limit)];
      return [
        `held back in the scheduler, one of ${cluster.queued.size}: ${cluster.openSlots.size} of ${cluster.running.size} workers have an open slot`,
      ];
    case 'no-worker':
      return [whyNoWorker(scope, task)];
    case 'processing':
      return aboutProcessing(task);
    case 'memory': {
      const holders = task.whoHas.items.map((worker) => worker.address);
      return [`its result of ${task.nbytes} bytes is on ${some(holders)}`];
    }
    case 'erred':
      return aboutFailure(task);
    case 'released':
      return [task.runSpec === undefined ? 'it has no definition' : 'not computed, or released'];
    case 'forgotten':
      return ['forgotten'];
  }
}

function aboutLimit({ name, max, runningCount, queuedCount }: TaskLimit): string {
  return `waits for its limit, one of ${queuedCount}: ${runningCount} of ${max} of ${name} run`;
}

function whyNoWorker({ cluster, ports }: KernelScope, task: TaskState): string {
  if (cluster.running.size === 0) return 'no worker is running';
  const valid = validWorkers(cluster, task);
  if (valid?.size === 0) return unsatisfied(cluster, task);
  return `the policy ${ports.workerSelection.name} refused every worker; it is asked again when one has less to do`;
}

function aboutProcessing(task: TaskState): string[] {
  const worker = task.processingOn;
  if (worker === undefined) return [];
  const seconds = worker.executing.get(task);
  const place = `sent to ${worker.address} (${worker.status}) as run ${task.runId}`;
  return [
    seconds === undefined
      ? `${place}, one of ${worker.processing.size} on ${worker.threadCount} threads`
      : `${place}, running for ${seconds.toFixed(1)} s at its last heartbeat`,
  ];
}

function aboutFailure(task: TaskState): string[] {
  const { exceptionBlame: blame } = task;
  const text = task.blame?.failure.exceptionText ?? 'unknown error';
  if (blame === undefined || blame === task) return [`failed: ${text}`];
  return [`failed because ${blame.key} failed: ${text}`];
}

function some(names: readonly string[]): string {
  if (names.length <= NAMED_MAX) return names.join(', ');
  return `${names.slice(0, NAMED_MAX).join(', ')} and ${names.length - NAMED_MAX} more`;
}
