import { performance } from 'node:perf_hooks';
import { checkIdleSaturated } from '../../core/kernel/occupancy.ts';
import type { Outbox } from '../../core/kernel/outbox.ts';
import { SchedulerKernel } from '../../core/kernel/kernel.ts';
import type { StealRequest } from '../../core/messages/to-worker.ts';
import { learnDuration } from '../../core/state/relations.ts';
import type { WorkerState } from '../../core/state/task.ts';
import { Balancer } from '../../plugins/work-stealing/round.ts';
import { DaskStealing } from '../../policies/stealing/dask.ts';
import { makePorts } from '../kit/ports.ts';

/** In the same kernel: a scheduler lives for days, and compiled code knows what it was compiled for. */
const WARM_UP_TASKS_MAX = 50_000;
const WARM_UP_ROUNDS = 5;
/** Rounds that are measured; the requests of the first ones stay unanswered. */
const ROUNDS = 5;
const COMPUTE_S = 0.1;
/** Time for the other threads of the garbage collector. */
const REST_MS = 200;
/** Garbage of the length of several young generations, in arrays that are allocated in it. */
const PASSING_BYTES = 2 ** 27;
const PASSING_ARRAY = 1000;

/** CPU times are user and system time of the whole process. */
export interface StealMeasurement {
  /** The first round, and each later one in which there is little left to do; kernel included. */
  readonly firstMs: number;
  readonly laterMs: readonly number[];
  readonly requests: readonly number[];
  readonly usPerRequest: number;
  /** Slices of the first round, and how long the longest one took, in wall time. */
  readonly slices: number;
  readonly longestSliceMs: number;
  /** What the answers cost: each task that was asked for goes to its thief. */
  readonly usPerMove: number;
  /** The longest answer, in wall time: all that was asked of one worker in one slice. */
  readonly longestAnswerMs: number;
}

/**
 * Half of the workers have all tasks, then the other half joins and has nothing to do. A round is
 * measured with all that it has the kernel do.
 * @param inputs - results that each task reads; they are spread over the first half
 */
export function measureStealing(
  tasks: number,
  workers: number,
  { threads, inputs }: { readonly threads: number; readonly inputs: number },
): StealMeasurement {
  const cluster = new Cluster(threads);
  const half = Math.floor(workers / 2);
  cluster.addWorkers(0, half);
  for (let round = 0; round < WARM_UP_ROUNDS; round++) {
    cluster.load(Math.min(tasks, WARM_UP_TASKS_MAX), inputs, { from: half, to: workers });
    cluster.balancer.runOnce();
    cluster.answerAll((answer) => answer());
    cluster.unload({ from: half, to: workers });
  }
  cluster.load(tasks, inputs, { from: half, to: workers });
  const before = cluster.requested;
  const { balancer } = cluster;
  settleHeap();
  const roundsMs: number[] = [];
  const requests: number[] = [];
  let longestSliceMs = 0;
  let slices = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const requestedBefore = cluster.requested;
    const slicesMs: number[] = [];
    roundsMs.push(
      cpuMs(() => {
        balancer.begin();
        while (wallMs(slicesMs, () => balancer.advance()));
      }),
    );
    requests.push(cluster.requested - requestedBefore);
    if (round > 0) continue;
    longestSliceMs = Math.max(...slicesMs);
    slices = slicesMs.length;
  }
  const answersMs: number[] = [];
  const answering = cpuMs(() => cluster.answerAll((answer) => wallMs(answersMs, answer)));
  const [firstMs = 0, ...laterMs] = roundsMs;
  return {
    firstMs: round(firstMs),
    laterMs: laterMs.map(round),
    requests,
    usPerRequest: round((firstMs / Math.max(1, requests[0] ?? 0)) * 1000),
    slices,
    longestSliceMs: round(longestSliceMs),
    usPerMove: round((answering / Math.max(1, cluster.requested - before)) * 1000),
    longestAnswerMs: round(Math.max(...answersMs, 0)),
  };
}

/** Of workers: from this one, up to but without that one. */
interface Numbers {
  readonly from: number;
  readonly to: number;
}

interface Request {
  readonly worker: WorkerState;
  readonly message: StealRequest;
}

/** A kernel without hosts: messages to workers end here. */
class Cluster {
  readonly kernel: SchedulerKernel;
  readonly balancer: Balancer;
  requested = 0;
  private readonly requests: Request[] = [];
  private keys: readonly string[] = [];
  private count = 0;

