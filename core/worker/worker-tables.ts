import { LazySet, SteadyMap, SteadySet } from '../util/collections.ts';
import { IndexedHeap } from '../util/heaps.ts';
import { hostOf } from '../util/hosts.ts';
import { MemoryQuota } from './memory.ts';
import type { WorkerKernelOptions } from './worker-options.ts';
import {
  byLatestReady,
  byWorkerPriority,
  type FetchEntry,
  NO_ENTRIES,
  type WorkerPriority,
  WorkerTask,
} from './worker-task.ts';

/** Parts of a thread. A run has all of them, unless it is short. */
const UNITS_PER_THREAD = 256;

/**
 * All that a worker knows. Links with two sides (task and holder, task and fetch heap) are written by
 * the methods here alone.
 */
export class WorkerTables {
  readonly tasks: Map<string, WorkerTask>;
  readonly peers = new Map<string, Peer>();
  /** Failed transfers in succession by the address of the peer, of peers that the scheduler says are there. */
  readonly failedTransfers = new Map<string, number>();
  readonly ready: IndexedHeap<WorkerTask>;
  readonly constrained: ConstrainedTasks;
  /** Order of what is ready. */
  readonly compareReady: (a: WorkerTask, b: WorkerTask) => number;
  /** Tasks that run, cancelled ones included. */
  readonly executing: Set<WorkerTask>;
  /** Runs that have failed by their time, and whose code has not ended: by their id, the ids to report when it has. */
  readonly overdueRuns = new Map<
    number,
    { readonly owed: readonly number[]; readonly limit: string }
  >();
  /** The part of `executing` that continues without a thread of the worker. */
  readonly seceded = new Set<WorkerTask>();
  /** The part of `seceded` that waits for a thread, in the order in which it asked. */
  readonly rejoining = new Set<WorkerTask>();
  readonly missing = new Set<WorkerTask>();
  /** Tasks in state `fetch`. */
  readonly fetching = new Set<WorkerTask>();
  /** Amounts of each resource that no run occupies. */
  readonly availableResources: Map<string, number>;

  /** Undefined: memory admits everything or nothing, according to {@link pace}. */
  readonly quota: MemoryQuota | undefined;

  /** The activities that may begin: all, none, or one run and one transfer at a time. */
  pace: 'running' | 'paused' | 'crawling' = 'running';
  /** Of all threads, by runs that have not seceded. */
  private occupiedUnits = 0;
  /** Bytes of all results in memory. */
  nbytes = 0;
  /** Transfers under way, and the bytes that they are expected to bring. */
  transferCount = 0;
  incomingBytes = 0;
  /** Last element of the priority of the next task: the newest comes first among equals. */
  generation = 0;
  /** Batches of events that were handled. */
  batchCount = 0;
  /** Runs that ended, whatever their outcome. */
  executedCount = 0;
  readonly host: string;

  constructor(readonly options: WorkerKernelOptions) {
    this.tasks = options.isOneOfMany ? new Map<string, WorkerTask>() : new SteadyMap();
    this.executing = options.isOneOfMany ? new Set<WorkerTask>() : new SteadySet();
    this.host = hostOf(options.address);
    this.compareReady = options.ready === 'lifo' ? byLatestReady : byWorkerPriority;
    this.ready = new IndexedHeap(this.compareReady);
    this.constrained = new ConstrainedTasks(this.compareReady);
    this.availableResources = new Map(Object.entries(options.resources));
    const { memoryQuota } = options;
    this.quota = memoryQuota === undefined ? undefined : new MemoryQuota(memoryQuota);
  }

  /** True for the id of a run whose end is reported when its code has ended. */
  isOverdue(runId: number): boolean {
    for (const { owed } of this.overdueRuns.values()) if (owed.includes(runId)) return true;
    return false;
  }

  /** Threads with work; fractions for those whose runs are all short. */
  get occupiedThreads(): number {
    return this.occupiedUnits / UNITS_PER_THREAD;
  }

  /** True when a run is expected to be so short that it may be queued at a thread. */
  isShort(task: WorkerTask): boolean {
    return this.unitsOf(task) < UNITS_PER_THREAD;
  }

  /** True when a run can begin without taking more threads than there are. */
  hasThreadFor(task: WorkerTask): boolean {
    return this.occupiedUnits + this.unitsOf(task) <= this.runLimit * UNITS_PER_THREAD;
  }

