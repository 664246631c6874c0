import {
  messageOf,
  type TaskStateName,
  type TaskView,
  type WorkerView,
  YardmasterError,
} from '../../core/api/index.ts';
import { asList, type Fields, isFields, numberIn, omit, textIn, toNumber } from './wire/codec.ts';
import type { DaskContext, DaskExtension, MakeExtension } from './context.ts';
import { Call, Name, writePickle } from './wire/pickle.ts';
import { PythonException, uncaughtAnswer } from './wire/py-errors.ts';

// The P2P shuffle of Dask since 2023.3.1: how dataframes and arrays rearrange their partitions. Workers send
// each other the pieces; the scheduler decides which worker gets which output partition, and starts a
// shuffle over when one of its workers is gone.
//
// A shuffle is known by its barrier, the task between its inputs and its outputs. Since 2023.8.1 only Python
// can read what describes the shuffle, so the Python helper places the partitions.

/** The key of a barrier is this and the id of its shuffle. */
const BARRIER_PREFIX = 'shuffle-barrier-';

/** The plugin with which a worker takes part. */
const WORKER_PLUGIN = writePickle(
  new Call(new Name('distributed.shuffle._worker_plugin', 'ShuffleWorkerPlugin'), []),
  false,
).bytes;

/**
 * Restricts the outputs of shuffles. They start anywhere, find out which worker has their partition, and
 * are restricted to that one.
 */
class OutputRestrictions {
  /** Workers and names of before, by key. */
  private readonly originals = new Map<string, readonly string[]>();

  constructor(private readonly context: DaskContext) {}

  /** No-op for a task of two shuffles, which agree on the worker. */
  restrict(task: TaskView, worker: string): void {
    if (this.originals.has(task.key)) return;
    const { workers = [], names = [] } = task.restrictions ?? {};
    this.originals.set(task.key, [...workers, ...names]);
    this.context.plugin.enqueue({
      op: 'set-restrictions',
      changes: [{ key: task.key, workers: [worker] }],
    });
  }

  /**
   * Excludes outputs from queuing: in the wrong place they run almost at once, so holding them back
   * would only delay the shuffle.
   */
  letGo(outputs: readonly TaskView[]): void {
    const changes = outputs.map(({ key }) => ({ key, isQueueable: false }));
    this.context.plugin.enqueue({ op: 'set-restrictions', changes });
  }

  /** Back to where they might run before. */
  restore(outputs: readonly TaskView[]): void {
    const changes = outputs.flatMap(({ key }) => {
      const workers = this.originals.get(key);
      this.originals.delete(key);
      return workers === undefined ? [] : [{ key, workers }];
    });
    if (changes.length > 0) this.context.plugin.enqueue({ op: 'set-restrictions', changes });
  }

  /** The task is gone; another one of that key starts without restrictions of this one. */
  forget(key: string): void {
    this.originals.delete(key);
  }

  clear(): void {
    this.originals.clear();
  }
}

/** The shuffles that are under way. */
class ShuffleRuns {
  /** By id. */
  readonly active = new Map<string, Shuffle>();
  private readonly beginning = new Map<string, Promise<Shuffle>>();
  private runCount = 0;
  private shift = 0;
  /** Changes when all is forgotten. */
  private epoch = 0;

  constructor(
    private readonly context: DaskContext,
    private readonly barrierOf: (id: string) => TaskView | undefined,
    private readonly idOf: (key: string) => string | undefined,
  ) {}

  /** One run, however many workers ask for it at once. */
  begin(id: string, barrier: TaskView, source: ShuffleSource): Promise<Shuffle> {
    let begun = this.beginning.get(id);
    if (begun === undefined) {
      begun = this.place(id, barrier, source).finally(() => this.beginning.delete(id));
      this.beginning.set(id, begun);
    }
    return begun;
  }

  clear(): void {
    this.epoch++;
    this.active.clear();
    this.beginning.clear();
  }

