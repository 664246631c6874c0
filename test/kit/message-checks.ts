import type { Outbox } from '../../core/kernel/outbox.ts';
import type { SchedulerKernel } from '../../core/kernel/kernel.ts';
import type { ComputeTask } from '../../core/messages/to-worker.ts';
import type { WorkerState } from '../../core/state/task.ts';
import { check } from './check.ts';

/** Transitions that one stimulus may take: 20 for each task it touches, and a few more. */
const TRANSITIONS_PER_TASK = 20;
const TRANSITIONS_SPARE = 10;

/**
 * What holds for the messages of every stimulus, whatever it was (invariants.md, "Messages"). Goes
 * along with a kernel and looks at each outbox before the next stimulus.
 */
export class MessageChecks {
  private workersBefore = new Set<WorkerState>();
  private tasksBefore = 0;
  private transitionsBefore = 0;
  private lastRunId = -1;
  /** Run id of the latest assignment by key: an entry into `processing` sends exactly one message. */
  private readonly assigned = new Map<string, number>();

  constructor(private readonly kernel: SchedulerKernel) {}

  before(): void {
    this.workersBefore = new Set(this.kernel.cluster.workers.values());
    this.tasksBefore = this.kernel.cluster.tasks.size;
    this.transitionsBefore = this.kernel.transitionCounter;
  }

  after(outbox: Outbox): void {
    for (const { worker, message } of outbox.toWorkers) {
      if (!isLeaving(outbox, worker)) this.checkReceiver(worker, message.op);
      if (message.op === 'compute-task') this.checkComputeTask(worker, message);
    }
    this.checkAssignments();
    this.checkTransitionCount();
  }

  /** Only a registered worker is spoken to, or one that was there when the stimulus came. */
  private checkReceiver(worker: WorkerState, op: string): void {
    const isRegistered = this.kernel.cluster.workers.get(worker.address) === worker;
    check(
      isRegistered || this.workersBefore.has(worker),
      () => `${op} goes to ${worker.address}, which is not registered`,
    );
  }

  private checkComputeTask(worker: WorkerState, message: ComputeTask): void {
    const { key, runId, dependencies } = message;
    check(runId > this.lastRunId, () => `run id ${runId} of ${key} is not a new one`);
    this.lastRunId = runId;
    this.assigned.set(key, runId);
    dependencies.keys.forEach((dependency, index) => {
      check(
        dependencies.whoHas[index]!.length > 0,
        () => `compute-task ${key} names no holder of ${dependency}`,
      );
    });
    const task = this.kernel.cluster.tasks.get(key);
    if (task?.runId !== runId || task.state !== 'processing') return;
    check(task.processingOn === worker, () => `${key} was sent to ${worker.address} by mistake`);
    const expected = task.dependencies.map((dependency) => dependency.key).join(' ');
    check(
      dependencies.keys.join(' ') === expected,
      () => `compute-task ${key} names other inputs than ${expected}`,
    );
  }

  /** Whatever is processing was sent with the run id that is in force. */
  private checkAssignments(): void {
    for (const worker of this.kernel.cluster.workersByRank) {
      for (const { key, runId } of worker.processing) {
        check(this.assigned.get(key) === runId, () => `${key} is processing and was not sent`);
      }
    }
  }

  private checkTransitionCount(): void {
    const { kernel, tasksBefore, transitionsBefore } = this;
    const tasks = Math.max(tasksBefore, kernel.cluster.tasks.size);
    const limit = TRANSITIONS_PER_TASK * (tasks + TRANSITIONS_SPARE);
    const count = kernel.transitionCounter - transitionsBefore;
    check(count <= limit, () => `one stimulus took ${count} transitions for ${tasks} tasks`);
  }
}

/** It is told to close: perhaps it could not be let in. */
function isLeaving({ toWorkers }: Outbox, worker: WorkerState): boolean {
  return toWorkers.some((sent) => sent.worker === worker && sent.message.op === 'close');
}
