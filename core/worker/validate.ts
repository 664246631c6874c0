import type { IndexedHeap } from '../util/heaps.ts';
import type { WorkerTables } from './worker-tables.ts';
import type { WorkerTask, WorkerTaskStateName } from './worker-task.ts';

/** The first invariant that does not hold. */
interface BrokenInvariant {
  readonly message: string;
  /** The task in question, if there is one. */
  readonly key: string | undefined;
}

/** Checks every invariant of a worker's state between two events. O(tasks and links). */
export function validateWorker(tables: WorkerTables): BrokenInvariant | undefined {
  for (const task of tables.tasks.values()) {
    const message = firstBroken([...taskInvariants(tables, task), ...linkInvariants(tables, task)]);
    if (message !== undefined) return { message: `${task.toString()}: ${message}`, key: task.key };
  }
  const message = firstBroken(tableInvariants(tables));
  return message === undefined ? undefined : { message, key: undefined };
}

type Invariant = readonly [holds: boolean, message: string];

function firstBroken(invariants: readonly Invariant[]): string | undefined {
  return invariants.find(([holds]) => !holds)?.[1];
}

const RUNNABLE: readonly WorkerTaskStateName[] = ['ready', 'constrained'];

function taskInvariants(tables: WorkerTables, task: WorkerTask): Invariant[] {
  const { state, previous, next } = task;
  const isSuspended = state === 'cancelled' || state === 'resumed';
  const runs = state === 'executing' || (isSuspended && previous === 'executing');
  const flies = state === 'flight' || (isSuspended && previous === 'flight');
  const inputsAreHere = [...task.dependencies].every(({ state: its }) => its === 'memory');
  return [
    [state !== 'forgotten', 'a forgotten task is still known'],
    [task.pendingIndex === -1, 'a recommendation is left over'],
    [task.arrivedNbytes === -1, 'data arrived that no transition has taken'],
    [tables.tasks.get(task.key) === task, 'another task has its key'],
    [tables.executing.has(task) === runs, 'executing or not, against the set of runs'],
    [(task.comingFrom !== undefined) === flies, 'in flight or not, against its transfer'],
    [(previous !== undefined) === isSuspended, 'previous is set exactly when suspended'],
    [(next !== undefined) === (state === 'resumed'), 'next is set exactly when resumed'],
    [(state === 'waiting') === task.waitingForData.size > 0, 'waits exactly when inputs lack'],
    [!RUNNABLE.includes(state) || inputsAreHere, 'is ready without its inputs'],
    [tables.ready.has(task) === (state === 'ready'), 'ready or not, against the heap'],
    [
      tables.constrained.has(task) === (state === 'constrained'),
      'constrained or not, against the heap',
    ],
    [tables.missing.has(task) === (state === 'missing'), 'missing or not, against the set'],
    [tables.fetching.has(task) === (state === 'fetch'), 'to fetch or not, against the set'],
    [state !== 'missing' || task.holders.size === 0, 'is missing although holders are known'],
    [state !== 'fetch' || task.holders.size > 0, 'is to be fetched without a holder'],
    [state !== 'memory' || task.nbytes >= 0, 'is in memory without a size'],
    [state !== 'memory' || task.holders.size === 0, 'keeps holders while in memory'],
    [state !== 'released' || task.dependents.size > 0, 'is released, of no use, and still known'],
    [state !== 'ready' || task.resources === undefined, 'is ready but needs resources'],
    [state === 'executing' || runs || task.heldResources === undefined, 'holds resources'],
    [
      !isFetched(task) || task.waiters.size > 0 || task.isReplicaWanted,
      'is fetched although nothing needs it',
    ],
    [state !== 'error' || task.failure !== undefined, 'failed without a reason'],
  ];
}

function isFetched({ state, next }: WorkerTask): boolean {
  if (state === 'resumed') return next === 'fetch';
  return state === 'fetch' || state === 'flight' || state === 'missing';
}

