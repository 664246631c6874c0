import type {
  Clock,
  ExecutableTask,
  ExecutionResult,
  FunctionSpec,
  RunAborted,
  Timer,
} from '../../../core/api/index.ts';
import { inBackground } from '../../../core/shared/timers.ts';
import { sharedMemoryOf } from '../../../core/util/bytes.ts';
import {
  bytesOf,
  type FunctionName,
  IN_OTHERS,
  type PostedResult,
  postedResult,
  type PostedResults,
  type PostedRuns,
  type PostedTask,
  postedTask,
  receivedResult,
  receivedTask,
  textOf,
} from './messages.ts';
import type { Job, SlotState, TaskThread } from './task-thread.ts';
import { abandonedError, closedResult, failed } from './thread-errors.ts';
import type { ThreadPool } from './thread-pool.ts';

/** Larger arguments and results travel for themselves. */
const PACKED_BYTES_MAX = 1024;
/** Entries of a run in `PostedRuns.runs`. */
const RUN_FIELDS = 3;
/** Entries of an outcome in `PostedResults.results`. */
const RESULT_FIELDS = 5;

/** Small byte strings one after the other, in memory that grows and is used again. */
class Bytes {
  private memory = Buffer.allocUnsafe(4096);
  private length = 0;

  /** Adds bytes. @returns their end */
  add(bytes: Uint8Array): number {
    const end = this.length + bytes.byteLength;
    if (end > this.memory.byteLength) {
      const larger = Buffer.allocUnsafe(2 * end);
      larger.set(this.memory.subarray(0, this.length));
      this.memory = larger;
    }
    this.memory.set(bytes, this.length);
    this.length = end;
    return end;
  }

  /** All of them. */
  take(): string {
    const { length } = this;
    this.length = 0;
    return textOf(this.memory, length);
  }
}

interface KnownFunction {
  readonly version: string;
  readonly position: number;
}

/** Writes runs for one thread, and remembers which functions it has received. */
export class RunWriter {
  private readonly known = new Map<string, Map<string, KnownFunction>>();
  private functionCount = 0;
  private readonly bytes = new Bytes();

  /** @param moved - buffers that are moved rather than copied */
  write(first: number, tasks: readonly ExecutableTask[], moved: ArrayBuffer[]): PostedRuns {
    const runs: (string | number)[] = [];
    const newFunctions: FunctionName[] = [];
    const others: PostedTask[] = [];
    for (const task of tasks) {
      const spec = packableSpec(task);
      if (spec === undefined) {
        others.push(postedTask(task, moved));
        runs.push(task.key, IN_OTHERS, 0);
      } else {
        const position = this.positionOf(spec, newFunctions);
        runs.push(task.key, position, this.bytes.add(spec.args));
      }
    }
    const args = this.bytes.take();
    if (newFunctions.length === 0 && others.length === 0) return { first, runs, args };
    return { first, runs, args, newFunctions, others };
  }

  /** Forgets the bytes that were written last: they have not arrived. */
  forget(): void {
    this.known.clear();
    this.bytes.take();
  }

  private positionOf({ module, name, version }: PackableSpec, added: FunctionName[]): number {
    let ofModule = this.known.get(module);
    if (ofModule === undefined) {
      ofModule = new Map<string, KnownFunction>();
      this.known.set(module, ofModule);
    }
    const known = ofModule.get(name);
    if (known?.version === version) return known.position;
    const position = this.functionCount++;
    ofModule.set(name, { version, position });
    added.push([position, module, name, version]);
    return position;
  }
}

/** A run with its number in the order of its thread. */
export type NumberedTask = ExecutableTask & { readonly number: number };

/** Reads runs in the thread. */
export class RunReader {
  private readonly functions: FunctionOfRuns[] = [];

