import type { WireMessage } from '../api/transport.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import type { WorkerIdentity, WorkerMetrics } from '../state/worker.ts';
import { WorkerKernel } from '../worker/worker-kernel.ts';
import { WORKER_IDENTITY, WORKER_OPTIONS } from './tokens.ts';
import { WorkerActivities } from './worker-activities.ts';
import { WorkerMemory } from './worker-memory.ts';
import type { WorkerHostOptions } from './worker-options.ts';
import { WorkerStatusTracker } from './worker-status.ts';

/** The description that a worker gives of itself. */
@collaborator
export class WorkerDescription {
  constructor(
    @inject(WORKER_OPTIONS) private readonly options: WorkerHostOptions,
    @inject(WORKER_IDENTITY) private readonly identity: WorkerIdentity,
    private readonly kernel: WorkerKernel,
    private readonly status: WorkerStatusTracker,
    private readonly memory: WorkerMemory,
    private readonly activities: WorkerActivities,
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
