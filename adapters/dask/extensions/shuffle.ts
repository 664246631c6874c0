/**
 * The P2P shuffle of Dask since 2023.3.1: how dataframes and arrays rearrange their partitions. Workers send
 * each other the pieces; the scheduler decides which worker gets which output partition, and starts a
 * shuffle over when one of its workers is gone.
 *
 * A shuffle is known by its barrier, the task between its inputs and its outputs. Since 2023.8.1 only Python
 * can read what describes the shuffle, so the Python helper places the partitions.
 */
import type { TaskStateName, TaskView, WorkerView } from '../../../core/api/index.ts';
import type { DaskContext, DaskExtension, Fields, MakeExtension } from '../context.ts';
import { Call, Name, writePickle } from '../interop/write-pickle.ts';
import { PythonException, uncaughtAnswer } from '../rpc/py-errors.ts';
import { numberIn, textIn } from '../codec/values.ts';
import { tellInputsDone } from './shuffle-barrier.ts';
import { OutputRestrictions } from './shuffle-outputs.ts';
import { type ShuffleSource, sourceIn } from './shuffle-sources.ts';
import { failedAnswer, inconsistent, type Shuffle, ShuffleRuns } from './shuffle-runs.ts';

/** The key of a barrier is this and the id of its shuffle. */
const BARRIER_PREFIX = 'shuffle-barrier-';

/** What a worker needs to take part. */
const WORKER_PLUGIN = writePickle(
  new Call(new Name('distributed.shuffle._worker_plugin', 'ShuffleWorkerPlugin'), []),
  false,
).bytes;

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
    if (this.runs.active.size === 0 || start === finish) return;
    if (finish !== 'released' && finish !== 'erred' && finish !== 'forgotten') return;
    const id = barrierId(task.key);
    const shuffle = id === undefined ? undefined : this.runs.active.get(id);
    if (id === undefined || shuffle === undefined) return;
    this.end(shuffle, task, `Shuffle ${id} forgotten`);
    if (this.ended?.stimulusId !== stimulusId) this.ended = { stimulusId, ids: new Set() };
    this.ended.ids.add(id);
  }

  /** What the worker had received is gone, so its shuffles start over with those that remain. */
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

function barrierId(key: string): string | undefined {
  return key.startsWith(BARRIER_PREFIX) ? key.slice(BARRIER_PREFIX.length) : undefined;
}
