import { type ChildProcess, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { relative } from 'node:path';
import { performance } from 'node:perf_hooks';
import {
  type ClusterView,
  type PluginContext,
  type SchedulerPlugin,
  type TaskStateName,
  type TaskView,
  type TransitionDetails,
  type Why,
  type WorkerView,
  YardmasterError,
} from '../../core/api/index.ts';
import { sizeText } from '../../core/util/units.ts';
import { countOf, numberText } from '../../core/util/values.ts';
import { ProgressBars, type ProgressRow, wrapped } from '../client/progress-bars.ts';
import { type Corpus, findCorpus, type NearDuplicates, singlePass, warm } from '../demo/index.ts';
import { Draw } from '../simulator/random.ts';

/** Upper bound of the kills of a worker: a nanny replaces it this often, however early it dies. */
const KILLS_PER_WORKER_MAX = 10;
/** Parts of the work between which kills happen: workers have something to lose, and time to recover. */
const FROM = 0.02;
const TO = 0.95;

interface ChaosOptions {
  readonly kills: number;
  /** The same seed gives the same moments, counted in tasks, and the same choices among workers. */
  readonly seed: number;
  readonly taskCount: number;
  /** Shares of the work after which it kills. Default: by the seed. */
  readonly moments?: readonly number[];
  readonly cluster: ClusterView;
  /** Called with what was killed. */
  readonly onKill: (worker: string, pid: number, done: number) => void;
}

/** Kills worker processes while a graph is computed, as a crash of the machine would. */
export class Chaos {
  private readonly random: () => number;
  /** Numbers of finished tasks at which a worker is killed, in descending order. */
  private readonly moments: number[];
  private readonly deaths = new Map<string, number>();
  /** A process that was just killed may be known for a moment longer. */
  private readonly killed = new Set<number>();

  constructor(private readonly options: ChaosOptions) {
    const { seed, kills, taskCount, moments } = options;
    this.random = randomFrom(seed);
    this.moments = (moments ?? momentsOf(kills, this.random))
      .map((share) => Math.ceil(taskCount * share))
      .sort((a, b) => b - a);
  }

  /** The number of kills so far. */
  get killCount(): number {
    return this.killed.size;
  }

  /**
   * Called when `done` tasks are finished. Kills at most one worker; without a candidate it tries
   * again at the next call.
   */
  onProgress(done: number): void {
    const moment = this.moments.at(-1);
    if (moment === undefined || done < moment) return;
    const victims = [...this.options.cluster.workers.values()].filter(({ name, identity }) => {
      const isDead = this.killed.has(identity.pid ?? 0);
      return !isDead && (this.deaths.get(name) ?? 0) < KILLS_PER_WORKER_MAX;
    });
    const victim = victims[Math.floor(this.random() * victims.length)];
    const pid = victim?.identity.pid;
    if (victim === undefined || pid === undefined || !kill(pid)) return;
    this.moments.pop();
    this.killed.add(pid);
    this.deaths.set(victim.name, (this.deaths.get(victim.name) ?? 0) + 1);
    this.options.onKill(victim.name, pid, done);
  }
}

/** False: it is gone already, and the scheduler does not know yet. */
function kill(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch {
    return false;
  }
}

/** Shares of the work after which something is killed. */
function momentsOf(kills: number, random: () => number): number[] {
  return Array.from({ length: kills }, () => FROM + (TO - FROM) * random());
}

/** Numbers from 0 to 1, the same for each seed. */
function randomFrom(seed: number): () => number {
  const draw = new Draw(seed);
  let count = 0;
  return () => draw.uniform('kill', count++);
}

/** The interval at which the memory manager makes the second copies that protect against the death of a worker. */
const REPLICATION_INTERVAL = '200ms';

export interface DemoFlags {
  readonly config?: string;
  readonly path?: string;
  readonly workers: number;
  readonly threads: number;
  readonly limitFiles?: number;
  /** Kills of workers; true: a few. */
  readonly chaos?: number | true;
  /** Kills of the scheduler; true: a few. */
  readonly chaosScheduler?: number | true;
  readonly seed?: number;
  /** False: no worker is killed at half time. */
  readonly kill?: boolean;
  readonly report?: string;
  readonly record?: string;
}

/**
 * Finds the text, and says how much there is.
 * @throws YardmasterError `ERR_CONFIG` when there is no text
 */
export function findText({ path, limitFiles }: DemoFlags): Corpus {
  const corpus = findCorpus(path, limitFiles);
  print(
    `Text       ${numberText(corpus.documents.length)} of ${countOf(corpus.found, 'file')} in ${corpus.folder}`,
  );
  // Otherwise the cluster would wait for the disk, and the thread that it is compared with would not.
  warm(corpus);
  return corpus;
}

/**
 * The configuration, unless a file is named.
 * @param allowedFailures - deaths of workers that a task is not to blame for
 */
export function demoConfig(allowedFailures: number): {
  readonly scheduler: Readonly<Record<string, unknown>>;
} {
  const activeMemoryManager = { interval: REPLICATION_INTERVAL };
  return { scheduler: { allowedFailures, activeMemoryManager } };
}

/** Columns of a usual terminal: output that is longer is wrapped between words. */
const COLUMNS = 80;

/** Lines of what is found, on standard output. Paths and addresses stay whole, so that they can be copied. */
export function print(text: string): void {
  for (const line of text.split('\n')) {
    const isWhole = line.length <= COLUMNS || !line.includes(' ', INDENT.length);
    process.stdout.write(`${isWhole ? line : wrapped(line, COLUMNS, INDENT).join('\n')}\n`);
  }
}

/** One kill of a plan. */
export interface PlannedKill {
  /** Finished tasks after which it happens. */
  readonly after: number;
  /** Milliseconds later: the scheduler may be reading its journal then, or waiting for workers. */
  readonly delayMs: number;
  /** Index of the worker; undefined: the scheduler. */
  readonly worker: number | undefined;
}

interface KillPlanOptions {
  readonly seed: number;
  readonly taskCount: number;
  readonly schedulerKills: number;
  readonly workerKills: number;
  readonly workers: number;
}

const DELAY_MAX_MS = 150;

/** Kills in their order. The same options give the same plan. */
export function killPlan(options: KillPlanOptions): readonly PlannedKill[] {
  const { seed, taskCount, schedulerKills, workerKills, workers } = options;
  const random = randomFrom(seed);
  const kill = (share: number, worker: number | undefined): PlannedKill => ({
    after: Math.ceil(taskCount * share),
    delayMs: Math.round(DELAY_MAX_MS * random()),
    worker,
  });
  const ofScheduler = momentsOf(schedulerKills, random).map((share) => kill(share, undefined));
  const ofWorkers = momentsOf(workerKills, random).map((share) =>
    kill(share, Math.floor(workers * random())),
  );
  return [...ofScheduler, ...ofWorkers].sort((a, b) => a.after - b.after);
}

/** Counts finished tasks, and wakes what waits for a number of them. */
export class DoneCount {
  private count = 0;
  private readonly waiting: { readonly least: number; readonly wake: () => void }[] = [];

  get value(): number {
    return this.count;
  }

  add(): void {
    this.count++;
    for (const { least, wake } of this.waiting) if (this.count >= least) wake();
  }

  /** Resolves when so many tasks are finished. */
  reaches(least: number): Promise<void> {
    if (this.count >= least) return Promise.resolve();
    return new Promise((wake) => this.waiting.push({ least, wake }));
  }
}

/** Characters of the error stream that are kept for the message about a process that failed. */
const STDERR_KEPT = 4000;
const END_MS = 10_000;

interface SchedulerKill {
  readonly pid: number;
  readonly newPid: number;
  /** Milliseconds from the end of the one process until the next one listened. */
  readonly awayMs: number;
}

/** A scheduler with a journal in a process of its own, which is killed and started again at its address. */
export class KillableScheduler {
  /** Rejects when a process ends that was not asked to. */
  readonly failed: Promise<never>;
  private child: ChildProcess | undefined;
  private expected: ChildProcess | undefined;
  private fail!: (error: Error) => void;
  private stderr = '';
  private url = '';
  private isClosing = false;

  private starts = 0;

  /** @param args - of the start with this number, from 0 */
  private constructor(private readonly args: (start: number) => readonly string[]) {
    this.failed = new Promise((_, reject) => {
      this.fail = reject;
    });
    this.failed.catch(() => undefined); // It is a part of what the work is awaited with.
  }

  /** @throws YardmasterError `ERR_CONNECT` when it ends before it listens */
  static async start(args: (start: number) => readonly string[]): Promise<KillableScheduler> {
    const scheduler = new KillableScheduler(args);
    scheduler.url = await scheduler.listen(['--port', '0']);
    return scheduler;
  }

  get address(): string {
    return this.url;
  }

  get pid(): number {
    return this.child?.pid ?? 0;
  }

  /**
   * Ends it as a crash would, and starts it again at once.
   * @throws YardmasterError `ERR_CLOSED` when it is closed meanwhile
   */
  async kill(): Promise<SchedulerKill> {
    const { pid } = this;
    await this.end('SIGKILL');
    if (this.isClosing) throw closedError();
    const startMs = performance.now();
    await this.listen(['--port', new URL(this.url).port]);
    return { pid, newPid: this.pid, awayMs: performance.now() - startMs };
  }

  /** Ends it in good order. */
  close(): Promise<void> {
    this.isClosing = true;
    return this.end('SIGTERM');
  }

  private async end(signal: NodeJS.Signals): Promise<void> {
    const { child } = this;
    if (child?.exitCode !== null || child.signalCode !== null) return; // It has ended, or was never started.
    this.expected = child;
    const closed = new Promise((resolve) => child.once('close', resolve));
    child.kill(signal);
    const timer = setTimeout(() => child.kill('SIGKILL'), END_MS);
    await closed;
    clearTimeout(timer);
  }

  /** Resolves with the address when it is printed. */
  private listen(where: readonly string[]): Promise<string> {
    const program = createRequire(import.meta.url).resolve('#cli');
    const args = [program, 'scheduler', ...this.args(this.starts++), ...where];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.child = child;
    const endWithUs = (): void => void child.kill('SIGKILL');
    process.once('exit', endWithUs);
    this.stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.stderr = (this.stderr + text).slice(-STDERR_KEPT);
    });
    return new Promise((resolve, reject) => {
      let printed = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        printed += text;
        if (printed.includes('\n')) resolve(printed.slice(0, printed.indexOf('\n')));
      });
      child.once('error', reject);
      child.once('close', (code) => {
        process.off('exit', endWithUs);
        if (this.expected === child) {
          reject(closedError()); // It may have been closed before it listened.
          return;
        }
        const message = `the scheduler ended by itself (exit code ${String(code)}): ${this.stderr}`;
        const error = new YardmasterError('ERR_CONNECT', message, { exitCode: code });
        reject(error);
        this.fail(error);
      });
    });
  }
}

