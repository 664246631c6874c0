import type { Outbox } from '../../core/kernel/outbox.ts';
import type { ToClientMessage } from '../../core/messages/to-client.ts';
import type { ComputeTask, ToWorkerMessage } from '../../core/messages/to-worker.ts';
import type { ClusterState } from '../../core/state/cluster.ts';
import { check } from './check.ts';

/** An assignment as the worker got it. */
export interface Assignment {
  readonly worker: string;
  readonly key: string;
  readonly runId: number;
}

/**
 * A worker as it must believe itself to be after it got every message so far. The scheduler must
 * agree exactly: what it counts as processing or held there, and nothing else.
 */
export class WorkerMirror {
  readonly running = new Map<string, number>();
  readonly store = new Set<string>();
  /** Assignments that it was asked to give back, and has not answered for. */
  asked: Assignment[] = [];
  /** Copies that it was asked to fetch. */
  readonly fetching = new Set<string>();
  /** Assignments that were taken back; their answers may be on the way. */
  ghosts: Assignment[] = [];
  /**
   * Runs that were taken back and are over, and whose end has not been reported to the scheduler.
   */
  private overRunIds: number[] = [];

  constructor(readonly address: string) {}

  /** It has the result. What it may still have to say about older assignments is said by then. */
  hold(key: string): void {
    this.running.delete(key);
    this.store.add(key);
    this.endGhosts((ghost) => ghost.key === key);
  }

  /** Runs that were taken back end. */
  endGhosts(isOver: (ghost: Assignment, index: number) => boolean): void {
    const ended = this.ghosts.filter(isOver);
    this.ghosts = this.ghosts.filter((ghost) => !ended.includes(ghost));
    this.overRunIds.push(...ended.map(({ runId }) => runId));
  }

  takeOverRunIds(): number[] {
    return this.overRunIds.splice(0);
  }

  receive(message: ToWorkerMessage): void {
    switch (message.op) {
      case 'compute-task':
        this.start(message);
        return;
      case 'free-keys':
        message.keys.forEach((key, index) => this.free(key, message.runIds?.[index]));
        return;
      case 'steal-request':
        message.keys.forEach((key, index) => {
          this.asked.push({ worker: this.address, key, runId: message.runIds[index]! });
        });
        return;
      case 'set-priority':
      case 'extend-time-limits':
        message.keys.forEach((key, index) => {
          const isInForce = this.running.get(key) === message.runIds[index];
          check(isInForce, () => `${this.address} is to change ${key}, which it does not have`);
        });
        return;
      case 'resume-run':
        check(
          this.running.get(message.key) === message.runId,
          () => `${this.address} is to go on with ${message.key}, which it does not have`,
        );
        return;
      case 'remove-replicas':
        for (const key of message.keys) this.store.delete(key);
        return;
      case 'acquire-replicas':
        for (const key of message.replicas.keys) this.fetching.add(key);
        return;
      case 'refresh-who-has':
      case 'remove-worker':
      case 'worker-status-change':
      case 'close':
        return;
    }
  }

  compareWith(cluster: ClusterState): void {
    const worker = cluster.workers.get(this.address);
    check(worker !== undefined, () => `${this.address} is unknown`);
    const processing = [...worker.processing].map(({ key, runId }) => `${key}/${runId}`);
    const running = [...this.running].map(([key, runId]) => `${key}/${runId}`);
    same(`${this.address} was told to compute`, running, 'the scheduler counts', processing);
    const held = [...worker.hasWhat].map(({ key }) => key);
    same(`${this.address} holds`, [...this.store], 'the scheduler counts', held);
  }

  private start({ key, runId }: ComputeTask): void {
    check(!this.running.has(key), () => `${this.address} got ${key} twice`);
    check(!this.store.has(key), () => `${this.address} computes ${key}, which it holds`);
    this.running.set(key, runId);
  }

  /** @param asked - the run that is taken back; the worker reports its end */
  private free(key: string, asked: number | undefined): void {
    const runId = this.running.get(key);
    if (runId !== undefined) this.ghosts.push({ worker: this.address, key, runId });
    else if (asked !== undefined) this.overRunIds.push(asked);
    this.running.delete(key);
    this.store.delete(key);
    this.fetching.delete(key);
  }
}

type Belief = 'pending' | 'memory' | 'erred';

/**
 * A client as it must believe things to be after it got every message so far. It must never hold a
 * wrong belief about a key that it wants, nor wait for one that the scheduler does not keep for it.
 */
export class ClientMirror {
  private readonly beliefs = new Map<string, Belief>();

  constructor(readonly name: string) {}

  /** The client asks for keys: it waits for those whose results it does not know to be there. */
  want(keys: Iterable<string>): void {
    for (const key of keys) {
      if (this.beliefs.get(key) !== 'memory') this.beliefs.set(key, 'pending');
    }
  }

  giveUp(keys: Iterable<string>): void {
    for (const key of keys) this.beliefs.delete(key);
  }

  receive(message: ToClientMessage): void {
    switch (message.op) {
      case 'key-in-memory':
        this.learn(message.key, 'memory');
        return;
      case 'task-erred':
        this.learn(message.key, 'erred');
        return;
      case 'lost-data':
      case 'task-retried':
        this.learn(message.key, 'pending');
        return;
      case 'cancelled-keys':
        this.giveUp(message.keys);
        return;
      case 'restart':
        this.beliefs.clear();
        return;
      case 'data-refused':
        return; // What it wanted before, it still wants.
    }
  }

  compareWith(cluster: ClusterState): void {
    const wants = cluster.clients.get(this.name)?.wantsWhat ?? [];
    const wanted = [...wants].map((task) => task.key);
    const waited = [...this.beliefs].filter(([, belief]) => belief !== 'erred');
    for (const [key] of waited) {
      check(wanted.includes(key), () => `${this.name} relies on ${key}, which is not kept for it`);
    }
    for (const task of wants) {
      const isDone = task.state === 'memory' || task.state === 'erred';
      const truth = isDone ? task.state : 'pending';
      const belief = this.beliefs.get(task.key);
      check(
        belief === truth,
        () => `${this.name} takes ${task.key} for ${belief ?? 'unknown'}, but it is ${task.state}`,
      );
    }
  }

  private learn(key: string, belief: Belief): void {
    // What it does not want any more was on the way when it said so.
    if (this.beliefs.has(key)) this.beliefs.set(key, belief);
  }
}

/** Delivers the messages of a stimulus at once and in order. */
export function deliver(
  { toWorkers, toClients }: Outbox,
  workers: ReadonlyMap<string, WorkerMirror>,
  clients: ReadonlyMap<string, ClientMirror>,
): void {
  for (const { worker, message } of toWorkers) workers.get(worker.address)?.receive(message);
  for (const { client, message } of toClients) clients.get(client.key)?.receive(message);
}

function same(
  ours: string,
  left: readonly string[],
  theirs: string,
  right: readonly string[],
): void {
  const [a, b] = [left.toSorted().join(' '), right.toSorted().join(' ')];
  check(a === b, () => `${ours} [${a}], ${theirs} [${b}]`);
}
