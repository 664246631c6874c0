import type { Rule } from '../../core/api/rules.ts';
import type { NamedRule } from '../../core/kernel/ports.ts';
import { noHooks } from '../kit/ports.ts';
import { SchedulerKernel } from '../../core/kernel/kernel.ts';
import { shieldedPolicy } from '../../core/plugin-host/policy-slots.ts';
import type { Outbox } from '../../core/kernel/outbox.ts';
import { fifo } from '../../policies/fairness/fifo.ts';
import { depthFirst } from '../../policies/ordering/depth-first.ts';
import { family } from '../../policies/queuing/family.ts';
import { rootish } from '../../policies/queuing/root-ish.ts';
import { earliestStart } from '../../policies/worker-selection/earliest-start.ts';
import { localityFirst } from '../../policies/worker-selection/locality-first.ts';
import { SHAPES, type Shape } from './shapes.ts';
import { ranksOf } from '../kit/orders.ts';
import { made } from '../kit/made.ts';

/** What one life of a graph cost, on average over several. CPU times are user and system time of the process. */
export interface LifeMeasurement {
  readonly tasks: number;
  readonly edges: number;
  readonly executed: number;
  readonly transitions: number;
  readonly workerMessages: number;
  readonly clientMessages: number;
  readonly usPerTask: number;
  readonly usOrder: number;
  readonly usGraph: number;
  readonly usRun: number;
  readonly usRelease: number;
  /** Heap and external memory that the submitted graph takes, key and a 50-byte run spec included. */
  readonly bytesPerTask: number;
  /** Megabytes that the process occupied at most, the submitted message and all included. */
  readonly peakMb: number;
}

/** How a life is lived. */
export interface LifeOptions {
  readonly saturation: number;
  readonly threads: number;
  /**
   * Tasks that live before at least, unmeasured: the same graph again and again. 0: it lives once.
   * Default {@link WARM_UP_TASKS}.
   */
  readonly warmUpTasks?: number;
  /** Neither a life before it nor a graph after it: for graphs that take long. */
  readonly isOnly?: boolean;
  /** Graphs in which the tasks are submitted, one after the other, before any of them runs. Default 1. */
  readonly parts?: number;
  /** The default policies decide, and not those of Dask. */
  readonly byDefaults?: boolean;
  /** Worker selection is loaded as a policy of a user, which sees views of the state. */
  readonly isOwn?: boolean;
  /** Three rules with filters, which concern no task or every task; loaded as those of a user. Default: no rules. */
  readonly filters?: string | undefined;
}

/**
 * A scheduler lives for days, and its compiler warms up once: after the first few hundred thousand
 * tasks, or half a minute at the rate of real workers, V8 has compiled nearly all that it will.
 */
export const WARM_UP_TASKS = 300_000;

/** Tasks that are measured at least: the same graph lives as often as that takes, and the mean counts. */
const MEASURED_TASKS = 200_000;

/** The clock of the run: the kernel gets time as a parameter. */
const STEP_MS = 0.01;
const COMPUTE_S = 0.01;

/**
 * The whole life of a graph in the kernel: submission, placement, results, release. Workers are
 * numbers that answer at once, so that only the scheduler is measured; ordering is measured apart.
 */
export function measureLife(
  shapeName: string,
  taskCount: number,
  workerCount: number,
  options: LifeOptions,
): LifeMeasurement {
  const make = SHAPES[shapeName];
  if (make === undefined) {
    throw new Error(`unknown shape ${shapeName}; there are ${Object.keys(SHAPES).join(', ')}`);
  }
  const kernel = makeKernel(options);
  addWorkers(kernel, workerCount, options.threads);
  // In the same kernel: compiled code knows the objects that it was compiled for.
  const warmUpTasks = options.warmUpTasks ?? WARM_UP_TASKS;
  let lived = options.isOnly === true ? Infinity : 0;
  while (lived <= warmUpTasks) lived += warmUp(kernel, make(taskCount));
  const { parts = 1 } = options;
  const cost = new LifeCost(options.isOnly === true);
  const measuredTasks = options.isOnly === true ? 0 : MEASURED_TASKS;
  do cost.add(kernel, parts > 1 ? partsOf(make, taskCount, parts) : [make(taskCount)]);
  while (cost.tasks < measuredTasks);
  return {
    ...cost.perLife(),
    bytesPerTask: options.isOnly === true ? NaN : measureMemory(kernel, () => make(taskCount)),
    peakMb: Math.round(process.resourceUsage().maxRSS / 1000),
  };
}