  private async place(id: string, barrier: TaskView, source: ShuffleSource): Promise<Shuffle> {
    const { epoch } = this;
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      await this.partnersOf(barrier);
      const shuffle = await this.describe(id, barrier, source);
      if (this.epoch !== epoch || this.barrierOf(id) !== barrier) break;
      const { workers } = this.context.cluster;
      if (![...shuffle.participants].every((address) => workers.has(address))) continue;
      this.active.set(id, shuffle);
      this.context.log.info(
        { shuffle: id, runId: shuffle.runId, workers: shuffle.participants.size },
        'a P2P shuffle begins',
      );
      return shuffle;
    }
    throw inconsistent(`Shuffle ${id} could not begin: its tasks or workers are gone`);
  }

  private async describe(id: string, barrier: TaskView, source: ShuffleSource): Promise<Shuffle> {
    const runId = ++this.runCount;
    const [workers, placed] = [this.workersOf(barrier), this.placedWith(barrier)];
    if (source.kind === 'fields') {
      const placement = placeByFields(source.spec, workers, placed);
      const fields = answerByFields(source, runId, placement);
      return shuffleOf(id, runId, placement, { kind: 'fields', fields });
    }
    const described = source.kind === 'spec' ? { spec: source.spec } : { barrier: barrier.runSpec };
    const run = await this.context.graphs.shuffleRun({ ...described, workers, placed, runId });
    const { runSpec, workerFor } = run;
    return shuffleOf(id, runId, workerFor, { kind: 'run-spec', runSpec });
  }

  /** Those that the barrier may run on. Each run begins with another one, so that small ones spread. */
  private workersOf({ restrictions }: TaskView): string[] {
    const wanted = restrictions?.workers;
    const all = [...this.context.workers.keys()];
    const allowed = wanted === undefined ? all : all.filter((address) => wanted.has(address));
    if (allowed.length === 0)
      throw inconsistent('There is no worker that may take part in the shuffle');
    const shift = this.shift++ % allowed.length;
    return [...allowed.slice(shift), ...allowed.slice(0, shift)];
  }

  /**
   * The two sides of a join have output tasks in common, so both put each partition on the same worker.
   * The workers may have changed since the other side began, so its choice counts.
   */
  private placedWith(barrier: TaskView): (readonly [unknown, string])[] {
    const placed = new Map<string, readonly [unknown, string]>();
    for (const partner of this.partners(barrier)) {
      const shuffle = this.active.get(partner);
      for (const [text, entry] of shuffle?.workerFor ?? []) placed.set(text, entry);
    }
    return [...placed.values()];
  }

  /** One side of a join must be placed before the other is. */
  private async partnersOf(barrier: TaskView): Promise<void> {
    for (const partner of this.partners(barrier)) {
      await this.beginning.get(partner)?.catch(() => undefined);
    }
  }

  private partners(barrier: TaskView): Set<string> {
    const ids = new Set<string>();
    for (const output of barrier.dependents) {
      for (const other of output.dependencies) {
        const id = other === barrier ? undefined : this.idOf(other.key);
        if (id !== undefined) ids.add(id);
      }
    }
    return ids;
  }
}

class Shuffles {
  private readonly runs: ShuffleRuns;
  private readonly outputs: OutputRestrictions;
  /** Shuffles that ended in a stimulus, which may turn out to have taken a worker away. */
  private ended: { readonly stimulusId: string; readonly ids: Set<string> } | undefined;

  constructor(private readonly context: DaskContext) {
    this.outputs = new OutputRestrictions(context);
    this.runs = new ShuffleRuns(context, (id) => this.barrierOf(id), barrierId);
  }

  /** For a worker that takes part from now on. */
  get(request: Fields): unknown {
    return this.answer(request, () => {
      const id = textIn(request, 'id');
      const shuffle = this.runs.active.get(id);
      if (shuffle === undefined) throw inconsistent(`No active shuffle with id='${id}' found`);
      return this.join(shuffle, textIn(request, 'worker'));
    });
  }

  /** The first worker that has a partition to send asks for the shuffle to begin. */
  async getOrCreate(request: Fields): Promise<unknown> {
    try {
      const source = sourceIn(request);
      const id = await this.idIn(request, source);
      const worker = textIn(request, 'worker');
      const shuffle = this.runs.active.get(id) ?? (await this.begin(id, request, source));
      return this.join(shuffle, worker);
    } catch (error) {
      return this.failed(error, request);
    }
  }

