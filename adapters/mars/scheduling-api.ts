import { type Clock, YardmasterError } from '../../core/api/index.ts';
import { Client, type ConnectOptions, type Future } from '../client/index.ts';
import { SystemClock } from '../clocks/index.ts';
import { type HeldSubtask, summaryOf } from './held-subtask.ts';
import {
  type CancelledSubtasks,
  type CancelSubtasksOptions,
  checkCancel,
  checkFinish,
  checkIds,
  checkSession,
  checkText,
  type FinishSubtasksOptions,
  type SchedulingApiOptions,
  type SubtaskPriority,
  tupleOf,
  tuplesFor,
} from './options.ts';
import type { PriorityLabel, PriorityTuple } from './priority-labels.ts';
import { runsLeft, type RunsByWorker } from './runs-left.ts';
import { SessionKeys } from './session-keys.ts';
import { SubtaskOrder } from './subtask-order.ts';
import {
  checkSubtasks,
  graphOf,
  refuse,
  type Subtask,
  type SubtaskScheduleSummary,
} from './subtask.ts';

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
  private last: Promise<unknown> = Promise.resolve();
  private ownsClient = false;
  private closing: Promise<void> | undefined;
  /** What the configuration of the scheduler says; asked for when it is first needed. */
  private killTimeoutMs: number | undefined;

  /**
   * @param client - stays the caller's, and has to stay open
   * @throws YardmasterError `ERR_GRAPH_INVALID` naming an option that cannot be used
   */
  constructor(
    private readonly client: Client,
    options: SchedulingApiOptions = {},
  ) {
    checkSession(options);
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
      checkIds([id]);
      const tuple = tupleOf(priority);
      const held = this.held.get(id);
      if (held === undefined && !this.history.has(id)) refuse(id, 'is not in this session');
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

  /** Whether the new priority of a subtask changes the time at which it runs. */
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
      checkIds(ids);
      checkCancel(options);
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
      checkIds(ids);
      checkFinish(ids, options);
      const finished = [...new Set(ids)].flatMap((id) => this.held.get(id) ?? []);
      for (const summary of await this.summariesOf(finished)) {
        this.remember({ ...summary, isFinished: true });
      }
      await this.forget(finished);
    });
  }

  /**
   * Where the subtasks of the session stand: first those that were finished or cancelled, then the
   * others, each in the order in which they came.
   * @param taskId - of those with this `taskId` alone
   */
  getSubtaskScheduleSummaries(taskId?: string): Promise<SubtaskScheduleSummary[]> {
    return this.inOrder(async () => {
      if (taskId !== undefined) checkText('taskId', taskId);
      const isAsked = (other: string | undefined): boolean =>
        taskId === undefined || other === taskId;
      const held = [...this.held.values()].filter(({ subtask }) => isAsked(subtask.taskId));
      const past = [...this.history.values()].filter((summary) => isAsked(summary.taskId));
      return [...past, ...(await this.summariesOf(held))];
    });
  }

  /**
   * A future of the result of a subtask. It keeps the result, also when the subtask is finished, until it
   * is released.
   * @throws YardmasterError `ERR_GRAPH_INVALID` when the session has no such subtask (any more);
   *   `ERR_CLOSED`
   */
  future(id: string): Future<unknown> {
    this.checkOpen();
    const held =
      this.held.get(id) ?? refuse(id, 'is not in this session, or was finished or cancelled');
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
    return this.chained(call);
  }

  private chained<T>(call: () => T | Promise<T>): Promise<T> {
    const done = this.last.then(call);
    this.last = done.catch(() => undefined);
    return done;
  }

  private async end(): Promise<void> {
    await this.chained(() => this.forget([...this.held.values()]));
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
      (await this.client.command<number | null>('cancel-timeout')) ?? KILL_TIMEOUT_MS;
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
    const futures = open.map(({ future }) => future);
    this.client.cancel(futures, { killTimeoutMs, reason: 'its session cancelled the subtask' });
    const dependents = await this.cancelledWith(open);
    for (const held of dependents) this.remember(summaryOf(held, undefined));
    await this.forget([...open, ...dependents]);
    const isKnown = new Set(known.map(({ subtask }) => subtask.id));
    return {
      cancelled: [...keys.keys(), ...dependents.map(({ subtask }) => subtask.id)],
      ended: [...isKnown].filter((id) => !keys.has(id)),
      unknown: ids.filter((id) => !isKnown.has(id)),
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
