import { noHooks } from '../kit/ports.ts';
import { SchedulerKernel } from '../../core/kernel/kernel.ts';
import type { Outbox } from '../../core/kernel/outbox.ts';
import type { KernelScope } from '../../core/kernel/scope.ts';
import { checkIdleSaturated } from '../../core/kernel/occupancy.ts';
import { parseDurationMs } from '../../core/util/units.ts';
import type { Stimulus } from '../../core/messages/stimulus.ts';
import type { WorkerMetrics, WorkerStatus } from '../../core/state/worker.ts';
import { fifo } from '../../policies/fairness/fifo.ts';
import { depthFirst } from '../../policies/ordering/depth-first.ts';
import { rootish } from '../../policies/queuing/root-ish.ts';
import { earliestStart } from '../../policies/worker-selection/earliest-start.ts';
import { putInCanonicalOrder } from './canonical-order.ts';
import type { TraceConfig, TraceStimulus, TraceTask } from './trace-format.ts';
import { made } from '../kit/made.ts';

/** Of a step without messages. */
export const NO_OUTPUT: Outbox = { toWorkers: [], toClients: [], events: [] };

/** A real kernel that is driven by a recorded trace. */
export class TraceKernel {
  readonly kernel: SchedulerKernel;
  private step = 0;

  constructor(config: TraceConfig) {
    const workerSaturation =
      config.workerSaturation === 'inf' ? Infinity : (config.workerSaturation ?? 1.1);
    const policies = {
      workerSelection: made(earliestStart, { resources: 'offered' }),
      queuing: made(rootish, { workerSaturation }),
      ordering: made(depthFirst),
      fairness: made(fifo),
    };
    this.kernel = new SchedulerKernel(
      {
        validate: true,
        allowedFailures: config.allowedFailures ?? 3,
        unknownTaskDurationS: config.unknownTaskDuration ?? 0.5,
        bandwidth: config.bandwidth ?? 100e6,
        // The recorder's default size of a result.
        defaultDataSize: 1000,
        defaultTaskDurationsS: new Map(
          Object.entries(config.defaultTaskDurations ?? {}).map(([prefix, duration]) => [
            prefix,
            typeof duration === 'number' ? duration : (parseDurationMs(duration) ?? 0) / 1000,
          ]),
        ),
        refuseOversizedInputs: false,
        workerOrder: 'address',
      },
      {
        workerSelection: { name: 'earliest-start', policy: policies.workerSelection },
        queuing: { name: 'root-ish', policy: policies.queuing },
        ordering: { name: 'depth-first', policy: policies.ordering },
        fairness: { name: 'fifo', policy: policies.fairness },
        rules: [],
        fallbacks: policies,
        hooks: noHooks(),
        onPolicyFailure: ({ error }) => {
          throw error;
        },
      },
      0,
    );
  }

  /** The kernel's inside, for forced transitions. */
  get scope(): KernelScope {
    return this.kernel['scope'];
  }

  /** The clock of the recording: one second per stimulus. */
  get nowMs(): number {
    return this.step * 1000;
  }

  /** One more step. Returns its time. */
  protected tick(): number {
    this.step++;
    return this.nowMs;
  }

  /** Rounds of stealing and their answers are driven by the owner of a balancer. */
  apply(stimulus: TraceStimulus): Outbox {
    this.tick();
    if (stimulus.op === 'balance' || stimulus.op === 'stealResponse') {
      throw new Error(`a trace of ${stimulus.op} belongs to the part "stealing"`);
    }
    putInCanonicalOrder(this.kernel.cluster);
    if (stimulus.op === 'recheckIdle') {
      for (const worker of this.kernel.cluster.workersByRank) {
        checkIdleSaturated(this.scope, worker);
      }
      return NO_OUTPUT;
    }
    if (stimulus.op === 'ammRun' || stimulus.op === 'rebalance') {
      throw new Error(`this kernel has no memory manager for ${stimulus.op}`);
    }
    const outbox = this.kernel.handle(this.translate(stimulus), this.nowMs);
    if (stimulus.op === 'heartbeat') this.setUnmanagedOld(stimulus);
    return outbox;
  }

  /** The recorder states the old unmanaged memory itself, instead of 30 seconds of heartbeats. */
  private setUnmanagedOld({
    address,
    unmanagedOld,
  }: Extract<TraceStimulus, { op: 'heartbeat' }>): void {
    const worker = this.kernel.cluster.workers.get(address);
    if (worker === undefined || unmanagedOld === undefined) return;
    worker.unmanagedHistory.oldBytes = unmanagedOld;
  }

  /** A heartbeat that states no memory leaves it as it was. */
  private metricsOf(address: string, processMemory: number | undefined): WorkerMetrics {
    const known = this.kernel.cluster.workers.get(address)?.metrics ?? metrics();
    return processMemory === undefined ? known : { ...known, memoryBytes: processMemory };
  }

