import type { Peer, Transfer } from '../peer.ts';
import type { WorkerTables } from '../worker-tables.ts';
import { comparePriorities, REPLICA_PRIORITY, type WorkerTask } from '../worker-task.ts';

/**
 * The transfer to begin next: from the peer with the most urgent task, as many of its tasks, the most
 * urgent first, as the limits allow. Undefined: nothing to fetch, or too much is under way.
 * O(peers) when there is something to fetch, else O(1).
 */
export function nextTransfer(
  tables: WorkerTables,
): { readonly peer: Peer; readonly transfer: Transfer } | undefined {
  if (tables.fetching.size === 0 || isThrottled(tables)) return undefined;
  const peer = choosePeer(tables);
  if (peer === undefined) return undefined;
  const transfer = chooseTasks(tables, peer);
  return transfer.tasks.length === 0 ? undefined : { peer, transfer };
}

/** Many small transfers are no burden; neither are few, as long as their bytes are. */
function isThrottled({ options, pace, transferCount, incomingBytes }: WorkerTables): boolean {
  if (pace !== 'running' && (pace === 'paused' || transferCount > 0)) return true;
  if (incomingBytes >= options.incomingBytesMax) return true;
  return (
    transferCount >= options.incomingTransfersMax && incomingBytes >= options.throttleThresholdBytes
  );
}

function choosePeer(tables: WorkerTables): Peer | undefined {
  let best: Peer | undefined;
  for (const peer of tables.peers.values()) {
    if (peer.needed.size === 0 || peer.transfer !== undefined || peer.isBusy) continue;
    if (best === undefined || isBetterPeer(peer, best, tables.host)) best = peer;
  }
  return best;
}

/** More urgent; else on this host; else with more to give; else by a rule that differs by worker. */
function isBetterPeer(peer: Peer, best: Peer, ownHost: string): boolean {
  const order = comparePriorities(topPriority(peer), topPriority(best));
  if (order !== 0) return order < 0;
  const isLocal = peer.host === ownHost;
  if (isLocal !== (best.host === ownHost)) return isLocal;
  if (peer.needed.size !== best.needed.size) return peer.needed.size > best.needed.size;
  if (peer.tieBreak !== best.tieBreak) return peer.tieBreak < best.tieBreak;
  return peer.address < best.address;
}

function topPriority(peer: Peer): readonly number[] {
  return peer.needed.peek()?.task.priority ?? REPLICA_PRIORITY;
}

/** Takes the chosen tasks out of the heaps of all their holders. */
function chooseTasks(tables: WorkerTables, peer: Peer): Transfer {
  const tasks: WorkerTask[] = [];
  let nbytes = 0;
  for (let entry = peer.needed.peek(); entry !== undefined; entry = peer.needed.peek()) {
    const { task } = entry;
    if (exceedsLimits(tables, task.expectedNbytes, nbytes)) break;
    tables.removeFetchEntries(task);
    tasks.push(task);
    nbytes += task.expectedNbytes;
  }
  return { tasks, nbytes };
}

function exceedsLimits(tables: WorkerTables, taskNbytes: number, messageNbytes: number): boolean {
  const { options, incomingBytes } = tables;
  // With no other traffic the most urgent one is fetched whatever its size, or nothing would move.
  if (incomingBytes === 0 && messageNbytes === 0) return false;
  let allowance = options.incomingBytesMax - incomingBytes;
  if (messageNbytes > 0) allowance = Math.min(allowance, options.messageBytesMax) - messageNbytes;
  return taskNbytes > allowance;
}