  private async idIn(request: Fields, source: ShuffleSource): Promise<string> {
    if (source.kind === 'fields') return textIn(request, 'id');
    if (source.kind === 'barrier') return textIn(request, 'shuffle_id');
    const { attributes } = await this.context.graphs.inspect(source.spec, ['id']);
    return textIn(attributes, 'id');
  }

  /** An output task found itself on the wrong worker; it gives itself back after this. */
  restrictTask(request: Fields): unknown {
    return this.answer(request, () => {
      const { id } = this.runOf(request);
      const key = this.context.keys.textOf(request['key']);
      const task = this.context.cluster.tasks.get(key);
      if (task === undefined) throw inconsistent(`The task ${key} of shuffle ${id} is not known`);
      this.outputs.restrict(task, textIn(request, 'worker'));
      return { status: 'OK' };
    });
  }

  /** All inputs were sent. Unless parts of them went to another run, the workers may give outputs. */
  async barrier(request: Fields): Promise<null> {
    const id = textIn(request, 'id');
    const shuffle = this.runs.active.get(id);
    if (shuffle === undefined) throw new PythonException('KeyError', id);
    const runId = numberIn(request, 'run_id');
    if (shuffle.runId !== runId) {
      throw new PythonException(
        'ValueError',
        `run_id=${String(runId)} does not match the run ${shuffle.runId} of shuffle ${id}`,
      );
    }
    // Before 2023.10 workers do not say it.
    if (request['consistent'] !== false) await tellInputsDone(this.context, shuffle);
    else {
      this.context.log.warn(
        { shuffle: id },
        'a shuffle starts over: its inputs are of several runs',
      );
      this.startOver(id);
    }
    return null;
  }

  /** The shuffle is over when its barrier is. */
  onTransition(
    task: TaskView,
    start: TaskStateName,
    finish: TaskStateName,
    stimulusId: string,
  ): void {
    if (finish === 'forgotten') this.outputs.forget(task.key);
    if (this.runs.active.size === 0 || start === finish) return;
    if (finish !== 'released' && finish !== 'erred' && finish !== 'forgotten') return;
    const id = barrierId(task.key);
    const shuffle = id === undefined ? undefined : this.runs.active.get(id);
    if (id === undefined || shuffle === undefined) return;
    this.end(shuffle, task, `Shuffle ${id} forgotten`);
    if (this.ended?.stimulusId !== stimulusId) this.ended = { stimulusId, ids: new Set() };
    this.ended.ids.add(id);
  }

  /** The data that the worker had received is gone, so its shuffles start over with the workers that remain. */
  onWorkerRemoved({ address }: WorkerView, stimulusId: string): void {
    const again = this.ended?.stimulusId === stimulusId ? this.ended.ids : new Set<string>();
    for (const [id, shuffle] of [...this.runs.active]) {
      if (!shuffle.participants.has(address)) continue;
      this.end(shuffle, this.barrierOf(id), `Worker ${address} left during active shuffle ${id}`);
      again.add(id);
    }
    this.ended = undefined;
    for (const id of again) {
      this.context.log.warn(
        { shuffle: id, worker: address },
        'a shuffle starts over: a worker left',
      );
      this.startOver(id);
    }
  }

  clear(): void {
    this.runs.clear();
    this.outputs.clear();
    this.ended = undefined;
  }

  private async begin(id: string, request: Fields, source: ShuffleSource): Promise<Shuffle> {
    const barrier = this.barrierOf(id);
    if (barrier === undefined) {
      throw inconsistent(
        `Barrier task with key '${BARRIER_PREFIX}${id}' does not exist. This may be caused by task fusion during graph generation.`,
      );
    }
    this.checkProcessing(request['key']);
    const shuffle = await this.runs.begin(id, barrier, source);
    this.outputs.letGo(barrier.dependents);
    for (const output of barrier.dependents) this.pin(output, shuffle);
    return shuffle;
  }

