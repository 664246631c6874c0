import {
  type ClusterView,
  definePlugin,
  type FunctionSpec,
  type HookTable,
  type SchedulerHooks,
  type TaskStateName,
  type TaskView,
  type TransitionDetails,
  type WorkerLoss,
  type WorkerView,
} from '../../core/api/index.ts';
import { RUNS_MIN } from './analysis.ts';
import {
  type History,
  type HistoryFailure,
  type HistoryWorker,
  type HostLoad,
  KEPT,
  type MemorySample,
  type Run,
} from './history.ts';
import { holderOf, waitingIn } from '../../core/shared/waiting.ts';
import { Bandwidths } from '../dashboard/bandwidths.ts';
import { pushTo } from '../../core/util/collections.ts';

/** Failures that are kept with their text. */
const FAILURES_MAX = 20;
const TEXT_LENGTH_MAX = 300;

/** Tasks that have not ended at the beginning, and at the end, which are looked at one by one. */
const OPEN_MAX = 10_000;

/** A task that has not ended. */
interface Pending {
  readonly readyS: number;
  assignedS: number;
  movedBytes: number;
}

type KnownWorker = { -readonly [Name in keyof HistoryWorker]: HistoryWorker[Name] };

/** Makes a {@link History} of what its hooks are shown, live or in a replay. */
export class RunCollector {
  private beganS: number | undefined;
  private readonly runs: Run[] = [];
  private readonly workers: KnownWorker[] = [];
  private readonly workerNumbers = new Map<string, number>();
  /** The number of times that each told its CPU. */
  private readonly cpuLooks = new Map<KnownWorker, number>();
  /** The number of workers that had each name: one takes the place of another. */
  private readonly names = new Map<string, number>();
  private readonly prefixes: string[] = [];
  private readonly prefixNumbers = new Map<string, number>();
  private readonly pending = new Map<string, Pending>();
  /** Number of the newest run of each task. */
  private readonly newest = new Map<string, number>();
  private readonly memory = new MemoryTrack();
  private readonly hosts = new HostTrack();
  readonly bandwidths = new Bandwidths(true);
  private readonly failures: HistoryFailure[] = [];
  private failureCount = 0;
  private blamelessCount = 0;
  private omittedRuns = 0;

  /** @param runsMax - further runs are only counted */
  constructor(
    private readonly nowMs: () => number,
    private readonly runsMax = Infinity,
  ) {}

  readonly hooks = {
    taskTransition: (task, start, finish, _stimulusId, details) => {
      this.observe(task, start, finish, details);
    },
    workerAdded: (worker) => this.addWorker(worker),
    workerRemoved: (worker, _stimulusId, loss) => this.removeWorker(worker, loss),
    workerStatusChanged: (worker) => this.noteStatus(worker),
    restarted: () => this.pending.clear(),
  } satisfies HookTable as Partial<SchedulerHooks>;

  /** To be called at the beginning, and now and then. O(workers); at the beginning also O(tasks that could run), bounded. */
  sample(cluster: ClusterView): void {
    const { workers, workerNumbers } = this;
    if (this.beganS === undefined) for (const [task] of openTasks(cluster)) this.pend(task.key);
    for (const worker of cluster.workers.values()) {
      if (!workerNumbers.has(worker.address)) this.addWorker(worker);
    }
    const numberOf = ({ address }: WorkerView): number | undefined => workerNumbers.get(address);
    this.memory.sample(cluster, this.nowS, numberOf);
    this.hosts.sample(cluster, this.nowS);
    this.bandwidths.read(cluster);
    for (const worker of cluster.workers.values()) {
      const known = workers[numberOf(worker) ?? -1];
      if (known === undefined) continue;
      const { cpuPercent } = worker.metrics;
      if (cpuPercent !== undefined) {
        const looks = (this.cpuLooks.get(known) ?? 0) + 1;
        this.cpuLooks.set(known, looks);
        known.cpuPercent = ((known.cpuPercent ?? 0) * (looks - 1) + cpuPercent) / looks;
      }
      const { process, managed } = worker.memory;
      if (process > known.peakBytes) [known.peakBytes, known.peakResultBytes] = [process, managed];
      known.peakSpilledBytes = Math.max(known.peakSpilledBytes, worker.memory.spilled);
    }
  }