  beginRun(task: WorkerTask): void {
    task.heldUnits = task.isConcurrent ? 0 : this.unitsOf(task);
    this.occupiedUnits += task.heldUnits;
    this.executing.add(task);
    this.acquireResources(task);
  }

  endRun(task: WorkerTask): void {
    if (!this.seceded.delete(task)) this.occupiedUnits -= task.heldUnits;
    task.heldUnits = 0;
    this.executing.delete(task);
    this.rejoining.delete(task);
    this.releaseResources(task);
  }

  /** The run continues without a thread of the worker. */
  secede(task: WorkerTask): void {
    this.seceded.add(task);
    this.occupiedUnits -= task.heldUnits;
  }

  /** The run has a thread again, and all of it: it waited for others. */
  rejoin(task: WorkerTask): void {
    this.rejoining.delete(task);
    this.seceded.delete(task);
    task.heldUnits = UNITS_PER_THREAD;
    this.occupiedUnits += task.heldUnits;
  }

  private unitsOf({ durationS, resources }: WorkerTask): number {
    const { shortRunS } = this.options;
    if (durationS < 0 || durationS >= shortRunS) return UNITS_PER_THREAD;
    if (resources !== undefined || this.pace !== 'running') return UNITS_PER_THREAD;
    return Math.max(1, Math.ceil((durationS / shortRunS) * UNITS_PER_THREAD));
  }

  /** Upper bound of concurrent runs. */
  get runLimit(): number {
    if (this.pace === 'running') return this.options.threadCount;
    return this.pace === 'paused' ? 0 : 1;
  }

  /** Upper bound of concurrent runs for those that need no thread. */
  get concurrentRunLimit(): number {
    return this.pace === 'running' ? Infinity : this.runLimit;
  }

  ensureTask(key: string): WorkerTask {
    let task = this.tasks.get(key);
    if (task === undefined) {
      task = new WorkerTask(key);
      this.tasks.set(key, task);
    }
    return task;
  }

  ensurePeer(address: string): Peer {
    let peer = this.peers.get(address);
    if (peer === undefined) {
      peer = new Peer(address, this.options.address);
      this.peers.set(address, peer);
    }
    return peer;
  }

  /** Forgets a peer without any remaining state. */
  releasePeer(peer: Peer): void {
    if (peer.isIdle) this.peers.delete(peer.address);
  }

  /** Replaces what is known about the holders of a task. Nothing is kept for a task in memory. */
  setHolders(task: WorkerTask, addresses: readonly string[]): void {
    if (task.state === 'memory') return;
    if (task.holders.size > 0) {
      for (const address of [...task.holders]) {
        if (!addresses.includes(address)) this.removeHolder(task, address);
      }
    }
    for (const address of addresses) this.addHolder(task, address);
  }

  removeHolder(task: WorkerTask, address: string): void {
    if (!task.holders.delete(address)) return;
    const peer = this.ensurePeer(address);
    peer.holds.delete(task);
    if (task.fetchEntries.length > 0) this.removeFetchEntry(task, peer);
    this.releasePeer(peer);
  }

  clearHolders(task: WorkerTask): void {
    if (task.holders.size === 0) return;
    for (const address of [...task.holders]) this.removeHolder(task, address);
  }

  /** Makes a task available for fetching from each of its holders. */
  addFetchEntries(task: WorkerTask): void {
    this.fetching.add(task);
    for (const address of task.holders) this.addFetchEntry(task, this.ensurePeer(address));
  }

  removeFetchEntries(task: WorkerTask): void {
    this.fetching.delete(task);
    for (const entry of task.fetchEntries) entry.heap.delete(entry);
    task.fetchEntries = NO_ENTRIES;
  }

  setPriority(task: WorkerTask, priority: WorkerPriority): void {
    task.priority = priority;
    if (task.state === 'ready') this.ready.update(task);
    else if (task.state === 'constrained') this.constrained.update(task);
    for (const entry of task.fetchEntries) entry.heap.update(entry);
  }

  private acquireResources(task: WorkerTask): void {
    this.quota?.grant(task);
    task.heldResources = task.resources;
    if (task.resources === undefined) return;
    for (const [name, amount] of Object.entries(task.resources)) {
      this.availableResources.set(name, (this.availableResources.get(name) ?? 0) - amount);
    }
  }

  private releaseResources(task: WorkerTask): void {
    this.quota?.release(task);
    if (task.heldResources === undefined) return;
    for (const [name, amount] of Object.entries(task.heldResources)) {
      this.availableResources.set(name, (this.availableResources.get(name) ?? 0) + amount);
    }
    task.heldResources = undefined;
  }