/** Sums over lives of the same graph: a collection of all garbage happens in one of several. */
class LifeCost {
  tasks = 0;
  private lives = 0;
  private edges = 0;
  private executed = 0;
  private transitions = 0;
  private workerMessages = 0;
  private clientMessages = 0;
  private usOrder = 0;
  private usGraph = 0;
  private usRun = 0;
  private usRelease = 0;

  /** @param startsClean - garbage of making a graph is collected before it is submitted, so that no peak has it */
  constructor(private readonly startsClean: boolean) {}

  /** Has graphs live in the kernel, all at the same time. */
  add(kernel: SchedulerKernel, shapes: Iterable<Shape>): void {
    this.lives++;
    const transitionsBefore = kernel.transitionCounter;
    const life = new Life(kernel);
    const keys: string[] = [];
    for (const shape of shapes) {
      this.tasks += shape.tasks.length;
      this.edges += shape.tasks.reduce((sum, task) => sum + task.dependencies.length, 0);
      this.usOrder += rank(shape);
      if (this.startsClean) globalThis.gc?.();
      this.usGraph += cpuUs(() => {
        life.submit(shape);
      });
      for (const key of shape.keys) keys.push(key);
    }
    this.usRun += cpuUs(() => {
      life.run();
    });
    for (const key of keys) {
      const state = kernel.cluster.tasks.get(key)?.state;
      if (state !== 'memory') throw new Error(`${key} ended ${state ?? 'unknown'}`);
    }
    this.usRelease += cpuUs(() => {
      life.release(keys);
    });
    if (kernel.cluster.tasks.size > 0) {
      throw new Error(`${kernel.cluster.tasks.size} tasks are left`);
    }
    this.transitions += kernel.transitionCounter - transitionsBefore;
    this.executed += life.executed;
    this.workerMessages += life.workerMessages;
    this.clientMessages += life.clientMessages;
  }

  perLife(): Omit<LifeMeasurement, 'bytesPerTask' | 'peakMb'> {
    const { lives, tasks, usGraph, usRun, usRelease } = this;
    return {
      tasks: tasks / lives,
      edges: this.edges / lives,
      executed: this.executed / lives,
      transitions: this.transitions / lives,
      workerMessages: this.workerMessages / lives,
      clientMessages: this.clientMessages / lives,
      usPerTask: round((usGraph + usRun + usRelease) / tasks),
      usOrder: round(this.usOrder / tasks),
      usGraph: round(usGraph / tasks),
      usRun: round(usRun / tasks),
      usRelease: round(usRelease / tasks),
    };
  }
}

/** The tasks in a number of graphs, each made when it is asked for: what brought the one before is garbage by then. */
function* partsOf(
  make: (count: number) => Shape,
  taskCount: number,
  parts: number,
): Generator<Shape> {
  for (let part = 0; part < parts; part++) {
    const shape = make(Math.ceil(taskCount / parts));
    // In one piece, as keys that come off a wire: V8 keeps both parts of a text that was put together.
    yield renamed(shape, (key) => Buffer.from(`${key}-${part}`).toString());
  }
}

function renamed({ tasks, keys }: Shape, rename: (key: string) => string): Shape {
  return {
    tasks: tasks.map(({ key, dependencies, ...rest }) => ({
      key: rename(key),
      dependencies: dependencies.map(rename),
      ...rest,
    })),
    keys: keys.map(rename),
  };
}

/** A whole life that is not measured. Returns the number of its tasks. */
function warmUp(kernel: SchedulerKernel, shape: Shape): number {
  rank(shape);
  const life = new Life(kernel);
  life.submit(shape);
  life.run();
  life.release(shape.keys);
  return shape.tasks.length;
}

/**
 * What a submitted graph takes, without the message that brought it. Last, because collecting garbage
 * by force upsets what the collector has learnt.
 */
function measureMemory(kernel: SchedulerKernel, make: () => Shape): number {
  const before = memoryBytes();
  const tasks = submitNew(kernel, make);
  return Math.round((memoryBytes() - before) / tasks);
}

/** Submits a graph and drops it, and what came out of the kernel. Returns the number of its tasks. */
function submitNew(kernel: SchedulerKernel, make: () => Shape): number {
  const shape = make();
  rank(shape);
  new Life(kernel).submit(shape);
  return shape.tasks.length;
}

/** What is sent to a worker and comes back as its answer. */
interface Assignment {
  readonly key: string;
  readonly runId: number;
  readonly worker: string;
}

/** What every task reports; the kernel only reads it. */
const TIMINGS = [{ action: 'compute', startS: 1, stopS: 1 + COMPUTE_S }] as const;