  /** The history up to now. */
  finish(cluster: ClusterView): History {
    this.sample(cluster);
    for (const [task, worker] of openTasks(cluster)) this.addOpen(task, worker);
    const { fromS, prefixes, workers, runs, omittedRuns, memory, failures } = this;
    const { hosts, failureCount, blamelessCount } = this;
    return {
      ...{ fromS, toS: this.nowS, prefixes, workers, runs, omittedRuns, failures },
      knownS: prefixes.map((name) => {
        const { count = 0, durationS = -1 } = cluster.prefixes.get(name)?.known ?? {};
        return count < RUNS_MIN ? -1 : durationS;
      }),
      bandwidths: this.bandwidths.answer(),
      ...{ memory: memory.samples, hosts: hosts.loads, failureCount, blamelessCount },
      waiting: waitingIn(cluster).map(({ text }) => text),
    };
  }

  /** Further runs are only counted. */
  get isFull(): boolean {
    return this.runs.length >= this.runsMax;
  }

  private get nowS(): number {
    const nowS = this.nowMs() / 1000;
    this.beganS ??= nowS;
    return nowS;
  }

  private get fromS(): number {
    return this.beganS ?? this.nowS;
  }

  private observe(
    task: TaskView,
    start: TaskStateName,
    finish: TaskStateName,
    details: TransitionDetails,
  ): void {
    const { key } = task;
    if (start === 'processing' && (finish === 'memory' || finish === 'erred')) {
      this.addRun(task, finish === 'erred', details);
    } else if (finish === 'erred') this.addFailure(task, details);
    if (finish === 'processing') this.assign(task);
    else if (finish === 'queued' || finish === 'no-worker') this.pend(key);
    else if (finish === 'forgotten') {
      this.newest.delete(key);
      this.pending.delete(key);
    }
  }

  private pend(key: string): Pending {
    const known = this.pending.get(key);
    if (known !== undefined) return known;
    const { nowS } = this;
    const pending = { readyS: nowS, assignedS: nowS, movedBytes: 0 };
    this.pending.set(key, pending);
    return pending;
  }

  /** O(inputs) */
  private assign({ key, processingOn, dependencies }: TaskView): void {
    const pending = this.pend(key);
    pending.assignedS = this.nowS;
    if (processingOn === undefined) return;
    pending.movedBytes = 0;
    for (const { whoHas, nbytes } of dependencies) {
      if (!whoHas.has(processingOn)) pending.movedBytes += Math.max(0, nbytes);
    }
  }

  /** O(inputs) */
  private addRun(task: TaskView, isError: boolean, details: TransitionDetails): void {
    const { key, dependencies, nbytes } = task;
    if (isError) this.addFailure(task, details);
    const pending = this.pend(key);
    this.pending.delete(key);
    const { worker: address = '', timings = [] } = details;
    const worker = this.workerNumbers.get(address);
    if (worker === undefined || timings.length === 0) return;
    if (this.isFull) {
      this.omittedRuns++;
      return;
    }
    let lastInput = -1;
    for (const dependency of dependencies) {
      const number = this.newest.get(dependency.key) ?? -1;
      const at = this.runs[number]?.finishedS ?? -Infinity;
      if (number >= 0 && at >= (this.runs[lastInput]?.finishedS ?? -Infinity)) lastInput = number;
    }
    const prefix = this.prefixNumber(task);
    const { movedBytes } = pending;
    const heldBy = holderOf(task);
    // A task that was sent to its worker before the collector began.
    const firstS = Math.min(...timings.map(({ startS }) => startS));
    const assignedS = Math.max(this.fromS, Math.min(pending.assignedS, firstS));
    const number = this.runs.push({
      ...{ key, prefix, worker, readyS: Math.min(pending.readyS, assignedS), assignedS },
      ...{ finishedS: this.nowS, timings, movedBytes, isError, lastInput },
      nbytes: Math.max(0, nbytes),
      ...(heldBy === undefined ? {} : { heldBy }),
    });
    if (!isError) this.newest.set(key, number - 1);
  }

  /** A task that has not ended: one that runs, or could. */
  private addOpen(task: TaskView, worker: WorkerView | undefined): void {
    const { key } = task;
    const ranS = worker?.executing.get(task);
    const { nowS } = this;
    const { readyS, assignedS, movedBytes } = this.pend(key);
    const startS = nowS - (ranS ?? 0) - Math.max(0, nowS - (worker?.lastSeenMs ?? 0) / 1000);
    const heldBy = holderOf(task);
    this.runs.push({
      ...{ key, readyS, movedBytes, finishedS: nowS, nbytes: 0, isError: false, isOpen: true },
      prefix: this.prefixNumber(task),
      worker: this.workerNumbers.get(worker?.address ?? '') ?? -1,
      assignedS: worker === undefined ? nowS : assignedS,
      timings: ranS === undefined ? [] : [{ action: 'compute', startS, stopS: nowS }],
      ...(heldBy === undefined ? {} : { heldBy }),
      lastInput: -1,
    });
  }