function closedError(): YardmasterError {
  return new YardmasterError('ERR_CLOSED', 'the scheduler was closed before it listened again');
}

/** Shows how far the work is: bars on a terminal, now and then a line elsewhere. */
export interface LiveView {
  /** A task of this stage has ended, on this worker where that is known; again, when its result was lost. */
  readonly done: (stage: string, worker?: string, isAgain?: boolean) => void;
  /** A line of text, without tearing the bars. */
  readonly print: (line: string) => void;
  readonly stop: () => void;
}

/** Below the first column of text of the demo. */
const INDENT = ' '.repeat(11);
/**
 * @param stages - tasks of each stage of the work
 * @param workers - names of those that have a bar from the start
 * @param stream - where people look; results go elsewhere
 * @param print - where lines go that stay
 */
export function startLiveView(
  stages: ReadonlyMap<string, number>,
  workers: readonly string[],
  stream: NodeJS.WriteStream,
  print: (line: string) => void,
): LiveView {
  const parts = new Map([...stages].map(([name, total]) => [name, { name, done: 0, total }]));
  const all = { name: 'all', done: 0, total: [...stages.values()].reduce((a, b) => a + b, 0) };
  // How the workers share the work: of the runs that have ended, also of tasks that ran again.
  const own = new Map<string, ProgressRow>(
    workers.map((name) => [name, { name, done: 0, total: 0, note: 'runs', isShare: true }]),
  );
  const bars = new ProgressBars(all, [...parts.values(), all, ...own.values()], stream);
  return {
    done(stage, worker, isAgain = false) {
      const part = parts.get(stage);
      if (!isAgain) all.done++;
      if (!isAgain && part !== undefined) part.done++;
      const one = own.get(worker ?? '');
      if (one !== undefined) {
        one.done++;
        for (const each of own.values()) each.total++;
      }
      bars.changed();
    },
    print(line) {
      if (!bars.print(line, INDENT)) print(line);
    },
    stop: () => bars.stop(),
  };
}