  hasResourcesFor(task: WorkerTask): boolean {
    for (const [name, amount] of Object.entries(task.resources ?? {})) {
      if ((this.availableResources.get(name) ?? 0) < amount) return false;
    }
    return true;
  }

  private addHolder(task: WorkerTask, address: string): void {
    if (address === this.options.address || task.holders.has(address)) return;
    const peer = this.ensurePeer(address);
    task.holders.add(address);
    peer.holds.add(task);
    if (task.state === 'fetch') this.addFetchEntry(task, peer);
  }

  private removeFetchEntry(task: WorkerTask, peer: Peer): void {
    const index = task.fetchEntries.findIndex((entry) => entry.heap === peer.needed);
    if (index < 0) return;
    for (const entry of task.fetchEntries.splice(index, 1)) peer.needed.delete(entry);
  }

  private addFetchEntry(task: WorkerTask, peer: Peer): void {
    const entry = { task, heap: peer.needed, place: -1 };
    // As a rule there is one holder.
    if (task.fetchEntries.length === 0) task.fetchEntries = [entry];
    else task.fetchEntries.push(entry);
    peer.needed.add(entry);
  }
}

/** True when a run or a transfer of this task has not ended. */
export function isBusy(tables: WorkerTables, task: WorkerTask): boolean {
  return task.comingFrom !== undefined || tables.executing.has(task);
}

/** A transfer from a peer that is under way. */
export interface Transfer {
  readonly tasks: readonly WorkerTask[];
  /** Expected bytes, as counted against the limits. */
  readonly nbytes: number;
}

function byPriorityOfTask(a: FetchEntry, b: FetchEntry): number {
  return byWorkerPriority(a.task, b.task);
}

/** Another worker, as long as it holds something of interest, sends something, or is busy. */
export class Peer {
  /** Known tasks of which it holds a copy. */
  readonly holds = new LazySet<WorkerTask>();
  /** The part of `holds` that is in state `fetch`. */
  readonly needed = new IndexedHeap(byPriorityOfTask);
  /** At most one transfer per peer, so that many small results share a message. */
  transfer: Transfer | undefined = undefined;
  /** The scheduler has said that it is gone; the transfer from it ends by itself. */
  isGone = false;
  /** It refused a transfer a moment ago. */
  isBusy = false;
  /** Transfers that it refused one after the other. */
  busyAnswers = 0;
  readonly host: string;
  /** Breaks ties between peers, differently on each worker, so that not all ask the same one. */
  readonly tieBreak: number;

  constructor(
    readonly address: string,
    ownAddress: string,
  ) {
    this.host = hostOf(address);
    this.tieBreak = hash(`${ownAddress}>${address}`);
  }

  get isIdle(): boolean {
    return this.holds.size === 0 && this.transfer === undefined && !this.isBusy;
  }
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  }
  return value >>> 0;
}

/**
 * Tasks that are ready but for their resources. Those that need a thread as well, and those that need a share of an
 * event loop, do not hold each other back.
 */
class ConstrainedTasks {
  private readonly ofThreads: IndexedHeap<WorkerTask>;
  private readonly ofLoops: IndexedHeap<WorkerTask>;

  constructor(compare: (a: WorkerTask, b: WorkerTask) => number) {
    this.ofThreads = new IndexedHeap(compare);
    this.ofLoops = new IndexedHeap(compare);
  }

  has(task: WorkerTask): boolean {
    return this.ofThreads.has(task) || this.ofLoops.has(task);
  }

  /** The best task that needs a thread. */
  peek(): WorkerTask | undefined {
    return this.ofThreads.peek();
  }

  /** The best task that needs no thread. */
  peekConcurrent(): WorkerTask | undefined {
    return this.ofLoops.peek();
  }

  add(task: WorkerTask): void {
    this.heapOf(task).add(task);
  }

  delete(task: WorkerTask): void {
    if (!this.ofThreads.delete(task)) this.ofLoops.delete(task);
  }

  /** The priority of a task in it has changed. */
  update(task: WorkerTask): void {
    this.heapOf(task).update(task);
  }

  get heaps(): readonly IndexedHeap<WorkerTask>[] {
    return [this.ofThreads, this.ofLoops];
  }

  private heapOf(task: WorkerTask): IndexedHeap<WorkerTask> {
    return task.isConcurrent ? this.ofLoops : this.ofThreads;
  }
}
