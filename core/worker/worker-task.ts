import { EVENT_LOOP_RESOURCE } from '../util/event-loop.ts';
import type { IndexedHeap } from '../util/heaps.ts';
import { LazySet } from '../util/collections.ts';
import { compareTuples } from '../util/values.ts';
import type { ActionTiming } from '../state/groups.ts';
import type { TaskFailure } from '../state/task.ts';
import type { WorkerTaskStateName } from '../state/state-names.ts';

export type { WorkerTaskStateName } from '../state/state-names.ts';

/** A recommendation for a task: a state, or `rescheduled`, which ends in `released`. */
export type WorkerTarget = WorkerTaskStateName | 'rescheduled';

/** Smaller runs sooner; compared like a tuple. */
export type WorkerPriority = readonly number[];

/** Copies that the memory manager asked for come after the inputs of tasks of normal priority. */
export const REPLICA_PRIORITY: WorkerPriority = [1];

/** Bytes that a result of unknown size is taken for. */
const DEFAULT_NBYTES = 1024;

const NO_RUNS: readonly number[] = [];
export const NO_TIMINGS: readonly ActionTiming[] = [];

/** A task that could be fetched from one peer; a task has one for each of its holders. */
export interface FetchEntry {
  readonly task: WorkerTask;
  /** The results that could be fetched from that peer. */
  readonly heap: IndexedHeap<FetchEntry>;
  place: number;
}

/** The entries of a task that is not to be fetched. Never written to. */
export const NO_ENTRIES: FetchEntry[] = [];

/** A task as a worker sees it. Invariants by state: `validate.ts`. */
export class WorkerTask {
  state: WorkerTaskStateName = 'released';
  /** Id of the latest assignment, repeated in the report. -1: never asked to compute it. */
  runId = -1;
  /** A copy: id of the run elsewhere that computed it; -1: it is no copy, or that is not known. */
  copiedRunId = -1;
  /** Data of a client: the latest number of `reserve-data` under which it was put here; 0: none. */
  reservation = 0;
  /** Opaque. */
  runSpec: unknown = undefined;
  annotations: Readonly<Record<string, unknown>> | undefined = undefined;
  /**
   * Ids of assignments that were taken back while their run continued; reported when it has ended.
   */
  owedRunIds: readonly number[] = NO_RUNS;
  /** Name of the limit for which its runs count; empty: none. */
  limit = '';
  /** Its run makes an object that stays here; its result is what others reach that by. */
  isActor = false;
  /** The task was assigned before, to this worker or another one. */
  isRepeated = false;
  /** Its own when it is computed here, else that of the first task that asked for it. */
  priority: WorkerPriority | undefined = undefined;
  /** Amounts that a run occupies. */
  resources: Readonly<Record<string, number>> | undefined = undefined;
  /** True when it waits most of its time: it occupies no thread, but a share of an event loop. */
  get isConcurrent(): boolean {
    return this.resources?.[EVENT_LOOP_RESOURCE] !== undefined;
  }
  /** Amounts that the present run occupies. */
  heldResources: Readonly<Record<string, number>> | undefined = undefined;

  /** Both directions, for as long as this task is in play or waits to be forgotten. */
  readonly dependencies = new LazySet<WorkerTask>();
  readonly dependents = new LazySet<WorkerTask>();
  /** In `waiting`: dependencies that are not in memory. `waiters` is the other direction. */
  readonly waitingForData = new LazySet<WorkerTask>();
  readonly waiters = new LazySet<WorkerTask>();
  /** The scheduler asked for a copy, so it is fetched even if no task here needs it. */
  isReplicaWanted = false;

  /** Addresses of peers that hold a copy; never this worker. Empty in `memory`. */
  readonly holders = new LazySet<string>();
  /** One for each holder while in `fetch`. */
  fetchEntries: FetchEntry[] = NO_ENTRIES;
  /** The number of answers of holders, in succession, that did not bring the result. */
  denials = 0;
  /** The peer whose transfer includes this task: in `flight`, and after its cancellation. */
  comingFrom: string | undefined = undefined;

  /** In `cancelled` and `resumed`: the activity that has not ended. */
  previous: 'executing' | 'flight' | undefined = undefined;
  /** In `resumed`: what comes after it. */
  next: 'fetch' | 'waiting' | undefined = undefined;

  /** Bytes; -1 while unknown. Exact in `memory`, the scheduler's word elsewhere. */
  nbytes = -1;
  /** Bytes of what the present event has brought into the store, else -1. */
  arrivedNbytes = -1;
  /** Largest result that the scheduler wants along with the news of it; 0: none. */
  sendAlongBytes = 0;
  /** The result itself, between its run and the news of it, if it goes along. */
  value: Uint8Array | undefined = undefined;
  /** Type name of the result, when it was computed here. */
  type: string | undefined = undefined;
  timings: readonly ActionTiming[] = NO_TIMINGS;
  failure: TaskFailure | undefined = undefined;

  /** Seconds that a run is expected to take; -1 while unknown. */
  durationS = -1;
  /** The part of a thread that the present run occupies, in the units of `WorkerTables`. 0: it does not run. */
  heldUnits = 0;

  /** Batch of events in which its last input arrived. Larger is later. */
  readySince = -1;
  /** Position in the heap `ready` or `constrained`, or -1. Owned by that heap. */
  place = -1;
  /** Position among the pending recommendations, or -1. Owned by them. */
  pendingIndex = -1;

  constructor(readonly key: string) {}

  /** Bytes to reckon with in transfers. */
  get expectedNbytes(): number {
    return this.nbytes < 0 ? DEFAULT_NBYTES : this.nbytes;
  }

  /** On its way to a result that is computed here. */
  get isToBeComputed(): boolean {
    const { state } = this;
    return state === 'waiting' || state === 'ready' || state === 'constrained';
  }

  /** It will be computed here, so there is no need to fetch it. */
  get isComing(): boolean {
    const { state } = this;
    return this.isToBeComputed || state === 'executing' || this.next === 'waiting';
  }

  toString(): string {
    const activity = this.previous === undefined ? '' : `(${this.previous}→${this.next ?? 'end'})`;
    return `<WorkerTask ${this.key} ${this.state}${activity}>`;
  }
}

/** Id of the run that computed the result which is here; -1: data of a client. */
export function resultRunId({ runId, copiedRunId }: WorkerTask): number {
  return copiedRunId >= 0 ? copiedRunId : runId;
}

/** By priority, then by key: a total order. */
export function byWorkerPriority(a: WorkerTask, b: WorkerTask): number {
  const order = compareTuples(a.priority ?? REPLICA_PRIORITY, b.priority ?? REPLICA_PRIORITY);
  if (order !== 0) return order;
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
}

/** By user priority, then what became ready last, then as {@link byWorkerPriority}. */
export function byLatestReady(a: WorkerTask, b: WorkerTask): number {
  const user = (a.priority?.[0] ?? 0) - (b.priority?.[0] ?? 0);
  return user || b.readySince - a.readySince || byWorkerPriority(a, b);
}
