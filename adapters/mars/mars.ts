import {
  type Clock,
  type TaskStateName,
  type TaskSummary,
  YardmasterError,
} from '../../core/api/index.ts';
import {
  ANY,
  checkCall,
  CLOCK,
  FLAG,
  LIST,
  type Rules,
  type Schema,
  TEXT,
  wholeNumber,
} from '../../core/shared/schema.ts';
import { InTurn } from '../../core/util/steps.ts';
import { compareTuples } from '../../core/util/values.ts';
import {
  Client,
  type ConnectOptions,
  type Future,
  type Graph,
  Ref,
  type Submitter,
  TaskNode,
} from '../client/index.ts';
import { holdingOfFuture } from '../client/future.ts';
import { SystemClock } from '../clocks/index.ts';
import { pushTo } from '../../core/util/collections.ts';

/** A subtask of which the session holds the result. */
interface HeldSubtask {
  readonly subtask: Subtask;
  readonly future: Future<unknown>;
  priority: PriorityTuple;
  /** Undefined once its place in the order does not matter any more. */
  label: PriorityLabel | undefined;
}

function summaryOf(
  { subtask, future, priority }: HeldSubtask,
  known: TaskSummary | undefined,
): SubtaskScheduleSummary {
  const { id, taskId } = subtask;
  const {
    state = 'gone',
    processingOn,
    whoHas = [],
    reschedules = 0,
    retriesLeft = 0,
  } = known ?? {};
  return {
    subtaskId: id,
    taskId,
    state,
    bands: processingOn === undefined ? whoHas : [processingOn],
    numReschedules: reschedules,
    retriesLeft,
    priority,
    isFinished: state === 'memory',
    isFailed: state === 'erred',
    isCancelled: future.status === 'cancelled',
  };
}

/** The options of a session. */
export interface SchedulingApiOptions {
  /** Keeps the subtasks of this session apart from all others in the cluster. Default: the client's id. */
  readonly sessionId?: string;
  /** Summaries of subtasks that are finished or cancelled which are kept, the newest. Default 10 000. */
  readonly historyLength?: number;
  readonly clock?: Clock;
}

/** The options of a cancellation. */
export interface CancelSubtasksOptions {
  /**
   * Milliseconds that a run has to stop. Then its thread is ended, unless the worker never ends threads.
   * Default: `worker.killGrace` of the scheduler's configuration, or `scheduling.subtaskCancelTimeout`.
   */
  readonly killTimeoutMs?: number;
}

/** The ids of cancelled subtasks, and of those that depend on them. */
export interface CancelledSubtasks {
  /** Those that were asked for, then what depends on them. */
  readonly cancelled: readonly string[];
  /** Had ended before. */
  readonly ended: readonly string[];
  /** Not of this session, or finished or cancelled before. */
  readonly unknown: readonly string[];
  /** The part of `cancelled` whose runs have not ended yet. Their results are dropped. */
  readonly running: readonly string[];
}

/** The options of finishing subtasks. */
export interface FinishSubtasksOptions {
  /** The band on which each ran to its end. A subtask runs in one place only, so there is nothing to stop elsewhere. */
  readonly bands?: readonly (string | undefined)[];
  /** Must be true: what can run next is always sent at once. Default true. */
  readonly scheduleNext?: boolean;
}

/** A priority: one number, or several of which the first counts most. Larger runs earlier. */
export type SubtaskPriority = number | PriorityTuple;

const NUMBER: Schema = { type: 'number' };
const NAMES: Schema = { type: 'array', items: { type: 'string' } };
const IDS: Schema = { ...NAMES, wanted: 'a list of ids of subtasks' };
const PRIORITY: Schema = {
  anyOf: [NUMBER, { type: 'array', items: NUMBER }],
  wanted: 'a finite number, or a list of such',
};