/** Drives one graph through the kernel. */
class Life {
  executed = 0;
  workerMessages = 0;
  clientMessages = 0;
  private queue: Assignment[] = [];
  private nowMs = 1;

  constructor(private readonly kernel: SchedulerKernel) {}

  submit({ tasks, keys }: Shape): void {
    this.collect(
      this.kernel.handle(
        { op: 'update-graph', client: 'bench', tasks, keys, stimulusId: 'update-graph-1' },
        this.nowMs,
      ),
    );
  }

  run(): void {
    // First in, first out, in two lists that take turns.
    while (this.queue.length > 0) {
      const batch = this.queue;
      this.queue = [];
      for (const assignment of batch) this.finish(assignment);
    }
  }

  private finish({ key, runId, worker }: Assignment): void {
    this.nowMs += STEP_MS;
    const stimulusId = `task-finished-${this.executed++}`;
    this.collect(
      this.kernel.handle(
        {
          op: 'task-finished',
          key,
          worker,
          runId,
          nbytes: 1000,
          type: 'int',
          timings: TIMINGS,
          stimulusId,
        },
        this.nowMs,
      ),
    );
  }

  release(keys: readonly string[]): void {
    this.collect(
      this.kernel.handle(
        { op: 'client-releases-keys', client: 'bench', keys, stimulusId: 'release-1' },
        this.nowMs,
      ),
    );
  }

  private collect(outbox: Outbox): void {
    this.workerMessages += outbox.toWorkers.length;
    this.clientMessages += outbox.toClients.length;
    for (const { worker, message } of outbox.toWorkers) {
      if (message.op !== 'compute-task') continue;
      this.queue.push({ key: message.key, runId: message.runId, worker: worker.address });
    }
  }
}

/** The client sends ranks, as Dask's client does; the ordering policy is measured apart. */
function rank(shape: Shape): number {
  const ordering = made(depthFirst);
  return cpuUs(() => {
    const ranks = ranksOf(ordering, shape.tasks, shape.keys);
    // Written out: objects made by spreading have one hidden class each, which nothing that comes off
    // a wire has.
    shape.tasks.forEach(({ key, dependencies, runSpec }, index) => {
      shape.tasks[index] = { key, dependencies, runSpec, rank: ranks[index] };
    });
  });
}

function filterRules(tasks: string | undefined): NamedRule[] {
  if (tasks === undefined) return [];
  const names = ['one', 'two', 'three'];
  return names.map((name) => {
    const rule: Rule = {
      concerns: ({ key }) => tasks === 'all' || key === name,
      filter: (_task, worker) => worker.threadCount > 0,
    };
    return { name, weight: 1, policy: shieldedPolicy('rules', rule) };
  });
}

function makeKernel({
  saturation: workerSaturation,
  isOwn,
  byDefaults,
  filters,
}: LifeOptions): SchedulerKernel {
  const selection = byDefaults === true ? made(localityFirst) : made(earliestStart);
  const policies = {
    workerSelection: isOwn === true ? shieldedPolicy('workerSelection', selection) : selection,
    queuing:
      byDefaults === true
        ? made(family, { workerSaturation })
        : made(rootish, { workerSaturation }),
    ordering: made(depthFirst),
    fairness: made(fifo),
  };
  const kernel = new SchedulerKernel(
    {},
    {
      workerSelection: { name: 'selection', policy: policies.workerSelection },
      queuing: { name: 'queuing', policy: policies.queuing },
      ordering: { name: depthFirst.name, policy: policies.ordering },
      fairness: { name: fifo.name, policy: policies.fairness },
      rules: filterRules(filters),
      fallbacks: policies,
      hooks: noHooks(),
      onPolicyFailure: ({ error }) => {
        throw error;
      },
    },
    0,
  );
  kernel.handle({ op: 'register-client', client: 'bench', stimulusId: 'register-client-1' }, 0);
  return kernel;
}

function addWorkers(kernel: SchedulerKernel, count: number, threadCount: number): void {
  for (let index = 0; index < count; index++) {
    const host = `10.0.${Math.floor(index / 250)}.${(index % 250) + 1}`;
    const address = `tcp://${host}:4000`;
    kernel.handle(
      {
        op: 'register-worker',
        identity: {
          address,
          serverId: address,
          name: address,
          host,
          threadCount,
          memoryLimitBytes: 2 ** 33,
          resources: {},
        },
        status: 'running',
        stimulusId: `register-worker-${index}`,
      },
      0,
    );
  }
}

function cpuUs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

function memoryBytes(): number {
  globalThis.gc?.();
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