  /** Before 2023.8 workers do not say which task it is. */
  private checkProcessing(key: unknown): void {
    if (key === undefined) return;
    const text = this.context.keys.textOf(key);
    const task = this.context.cluster.tasks.get(text);
    if (task?.state === 'processing') return;
    throw inconsistent(
      `Expected the task ${text} to be processing, is ${task?.state ?? 'forgotten'}.`,
    );
  }

  /** Before 2023.12 outputs say which partition they are. */
  private pin(output: TaskView, { workerFor }: Shuffle): void {
    const partition = output.annotations?.['shuffle'];
    const placed = partition === undefined ? undefined : workerFor.get(JSON.stringify(partition));
    if (placed !== undefined) this.outputs.restrict(output, placed[1]);
  }

  private join(shuffle: Shuffle, worker: string): unknown {
    if (!this.context.cluster.workers.has(worker)) {
      throw inconsistent(`Scheduler is unaware of this worker '${worker}'`);
    }
    shuffle.participants.add(worker);
    const { description } = shuffle;
    if (description.kind === 'fields') return description.fields;
    const { runSpec } = description;
    return this.wantsBareSpec(worker) ? runSpec : { status: 'OK', run_spec: runSpec };
  }

  private runOf(request: Fields): Shuffle {
    const id = textIn(request, 'id');
    const runId = numberIn(request, 'run_id') ?? 0;
    const shuffle = this.runs.active.get(id);
    if (shuffle === undefined) throw new PythonException('KeyError', id);
    if (shuffle.runId === runId) return shuffle;
    const what = shuffle.runId > runId ? 'stale' : 'invalid';
    throw inconsistent(`Request ${what}, expected run_id=${runId} for ${id}[${shuffle.runId}]`);
  }

  /** Its workers forget it, and its outputs may run anywhere again. */
  private end(shuffle: Shuffle, barrier: TaskView | undefined, message: string): void {
    this.runs.active.delete(shuffle.id);
    const fail = { op: 'shuffle-fail', shuffle_id: shuffle.id, run_id: shuffle.runId, message };
    for (const address of shuffle.participants) this.context.workers.get(address)?.send(fail);
    if (barrier !== undefined) this.outputs.restore(barrier.dependents);
  }

  /** Outputs, barrier and inputs are computed again, unless one of them failed: then all of it has. */
  private startOver(id: string): void {
    const barrier = this.barrierOf(id);
    if (barrier === undefined) return;
    const { dependents, dependencies } = barrier;
    if (dependents.some(({ state }) => state === 'erred') || barrier.state === 'erred') return;
    const keys = [...dependents, barrier, ...dependencies].map(({ key }) => key);
    this.context.plugin.enqueue({ op: 'release-tasks', keys });
  }

  private barrierOf(id: string): TaskView | undefined {
    return this.context.cluster.tasks.get(BARRIER_PREFIX + id);
  }

  /** Dask's workers want some errors as an answer. */
  private answer(request: Fields, act: () => unknown): unknown {
    try {
      return act();
    } catch (error) {
      return this.failed(error, request);
    }
  }

  /** Workers before 2024.6 raise the error that they receive, and do not know its class. */
  private failed(error: unknown, { worker }: Fields): Fields {
    const isOld = this.context.workers.get(String(worker))?.dialect.hasShuffleStatus === false;
    if (!isOld || !(error instanceof PythonException)) return failedAnswer(error);
    const plain = new PythonException('RuntimeError', error.message);
    return { ...uncaughtAnswer(plain), message: error.message };
  }

  private wantsBareSpec(worker: string): boolean {
    return this.context.workers.get(worker)?.dialect.hasShuffleStatus === false;
  }
}