  private addFailure(
    { key, exceptionBlame }: TaskView,
    { failure, cause }: TransitionDetails,
  ): void {
    const blamed = cause ?? exceptionBlame?.key;
    if (blamed !== undefined && blamed !== key) {
      this.blamelessCount++;
      return;
    }
    this.failureCount++;
    if (this.failures.length >= FAILURES_MAX) return;
    const text = (failure?.exceptionText ?? '').slice(0, TEXT_LENGTH_MAX);
    this.failures.push({ key, text, atS: this.nowS });
  }

  /** A worker that has told nothing of its memory is not short of it: one that a journal has, and that has not come back. */
  private noteStatus({ address, status, memory }: WorkerView): void {
    const known = this.workers[this.workerNumbers.get(address) ?? -1];
    if (known === undefined) return;
    const { pausedS = [] } = known;
    const last = pausedS.at(-1);
    const sinceS = last?.length === 1 ? last[0] : undefined;
    if (status === 'paused') {
      if (sinceS === undefined && memory.process > 0) known.pausedS = [...pausedS, [this.nowS]];
    } else if (sinceS !== undefined) {
      known.pausedS = [...pausedS.slice(0, -1), [sinceS, this.nowS]];
    }
  }

  private addWorker(worker: WorkerView): void {
    const { address, name, threadCount, memoryLimitBytes, memory } = worker;
    const before = this.names.get(name) ?? 0;
    this.names.set(name, before + 1);
    this.workerNumbers.set(address, this.workers.length);
    this.workers.push({
      ...{
        address,
        ...(before === 0 ? { name } : { name: `${name} #${before + 1}`, ownName: name }),
        threads: threadCount,
        memoryLimitBytes,
        fromS: this.nowS,
      },
      ...{ peakBytes: memory.process, peakResultBytes: memory.managed },
      peakSpilledBytes: memory.spilled,
    });
    this.noteStatus(worker);
  }

  private removeWorker({ address }: WorkerView, loss: WorkerLoss): void {
    const known = this.workers[this.workerNumbers.get(address) ?? -1];
    this.workerNumbers.delete(address);
    if (known === undefined) return;
    known.toS = this.nowS;
    if (loss.expected) return;
    const { recomputed, processing } = loss;
    known.lost = { recomputed: recomputed.length, restarted: processing.length };
  }

  private prefixNumber({ prefix, runSpec }: TaskView): number {
    const { persist } = (runSpec ?? {}) as Partial<FunctionSpec>;
    const name = persist?.isKept === true ? `${prefix.name}${KEPT}` : prefix.name;
    const known = this.prefixNumbers.get(name);
    if (known !== undefined) return known;
    this.prefixNumbers.set(name, this.prefixes.length);
    return this.prefixes.push(name) - 1;
  }
}

/** Tasks that run, then those that could, with their workers. */
function openTasks({
  workers,
  queued,
  limits,
  unrunnable,
}: ClusterView): [TaskView, WorkerView?][] {
  const open: [TaskView, WorkerView?][] = [];
  for (const worker of workers.values())
    for (const task of worker.executing.keys())
      if (worker.processing.has(task)) open.push([task, worker]);
  for (const worker of workers.values())
    for (const task of worker.processing) {
      if (open.length >= OPEN_MAX) return open;
      if (!worker.executing.has(task)) open.push([task, worker]);
    }
  const ofLimits = Array.from(limits, (limit) => limit.queued);
  for (const tasks of [queued, ...ofLimits, unrunnable.keys()])
    for (const task of tasks) {
      if (open.length >= OPEN_MAX) return open;
      open.push([task]);
    }
  return open;
}

/** More samples are not drawn; beyond that every other one is dropped. */
const SAMPLES_MAX = 600;

/** Workers whose processes are followed one by one. */
const FOLLOWED_MAX = 64;

/** The memory of workers over time, in a bounded number of samples. */
class MemoryTrack {
  private kept: MemorySample[] = [];
  /** Seconds between two samples that are kept. */
  private stepS = 0;

  get samples(): readonly MemorySample[] {
    return this.kept;
  }

