import type { Clock } from '../../core/api/index.ts';
import { Client, type ConnectOptions, type Future } from '../client/index.ts';
import { SystemClock } from '../clock/index.ts';
import { type HeldSubtask, summaryOf } from './held-subtask.ts';
import {
  type CancelledSubtasks,
  type CancelSubtasksOptions,
  checkFinish,
  type FinishSubtasksOptions,
  type SchedulingApiOptions,
  type SubtaskPriority,
  tupleOf,
  tuplesFor,
} from './options.ts';
import type { PriorityLabel, PriorityTuple } from './priority-labels.ts';
import { runsLeft, type RunsByWorker } from './runs-left.ts';
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
  private last: Promise<unknown> = Promise.resolve();
  private ownsClient = false;

  /** @param client - stays the caller's, and has to stay open */
  constructor(
    private readonly client: Client,
    options: SchedulingApiOptions = {},
  ) {
    this.sessionId = options.sessionId ?? client.id;
    this.clock = options.clock ?? new SystemClock();
    this.historyLength = options.historyLength ?? HISTORY_LENGTH;
    this.order = new SubtaskOrder(client, this.held);
  }

  /**
   * A session with a client of its own, which is closed with it.
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
      this.order.assign(tuples, (labels) => {
        const placed = subtasks.map((subtask, index) => {
          const { value } = labels[index] as PriorityLabel;
          return { subtask, priority: value, bands: bands[index] ?? [] };
        });
        const ids = subtasks.map(({ id }) => id);
        const submitter = this.client.with({ namespace: this.namespace });
        const futures = submitter.compute(graphOf(placed), ids);
        futures.forEach((future, index) => {
          const subtask = subtasks[index] as Subtask;
          const priority = tuples[index] as PriorityTuple;
          this.held.set(subtask.id, { subtask, future, priority, label: labels[index] });
          this.history.delete(subtask.id);
        });
      });
    });
  }

  /**
   * Changes the place of a subtask in the order, until it begins. What it needs keeps its own.
   *
   * @returns false when it had ended
   * @throws YardmasterError `ERR_GRAPH_INVALID` when the session has no such subtask
   */
  updateSubtaskPriority(id: string, priority: SubtaskPriority): Promise<boolean> {
    return this.inOrder(() => {
      const held = this.held.get(id);
      if (held === undefined && !this.history.has(id)) refuse(id, 'is not in this session');
      if (held === undefined || held.future.done) return false;
      const tuple = tupleOf(priority);
      this.order.assign([tuple], ([label]) => {
        const { value } = label as PriorityLabel;
        this.client.setPriority(new Map([[held.future, value]]), { inputs: 'keep' });
        this.order.drop(held);
        held.label = label;
        held.priority = tuple;
      });
      return true;
    });
  }

  /**
   * Gives subtasks up, and with them what depends on them. Waits until their runs have ended, for a
   * little longer than they have time.
   */
  async cancelSubtasks(
    ids: readonly string[],
    { killTimeoutMs = KILL_TIMEOUT_MS }: CancelSubtasksOptions = {},
  ): Promise<CancelledSubtasks> {
    const { cancelled, runs, ...others } = await this.inOrder(() =>
      this.cancel(ids, killTimeoutMs),
    );
    const left = await runsLeft(this.client, this.clock, runs, killTimeoutMs);
    return { cancelled, ...others, running: cancelled.filter((id) => left.has(this.keyOf(id))) };
  }

  /**
   * Says that the session is done with these: their results go unless somebody holds a future of them or
   * a subtask still needs them, and what has not ended is given up. Unknown ids are left out.
   *
   * @throws YardmasterError `ERR_GRAPH_INVALID` when `scheduleNext` is false, which cannot be had
   */
  finishSubtasks(ids: readonly string[], options: FinishSubtasksOptions = {}): Promise<void> {
    return this.inOrder(async () => {
      checkFinish(ids, options);
      const finished = ids.flatMap((id) => this.held.get(id) ?? []);
      for (const summary of await this.summariesOf(finished)) {
        this.remember({ ...summary, isFinished: true });
      }
      for (const held of finished) this.forget(held);
    });
  }

  /**
   * Where the subtasks of the session stand: first those that were finished or cancelled, then the
   * others, each in the order in which they came.
   * @param taskId - of those with this `taskId` alone
   */
  getSubtaskScheduleSummaries(taskId?: string): Promise<SubtaskScheduleSummary[]> {
    return this.inOrder(async () => {
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
   * @throws YardmasterError `ERR_GRAPH_INVALID` when the session has no such subtask (any more)
   */
  future(id: string): Future<unknown> {
    const held =
      this.held.get(id) ?? refuse(id, 'is not in this session, or was finished or cancelled');
    return held.future.clone();
  }

  /** Ends the session: finishes all that is left. A client of its own is closed. */
  async close(): Promise<void> {
    await this.inOrder(() => {
      for (const held of [...this.held.values()]) this.forget(held);
    });
    if (this.ownsClient) await this.client.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  private get namespace(): string {
    return `${this.sessionId}/`;
  }

  private keyOf(id: string): string {
    return `${this.namespace}${id}`;
  }

  /** A call begins when the ones before it are done, however they ended. */
  private inOrder<T>(call: () => T | Promise<T>): Promise<T> {
    const done = this.last.then(call);
    this.last = done.catch(() => undefined);
    return done;
  }

  private async cancel(
    ids: readonly string[],
    killTimeoutMs: number,
  ): Promise<Omit<CancelledSubtasks, 'running'> & { readonly runs: RunsByWorker }> {
    const known = [...new Set(ids)].flatMap((id) => this.held.get(id) ?? []);
    const summaries = await this.summariesOf(known.filter(({ future }) => !future.done));
    // Some may have ended while the scheduler was asked.
    const open = known.filter(({ future }) => !future.done);
    const given = new Map(open.map((held) => [held.subtask.id, held]));
    const runs = new Map<string, Set<string>>();
    for (const summary of summaries) {
      const { subtaskId, state, bands } = summary;
      if (!given.has(subtaskId)) continue;
      this.remember({ ...summary, isCancelled: true });
      if (state === 'processing') addTo(runs, bands[0] ?? '', this.keyOf(subtaskId));
    }
    const futures = open.map(({ future }) => future);
    this.client.cancel(futures, { killTimeoutMs, reason: 'its session cancelled the subtask' });
    for (const held of open) this.forget(held);
    const isKnown = new Set(known.map(({ subtask }) => subtask.id));
    return {
      cancelled: [...given.keys()],
      ended: [...isKnown].filter((id) => !given.has(id)),
      unknown: ids.filter((id) => !isKnown.has(id)),
      runs,
    };
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

  private forget(held: HeldSubtask): void {
    this.order.drop(held);
    this.held.delete(held.subtask.id);
    held.future.release();
  }
}

function addTo(map: Map<string, Set<string>>, name: string, item: string): void {
  const items = map.get(name);
  if (items === undefined) map.set(name, new Set([item]));
  else items.add(item);
}