  read({ first, runs, args, newFunctions = [], others = [] }: PostedRuns): NumberedTask[] {
    for (const [position, module, name, version] of newFunctions) {
      this.functions[position] = { module, name, version };
    }
    const bytes = bytesOf(args);
    const tasks: NumberedTask[] = [];
    let start = 0;
    let other = 0;
    for (let at = 0; at < runs.length; at += RUN_FIELDS) {
      const number = first + tasks.length;
      const key = runs[at] as string;
      const position = runs[at + 1] as number;
      if (position === IN_OTHERS) {
        tasks.push({ number, ...receivedTask(others[other++] as PostedTask) });
        continue;
      }
      const end = runs[at + 2] as number;
      const { module, name, version } = this.functions[position] as FunctionOfRuns;
      const runSpec = { module, name, version, args: bytes.subarray(start, end) };
      tasks.push({ number, key, runSpec, inputs: NO_INPUTS });
      start = end;
    }
    return tasks;
  }
}

/** Gathers outcomes in the thread until they are sent. */
export class ResultWriter {
  private readonly bytes = new Bytes();
  private results: (string | number)[] = [];
  private others: PostedResult[] = [];

  get isEmpty(): boolean {
    return this.results.length === 0;
  }

  add(number: number, result: ExecutionResult): void {
    if (result.kind === 'success' && isPackable(result.value)) {
      const { type, startMs, stopMs, value } = result;
      this.results.push(number, type, startMs, stopMs, this.bytes.add(value));
    } else {
      this.results.push(number, '', 0, 0, IN_OTHERS);
      this.others.push(postedResult(result));
    }
  }

  take(): PostedResults {
    const { results, others } = this;
    const values = this.bytes.take();
    this.results = [];
    if (others.length === 0) return { results, values };
    this.others = [];
    return { results, values, others };
  }
}

/** Calls back with each outcome. Small values are separate copies. */
export function readResults(
  { results, values, others = [] }: PostedResults,
  offsetMs: number,
  tell: (number: number, result: ExecutionResult) => void,
): void {
  const bytes = bytesOf(values);
  let start = 0;
  let other = 0;
  for (let at = 0; at < results.length; at += RESULT_FIELDS) {
    const number = results[at] as number;
    const end = results[at + 4] as number;
    if (end === IN_OTHERS) {
      const result = receivedResult(others[other++] as PostedResult);
      if (result.kind !== 'success') tell(number, result);
      else {
        const { startMs, stopMs } = result;
        tell(number, { ...result, startMs: startMs + offsetMs, stopMs: stopMs + offsetMs });
      }
      continue;
    }
    tell(number, {
      kind: 'success',
      value: bytes.slice(start, end),
      type: results[at + 1] as string,
      startMs: (results[at + 2] as number) + offsetMs,
      stopMs: (results[at + 3] as number) + offsetMs,
    });
    start = end;
  }
}

const NO_INPUTS: ReadonlyMap<string, Uint8Array> = new Map();

interface PackableSpec {
  readonly module: string;
  readonly name: string;
  readonly version: string;
  readonly args: Uint8Array;
}

type FunctionOfRuns = Omit<PackableSpec, 'args'>;

function packableSpec({ runSpec, inputs }: ExecutableTask): PackableSpec | undefined {
  if (inputs.size > 0 || typeof runSpec !== 'object' || runSpec === null) return undefined;
  const { module, name, version, args, retry, persist, each } = runSpec as Partial<FunctionSpec>;
  const isSimple =
    typeof module === 'string' &&
    typeof name === 'string' &&
    typeof version === 'string' &&
    retry === undefined &&
    persist === undefined &&
    each === undefined &&
    args instanceof Uint8Array &&
    isPackable(args);
  return isSimple ? (runSpec as PackableSpec) : undefined;
}

function isPackable(bytes: Uint8Array): boolean {
  return bytes.byteLength <= PACKED_BYTES_MAX && sharedMemoryOf(bytes) === undefined;
}

