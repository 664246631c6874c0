import type { YardmasterError } from '../api/errors.ts';
import type { Executor } from '../api/executor.ts';
import { token, type Token } from '../api/plugin.ts';
import { inject } from '../plugin-host/injection.ts';
import type { WorkerIdentity } from '../state/worker.ts';
import type { MemoryMode } from '../worker/memory.ts';
import type { WorkerKernel } from '../worker/worker-kernel.ts';
import { EXECUTOR, WORKER_IDENTITY, WORKER_KERNEL } from './tokens.ts';
import { WORKER_ACTIVITIES, type WorkerActivities } from './worker-activities.ts';
import { WORKER_ENDING, type WorkerEnding } from './worker-ending.ts';
import { WORKER_INBOX, type WorkerInbox } from './worker-inbox.ts';
import { WORKER_LINK, type WorkerLink } from './worker-link.ts';
import { type MemoryOwner, WORKER_MEMORY, type WorkerMemory } from './worker-memory.ts';
import { WORKER_STATUS, type WorkerStatusTracker } from './worker-status.ts';

export const MEMORY_REACTIONS: Token<MemoryReactions> = token('memory-reactions');

/** What a worker does when its memory fills, and when results or actors are lost. */
export class MemoryReactions implements MemoryOwner {
  constructor(
    @inject(WORKER_IDENTITY) { address }: WorkerIdentity,
    @inject(WORKER_KERNEL) private readonly kernel: WorkerKernel,
    @inject(WORKER_STATUS) private readonly status: WorkerStatusTracker,
    @inject(WORKER_INBOX) private readonly inbox: WorkerInbox,
    @inject(WORKER_LINK) private readonly link: WorkerLink,
    @inject(WORKER_ACTIVITIES) private readonly activities: WorkerActivities,
    @inject(WORKER_ENDING) private readonly ending: WorkerEnding,
    @inject(WORKER_MEMORY) memory: WorkerMemory,
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