  constructor(private readonly threads: number) {
    const ports = makePorts({ queuing: { workerSaturation: Infinity } });
    this.kernel = new SchedulerKernel({}, ports, 0);
    const ignore = (): void => undefined;
    const inCharge = {
      name: 'dask',
      policy: new DaskStealing(),
      failed: ignore,
      answered: ignore,
    };
    this.balancer = new Balancer({
      cluster: () => this.kernel.cluster,
      policy: () => inCharge,
      spared: new Set(),
      enact: (proposals) =>
        this.collect(
          this.kernel.handle({ op: 'steal-tasks', proposals, stimulusId: this.name() }, 0),
        ),
    });
    this.kernel.handle({ op: 'register-client', client: 'bench', stimulusId: this.name() }, 0);
  }

  addWorkers(from: number, to: number): void {
    for (let index = from; index < to; index++) {
      const address = addressOf(index);
      this.kernel.handle(
        {
          op: 'register-worker',
          identity: {
            address,
            serverId: address,
            name: address,
            host: address,
            threadCount: this.threads,
            memoryLimitBytes: 2 ** 33,
            resources: {},
          },
          status: 'running',
          stimulusId: this.name(),
        },
        0,
      );
    }
  }

  /** All tasks go to the workers that are there; then others join, and it is known what a task takes. */
  load(tasks: number, inputs: number, joining: Numbers): void {
    this.submit(tasks, inputs);
    this.addWorkers(joining.from, joining.to);
    const scope = this.kernel['scope'];
    const { cluster } = this.kernel;
    const prefix = cluster.prefixes.get('x');
    for (const worker of cluster.workersByRank) {
      if (prefix !== undefined) learnDuration(cluster, prefix, worker, COMPUTE_S);
      checkIdleSaturated(scope, worker);
    }
  }

  /** The tasks are forgotten, and those who joined leave. */
  unload(joined: Numbers): void {
    const { keys } = this;
    this.kernel.handle(
      { op: 'client-releases-keys', client: 'bench', keys, stimulusId: this.name() },
      0,
    );
    for (let index = joined.from; index < joined.to; index++) {
      const worker = addressOf(index);
      this.kernel.handle(
        { op: 'remove-worker', worker, expected: true, close: false, stimulusId: this.name() },
        0,
      );
    }
    if (this.kernel.cluster.tasks.size > 0) throw new Error('tasks are left over');
  }

  private submit(tasks: number, inputs: number): void {
    const holders = this.kernel.cluster.workers.size;
    const results = Array.from({ length: inputs * holders }, (_, index) => `y-${index}`);
    this.kernel.handle(
      {
        op: 'update-data',
        client: 'bench',
        items: results.map((key, index) => {
          return { key, nbytes: 1000, workers: [addressOf(index % holders)] };
        }),
        stimulusId: this.name(),
      },
      0,
    );
    const keys = Array.from({ length: tasks }, (_, index) => `x-${index}`);
    this.keys = [...results, ...keys];
    const graph = keys.map((key, rank) => {
      const dependencies = Array.from({ length: inputs }, (_, input) => {
        return `y-${(rank * (input + 1)) % results.length}`;
      });
      return { key, rank, runSpec: 'x'.repeat(50), dependencies: [...new Set(dependencies)] };
    });
    this.kernel.handle(
      { op: 'update-graph', client: 'bench', tasks: graph, keys, stimulusId: this.name() },
      0,
    );
  }

  answerAll(each: (answer: () => void) => void): void {
    for (const { worker, message } of this.requests.splice(0)) {
      const { keys, runIds } = message;
      const states = keys.map(() => 'ready');
      const stimulusId = this.name();
      const answer = { worker: worker.address, keys, runIds, states, stimulusId };
      each(() => void this.kernel.handle({ op: 'steal-response', ...answer }, 0));
    }
  }

  private collect({ toWorkers }: Outbox): void {
    for (const { worker, message } of toWorkers) {
      if (message.op !== 'steal-request') continue;
      this.requests.push({ worker, message });
      this.requested += message.keys.length;
    }
  }

  private name(): string {
    return `bench-${++this.count}`;
  }
}

function addressOf(index: number): string {
  return `tcp://10.0.${Math.floor(index / 250)}.${(index % 250) + 1}:4000`;
}

/**
 * Lets the collector finish what loading has begun: what survives is moved out of the young generation, and
 * its other threads get time. Otherwise a round pays, or does not, for copying tasks that were just made.
 * To collect all garbage now would throw away compiled code, and the round would pay for its compiler.
 */
function settleHeap(): void {
  const last: (readonly number[])[] = [];
  for (let bytes = 0; bytes < PASSING_BYTES; bytes += PASSING_ARRAY * 8) {
    last[0] = new Array<number>(PASSING_ARRAY).fill(bytes);
  }
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, REST_MS);
}

function cpuMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

function wallMs<T>(times: number[], work: () => T): T {
  const before = performance.now();
  const result = work();
  times.push(performance.now() - before);
  return result;
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