function linkInvariants(tables: WorkerTables, task: WorkerTask): Invariant[] {
  const { key } = task;
  const found: Invariant[] = [
    [
      task.fetchEntries.length === (task.state === 'fetch' ? task.holders.size : 0),
      'has another number of fetch entries than of holders',
    ],
  ];
  for (const dependency of task.dependencies) {
    found.push([tables.tasks.get(dependency.key) === dependency, `${dependency.key} is unknown`]);
    found.push([dependency.dependents.has(task), `${dependency.key} does not know ${key}`]);
  }
  for (const dependent of task.dependents) {
    found.push([dependent.dependencies.has(task), `${dependent.key} does not know ${key}`]);
    found.push([tables.tasks.get(dependent.key) === dependent, `${dependent.key} is unknown`]);
  }
  for (const dependency of task.waitingForData) {
    found.push([task.dependencies.has(dependency), `waits for ${dependency.key} without need`]);
    found.push([dependency.waiters.has(task), `${dependency.key} is not waited for`]);
    found.push([dependency.state !== 'memory', `waits for ${dependency.key}, which is here`]);
    found.push([
      !['released', 'error', 'cancelled'].includes(dependency.state),
      `waits for ${dependency.toString()}, which will not come`,
    ]);
  }
  for (const waiter of task.waiters) {
    found.push([waiter.waitingForData.has(task), `${waiter.key} does not wait for ${key}`]);
  }
  for (const address of task.holders) {
    found.push([address !== tables.options.address, 'this worker is its own peer']);
    found.push([tables.peers.get(address)?.holds.has(task) === true, `${address} is not linked`]);
  }
  for (const entry of task.fetchEntries) {
    found.push([entry.heap.has(entry), 'has a fetch entry that its peer does not list']);
  }
  return found;
}

function tableInvariants(tables: WorkerTables): Invariant[] {
  const { options } = tables;
  let nbytes = 0;
  const used = new Map<string, number>();
  for (const task of tables.tasks.values()) {
    if (task.state === 'memory') nbytes += task.nbytes;
    for (const [name, amount] of Object.entries(task.heldResources ?? {})) {
      used.set(name, (used.get(name) ?? 0) + amount);
    }
  }
  const found: Invariant[] = [
    [isBestFirst(tables, tables.ready), 'a ready task is behind a worse one'],
    ...tables.constrained.heaps.map((heap): Invariant => {
      return [isBestFirst(tables, heap), 'a constrained task is behind a worse one'];
    }),
    [nbytes === tables.nbytes, `${tables.nbytes} bytes are counted, ${nbytes} are there`],
    [tables.occupiedThreads <= options.threadCount, 'more runs than threads'],
    [isPart(tables.seceded, tables.executing), 'a task without a thread does not run'],
    [isPart(tables.rejoining, tables.seceded), 'a task wants a thread back that it has'],
  ];
  for (const [name, total] of Object.entries(options.resources)) {
    const available = tables.availableResources.get(name) ?? 0;
    const expected = total - (used.get(name) ?? 0);
    found.push([available >= 0, `the resource ${name} is overdrawn`]);
    found.push([Math.abs(available - expected) < 1e-9, `the resource ${name} leaks`]);
  }
  return [...found, ...peerInvariants(tables)];
}

function isBestFirst({ compareReady }: WorkerTables, heap: IndexedHeap<WorkerTask>): boolean {
  const first = heap.peek();
  for (const task of heap) if (first !== undefined && compareReady(first, task) > 0) return false;
  return true;
}

function isPart(part: ReadonlySet<WorkerTask>, whole: ReadonlySet<WorkerTask>): boolean {
  return [...part].every((task) => whole.has(task));
}

function peerInvariants(tables: WorkerTables): Invariant[] {
  const found: Invariant[] = [];
  let transferCount = 0;
  let incomingBytes = 0;
  for (const peer of tables.peers.values()) {
    const { address, transfer } = peer;
    found.push([!peer.isIdle, `nothing is known about ${address}`]);
    for (const task of peer.holds) {
      found.push([task.holders.has(address), `${task.key} does not know its holder ${address}`]);
    }
    for (const entry of peer.needed) {
      found.push([entry.task.fetchEntries.includes(entry), `${address} offers ${entry.task.key}`]);
    }
    if (transfer === undefined) continue;
    transferCount++;
    incomingBytes += transfer.nbytes;
    for (const task of transfer.tasks) {
      found.push([task.comingFrom === address, `${task.key} does not come from ${address}`]);
    }
  }
  found.push([transferCount === tables.transferCount, 'transfers are miscounted']);
  found.push([incomingBytes === tables.incomingBytes, 'incoming bytes are miscounted']);
  return found;
}
