import type { YardmasterError } from '../api/errors.ts';
import type { Executor } from '../api/executor.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import type { WorkerIdentity } from '../state/worker.ts';
import type { MemoryMode } from '../worker/memory.ts';
import { WorkerKernel } from '../worker/worker-kernel.ts';
import { EXECUTOR, WORKER_IDENTITY } from './tokens.ts';
import { WorkerActivities } from './worker-activities.ts';
import { WorkerEnding } from './worker-ending.ts';
import { WorkerInbox } from './worker-inbox.ts';
import { WorkerLink } from './worker-link.ts';
import { type MemoryOwner, WorkerMemory } from './worker-memory.ts';
import { WorkerStatusTracker } from './worker-status.ts';

/** The reactions of a worker when its memory fills, and when results or actors are lost. */
@collaborator
export class MemoryReactions implements MemoryOwner {
  constructor(
    @inject(WORKER_IDENTITY) { address }: WorkerIdentity,
    private readonly kernel: WorkerKernel,
    private readonly status: WorkerStatusTracker,
    private readonly inbox: WorkerInbox,
    private readonly link: WorkerLink,
    private readonly activities: WorkerActivities,
    private readonly ending: WorkerEnding,
    memory: WorkerMemory,
    @inject(EXECUTOR) executor: Executor,
  ) {
    memory.connect(this, address);
    executor.onActorLost = (key) => this.onLost(key);
  }

  /** Nothing occupies a thread and nothing is on its way. What has seceded may wait for others. */
  get isIdle(): boolean {
    const { occupiedThreads, transferCount } = this.kernel.tables;
    return occupiedThreads === 0 && transferCount === 0;
  }

  onMode(mode: MemoryMode): void {
    this.status.allow(mode, this.link.nameEvent(`memory-${mode}`));
    this.inbox.drain();
  }

  onMeasured(processBytes: number): void {
    this.inbox.feed({ op: 'memory-measured', processBytes, stimulusId: 'memory-measured' });
  }

  onLost(key: string): void {
    this.inbox.feed({ op: 'data-lost', keys: [key], stimulusId: this.link.nameEvent('data-lost') });
  }

  /** Stops the task that has taken the memory, if that is beyond doubt; otherwise the worker gives up. */
  onTooMuch(error: YardmasterError): boolean {
    const isStopped = this.activities.stopMemoryHog(error);
    if (!isStopped) this.ending.giveUp(error);
    return isStopped;
  }
}