/** @throws YardmasterError `ERR_GRAPH_INVALID` with every problem */
function checkArguments<Given extends object>(
  call: string,
  given: Given,
  rules: Rules<Given>,
): Given {
  return checkCall(call, given, rules, 'ERR_GRAPH_INVALID');
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` when there are not as many as subtasks, or one is of another type */
function tuplesFor(
  subtasks: readonly unknown[],
  priorities: readonly SubtaskPriority[] | undefined,
): PriorityTuple[] {
  if (priorities === undefined) return subtasks.map(() => [0]);
  checkArguments('addSubtasks', { priorities }, { priorities: LIST });
  if (priorities.length === subtasks.length) return priorities.map(tupleOf);
  throw new YardmasterError(
    'ERR_GRAPH_INVALID',
    `addSubtasks wants as many priorities as subtasks (${subtasks.length}), got ${priorities.length}`,
  );
}

/**
 * A number is a tuple of one.
 * @throws YardmasterError `ERR_GRAPH_INVALID` when it is something else than a number or a list of numbers
 */
function tupleOf(given: SubtaskPriority): PriorityTuple {
  const { priority } = checkArguments('a subtask', { priority: given }, { priority: PRIORITY });
  return typeof priority === 'number' ? [priority] : priority;
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` */
function checkFinish(ids: readonly string[], options: FinishSubtasksOptions): void {
  const { bands } = checkArguments('finishSubtasks', options, {
    bands: { type: 'array', wanted: 'a list, one for each subtask' },
    scheduleNext: {
      const: true,
      wanted: 'true: what can run next is always sent at once; pause workers instead',
    },
  });
  if (bands === undefined || bands.length === ids.length) return;
  throw new YardmasterError(
    'ERR_GRAPH_INVALID',
    `finishSubtasks wants as many bands as subtasks (${ids.length}), got ${bands.length}`,
    { option: 'bands' },
  );
}

const CANCEL_RULES: Rules<CancelSubtasksOptions> = {
  killTimeoutMs: { ...NUMBER, minimum: 0, maximum: Number.MAX_VALUE },
};
const SESSION_RULES: Rules<SchedulingApiOptions> = {
  sessionId: TEXT,
  historyLength: { ...wholeNumber(0), infinite: true },
  clock: CLOCK,
};

/** The priority of a subtask in Mars: compared from the front, the largest runs first. */
export type PriorityTuple = readonly number[];

/** A tuple in use, with the number that stands for it. */
export interface PriorityLabel {
  readonly tuple: PriorityTuple;
  /**
   * Larger for larger tuples. Changes when labels are moved apart: see {@link
   * PriorityLabels.acquire}.
   */
  readonly value: number;
}

class Label implements PriorityLabel {
  uses = 0;
  /** From 1 to {@link PLACES} - 1 while there are more elements than one; NaN while it has none. */
  place = NaN;

  constructor(readonly tuple: PriorityTuple) {
    if (tuple.length === 1) this.place = 0;
  }

  get first(): number {
    return this.tuple[0] as number;
  }

  get value(): number {
    return this.first + this.place / PLACES;
  }
}

/** Places between two whole numbers. With {@link FIRST_MAX} every sum is exact. */
const PLACES = 2 ** 32;
const FIRST_MAX = 2 ** 20;
/** Distance at an open end, so that many more labels fit there. */
const STRIDE = 2 ** 16;
/** Labels that are put into their places one by one; more are sorted in. */
const SINGLES_MAX = 32;

/**
 * Numbers for tuples of numbers, so that a scheduler which orders by one number follows the order
 * of the tuples exactly. A tuple of one element is its own number, which makes it comparable with
 * other priorities. Longer tuples lie between two whole numbers, and are moved together when no
 * free number is left.
 */
export class PriorityLabels {
  private readonly known = new Map<string, Label>();
  /** By first element; ascending. */
  private readonly buckets = new Map<number, Label[]>();

  /** Tuples in use. */
  get size(): number {
    return this.known.size;
  }

  /**
   * Takes a label for each tuple; equal ones share it. O(log n + places moved) for a few.
   *
   * @returns the labels, and all others whose number has changed, so that the caller can update
   *   their users
   * @throws YardmasterError `ERR_GRAPH_INVALID` when a tuple cannot be ordered
   */
  acquire(tuples: readonly PriorityTuple[]): {
    readonly labels: readonly PriorityLabel[];
    readonly moved: ReadonlySet<PriorityLabel>;
  } {
    for (const tuple of tuples) checkTuple(tuple);
    const fresh = new Map<number, Label[]>();
    const labels = tuples.map((tuple) => this.labelFor(tuple, fresh));
    const moved = new Set<PriorityLabel>();
    for (const [first, added] of fresh) this.place(first, added, moved);
    return { labels, moved };
  }

  /** Gives one use of a label back. */
  release(label: PriorityLabel): void {
    const own = this.known.get(keyOf(label.tuple));
    if (own !== label || --own.uses > 0) return;
    this.known.delete(keyOf(own.tuple));
    const bucket = this.buckets.get(own.first) ?? [];
    bucket.splice(positionOf(bucket, own.tuple), 1);
    if (bucket.length === 0) this.buckets.delete(own.first);
  }

  private labelFor(tuple: PriorityTuple, fresh: Map<number, Label[]>): Label {
    const key = keyOf(tuple);
    let label = this.known.get(key);
    if (label === undefined) {
      label = new Label([...tuple]);
      this.known.set(key, label);
      pushTo(fresh, label.first, label);
    }
    label.uses++;
    return label;
  }

  private place(first: number, added: readonly Label[], moved: Set<PriorityLabel>): void {
    const bucket = this.buckets.get(first) ?? [];
    this.buckets.set(first, bucket);
    let isPlaced: boolean;
    if (added.length <= SINGLES_MAX) {
      isPlaced = added.map((label) => placeOne(bucket, label)).every(Boolean);
    } else {
      for (const label of added) bucket.push(label);
      bucket.sort((a, b) => compareTuples(a.tuple, b.tuple));
      isPlaced = placeRuns(bucket);
    }
    if (isPlaced) return;
    const isNew = new Set(added);
    spread(bucket);
    for (const label of bucket) if (!isNew.has(label) && label.tuple.length > 1) moved.add(label);
  }
}

/** Inserts a label in order. Returns false when no number is free for it. */
function placeOne(bucket: Label[], label: Label): boolean {
  const at = positionOf(bucket, label.tuple);
  bucket.splice(at, 0, label);
  return placeRun(bucket, at, at + 1);
}

/**
 * Gives a number to all labels without one. Returns false when no number is free for one of them.
 */
function placeRuns(bucket: readonly Label[]): boolean {
  for (let start = 0; start < bucket.length; start++) {
    let end = start;
    while (Number.isNaN(bucket[end]?.place)) end++;
    if (end > start && !placeRun(bucket, start, end)) return false;
    start = end;
  }
  return true;
}

/** Between the neighbours; at an open end a stride apart, and the first ones in the middle. */
function placeRun(bucket: readonly Label[], start: number, end: number): boolean {
  if (end - start === 1 && !Number.isNaN(bucket[start]?.place)) return true;
  const low = bucket[start - 1]?.place ?? 0;
  const high = bucket[end]?.place ?? PLACES;
  if (Number.isNaN(low) || Number.isNaN(high)) return false;
  const even = Math.floor((high - low) / (end - start + 1));
  if (even < 1) return false;
  const isFirst = low === 0 && high === PLACES;
  const step = low === 0 || high === PLACES ? Math.min(even, STRIDE) : even;
  const width = step * (end - start + 1);
  const origin = isFirst ? (PLACES - width) / 2 : low === 0 ? high - width : low;
  for (let index = start; index < end; index++) {
    (bucket[index] as Label).place = Math.floor(origin) + step * (index - start + 1);
  }
  return true;
}

/** Makes space by distributing all labels evenly over the middle half. */
function spread(bucket: readonly Label[]): void {
  const long = bucket.filter(({ tuple }) => tuple.length > 1);
  const step = Math.floor(PLACES / 2 / (long.length + 1));
  long.forEach((label, index) => (label.place = PLACES / 4 + step * (index + 1)));
}

/** The index of the tuple, or the index at which it would be. */
function positionOf(bucket: readonly Label[], tuple: PriorityTuple): number {
  let [low, high] = [0, bucket.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareTuples((bucket[middle] as Label).tuple, tuple) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function keyOf(tuple: PriorityTuple): string {
  // Not -0, which is 0.
  return tuple.map((element) => element + 0).join();
}

function checkTuple(tuple: PriorityTuple): void {
  if (tuple.length === 0 || !tuple.every((element) => Number.isFinite(element))) {
    refusePriority(tuple, 'must be a finite number, or a list of such');
  }
  const [first = 0] = tuple;
  if (tuple.length > 1 && !(Number.isInteger(first) && Math.abs(first) <= FIRST_MAX)) {
    refusePriority(tuple, `of several numbers must begin with a whole one of at most ${FIRST_MAX}`);
  }
}

function refusePriority(tuple: PriorityTuple, what: string): never {
  throw new YardmasterError('ERR_GRAPH_INVALID', `a priority ${what}, got [${tuple.join(', ')}]`, {
    priority: tuple,
  });
}

/** Keys of tasks by address of the worker that may be running them. */
type RunsByWorker = ReadonlyMap<string, ReadonlySet<string>>;

/** Waits between two questions; the last one again and again. */
const DELAYS_MS = [10, 25, 50, 100, 250, 500];
/** A thread that is to be ended after a time is gone a little later, on a busy machine by more than half a second. */
const MARGIN_MS = 2000;

/**
 * Waits until all of these runs have ended, but not much longer than `timeoutMs`. Returns the keys
 * of the runs that continue. A run that was sent to a worker and had not begun counts as ended at
 * once, and so does a run on a worker that has left.
 */
async function runsLeft(
  client: Client,
  clock: Clock,
  runs: RunsByWorker,
  timeoutMs: number,
): Promise<ReadonlySet<string>> {
  const deadlineMs = clock.nowMs() + timeoutMs + MARGIN_MS;
  for (let attempt = 0; ; attempt++) {
    const left = await runningOf(client, runs);
    const restMs = deadlineMs - clock.nowMs();
    if (left.size === 0 || restMs <= 0) return left;
    const delayMs = DELAYS_MS[Math.min(attempt, DELAYS_MS.length - 1)] as number;
    await new Promise<void>((resolve) => {
      clock.setTimer(Math.min(delayMs, restMs), resolve);
    });
  }
}

async function runningOf(client: Client, runs: RunsByWorker): Promise<ReadonlySet<string>> {
  if (runs.size === 0) return new Set();
  const answers = await client.command<[address: string, keys: readonly string[]][]>('executing', {
    workers: [...runs.keys()],
  });
  const running = new Map(answers.map(([address, keys]) => [address, new Set(keys)]));
  const left = new Set<string>();
  for (const [address, keys] of runs) {
    // Of a worker that does not answer the worst is believed.
    for (const key of keys) if (running.get(address)?.has(key) ?? true) left.add(key);
  }
  return left;
}

const KILL_TIMEOUT_MS = 5000;
const HISTORY_LENGTH = 10_000;

/**
 * Mars' scheduling service for one session, on top of a client.
 *
 * Calls take effect in the order in which they are made. A subtask belongs to the session until it is
 * finished or cancelled; until then the cluster keeps its result.
 */
export class SchedulingApi {
  readonly sessionId: string;
  private readonly held = new Map<string, HeldSubtask>();
  /** Finished and cancelled, the oldest first. */
  private readonly history = new Map<string, SubtaskScheduleSummary>();
  private readonly order: SubtaskOrder;
  private readonly clock: Clock;
  private readonly historyLength: number;
  private readonly keys: SessionKeys;
  private readonly calls = new InTurn();
  private ownsClient = false;
  private closing: Promise<void> | undefined;
  /** The value of the scheduler's configuration; asked for when it is first needed. */
  private killTimeoutMs: number | undefined;

  /**
   * @param client - stays the caller's, and has to stay open
   * @throws YardmasterError `ERR_GRAPH_INVALID` naming an option that cannot be used
   */
  constructor(
    private readonly client: Client,
    options: SchedulingApiOptions = {},
  ) {
    checkArguments('SchedulingApi', options, SESSION_RULES);
    this.sessionId = options.sessionId ?? client.id;
    this.clock = options.clock ?? new SystemClock();
    this.historyLength = options.historyLength ?? HISTORY_LENGTH;
    this.order = new SubtaskOrder(client, this.held);
    this.keys = new SessionKeys(
      client,
      `${this.sessionId}/`,
      (id) => this.held.get(id)?.future.key,
      (id) => this.history.has(id),
    );
  }

  /**
   * A session with a separate client, which is closed together with the session.
   * @throws YardmasterError as `Client.connect`
   */
  static async connect(
    sessionId: string,
    address: string,
    options: ConnectOptions & Omit<SchedulingApiOptions, 'sessionId'> = {},
  ): Promise<SchedulingApi> {
    const { historyLength, ...network } = options;
    const client = await Client.connect(address, { name: sessionId, ...network });
    const length = historyLength === undefined ? {} : { historyLength };
    const clock = options.clock === undefined ? {} : { clock: options.clock };
    const api = new SchedulingApi(client, { sessionId, ...length, ...clock });
    api.ownsClient = true;
    return api;
  }

  /**
   * Adds subtasks; each runs when what it needs is there. What it needs may be among them, or in the
   * session already.
   *
   * @param priorities - one for each. Default 0
   * @throws YardmasterError `ERR_GRAPH_INVALID` naming the subtask; then none is added. And as
   *   `client.compute`
   * @throws RemoteError `ERR_GRAPH_INVALID` when another client has a subtask of this id in a session of the
   *   same name
   */
  addSubtasks(
    subtasks: readonly Subtask[],
    priorities?: readonly SubtaskPriority[],
  ): Promise<void> {
    return this.inOrder(async () => {
      checkSubtasks(subtasks, (id) => this.held.has(id));
      if (subtasks.length === 0) return;
      const tuples = tuplesFor(subtasks, priorities);
      const bands = await this.resolveBands(subtasks);
      const ids = subtasks.map(({ id }) => id);
      const keyOf = this.keys.forBatch(ids);
      const keys = ids.map(keyOf);
      await this.keys.claim(keys);
      try {
        this.submit(subtasks, tuples, { bands, keyOf });
      } catch (error) {
        await this.keys.unclaim(keys);
        throw error;
      }
    });
  }

  private submit(
    subtasks: readonly Subtask[],
    tuples: readonly PriorityTuple[],
    how: {
      readonly bands: readonly (readonly string[])[];
      readonly keyOf: (id: string) => string;
    },
  ): void {
    this.order.assign(tuples, (labels) => {
      const placed = subtasks.map((subtask, index) => {
        const { value } = labels[index] as PriorityLabel;
        return { subtask, priority: value, bands: how.bands[index] ?? [] };
      });
      const ids = subtasks.map(({ id }) => id);
      const submitter = this.client.with({ namespace: `${this.sessionId}/` });
      const futures = submitter.computeAs(graphOf(placed), ids, how.keyOf);
      futures.forEach((future, index) => {
        const subtask = subtasks[index] as Subtask;
        const priority = tuples[index] as PriorityTuple;
        this.held.set(subtask.id, { subtask, future, priority, label: labels[index] });
        this.history.delete(subtask.id);
      });
    });
  }

  /**
   * Changes the priority of a subtask until it begins. Its inputs keep theirs.
   *
   * @returns false when it has begun or ended, and when it was lowered while it is on its worker
   *   already, where it does not compete with tasks that wait in the scheduler
   * @throws YardmasterError `ERR_GRAPH_INVALID` when the session has no such subtask
   */
  updateSubtaskPriority(id: string, priority: SubtaskPriority): Promise<boolean> {
    return this.inOrder(async () => {
      checkArguments('updateSubtaskPriority', { id }, { id: TEXT });
      const tuple = tupleOf(priority);
      const held = this.held.get(id);
      if (held === undefined && !this.history.has(id)) refuseSubtask(id, 'is not in this session');
      if (held === undefined || held.future.done) return false;
      const before = held.label?.value ?? -Infinity;
      const after = this.order.assign([tuple], ([label]) => {
        const { value } = label as PriorityLabel;
        this.client.setPriority(new Map([[held.future, value]]), { inputs: 'keep' });
        this.order.drop(held);
        held.label = label;
        held.priority = tuple;
        return value;
      });
      return this.hasEffect(held, after >= before);
    });
  }

  /** True when the new priority of a subtask changes the time at which it runs. */
  private async hasEffect({ future }: HeldSubtask, isRaised: boolean): Promise<boolean> {
    const [task] = await this.client.tasks(future);
    if (task === undefined || task.state === 'memory' || task.state === 'erred') return false;
    const worker = task.processingOn;
    if (worker === undefined) return true;
    if (!isRaised) return false;
    const runs = new Map([[worker, new Set([future.key])]]);
    return (await runsLeft(this.client, this.clock, runs, -Infinity)).size === 0;
  }

  /**
   * Gives subtasks up, and with them what depends on them. Waits until their runs have ended, for a
   * little longer than they have time.
   * @throws YardmasterError `ERR_GRAPH_INVALID` naming an argument that cannot be used
   */
  async cancelSubtasks(
    ids: readonly string[],
    options: CancelSubtasksOptions = {},
  ): Promise<CancelledSubtasks> {
    const { cancelled, runs, killTimeoutMs, ...others } = await this.inOrder(async () => {
      checkArguments('cancelSubtasks', { ids }, { ids: IDS });
      checkArguments('cancelSubtasks', options, CANCEL_RULES);
      const limitMs = options.killTimeoutMs ?? (await this.configuredKillTimeout());
      return { ...(await this.cancel(ids, limitMs)), killTimeoutMs: limitMs };
    });
    const left = await runsLeft(this.client, this.clock, runs.byWorker, killTimeoutMs);
    const running = cancelled.filter((id) => left.has(runs.keys.get(id) ?? ''));
    return { cancelled, ...others, running };
  }

  /**
   * Ends the session's use of these subtasks. Their results are released unless a client holds a
   * future of them or a subtask still needs them; subtasks that have not ended are cancelled.
   * Unknown ids are ignored.
   *
   * @throws YardmasterError `ERR_GRAPH_INVALID` when `scheduleNext` is false, which is not
   *   supported
   */
  finishSubtasks(ids: readonly string[], options: FinishSubtasksOptions = {}): Promise<void> {
    return this.inOrder(async () => {
      checkArguments('finishSubtasks', { ids }, { ids: IDS });
      checkFinish(ids, options);
      const finished = [...new Set(ids)].flatMap((id) => this.held.get(id) ?? []);
      for (const summary of await this.summariesOf(finished)) {
        this.remember({ ...summary, isFinished: true });
      }
      await this.forget(finished);
    });
  }

  /**
   * The summaries of the session's subtasks: first those that were finished or cancelled, then the
   * others, each in the order in which they came.
   * @param taskId - of those with this `taskId` alone
   */
  getSubtaskScheduleSummaries(taskId?: string): Promise<SubtaskScheduleSummary[]> {
    return this.inOrder(async () => {
      checkArguments('getSubtaskScheduleSummaries', { taskId }, { taskId: { type: 'string' } });
      const isAsked = (other: string | undefined): boolean =>
        taskId === undefined || other === taskId;
      const held = [...this.held.values()].filter(({ subtask }) => isAsked(subtask.taskId));
      const past = [...this.history.values()].filter((summary) => isAsked(summary.taskId));
      return [...past, ...(await this.summariesOf(held))];
    });
  }

  /**
   * A future of the result of a subtask. It keeps the result, also when the subtask is finished, until it
   * is released. When the subtask is cancelled, it ends with `ERR_CANCELLED`.
   * @throws YardmasterError `ERR_GRAPH_INVALID` when the session has no such subtask (any more);
   *   `ERR_CLOSED`
   */
  future(id: string): Future<unknown> {
    this.checkOpen();
    const held =
      this.held.get(id) ??
      refuseSubtask(id, 'is not in this session, or was finished or cancelled');
    return held.future.clone();
  }

  /**
   * Ends the session: finishes all remaining subtasks, and closes the client if the session has
   * made it. Later calls fail with `ERR_CLOSED`.
   */
  close(): Promise<void> {
    this.closing ??= this.end();
    return this.closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** A call begins when the ones before it are done, however they ended. */
  private inOrder<T>(call: () => T | Promise<T>): Promise<T> {
    if (this.closing !== undefined) return Promise.reject(this.closedError());
    return this.calls.run(call);
  }

  private async end(): Promise<void> {
    await this.calls.run(() => this.forget([...this.held.values()]));
    if (this.ownsClient) await this.client.close();
  }

  private checkOpen(): void {
    if (this.closing !== undefined) throw this.closedError();
  }

  private closedError(): YardmasterError {
    const { sessionId } = this;
    return new YardmasterError('ERR_CLOSED', `the session "${sessionId}" is closed`, { sessionId });
  }

  /** Milliseconds. */
  private async configuredKillTimeout(): Promise<number> {
    this.killTimeoutMs ??=
      (await this.client.command<number | null>('kill-grace')) ?? KILL_TIMEOUT_MS;
    return this.killTimeoutMs;
  }

  private async cancel(
    ids: readonly string[],
    killTimeoutMs: number,
  ): Promise<Omit<CancelledSubtasks, 'running'> & { readonly runs: CancelledRuns }> {
    const known = [...new Set(ids)].flatMap((id) => this.held.get(id) ?? []);
    const summaries = await this.summariesOf(known.filter(({ future }) => !future.done));
    // Some may have ended while the scheduler was asked.
    const open = known.filter(({ future }) => !future.done);
    const keys = new Map(open.map(({ subtask, future }) => [subtask.id, future.key]));
    const byWorker = new Map<string, Set<string>>();
    for (const summary of summaries) {
      const { subtaskId, state, bands } = summary;
      const key = keys.get(subtaskId);
      if (key === undefined) continue;
      this.remember({ ...summary, isCancelled: true });
      if (state === 'processing') addTo(byWorker, bands[0] ?? '', key);
    }
    const holdings = open.map(({ future }) => holdingOfFuture(future));
    // With them all other futures of them that the program has.
    const wants = holdings.flatMap(({ entry }) => entry.ring());
    const reason = 'its session cancelled the subtask';
    holdings[0]?.owner.cancelEntries(wants, { killTimeoutMs, reason });
    const dependents = await this.cancelledWith(open);
    for (const held of dependents) this.remember(summaryOf(held, undefined));
    await this.forget([...open, ...dependents]);
    const isKnown = new Set(known.map(({ subtask }) => subtask.id));
    return {
      cancelled: [...keys.keys(), ...dependents.map(({ subtask }) => subtask.id)],
      ended: [...isKnown].filter((id) => !keys.has(id)),
      unknown: [...new Set(ids)].filter((id) => !isKnown.has(id)),
      runs: { byWorker, keys },
    };
  }

  /** The other subtasks that the scheduler has cancelled with these, because they depend on them. */
  private async cancelledWith(given: readonly HeldSubtask[]): Promise<HeldSubtask[]> {
    if (given.length === 0) return [];
    await this.client.command('tasks', { keys: [] }); // The reports on cancelled tasks arrive before the answer.
    const others = new Set(given);
    return [...this.held.values()].filter(
      (held) => !others.has(held) && held.future.status === 'cancelled',
    );
  }

  /** Names become addresses: the name of a worker alone would mean its whole host. */
  private async resolveBands(subtasks: readonly Subtask[]): Promise<(readonly string[])[]> {
    const isName = (band: string): boolean => !band.includes(':');
    const areNamed = subtasks.some(({ expectedBands }) => expectedBands?.some(isName) === true);
    const { workers } = areNamed ? await this.client.identity() : { workers: [] };
    const addresses = new Map(workers.map(({ name, address }) => [name, address]));
    return subtasks.map(({ expectedBands = [] }) =>
      expectedBands.map((band) => addresses.get(band) ?? band),
    );
  }

  private async summariesOf(held: readonly HeldSubtask[]): Promise<SubtaskScheduleSummary[]> {
    if (held.length === 0) return [];
    const tasks = await this.client.tasks(held.map(({ future }) => future));
    const byKey = new Map(tasks.map((task) => [task.key, task]));
    return held.map((one) => summaryOf(one, byKey.get(one.future.key)));
  }

  private remember(summary: SubtaskScheduleSummary): void {
    this.history.delete(summary.subtaskId);
    this.history.set(summary.subtaskId, summary);
    const [oldest] = this.history.keys();
    if (this.history.size > this.historyLength && oldest !== undefined) this.history.delete(oldest);
  }

  /** The session does not need them any more. Others may have their keys. */
  private forget(subtasks: readonly HeldSubtask[]): Promise<void> {
    for (const held of subtasks) {
      this.order.drop(held);
      this.held.delete(held.subtask.id);
      held.future.release();
    }
    return this.keys.unclaim(subtasks.map(({ future }) => future.key));
  }
}

/** Runs of cancelled subtasks that may not have ended. */
interface CancelledRuns {
  readonly byWorker: RunsByWorker;
  /** By id. */
  readonly keys: ReadonlyMap<string, string>;
}

function addTo(map: Map<string, Set<string>>, name: string, item: string): void {
  const items = map.get(name);
  if (items === undefined) map.set(name, new Set([item]));
  else items.add(item);
}

/** Which keys of the cluster the subtasks of a session have. The ids of open subtasks are their own. */
class SessionKeys {
  private reuses = 1;
  private readonly submitter: Submitter;

  constructor(
    private readonly client: Client,
    private readonly namespace: string,
    /** The key of an open subtask. */
    private readonly keyOf: (id: string) => string | undefined,
    /** True when the session has had a subtask of this id. */
    private readonly wasUsed: (id: string) => boolean,
  ) {
    this.submitter = client.with({});
  }

  /** The plain key for an id that is new; a unique key for an id that the session uses again. */
  private fresh(id: string): string {
    const plain = `${this.namespace}${id}`;
    // The cluster may still have the first task of this key, because others depend on it.
    if (!this.wasUsed(id) && !this.submitter.isTaken(plain)) return plain;
    do this.reuses++;
    while (this.submitter.isTaken(`${plain}#${this.reuses}`));
    return `${plain}#${this.reuses}`;
  }

  /** The key for each id: of new subtasks, of open ones, and of others whatever it is. */
  forBatch(ids: readonly string[]): (id: string) => string {
    const keys = new Map(ids.map((id) => [id, this.fresh(id)]));
    return (id) => keys.get(id) ?? this.keyOf(id) ?? `${this.namespace}${id}`;
  }

  /**
   * Has the scheduler keep them for this client.
   * @throws RemoteError `ERR_GRAPH_INVALID` when another client has one of them
   */
  async claim(keys: readonly string[]): Promise<void> {
    await this.client.command('claim-keys', { keys });
  }

  /** Others may have them. */
  async unclaim(keys: readonly string[]): Promise<void> {
    if (keys.length === 0 || this.client.isClosed) return;
    try {
      await this.client.command('unclaim-keys', { keys });
    } catch {
      // The connection is over, and with it all claims.
    }
  }
}

/** Subtasks between two searches for those whose priority does not matter any more. */
const SWEEP_MIN = 1000;

/** The order of a session's subtasks: which number the scheduler has for each. */
class SubtaskOrder {
  private readonly labels = new PriorityLabels();
  private labelled = 0;
  private sweepAt = SWEEP_MIN;

  constructor(
    private readonly client: Client,
    private readonly held: ReadonlyMap<string, HeldSubtask>,
  ) {}

  /**
   * Acquires a label for each tuple, calls `use` with the labels, and then sends the scheduler the
   * new priorities of all labels that have moved. When `use` throws, the labels are given back.
   */
  assign<T>(tuples: readonly PriorityTuple[], use: (labels: readonly PriorityLabel[]) => T): T {
    this.sweep();
    const { labels, moved } = this.labels.acquire(tuples);
    this.labelled += labels.length;
    try {
      return use(labels);
    } catch (error) {
      for (const label of labels) this.giveBack(label);
      throw error;
    } finally {
      this.tell(moved);
    }
  }

  /** The place of the subtask does not matter any more. */
  drop(held: HeldSubtask): void {
    if (held.label !== undefined) this.giveBack(held.label);
    held.label = undefined;
  }

  private giveBack(label: PriorityLabel): void {
    this.labels.release(label);
    this.labelled--;
  }

  private tell(moved: ReadonlySet<PriorityLabel>): void {
    if (moved.size === 0) return;
    const priorities = new Map<Future<unknown>, number>();
    for (const { future, label } of this.held.values()) {
      if (label !== undefined && moved.has(label)) priorities.set(future, label.value);
    }
    this.client.setPriority(priorities, { inputs: 'keep' });
  }

  /** Removes ended subtasks from the order. O(subtasks), once for as many new ones. */
  private sweep(): void {
    if (this.labelled < this.sweepAt) return;
    for (const held of this.held.values()) if (held.future.done) this.drop(held);
    this.sweepAt = Math.max(SWEEP_MIN, 2 * this.labelled);
  }
}

/** One task of a session of the scheduling service. */
export interface Subtask {
  /** Unique in the session. */
  readonly id: string;
  /**
   * The call: `task(fn, …)`. `ref(id)` anywhere in the arguments stands for the result of
   * another subtask of the session; futures of the same client may be there, too.
   */
  readonly call: TaskNode<unknown>;
  /** Ids of subtasks that it has to wait for without using their results. */
  readonly dependencies?: readonly string[];
  /** Times that it may fail and is tried again. Default: `scheduling.subtaskMaxRetries`. */
  readonly retries?: number;
  /** Addresses or names of the workers where it should run. Default: any. */
  readonly expectedBands?: readonly string[];
  /** It must run on one of them, and waits when none is there. Default false. */
  readonly bandsMandatory?: boolean;
  /** Groups subtasks for summaries. */
  readonly taskId?: string;
}

/** The state of a subtask. */
export interface SubtaskScheduleSummary {
  readonly subtaskId: string;
  readonly taskId?: string;
  /** As the scheduler has it; `gone`: it does not know the subtask (any more). */
  readonly state: TaskStateName | 'gone';
  /** Address of the worker that it was sent to, or those of the holders of its result. */
  readonly bands: readonly string[];
  /** Times that it was placed again: after the death of a worker, a failure, a theft or a loss. */
  readonly numReschedules: number;
  /** Times that it may still fail. */
  readonly retriesLeft: number;
  readonly priority: PriorityTuple;
  /** It has a result, or the session has said that it is done with it. */
  readonly isFinished: boolean;
  readonly isFailed: boolean;
  readonly isCancelled: boolean;
}

/** A subtask that becomes a task of the cluster. */
interface PlacedSubtask {
  readonly subtask: Subtask;
  readonly priority: number;
  /** Addresses of workers; also names that no worker has yet. */
  readonly bands: readonly string[];
}

/** Subtasks as a graph by id. */
function graphOf(placed: readonly PlacedSubtask[]): Graph {
  const nodes = placed.map(({ subtask, priority, bands }) => {
    const { id, call, dependencies = [], retries, bandsMandatory = false } = subtask;
    const node = call.after(...dependencies.map((other) => new Ref<unknown>(other))).with({
      priority,
      retries,
      ...(bands.length === 0 ? {} : { workers: bands, allowOtherWorkers: !bandsMandatory }),
    });
    return [id, node] as const;
  });
  return Object.fromEntries(nodes);
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` naming the subtask and the field */
function checkSubtasks(subtasks: readonly Subtask[], isTaken: (id: string) => boolean): void {
  const ids = new Set<string>();
  checkArguments('addSubtasks', { subtasks }, { subtasks: LIST });
  for (const subtask of subtasks) {
    checkArguments('a subtask', subtask, SUBTASK_RULES);
    const { id, call } = subtask;
    checkArguments('a subtask', { id }, { id: TEXT });
    if (ids.has(id) || isTaken(id))
      refuseSubtask(id, 'is there already; finish it first, or name this one otherwise');
    if (!(call instanceof TaskNode)) refuseSubtask(id, 'has no call; write call: task(fn, …)');
    ids.add(id);
  }
}

const SUBTASK_RULES: Rules<Subtask> = {
  ...{ id: TEXT, call: ANY, dependencies: NAMES, retries: wholeNumber(0), expectedBands: NAMES },
  ...{ bandsMandatory: FLAG, taskId: { type: 'string' } },
};

/** @throws YardmasterError `ERR_GRAPH_INVALID` */
function refuseSubtask(id: string, why: string): never {
  throw new YardmasterError('ERR_GRAPH_INVALID', `the subtask "${id}" ${why}`, { subtask: id });
}
