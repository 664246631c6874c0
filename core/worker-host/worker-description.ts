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
  /** The time of the last metrics, and the CPU time used by then, in milliseconds. */
  private told: { readonly nowMs: number; readonly cpuMs: number } | undefined;

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

  /** For the scheduler. Bandwidth and CPU are those since the last call. */
  metrics(): WorkerMetrics {
    const bandwidth = this.activities.takeBandwidth();
    const cpuPercent = this.takeCpuPercent();
    return {
      ...this.memory.figures(),
      managedBytes: this.kernel.tables.nbytes,
      ...(bandwidth === undefined ? {} : { bandwidth }),
      ...(cpuPercent === undefined ? {} : { cpuPercent }),
    };
  }

  /** 100 for each core that was busy all the time since the last call; undefined at the first. */
  private takeCpuPercent(): number | undefined {
    const { clock, measureCpuMs } = this.options;
    if (measureCpuMs === undefined) return undefined;
    const last = this.told;
    const told = { nowMs: clock.nowMs(), cpuMs: measureCpuMs() };
    this.told = told;
    if (last === undefined || told.nowMs <= last.nowMs) return undefined;
    return Math.round((100 * (told.cpuMs - last.cpuMs)) / (told.nowMs - last.nowMs));
  }
}
