import { IndexedHeap } from '../util/collections/indexed-heap.ts';
import { LazySet } from '../util/collections/lazy-set.ts';
import { hostOf } from '../util/hosts.ts';
import { byWorkerPriority, type FetchEntry, type WorkerTask } from './worker-task.ts';

/** What is on its way from a peer. */
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
  /** It refused a transfer a moment ago. */
  isBusy = false;
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