/** Serves the `shuffle_*` operations. */
export const makeShuffle: MakeExtension = (context): DaskExtension => {
  const shuffles = new Shuffles(context);
  return {
    rpc: {
      shuffle_get: (request) => shuffles.get(request),
      shuffle_get_or_create: (request) => shuffles.getOrCreate(request),
      shuffle_restrict_task: (request) => shuffles.restrictTask(request),
      shuffle_barrier: (request) => shuffles.barrier(request),
    },
    hooks: {
      taskTransition: (task, start, finish, stimulusId) => {
        shuffles.onTransition(task, start, finish, stimulusId);
      },
      workerRemoved: (worker, stimulusId) => shuffles.onWorkerRemoved(worker, stimulusId),
    },
    workerPluginsFor: ({ dialect }) => (dialect.hasShufflePlugin ? { shuffle: WORKER_PLUGIN } : {}),
    restarted: () => shuffles.clear(),
  };
};

function barrierId(key: string): string | undefined {
  return key.startsWith(BARRIER_PREFIX) ? key.slice(BARRIER_PREFIX.length) : undefined;
}

/** Attempts of which none reached any worker more before it is given up. */
const IDLE_ATTEMPTS_MAX = 3;
const PAUSE_MS = 100;

/**
 * Informs all workers of a shuffle that it has received its last pieces, so that they write what
 * they have.
 * @throws PythonException `RuntimeError`, `P2PIllegalStateError`
 */
async function tellInputsDone(context: DaskContext, shuffle: Shuffle): Promise<void> {
  let waiting = [...shuffle.participants];
  let idleCount = 0;
  while (waiting.length > 0) {
    const unreached = await tell(context, shuffle, waiting);
    const gone = unreached.filter((address) => !context.workers.has(address));
    if (gone.length > 0) {
      throw new PythonException(
        'RuntimeError',
        `Worker ${gone.join(', ')} left during shuffle ${shuffle.id}`,
      );
    }
    idleCount = unreached.length === waiting.length ? idleCount + 1 : 0;
    if (idleCount >= IDLE_ATTEMPTS_MAX) {
      throw new PythonException(
        'RuntimeError',
        `the workers ${unreached.join(', ')} of shuffle ${shuffle.id} cannot be reached; they may be overloaded`,
      );
    }
    waiting = unreached;
    if (waiting.length > 0) await pause(context);
  }
}

/** Addresses of the workers that could not be reached. */
async function tell(
  { pool }: DaskContext,
  { id, runId }: Shuffle,
  addresses: readonly string[],
): Promise<string[]> {
  const parameters = { shuffle_id: id, run_id: runId };
  const unreached: string[] = [];
  await Promise.all(
    addresses.map(async (address) => {
      try {
        await pool.call(address, 'shuffle_inputs_done', parameters);
      } catch (error) {
        if (YardmasterError.is(error)) unreached.push(address);
        else {
          const message = `Unexpected error encountered during P2P barrier: ${messageOf(error)}`;
          throw new PythonException('RuntimeError', message, { cause: error });
        }
      }
    }),
  );
  return unreached;
}

function pause({ clock }: DaskContext): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(PAUSE_MS, resolve);
  });
}

interface Shuffle {
  readonly id: string;
  /** Grows with each run of any shuffle. */
  readonly runId: number;
  /** Which worker has which output partition, by the partition as text. */
  readonly workerFor: ReadonlyMap<string, readonly [partition: unknown, worker: string]>;
  /** The answer to workers that take part: an object of Python, or all fields of the answer. */
  readonly description:
    | { readonly kind: 'run-spec'; readonly runSpec: unknown }
    | { readonly kind: 'fields'; readonly fields: Fields };
  /** Addresses of workers that send or receive. */
  readonly participants: Set<string>;
}

/** More than any shuffle of plain data has; its answer lists all of them. */
const PARTITIONS_MAX = 1_000_000;

/** Times that a run is placed anew because a worker left while Python was placing it. */
const ATTEMPTS_MAX = 5;

function shuffleOf(
  id: string,
  runId: number,
  placement: Placement,
  description: Shuffle['description'],
): Shuffle {
  return {
    id,
    runId,
    workerFor: new Map(placement.map((entry) => [JSON.stringify(entry[0]), entry])),
    description,
    participants: new Set(placement.map(([, worker]) => worker)),
  };
}

/** The exception for a worker that does not fit to the state of the shuffle; it reports its task as failed or comes back. */
function inconsistent(message: string): PythonException {
  return new PythonException('P2PConsistencyError', message);
}