  /** O(workers), and nothing when the last sample is recent. */
  sample(
    { workers }: ClusterView,
    atS: number,
    numberOf: (worker: WorkerView) => number | undefined,
  ): void {
    const last = this.kept.at(-1);
    if (last !== undefined && atS - last.atS < this.stepS) return;
    const processes: (readonly [number, number])[] = [];
    let [managedBytes, unmanagedBytes, spilledBytes] = [0, 0, 0];
    for (const worker of workers.values()) {
      const { managed, process, spilled } = worker.memory;
      managedBytes += managed;
      unmanagedBytes += Math.max(0, process - managed);
      spilledBytes += spilled;
      const number = numberOf(worker);
      if (number !== undefined && number < FOLLOWED_MAX) processes.push([number, process]);
    }
    this.kept.push({ atS, managedBytes, unmanagedBytes, spilledBytes, processes });
    if (this.kept.length > SAMPLES_MAX) this.thin(atS);
  }

  private thin(atS: number): void {
    const first = this.kept[0]?.atS ?? atS;
    this.stepS = (2 * (atS - first)) / SAMPLES_MAX;
    this.kept = this.kept.filter((_, index) => index % 2 === 0);
  }
}

/** Share of the processors of a machine from which on they count as all busy. */
const FULL = 0.9;

/** A longer time between two looks says nothing about what was in between, in seconds. */
const STEP_MAX_S = 5;

/** The processors of machines, from what their workers tell with each heartbeat. */
class HostTrack {
  private readonly byHost = new Map<
    string,
    { -readonly [Name in keyof HostLoad]: HostLoad[Name] }
  >();
  private lastS: number | undefined;

  get loads(): readonly HostLoad[] {
    return [...this.byHost.values()];
  }

  /** O(workers) */
  sample({ workers }: ClusterView, atS: number): void {
    const stepS = Math.min(STEP_MAX_S, atS - (this.lastS ?? atS));
    this.lastS = atS;
    if (stepS <= 0) return;
    const byHost = new Map<string, WorkerView[]>();
    for (const worker of workers.values()) {
      if (worker.metrics.hostCores === undefined) continue;
      pushTo(byHost, worker.host, worker);
    }
    for (const [host, its] of byHost) this.add(host, its, stepS);
  }

  private add(host: string, workers: readonly WorkerView[], stepS: number): void {
    let [running, threads, busyPercent, cores] = [0, 0, 0, 1];
    /** Cores that each process used, and threads of it that waited for one, by process. */
    const own = new Map<string, readonly [used: number, waited: number | undefined]>();
    for (const { metrics, identity, processing, threadCount, address } of workers) {
      running += Math.min(threadCount, processing.size);
      threads += threadCount;
      const { hostCpuPercent = 0, hostCores = 1, cpuPercent, sharedCpuPercent = 0 } = metrics;
      const { cpuWaitPercent } = metrics;
      busyPercent = Math.max(busyPercent, hostCpuPercent);
      cores = hostCores;
      const waited = cpuWaitPercent === undefined ? undefined : cpuWaitPercent / 100;
      own.set(String(identity.pid ?? address), [(cpuPercent ?? sharedCpuPercent) / 100, waited]);
    }
    if (running === 0) return;
    let [ownCores, waiting] = [0, 0];
    for (const [used, waited] of own.values()) {
      ownCores += used;
      // Where the system does not tell, each thread with a task is taken to want a processor.
      waiting += waited ?? Math.max(0, running / own.size - used);
    }
    let load = this.byHost.get(host);
    if (load === undefined) {
      load = { host, cores, threads, measuredS: 0, fullS: 0, busyCoreS: 0, ownCoreS: 0, lostS: 0 };
      this.byHost.set(host, load);
    }
    load.threads = Math.max(load.threads, threads);
    load.measuredS += stepS;
    if (busyPercent < 100 * FULL * cores) return;
    load.fullS += stepS;
    load.busyCoreS += (stepS * busyPercent) / 100;
    load.ownCoreS += stepS * ownCores;
    load.lostS += stepS * Math.min(running, waiting);
  }
}

/** Milliseconds between two looks at the memory and the processors of workers. */
const SAMPLE_MS = 200;

/** A plugin that shows a collector all that happens while it is loaded. */
export function collecting(collector: RunCollector): object {
  return definePlugin({
    name: 'schedule',
    apiVersion: 1,
    setup(context) {
      collector.sample(context.cluster);
      context.every(SAMPLE_MS, () => collector.sample(context.cluster));
      return collector.hooks;
    },
  });
}