/** The outcome of the cluster, and its cost. */
export interface Outcome {
  readonly answer: NearDuplicates;
  readonly taskCount: number;
  readonly seconds: number;
}

const SHOWN_FAMILIES = 5;

/**
 * The findings and their cost, in lines.
 * @param stats - undefined: the scheduler in which they were collected is gone
 */
export function outcomeLines(
  { answer: { compared, families }, taskCount, seconds }: Outcome,
  stats: Pick<DemoStats, 'movedBytes' | 'peakBytes' | 'tasksAgain'> | undefined,
  { documents, folder }: Corpus,
): string[] {
  const repeating = families.reduce((sum, family) => sum + family.documents.length, 0);
  const nameOf = (number: number | undefined): string =>
    relative(folder, documents[number ?? 0]?.path ?? '');
  return [
    '',
    `Nearly the same as another one: ${numberText(repeating)} of ${countOf(compared, 'text')}. The largest of ${countOf(families.length, 'family', 'families')}:`,
    ...families
      .slice(0, SHOWN_FAMILIES)
      .flatMap(({ documents: members, similarity }) => [
        `${numberText(members.length).padStart(5)} texts, at least ${Math.floor(100 * similarity)} % alike`,
        `         ${nameOf(members[0])}`,
        `         ${nameOf(members.at(-1))}`,
      ]),
    '',
    `${countOf(taskCount, 'task')} in ${seconds.toFixed(1)} s: ${countOf(Math.round(taskCount / seconds), 'task')} per second`,
    ...(stats === undefined ? [] : statsLines(stats)),
  ];
}