/** The answer for an inconsistency, which the worker raises itself. @throws other errors */
function failedAnswer(error: unknown): Fields {
  if (!(error instanceof PythonException) || error.type !== 'P2PConsistencyError') throw error;
  return { ...uncaughtAnswer(error), status: 'error', message: error.message };
}

// How a shuffle describes itself, which differs between the releases of Dask's workers.

/** Which worker gets which output partition. */
type Placement = readonly (readonly [partition: unknown, worker: string])[];

type ShuffleSource =
  /** Since 2024.11 the barrier task has the specification, which only Python reads. */
  | { readonly kind: 'barrier' }
  /** 2023.8.1 to 2024.10: workers send it, as an object of Python. */
  | { readonly kind: 'spec'; readonly spec: unknown }
  /** Before 2023.8.1 workers send it as plain data. */
  | { readonly kind: 'fields'; readonly type: unknown; readonly spec: Fields };

/** The source in a `shuffle_get_or_create`. */
function sourceIn({ type, spec }: Fields): ShuffleSource {
  if (type !== undefined && isFields(spec)) return { kind: 'fields', type, spec };
  return spec === undefined ? { kind: 'barrier' } : { kind: 'spec', spec };
}

/**
 * Spreads the output partitions of a shuffle that is described by plain data. O(partitions).
 * @param workers - at least one; neighbouring partitions go to the same one
 * @param placed - partitions whose workers are settled already
 */
function placeByFields(spec: Fields, workers: readonly string[], placed: Placement): Placement {
  const settled = new Map(placed.map(([partition, worker]) => [JSON.stringify(partition), worker]));
  return [...partitionsOf(spec)].map(({ partition, position, count }) => {
    const share = workers[Math.floor((workers.length * position) / count)] as string;
    return [partition, settled.get(JSON.stringify(partition)) ?? share];
  });
}

interface Partition {
  readonly partition: unknown;
  /** Among all of the shuffle, those that are not wanted included. */
  readonly position: number;
  readonly count: number;
}

/** Of a dataframe `parts_out` of `npartitions`; of an array each of the `new` chunks. */
function* partitionsOf({
  npartitions,
  parts_out: wanted,
  new: chunks,
}: Fields): Iterable<Partition> {
  const axes = asList(chunks)?.map((axis) => asList(axis)?.length ?? 0);
  if (axes !== undefined) {
    const count = checkedCount(axes.reduce((product, length) => product * length, 1));
    for (let position = 0; position < count; position++) {
      yield { partition: indexAt(position, axes), position, count };
    }
    return;
  }
  const count = toNumber(npartitions);
  if (count === undefined) {
    throw new PythonException('TypeError', 'a shuffle is a dataframe shuffle or an array rechunk');
  }
  const all = asList(wanted) ?? Array.from({ length: checkedCount(count) }, (_, index) => index);
  for (const partition of all) {
    yield { partition, position: Math.min(count - 1, toNumber(partition) ?? 0), count };
  }
}

/** A few words of a worker may name more partitions than fit into the memory. */
function checkedCount(count: number): number {
  if (count <= PARTITIONS_MAX) return count;
  const message = `a shuffle has at most ${PARTITIONS_MAX} partitions, not ${count}`;
  throw new PythonException('ValueError', message);
}

/** The last axis changes fastest. */
function indexAt(position: number, axes: readonly number[]): number[] {
  const index: number[] = [];
  let rest = position;
  for (const length of axes.toReversed()) {
    index.unshift(rest % length);
    rest = Math.floor(rest / length);
  }
  return index;
}

/** The answer to a worker that takes part in a shuffle of plain data. */
function answerByFields(
  { type, spec }: Extract<ShuffleSource, { kind: 'fields' }>,
  runId: number,
  placement: Placement,
): Fields {
  return {
    status: 'OK',
    type,
    run_id: runId,
    worker_for: new Map(placement),
    output_workers: new Set(placement.map(([, worker]) => worker)),
    // Workers do not want these back.
    ...omit(spec, 'npartitions', 'parts_out'),
  };
}