/** Upper bound of the short runs that are queued at a thread. */
const LINE_LENGTH_MAX = 256;
/** A thread with more is not handed others yet: each message wakes it up, which costs as much as many tasks. */
const LINE_LENGTH_LOW = 8;
/**
 * Milliseconds after which short runs are taken back from a thread that has begun none of its
 * queue.
 */
const HELD_UP_MS = 20;

/**
 * Assigns runs to threads. A long run gets a thread for itself. Short runs share threads and queue
 * there; one message hands over many of them. When the run before them takes long, they are taken
 * back.
 */
export class RunDispatcher {
  /** Long runs, each of which needs a thread for itself; short runs share threads. */
  private readonly waiting: Job[] = [];
  private waitingShort: Job[] = [];
  /** Runs that need no thread for themselves. */
  private readonly concurrent: Job[] = [];
  private isDealDue = false;
  private watch: Timer | undefined;
  private isClosed = false;

  /** @param heldUpMs - see `ThreadExecutorOptions` */
  constructor(
    private readonly crew: ThreadPool,
    private readonly clock: Clock,
    private readonly heldUpMs = HELD_UP_MS,
  ) {}

  /** Adds a job. The jobs of one turn are dealt together. */
  add(job: Job): void {
    if (job.isOver) return;
    if (job.isConcurrent) this.concurrent.push(job);
    else if (job.isShort) this.waitingShort.push(job);
    else this.waiting.push(job);
    if (this.isDealDue) return;
    this.isDealDue = true;
    queueMicrotask(() => {
      this.isDealDue = false;
      this.deal();
    });
  }

  /** Queues runs again that have not begun. Aborted runs go back to their owner at once. */
  addAgain(jobs: readonly Job[]): void {
    for (const job of jobs) {
      job.thread = undefined;
      if (job.isAborted && job.mayReturn) job.end({ kind: 'returned' });
      else this.add(job);
    }
  }

  /** Begins runs once more whose thread has ended, each as soon as it has a slot. */
  runAgain(jobs: readonly Job[]): void {
    for (const job of jobs) {
      job.thread = undefined;
      if (job.isAborted) job.end(failed(abandonedError(job)));
      else if (job.slotState === 'occupied') this.add(job);
      else {
        const back = job.slot.rejoin().then(() => this.add(job));
        inBackground(back, (error) => job.end(failed(error)));
      }
    }
  }

  /** Hands over what threads can take now. */
  deal(): void {
    if (this.isClosed) {
      const jobs = [...this.waiting, ...this.waitingShort, ...this.concurrent];
      this.waiting.length = 0;
      this.waitingShort.length = 0;
      this.concurrent.length = 0;
      for (const job of jobs) {
        job.end(closedResult(job.task.key));
      }
      return;
    }
    this.crew.start();
    this.dealConcurrent();
    while (this.waiting.length > 0) {
      const thread = this.crew.idle();
      if (thread === undefined) break;
      thread.hand([this.waiting.shift() as Job]);
    }
    if (this.waitingShort.length === 0) return;
    this.dealShort();
    this.watchLines();
  }

  abort(job: Job, reason: RunAborted | undefined): void {
    if (job.isOver || job.isAborted) return;
    job.isAborted = true;
    job.abortReason = reason;
    const { thread } = job;
    if (thread === undefined) {
      if (job.mayReturn) this.giveBack(job);
      return; // Otherwise it is aborted when it begins.
    }
    if (job.isShort) this.addAgain(thread.takeBack());
    // What has not begun is on no thread any more.
    if (job.thread === thread) thread.abort(job);
  }

  /** All that waits, and all that still comes, fails. */
  close(): void {
    this.isClosed = true;
    this.watch?.cancel();
    this.deal();
  }

  /** The thread with the fewest gets each. */
  private dealConcurrent(): void {
    while (this.concurrent.length > 0) {
      const thread = this.crew.leastWaiting();
      if (thread === undefined) return;
      thread.begin(this.concurrent.shift() as Job);
    }
  }

