import type { ClusterView, TaskView, WorkerLoss, WorkerView } from '../../core/api/index.ts';
import type { Scheduler } from '../../core/scheduler-host/scheduler.ts';
import { countOf } from '../../core/util/values.ts';

/** The knowledge of a program about its workers that the scheduler does not have. */
export interface SchedulerWatch {
  /**
   * The workers are about to leave on purpose: tasks without a worker are not logged from then on, although they may
   * not have been released yet.
   */
  expectEnd(): void;
  /** True when workers are started when there is work for them: no worker is then nothing to log. */
  expectWorkers(areStarted: boolean): void;
}

/** Milliseconds after a graph within which its tasks are placed, as a rule. */
const PLACED_MS = 1000;

/**
 * Logs events for people: workers that join, leave and die, and tasks that wait for a worker that
 * does not exist. So a cluster that seems to hang always explains why.
 *
 * @returns what tells the watch about the workers
 */
export function watchScheduler(scheduler: Scheduler): SchedulerWatch {
  const { log } = scheduler;
  const { cluster, events, policies } = scheduler;
  let isClosing = false;
  let areStarted = false;
  let logged: Waiting['why'] | undefined;
  let again: NodeJS.Timeout | undefined;
  const tellWaiting = (): void => {
    const areComing = areStarted && cluster.workers.size === 0;
    const waiting = isClosing || areComing ? undefined : findWaiting(cluster, policies);
    if (waiting !== undefined && waiting.why !== logged) log.warn({}, waiting.text);
    logged = waiting?.why;
  };
  events.on('worker-added', (worker) => {
    const { address, threadCount } = worker;
    log.info({ worker: address }, `${shown(worker)} is there: ${countOf(threadCount, 'thread')}`);
    logged = undefined;
  });
  events.on('event', (topic, message) => {
    if (topic === 'scheduler' && isCollision(message)) log.warn({}, message.message);
  });
  events.on('worker-removed', (worker, _stimulusId, loss) => {
    const { expected, processing, recomputed, lost } = loss;
    const counts = { processing: processing.length, recomputed: recomputed.length };
    const facts = { worker: worker.address, ...counts };
    const who = shown(worker);
    if (expected) log.info(facts, `${who} has left`);
    else log.warn(facts, `${who} is gone without a goodbye${toll(loss)}`);
    if (lost.length > 0) {
      const keys = `${countOf(lost.length, 'result')} (${some(lost)})`;
      log.warn(facts, `${keys} had no other copy than on ${who} and cannot be computed`);
    }
    tellWaiting();
  });
  events.on('graph-submitted', () => {
    tellWaiting();
    // The tasks of a large graph are placed after it was taken in.
    again ??= setTimeout(() => {
      again = undefined;
      tellWaiting();
    }, PLACED_MS).unref();
  });
  const expectEnd = (): void => {
    isClosing = true;
  };
  events.on('closed', expectEnd);
  const expectWorkers = (given: boolean): void => {
    areStarted = given;
    tellWaiting();
  };
  return { expectEnd, expectWorkers };
}

function shown({ name, address }: WorkerView): string {
  return name === address ? `worker ${address}` : `worker ${name} (${address})`;
}

function isCollision(message: unknown): message is { readonly message: string } {
  return (message as { action?: unknown } | undefined)?.action === 'key-collision';
}

function toll({ processing, recomputed }: WorkerLoss): string {
  const parts = [
    processing.length === 0
      ? ''
      : `${countOf(processing.length, 'task')} it had (${some(processing)})`,
    recomputed.length === 0 ? '' : `${countOf(recomputed.length, 'result')} it held`,
  ].filter((part) => part !== '');
  return parts.length === 0 ? '' : `; to be computed again: ${parts.join(' and ')}`;
}

/** Tasks that are looked at for why they wait. */
const LOOKED_AT = 100;

interface Waiting {
  readonly why: 'no worker' | 'no such worker' | 'policy';
  readonly text: string;
}

/**
 * Tasks that wait for something that may never come. Usually none waits, which costs as good as nothing.
 * @param policies - `current`: their names
 */
export function findWaiting(
  cluster: ClusterView,
  policies: { readonly current: Readonly<Record<'workerSelection' | 'queuing', string>> },
): Waiting | undefined {
  const { workers, unrunnable, queued } = cluster;
  if (unrunnable.size + queued.size === 0) return undefined;
  if (workers.size === 0) {
    const waiting = unrunnable.size + queued.size;
    const text = `there is no worker for ${countOf(waiting, 'task')}; start one, or set scheduler.noWorkersTimeout to have them fail`;
    return { why: 'no worker', text };
  }
  const isEach = (test: (worker: WorkerView) => boolean): boolean => {
    for (const worker of workers.values()) if (!test(worker)) return false;
    return true;
  };
  // What is refused is offered again when a worker has less to do, or is taken into service. When all workers are in
  // service and idle, that never happens.
  const areIdle = isEach(({ processing, status }) => processing.size === 0 && status === 'running');
  const selection = (): string => `"${policies.current.workerSelection}" (workerSelection)`;
  let waiting: Waiting | undefined;
  let looked = 0;
  for (const task of unrunnable.keys()) {
    if (looked++ === LOOKED_AT) break;
    const reason = cluster.whyWaits(task);
    if (reason !== undefined && isEach((worker) => cluster.suits(task, worker) === 'no')) {
      const text = `${task.key} waits: ${reason}; start a worker that may run it, or set scheduler.noWorkersTimeout to have such tasks fail`;
      return { why: 'no such worker', text };
    }
    if (!areIdle) continue;
    waiting ??= refused(task, reason ?? `the policy ${selection()} gives it to no worker`);
  }
  const held = areIdle && cluster.openSlots.size > 0 ? queued.peek() : undefined;
  if (waiting !== undefined || held === undefined) return waiting;
  const { queuing } = policies.current;
  return refused(
    held,
    `the policy ${selection()} gives it to no worker, or "${queuing}" (queuing) to no slot`,
  );
}

function refused({ key }: TaskView, who: string): Waiting {
  const text = `${key} waits although all workers are idle, perhaps for ever: ${who}`;
  return { why: 'policy', text };
}

function some(keys: readonly string[]): string {
  return keys.length > 2 ? `${keys.slice(0, 2).join(', ')}, …` : keys.join(', ');
}