function statsLines({
  movedBytes,
  peakBytes,
  tasksAgain,
}: Pick<DemoStats, 'movedBytes' | 'peakBytes' | 'tasksAgain'>): string[] {
  const peaks = [...peakBytes].sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    `${numberText(tasksAgain).padStart(6)} ${tasksAgain === 1 ? 'task' : 'tasks'} computed once more`,
    `${sizeText(movedBytes).padStart(10)} moved between workers`,
    ...peaks.map(
      ([name, bytes]) => `${sizeText(bytes).padStart(10)} at most in the memory of ${name}`,
    ),
  ];
}

/**
 * Compares the families and all fingerprints with what a plain pass comes to.
 * @param stats - undefined: the load of the machine is not known
 */
export function checkOutcome(
  { answer, seconds }: Outcome,
  { documents }: Corpus,
  workers: number,
  stats?: Pick<DemoStats, 'othersBusy'>,
): { readonly isPassed: boolean; readonly lines: readonly string[] } {
  // Before the pass in this process, whose CPU would count as that of the cluster.
  const othersBusy = stats?.othersBusy;
  const startMs = performance.now();
  const plain = singlePass(documents);
  const plainSeconds = (performance.now() - startMs) / 1000;
  if (JSON.stringify(plain) !== JSON.stringify(answer)) {
    const what = plain.digest === answer.digest ? 'families are' : 'fingerprints are';
    const line = `Check      FAILED: the ${what} not those that a single thread comes to`;
    return { isPassed: false, lines: [line] };
  }
  const lines = [
    'Check      passed: one thread finds the same fingerprints and families',
    `Time       ${countOf(workers, 'worker')} ${seconds.toFixed(1)} s, one thread ${plainSeconds.toFixed(1)} s: ${(plainSeconds / seconds).toFixed(1)} times as fast`,
    ...slownessLines(plainSeconds / seconds, workers, othersBusy),
  ];
  return { isPassed: true, lines };
}

/** Below this factor the reason is given, where it is known. */
const CLEAR_WIN = 1.5;
/** Processors that others may use meanwhile on a quiet machine. */
const QUIET = 0.3;

/** The reason why workers were not faster, as far as it was measured. */
export function slownessLines(
  factor: number,
  workers: number,
  othersBusy: number | undefined,
  processors = availableParallelism(),
): string[] {
  if (factor >= CLEAR_WIN || workers < 2) return [];
  if (processors < 2) return ['           There is one processor, which the workers shared.'];
  if (othersBusy === undefined || othersBusy < QUIET) return [];
  const used = `${othersBusy.toFixed(1)} of ${processors} processors`;
  return [
    `Load       your machine was busy: other programs used ${used},`,
    '           which two workers feel more than one thread',
  ];
}

const SAMPLE_INTERVAL_MS = 200;

