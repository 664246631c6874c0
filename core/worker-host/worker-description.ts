import type { WireMessage } from '../api/transport.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import type { Traffic, WorkerIdentity, WorkerMetrics } from '../state/worker.ts';
import { WorkerKernel } from '../worker/worker-kernel.ts';
import { WORKER_IDENTITY, WORKER_OPTIONS } from './tokens.ts';
import { WorkerActivities } from './worker-activities.ts';
import { WorkerMemory } from './worker-memory.ts';
import type { CpuTimes, WorkerHostOptions } from './worker-options.ts';
import { WorkerStatusTracker } from './worker-status.ts';

/** The description that a worker gives of itself. */
@collaborator
export class WorkerDescription {
  /** The time of the last metrics, and the CPU time used by then, in milliseconds. */
  private told: (CpuTimes & { readonly nowMs: number }) | undefined;
  /** The time of the last metrics, and the bytes moved by then. */
  private moved: (Traffic & { readonly nowMs: number }) | undefined;

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

  /** For the scheduler. Bandwidth, CPU and delay are those since the last call. */
  metrics(): WorkerMetrics {
    const loopDelayMs = this.options.takeLoopDelayMs?.();
    return {
      ...this.memory.figures(),
      managedBytes: this.kernel.tables.nbytes,
      ...this.activities.takeTransfers(),
      ...this.takeTraffic(),
      ...this.takeCpu(),
      ...(loopDelayMs === undefined ? {} : { loopDelayMs }),
    };
  }

  /** Nothing at the first call. */
  private takeTraffic(): Pick<WorkerMetrics, 'traffic'> {
    const { moved: last } = this;
    const moved = this.memory.movedBytes;
    const nowMs = this.options.clock.nowMs();
    this.moved = { ...moved, nowMs };
    if (last === undefined || nowMs <= last.nowMs) return {};
    const rate = (of: keyof Traffic): number =>
      Math.round((1000 * (moved[of] - last[of])) / (nowMs - last.nowMs));
    return {
      traffic: {
        ...{ received: rate('received'), sent: rate('sent') },
        ...{ diskRead: rate('diskRead'), diskWritten: rate('diskWritten') },
      },
    };
  }

  /** 100 for each core that was busy all the time since the last call; nothing at the first. */
  private takeCpu(): Pick<
    WorkerMetrics,
    'cpuPercent' | 'sharedCpuPercent' | 'cpuWaitPercent' | 'hostCpuPercent' | 'hostCores'
  > {
    const { clock, measureCpu, sharesProcess = false } = this.options;
    if (measureCpu === undefined) return {};
    const last = this.told;
    const told = { nowMs: clock.nowMs(), ...measureCpu() };
    this.told = told;
    if (last === undefined || told.nowMs <= last.nowMs) return {};
    const percent = (ms: number): number =>
      Math.max(0, Math.round((100 * ms) / (told.nowMs - last.nowMs)));
    const own = percent(told.processMs - last.processMs);
    return {
      ...(sharesProcess ? { sharedCpuPercent: own } : { cpuPercent: own }),
      ...(told.waitedMs === undefined || last.waitedMs === undefined
        ? {}
        : { cpuWaitPercent: percent(told.waitedMs - last.waitedMs) }),
      hostCpuPercent: percent(told.hostMs - last.hostMs),
      hostCores: told.hostCores,
    };
  }
}
