import { token, type Token } from '../api/plugin.ts';
import type { WireMessage } from '../api/transport.ts';
import { inject } from '../plugin-host/injection.ts';
import type { WorkerIdentity, WorkerMetrics } from '../state/worker.ts';
import type { WorkerKernel } from '../worker/worker-kernel.ts';
import { WORKER_IDENTITY, WORKER_KERNEL, WORKER_OPTIONS } from './tokens.ts';
import { WORKER_ACTIVITIES, type WorkerActivities } from './worker-activities.ts';
import { WORKER_MEMORY, type WorkerMemory } from './worker-memory.ts';
import type { WorkerHostOptions } from './worker-options.ts';
import { WORKER_STATUS, type WorkerStatusTracker } from './worker-status.ts';

export const WORKER_DESCRIPTION: Token<WorkerDescription> = token('worker-description');

/** What a worker says of itself. */
export class WorkerDescription {
  constructor(
    @inject(WORKER_OPTIONS) private readonly options: WorkerHostOptions,
    @inject(WORKER_IDENTITY) private readonly identity: WorkerIdentity,
    @inject(WORKER_KERNEL) private readonly kernel: WorkerKernel,
    @inject(WORKER_STATUS) private readonly status: WorkerStatusTracker,
    @inject(WORKER_MEMORY) private readonly memory: WorkerMemory,
    @inject(WORKER_ACTIVITIES) private readonly activities: WorkerActivities,
  ) {}

  /** For people and peers. */
  describe(): WireMessage {
    const { tables } = this.kernel;
    return {
      ...this.identity,
      status: this.status.status,
      scheduler: this.options.schedulerAddress,
      taskCount: tables.tasks.size,
      executing: [...tables.executing].map((task) => task.key),
      managedBytes: tables.nbytes,
    };
  }

  /** For the scheduler. The bandwidth is that since the last call. */
  metrics(): WorkerMetrics {
    const bandwidth = this.activities.takeBandwidth();
    return {
      ...this.memory.figures(),
      managedBytes: this.kernel.tables.nbytes,
      ...(bandwidth === undefined ? {} : { bandwidth }),
    };
  }
}