/** Counts what the demo reports at its end. An ordinary scheduler plugin. */
export class DemoStats implements SchedulerPlugin {
  readonly name = 'demo-stats';
  /** Runs that have ended, also of a task whose result was lost. */
  tasksDone = 0;
  private readonly done = new Set<string>();
  /** Bytes of results that tasks needed on a worker which did not hold them. */
  movedBytes = 0;
  /** Largest resident set of each worker, by name, according to its heartbeats. */
  readonly peakBytes = new Map<string, number>();
  /** Cores that all programs of the machine used, and our processes, summed over samples. */
  private readonly load = { samples: 0, host: 0, own: 0 };
  private readonly cpuAtStart = process.cpuUsage();
  private readonly startMs = performance.now();
  /** Called after each finished task, with the name of its worker; whether it had been finished before. */
  onDone: (key: string, worker: string, isAgain: boolean) => void = () => undefined;
  private nameOf: (address: string) => string = (address) => address;
  /** The results that were counted as moved: each goes to a worker once. */
  private readonly moved = new Map<WorkerView, Set<string>>();

  /** Tasks that were computed once more. */
  get tasksAgain(): number {
    return this.tasksDone - this.done.size;
  }

  /** Processors that other programs used, on average; undefined: no worker told. */
  get othersBusy(): number | undefined {
    const { samples, host, own } = this.load;
    if (samples === 0) return undefined;
    const { user, system } = process.cpuUsage(this.cpuAtStart);
    const here = (user + system) / 1000 / (performance.now() - this.startMs);
    return Math.max(0, (host - own) / samples - here);
  }

  setup({ every, cluster }: Pick<PluginContext, 'every' | 'cluster'>): void {
    this.nameOf = (address) => cluster.workers.get(address)?.name ?? address;
    every(SAMPLE_INTERVAL_MS, () => {
      for (const { name, metrics } of cluster.workers.values()) {
        this.peakBytes.set(name, Math.max(this.peakBytes.get(name) ?? 0, metrics.memoryBytes));
      }
      this.sampleLoad([...cluster.workers.values()]);
    });
  }

  taskTransition(
    task: TaskView,
    start: TaskStateName,
    finish: TaskStateName,
    _stimulusId: string,
    details: TransitionDetails,
  ): void {
    if (finish === 'processing' && task.processingOn !== undefined) {
      for (const input of task.dependencies) this.countMove(input, task.processingOn);
    } else if (start === 'processing' && finish === 'memory') {
      const isAgain = this.done.has(task.key);
      this.done.add(task.key);
      this.tasksDone++;
      this.onDone(task.key, this.nameOf(details.worker ?? ''), isAgain);
    }
  }

  private sampleLoad(workers: readonly WorkerView[]): void {
    const told = workers.flatMap(({ metrics: { hostCpuPercent: host, cpuPercent: own = 0 } }) =>
      host === undefined ? [] : [{ host, own }],
    );
    if (told.length === 0) return;
    this.load.samples++;
    this.load.host += Math.max(...told.map(({ host }) => host)) / 100;
    this.load.own += told.reduce((sum, { own }) => sum + own, 0) / 100;
  }

  private countMove(input: TaskView, worker: WorkerView): void {
    if (input.whoHas.has(worker)) return;
    const known = this.moved.get(worker) ?? new Set<string>();
    this.moved.set(worker, known);
    if (known.has(input.key)) return;
    known.add(input.key);
    this.movedBytes += Math.max(0, input.nbytes);
  }
}

// What a reader takes along from the demo.

/** One sentence: where a task ran, and the rule that chose; of the task with most candidates. */
export function whyLine(stories: readonly Why[], nameOf: (address: string) => string): string {
  const [first] = stories
    .flatMap(({ key, decisions }) => {
      const placement = decisions.findLast(({ kind }) => kind === 'placement');
      return placement === undefined ? [] : [{ key, placement }];
    })
    .toSorted((a, b) => b.placement.candidateCount - a.placement.candidateCount);
  if (first === undefined) return stories[0]?.now[0] ?? 'nothing is known of it any more';
  const { key, placement } = first;
  const { outcome, rule, policy } = placement;
  return `${key} ran on ${nameOf(outcome)}: ${rule} (policy ${policy})`;
}

/** In pieces: the bundler replaces it where it stands as a whole. */
const OWN_URL = ['import', 'meta', 'url'].join('.');

/** A program for a file of its own. */
export const PASTE = `import { isMainThread } from 'node:worker_threads';
import { defineTasks, LocalCluster } from 'yardmaster';
export const { square, sum } = defineTasks(${OWN_URL}, {
  square: (x) => x * x, sum: (numbers) => numbers.reduce((a, b) => a + b, 0),
});
if (isMainThread) { // workers import this file for its tasks
  const cluster = await LocalCluster.start(), client = await cluster.client();
  const work = () => client.submit(sum, client.map(square, [1, 2, 3])).result();
  console.log(await client.report('report.html', work)); // 14, and a page
  await cluster.close(); }`;
