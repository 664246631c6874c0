import { type Logger } from '../api/plugin.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { LOGGER } from '../host/tokens.ts';
import type { WorkerIdentity } from '../state/worker.ts';
import type { Instruction } from '../worker/events.ts';
import { WorkerKernel } from '../worker/worker-kernel.ts';
import { WORKER_IDENTITY } from './tokens.ts';
import { WorkerActivities } from './worker-activities.ts';
import { WorkerEnding } from './worker-ending.ts';
import { type InstructionConsumer, WorkerInbox } from './worker-inbox.ts';
import { WorkerLink } from './worker-link.ts';
import type { WorkerEnd } from './worker-options.ts';

/**
 * The life of an event of a worker. Messages of the scheduler and the outcomes of runs and transfers wait in
 * the inbox, which has the kernel handle them; the instructions of the kernel are carried out here.
 */
@collaborator
export class WorkerHost implements InstructionConsumer {
  constructor(
    inbox: WorkerInbox,
    private readonly activities: WorkerActivities,
    private readonly link: WorkerLink,
    private readonly ending: WorkerEnding,
  ) {
    inbox.connect(this);
  }

  carryOut(instruction: Instruction): void {
    switch (instruction.kind) {
      case 'execute':
        return this.activities.execute(instruction);
      case 'gather':
        return this.activities.gather(instruction);
      case 'abort-execution':
        return this.activities.abortExecution(instruction);
      case 'limit-time':
        return this.activities.limitTime(instruction);
      case 'rejoined':
        return this.activities.rejoined(instruction.key);
      case 'resumed':
        return this.activities.resumed(instruction.key);
      case 'retry-busy-later':
        return this.activities.retryBusyLater(instruction.worker);
      case 'drop-data':
        return this.activities.dropData(instruction.key);
      case 'send':
        this.link.send(instruction.message);
    }
  }

  onBroken(cause: unknown): void {
    this.ending.fail(cause);
  }
}

/**
 * A worker as programs see it. It closes when the scheduler says so, when the scheduler is gone and it is not
 * configured to come back, and when its kernel finds itself broken.
 */
@collaborator
export class HostedWorker {
  /** Resolves when it has closed, for whatever reason. */
  readonly finished: Promise<WorkerEnd>;

  constructor(
    @inject(WORKER_IDENTITY) readonly identity: WorkerIdentity,
    private readonly kernel: WorkerKernel,
    private readonly link: WorkerLink,
    private readonly ending: WorkerEnding,
    @inject(LOGGER) private readonly log: Logger,
  ) {
    this.finished = ending.finished;
  }

  /** The address at which peers reach it. */
  get address(): string {
    return this.identity.address;
  }

  get name(): string {
    return this.identity.name;
  }

  /**
   * Reports to the scheduler, gives up what runs, and closes the executor.
   * @param end - why, and whether another worker shall take its place
   */
  close(end: Omit<WorkerEnd, 'error'> = { reason: 'asked to close' }): Promise<void> {
    return this.ending.begin(end);
  }

  /**
   * Asks the scheduler to take it out of service and to move what only it holds to other workers.
   * Never rejects: what was not moved in time is computed again elsewhere.
   *
   * @param timeoutMs - milliseconds to wait for that
   */
  async retire(timeoutMs: number): Promise<void> {
    const { link, address, kernel } = this;
    if (link.isClosed || kernel.tables.tasks.size === 0) return;
    try {
      await link.retire(timeoutMs);
    } catch (error) {
      if (this.ending.hasBegun) return;
      this.log.warn({ err: error, address }, 'the worker closes with results on it');
    }
  }

  /** Publishes a message under topics on the scheduler. */
  logEvent(topics: readonly string[], message: unknown): void {
    this.link.report({ op: 'log-event', topics, message });
  }
}
