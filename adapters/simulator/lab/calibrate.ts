import { YardmasterError } from '../../../core/api/index.ts';
import type { StatePart } from '../../../core/kernel/snapshot.ts';
import type { LogFrame, LogHeader } from '../../../core/log/format.ts';
import type { RegisterWorker } from '../../../core/messages/from-worker.ts';
import type { TaskFinished, UpdateGraph } from '../../../core/messages/stimulus.ts';
import type { ConfigInput } from '../../app/config.ts';
import { wholeRecording } from '../../app/read-log.ts';
import { isOpen, RecordedGraphs } from '../load-workload.ts';
import { DEFAULT_NETWORK, type SimulationOptions, type WorkerModel } from '../options.ts';
import { simulate } from '../simulation.ts';

/** Models of a cluster that are fitted to a recording of it. */
export interface FittedModels {
  /** Threads of each worker. One that came after another with as many had left has its place. */
  readonly threads: readonly number[];
  /** Bytes per second of a link: what workers measured; undefined when they measured no transfer. */
  readonly bandwidth?: number;
  /** Milliseconds that a message takes; undefined when no task showed it. */
  readonly latencyMs?: number;
  /** Milliseconds that a worker needs for each task besides. */
  readonly overheadMs: number;
  /** Milliseconds from the first graph until the first task begins, messages apart: threads start, modules are loaded. */
  readonly startMs: number;
  /** The options of a simulation with these models. */
  readonly options: SimulationOptions;
}

/** The agreement of the models with what really happened. */
export interface Calibration {
  readonly fitted: FittedModels;
  /** Graphs that were submitted; they are simulated as one. */
  readonly graphs: number;
  readonly tasks: number;
  readonly realS: number;
  /** With `startMs`. */
  readonly simulatedS: number;
  /** By how much the simulated makespan is longer than the real one: 0.05 is 5 %. */
  readonly error: number;
}

/**
 * Fits the models of the simulator to a recording, and compares the makespans. Only what can be read off single tasks
 * is fitted, never the makespan itself: the comparison says something.
 *
 * @param file - path, made by `yardmaster scheduler --record`
 * @throws YardmasterError `ERR_LOG` when it cannot be read; `ERR_GRAPH_INVALID` when no task of it was computed
 */
export async function calibrate(file: string): Promise<Calibration> {
  const graphs = new RecordedGraphs();
  const cluster = new RecordedCluster();
  for await (const frame of wholeRecording(file)) {
    graphs.add(frame);
    cluster.add(frame);
  }
  const workload = graphs.workload(file);
  if (cluster.runs.length === 0) {
    const message = `${file}: no task was computed while this was recorded`;
    throw new YardmasterError('ERR_GRAPH_INVALID', message, { file });
  }
  const fitted = fit(cluster);
  const { makespanS, tasks } = await simulate(workload, fitted.options);
  const simulatedS = makespanS + fitted.startMs / 1000;
  const realS = cluster.makespanS;
  const error = simulatedS / realS - 1;
  return { fitted, graphs: cluster.graphCount, tasks, realS, simulatedS, error };
}

function fit(cluster: RecordedCluster): FittedModels {
  const { gapsMs, turnaroundsMs } = waits(cluster);
  // The next task was often not there yet: the shorter gaps are those of the worker alone.
  const overheadMs = Math.max(0, quantile(gapsMs, 0.25) ?? 0);
  const turnaroundMs = quantile(turnaroundsMs, 0.5);
  // There and back: the report of the last input, and the message with the task.
  const latencyMs =
    turnaroundMs === undefined ? undefined : Math.max(0, (turnaroundMs - overheadMs) / 2);
  const bandwidth = quantile(cluster.bandwidths, 0.5);
  const workers = cluster.places;
  const network = {
    bandwidth: bandwidth ?? DEFAULT_NETWORK.bandwidth,
    latencyMs: latencyMs ?? DEFAULT_NETWORK.latencyMs,
  };
  return {
    threads: workers.map(({ threads = 1 }) => threads),
    ...(bandwidth === undefined ? {} : { bandwidth }),
    ...(latencyMs === undefined ? {} : { latencyMs }),
    overheadMs,
    startMs: Math.max(0, cluster.startMs - network.latencyMs - overheadMs),
    options: { workers, config: cluster.config, network, durations: { overheadMs } },
  };
}