  private translate(
    stimulus: Exclude<
      TraceStimulus,
      { op: 'recheckIdle' | 'ammRun' | 'rebalance' | 'balance' | 'stealResponse' }
    >,
  ): Stimulus {
    const stimulusId = `${stimulus.op}-${this.step}`;
    switch (stimulus.op) {
      case 'addWorker':
        return {
          op: 'register-worker',
          identity: {
            address: stimulus.address,
            serverId: stimulus.address,
            name: stimulus.name ?? stimulus.address,
            host: hostOf(stimulus.address),
            threadCount: stimulus.nthreads,
            memoryLimitBytes: stimulus.memoryLimit ?? 0,
            resources: stimulus.resources ?? {},
          },
          status: stimulus.status ?? 'running',
          metrics: metrics(stimulus.processMemory),
          stimulusId,
        };
      case 'removeWorker':
        return {
          op: 'remove-worker',
          worker: stimulus.address,
          expected: stimulus.safe ?? false,
          close: true,
          stimulusId,
        };
      case 'workerStatus':
        return {
          op: 'worker-status-change',
          worker: stimulus.address,
          status: stimulus.status.replaceAll('_', '-') as WorkerStatus,
          stimulusId,
        };
      case 'heartbeat':
        return {
          op: 'heartbeat-worker',
          worker: stimulus.address,
          metrics: this.metricsOf(stimulus.address, stimulus.processMemory),
          executing: Object.entries(stimulus.executing ?? {}),
          workerNowMs: this.nowMs,
          stimulusId,
        };
      case 'addClient':
        return { op: 'register-client', client: stimulus.client, stimulusId };
      case 'removeClient':
        return { op: 'remove-client', client: stimulus.client, stimulusId };
      case 'updateGraph':
        return {
          op: 'update-graph',
          client: stimulus.client,
          keys: stimulus.keys,
          tasks: stimulus.tasks.map(graphTask),
          stimulusId,
        };
      case 'updateData':
        return {
          op: 'update-data',
          client: stimulus.client,
          items: Object.entries(stimulus.whoHas).map(([key, workers]) => ({
            key,
            workers,
            ...sizeOf(stimulus.nbytes[key]),
          })),
          stimulusId,
        };
      case 'clientDesiresKeys':
      case 'clientReleasesKeys':
      case 'retry': {
        const op = (
          {
            clientDesiresKeys: 'client-desires-keys',
            clientReleasesKeys: 'client-releases-keys',
            retry: 'retry',
          } as const
        )[stimulus.op];
        return { op, client: stimulus.client, keys: stimulus.keys, stimulusId };
      }
      case 'cancel': {
        const { client, keys, force = false } = stimulus;
        return { op: 'cancel-keys', client, keys, force, stimulusId };
      }
      case 'addKeys':
        return { op: 'add-keys', worker: stimulus.worker, keys: stimulus.keys, stimulusId };
      case 'taskFinished':
      case 'taskErred':
      case 'longRunning':
      case 'reschedule':
      case 'releaseWorkerData':
        return this.translateReport(stimulus, stimulusId);
    }
  }

  private translateReport(
    stimulus: Extract<
      TraceStimulus,
      { op: 'taskFinished' | 'taskErred' | 'longRunning' | 'reschedule' | 'releaseWorkerData' }
    >,
    stimulusId: string,
  ): Stimulus {
    const { key } = stimulus;
    // Recorded without run ids: every answer is to the latest assignment.
    const runId = this.kernel.cluster.tasks.get(key)?.runId ?? -1;
    const nowS = this.nowMs / 1000;
    switch (stimulus.op) {
      case 'taskFinished':
        return {
          op: 'task-finished',
          key,
          worker: stimulus.worker,
          runId,
          ...sizeOf(stimulus.nbytes),
          type: 'obj',
          timings: [{ action: 'compute', startS: nowS, stopS: nowS + stimulus.duration }],
          stimulusId,
        };
      case 'taskErred':
        return {
          op: 'task-erred',
          key,
          worker: stimulus.worker,
          runId,
          failure: { exception: 'E', traceback: 'T', exceptionText: 'E', tracebackText: 'T' },
          stimulusId,
        };
      case 'longRunning':
        return {
          op: 'long-running',
          key,
          worker: stimulus.worker,
          runId,
          ...(typeof stimulus.computeDuration === 'number'
            ? { computeDurationS: stimulus.computeDuration }
            : {}),
          stimulusId,
        };
      case 'reschedule':
        return {
          op: 'reschedule',
          key,
          worker: stimulus.worker,
          stimulusId,
        };
      case 'releaseWorkerData':
        return { op: 'release-worker-data', keys: [key], worker: stimulus.worker, stimulusId };
    }
  }
}

export function hostOf(address: string): string {
  return address.replace(/^.*:\/\//, '').replace(/:\d+$/, '');
}

function graphTask(task: TraceTask): Extract<Stimulus, { op: 'update-graph' }>['tasks'][number] {
  const { key, deps, priority, ...rest } = task;
  return { key, dependencies: deps, rank: priority, runSpec: 'spec', ...rest };
}

function metrics(memoryBytes = 0): WorkerMetrics {
  return { memoryBytes, spilledMemoryBytes: 0, spilledDiskBytes: 0, managedBytes: 0 };
}

/** Unknown sizes are left out. */
function sizeOf(nbytes: number | null | undefined): { readonly nbytes?: number } {
  return typeof nbytes !== 'number' || nbytes < 0 ? {} : { nbytes };
}