  /** Lines become about equally long. */
  private dealShort(): void {
    const takers = this.takers();
    if (takers.length === 0) return;
    let total = this.waitingShort.length;
    for (const { length } of takers) total += length;
    const share = Math.min(LINE_LENGTH_MAX, Math.ceil(total / takers.length));
    let dealt = 0;
    for (const thread of takers) {
      const count = share - thread.length;
      if (count <= 0 || dealt === this.waitingShort.length) continue;
      thread.hand(this.waitingShort.slice(dealt, dealt + count));
      dealt += count;
    }
    this.waitingShort = this.waitingShort.slice(dealt);
  }

  /**
   * Threads that shall get short runs now: those with a short queue, if threads may have queues.
   */
  private takers(): TaskThread[] {
    const takers: TaskThread[] = [];
    let isOneFree = false;
    for (const thread of this.crew.threads) {
      if (!thread.takesShort) continue;
      isOneFree = true;
      if (thread.length <= LINE_LENGTH_LOW) takers.push(thread);
    }
    if (isOneFree) return takers;
    const thread = this.crew.idle();
    return thread === undefined ? [] : [thread];
  }

  private giveBack(job: Job): void {
    for (const list of [this.waiting, this.waitingShort, this.concurrent]) {
      const index = list.indexOf(job);
      if (index >= 0) list.splice(index, 1);
    }
    job.end({ kind: 'returned' });
  }

  /** Checks, while runs are queued, whether any of them begins. */
  private watchLines(): void {
    if (this.watch !== undefined) return;
    this.watch = this.clock.setTimer(this.heldUpMs, () => {
      this.watch = undefined;
      let isMoving = false;
      for (const thread of this.crew.threads) {
        if (!thread.isHeldUp()) isMoving ||= thread.takesShort;
        else this.giveUp(thread.takeBack());
      }
      if (!isMoving) this.giveUp(this.waitingShort.splice(0));
      for (const thread of this.crew.threads) if (thread.length > 1) this.watchLines();
      if (this.waitingShort.length > 0) this.watchLines();
    });
  }

  private giveUp(jobs: readonly Job[]): void {
    for (const job of jobs) {
      job.thread = undefined;
      job.end({ kind: 'returned' });
    }
  }
}

/** The runs of a thread that have waited for others: those that wait, and those that continue. */
export class WaitingRuns {
  private readonly byNumber = new Map<number, Job>();
  private resumed = 0;
  private seceded = 0;

  get size(): number {
    return this.byNumber.size;
  }

  /** Runs that may compute: with a slot, or seceded. */
  get resumedCount(): number {
    return this.resumed;
  }

  get secededCount(): number {
    return this.seceded;
  }

  jobs(): Iterable<Job> {
    return this.byNumber.values();
  }

  has(job: Job): boolean {
    return this.byNumber.get(job.number) === job;
  }

  get(number: number): Job | undefined {
    return this.byNumber.get(number);
  }

  add(job: Job): void {
    this.byNumber.set(job.number, job);
    this.count(job, 1);
  }

  /** Removes a run. */
  take(number: number): Job | undefined {
    const job = this.byNumber.get(number);
    if (job === undefined) return undefined;
    this.count(job, -1);
    this.byNumber.delete(number);
    return job;
  }

  /** Changes the state of a run, whether it is here or not. */
  setState(job: Job, state: SlotState): void {
    const isHere = this.has(job);
    if (isHere) this.count(job, -1);
    job.slotState = state;
    if (isHere) this.count(job, 1);
  }

  clear(): void {
    this.byNumber.clear();
    this.resumed = 0;
    this.seceded = 0;
  }

  private count({ slotState }: Job, change: 1 | -1): void {
    if (slotState !== 'parked') this.resumed += change;
    if (slotState === 'seceded') this.seceded += change;
  }
}