/** The waits of threads and tasks for which only one thing can have been the reason. */
interface Waits {
  /** Between two runs of one thread, of which the second could have begun before. */
  readonly gapsMs: number[];
  /** Between the end of the last input and the start of a task, where nothing was fetched and the thread was free. */
  readonly turnaroundsMs: number[];
}

/** O(n log n) for n runs. */
function waits({ runs, workers, dependencies }: RecordedCluster): Waits {
  const found: Waits = { gapsMs: [], turnaroundsMs: [] };
  const ended = new Map(runs.map((run) => [run.key, run]));
  const freeFromS = new Map(
    [...workers].map(([address, { threads = 1 }]) => [address, Array<number>(threads).fill(0)]),
  );
  for (const run of runs.toSorted((one, other) => one.startS - other.startS)) {
    const threads = freeFromS.get(run.worker);
    if (threads === undefined) continue;
    const thread = firstFree(threads);
    const freeS = threads[thread] ?? 0;
    threads[thread] = run.stopS;
    if (run.fetched) continue;
    const readyS = lastInputS(run, dependencies, ended);
    if (readyS === undefined || readyS > run.startS) continue;
    if (readyS < freeS) found.gapsMs.push(1000 * (run.startS - freeS));
    else if (readyS > 0) found.turnaroundsMs.push(1000 * (run.startS - readyS));
  }
  return found;
}

/** Threads that are free take runs in the order in which they became free. */
function firstFree(threads: readonly number[]): number {
  return threads.reduce(
    (first, freeS, thread) => (freeS < (threads[first] ?? 0) ? thread : first),
    0,
  );
}

/** The time at which the last input of a run was computed, 0 when it has none; undefined when another worker computed one. */
function lastInputS(
  { key, worker }: RecordedRun,
  dependencies: ReadonlyMap<string, readonly string[]>,
  ended: ReadonlyMap<string, RecordedRun>,
): number | undefined {
  let lastS = 0;
  for (const need of dependencies.get(key) ?? []) {
    const input = ended.get(need);
    if (input?.worker !== worker) return undefined;
    lastS = Math.max(lastS, input.stopS);
  }
  return lastS;
}

/** The value below which this share of all values lies; undefined when there are none. */
function quantile(values: readonly number[], share: number): number | undefined {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.floor(share * sorted.length)];
}

/** One computation of a task. */
interface RecordedRun {
  readonly key: string;
  readonly worker: string;
  readonly startS: number;
  readonly stopS: number;
  /** True when inputs were fetched for it. */
  readonly fetched: boolean;
}

/** The cluster of a recording, apart from the graph and its costs. */
class RecordedCluster {
  readonly workers = new Map<string, WorkerModel>();
  readonly runs: RecordedRun[] = [];
  readonly dependencies = new Map<string, readonly string[]>();
  /** Bytes per second, as workers measured them. */
  readonly bandwidths: number[] = [];
  graphCount = 0;
  /** The configuration of the policies and plugins. */
  config: ConfigInput = {};
  /** Workers that left, and were not replaced; and those that were. */
  private readonly gone = new Set<string>();
  private readonly replaced = new Set<string>();
  private hasBegun = false;
  private firstMs: number | undefined;
  private lastMs = 0;

  /** As many workers as there were at one time. */
  get places(): WorkerModel[] {
    return [...this.workers].flatMap(([address, model]) =>
      this.replaced.has(address) ? [] : [model],
    );
  }

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
    else if (payload.op === 'remove-worker') this.gone.add(payload.worker);
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
    const before = [address, ...this.gone].find(
      (one) => this.gone.has(one) && this.workers.get(one)?.threads === threadCount,
    );
    if (before !== undefined) {
      this.gone.delete(before);
      if (before !== address) this.replaced.add(before);
    }
    this.replaced.delete(address);
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
