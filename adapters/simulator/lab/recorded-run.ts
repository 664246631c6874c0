import type { LogFrame, LogHeader } from '../../../core/log/format.ts';
import type { RegisterWorker } from '../../../core/messages/from-worker.ts';
import type { TaskFinished, UpdateGraph } from '../../../core/messages/stimulus.ts';
import type { StatePart } from '../../../core/kernel/state-parts.ts';
import type { ConfigInput } from '../../app/config.ts';
import type { WorkerModel } from '../options.ts';
import { isOpen } from '../load-workload.ts';

/** One computation of a task. */
export interface RecordedRun {
  readonly key: string;
  readonly worker: string;
  readonly startS: number;
  readonly stopS: number;
  /** True when inputs were fetched for it. */
  readonly fetched: boolean;
}

/** The cluster of a recording, apart from the graph and its costs. */
export class RecordedCluster {
  readonly workers = new Map<string, WorkerModel>();
  readonly runs: RecordedRun[] = [];
  readonly dependencies = new Map<string, readonly string[]>();
  /** Bytes per second, as workers measured them. */
  readonly bandwidths: number[] = [];
  graphCount = 0;
  /** The configuration of the policies and plugins. */
  config: ConfigInput = {};
  private hasBegun = false;
  private firstMs: number | undefined;
  private lastMs = 0;

  /** Seconds from the first graph until the last task was finished. */
  get makespanS(): number {
    return Math.max(0, this.lastMs - (this.firstMs ?? this.lastMs)) / 1000;
  }

  /** Milliseconds from the first graph until the first task begins. */
  get startMs(): number {
    const firstS = this.runs.reduce((least, { startS }) => Math.min(least, startS), Infinity);
    return Math.max(0, 1000 * firstS - (this.firstMs ?? 0));
  }

  add(frame: LogFrame): void {
    if (frame.kind === 'header') this.config = decidingConfig(frame.payload);
    if (frame.kind === 'state' && !this.hasBegun) this.addKnown(frame.payload, frame.timeMs);
    if (frame.kind !== 'stimulus') return;
    this.hasBegun = true;
    const { payload, timeMs } = frame;
    if (payload.op === 'register-worker') this.addWorker(payload);
    else if (payload.op === 'update-graph') this.addGraph(payload, timeMs);
    else if (payload.op === 'task-finished') this.addRun(payload, timeMs);
    else if (payload.op === 'heartbeat-worker') {
      const { bandwidth } = payload.metrics;
      if (bandwidth !== undefined && bandwidth > 0) this.bandwidths.push(bandwidth);
    }
  }

  /** Adds the workers that the cluster had when the recording began: it may have begun in the middle. */
  private addKnown(known: StatePart, timeMs: number): void {
    if (known.part === 'workers') {
      for (const { identity } of known.workers.slice(0, known.registered))
        this.addIdentity(identity);
    } else if (known.part === 'tasks' && known.states.some(isOpen)) {
      this.firstMs ??= timeMs;
      this.graphCount = 1;
    }
  }

  private addWorker({ identity }: RegisterWorker): void {
    this.addIdentity(identity);
  }

  private addIdentity(identity: RegisterWorker['identity']): void {
    const { address, threadCount, memoryLimitBytes } = identity;
    this.workers.set(address, { threads: threadCount, memoryLimitBytes });
  }

  private addGraph({ tasks }: UpdateGraph, timeMs: number): void {
    this.firstMs ??= timeMs;
    this.graphCount++;
    for (const { key, dependencies } of tasks) this.dependencies.set(key, dependencies);
  }

  private addRun({ key, worker, timings }: TaskFinished, timeMs: number): void {
    this.lastMs = timeMs;
    const compute = timings.find(({ action }) => action === 'compute');
    if (compute === undefined) return;
    const { startS, stopS } = compute;
    const fetched = timings.some(({ action }) => action === 'transfer');
    this.runs.push({ key, worker, startS, stopS, fetched });
  }
}

/** The part of a configuration that decides; addresses, plugins and files are left out. */
function decidingConfig({ config }: LogHeader): ConfigInput {
  const { scheduler = {}, worker = {} } = config as Record<string, Record<string, unknown>>;
  const { policies, workStealing, activeMemoryManager, bandwidth, slotWork } = scheduler;
  const { memory, memoryAdmission, ready } = worker;
  return {
    scheduler: { policies, workStealing, activeMemoryManager, bandwidth, slotWork },
    worker: { memory, memoryAdmission, ready },
  } as ConfigInput;
}
