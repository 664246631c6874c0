import { entryBytes } from './budget.ts';
import { refused } from './errors.ts';
import { LinkedQueue } from './linked-queue.ts';
import { Members } from './members.ts';
import type { CoordinationScope } from './scope.ts';
import type { GivenValue, Value } from './values.ts';
import { WaitQueue, type WaitRequest } from './wait-queue.ts';

type Request = Omit<WaitRequest, 'what'>;

interface Queue {
  readonly name: string;
  /** Undefined until a client has set it. */
  sizeMax: number | undefined;
  readonly items: LinkedQueue<Value>;
  readonly getters: WaitQueue<GivenValue>;
  readonly putters: WaitQueue<true, Value>;
  readonly members: Members;
}

/**
 * Named queues. Items and waiting calls are first in, first out; a waiting `put` counts as behind all
 * items. A queue is there while it has items, or a client that has used it is connected.
 */
export class Queues {
  private readonly queues = new Map<string, Queue>();

  constructor(private readonly scope: CoordinationScope) {}

  /** Waits while the queue is full. */
  put(queue: Queue, value: Value, request: Request): true | Promise<true> {
    const { values } = this.scope;
    const owner = ownerOf(queue);
    values.store(value, owner);
    const { items, getters, putters, sizeMax = Infinity } = queue;
    if (getters.size > 0) {
      getters.serve((client) => values.give(value, client));
      values.discard(value, owner);
      return true;
    }
    if (items.size < sizeMax) {
      items.push(value);
      return true;
    }
    try {
      return putters.wait({ ...request, what: `space in the queue "${queue.name}"` }, value);
    } catch (error) {
      values.discard(value, owner);
      throw error;
    }
  }

  /** Waits while the queue is empty. */
  get(queue: Queue, request: Request): GivenValue | Promise<GivenValue> {
    if (queue.items.size > 0) return this.take(queue, request.client);
    return queue.getters.wait(
      { ...request, what: `an item of the queue "${queue.name}"` },
      undefined,
    );
  }

  /** Takes the items that are in the queue now, at most `countMax`. */
  getMany(queue: Queue, client: string, countMax: number): GivenValue[] {
    const taken: GivenValue[] = [];
    while (taken.length < countMax && queue.items.size > 0) taken.push(this.take(queue, client));
    return taken;
  }

  /** Drops the items; waiting calls fail. No-op when there is no such queue. */
  delete(name: string): void {
    const queue = this.queues.get(name);
    if (queue === undefined) return;
    const error = refused('deleted', `the queue "${name}" was deleted`, { name });
    queue.members.clear();
    queue.getters.fail(error);
    queue.putters.fail(error);
    for (const value of queue.items) this.scope.values.discard(value, ownerOf(queue));
    this.forget(queue);
  }

  /**
   * The queue of this name, made when there is none.
   * @param sizeMax - undefined: whatever it has, or will be given
   * @throws YardmasterError `ERR_COORDINATION` when it has another size
   */
  open(name: string, client: string, sizeMax: number | undefined): Queue {
    const queue = this.queues.get(name) ?? this.make(name);
    if (sizeMax !== undefined) {
      queue.sizeMax ??= sizeMax;
      if (queue.sizeMax !== sizeMax) {
        throw refused(
          'mismatch',
          `the queue "${name}" has a maxSize of ${queue.sizeMax} items, not ${sizeMax}; give the same maxSize everywhere, or none`,
          { name, maxSize: queue.sizeMax, asked: sizeMax },
        );
      }
    }
    queue.members.add(client);
    return queue;
  }

  private take(queue: Queue, client: string): GivenValue {
    const { values } = this.scope;
    const value = queue.items.shift() as Value;
    const given = values.give(value, client);
    values.discard(value, ownerOf(queue));
    const waiting = queue.putters.next;
    if (waiting !== undefined) {
      queue.items.push(waiting.detail);
      queue.putters.serve(() => true);
    }
    return given;
  }

  private make(name: string): Queue {
    const { scope } = this;
    scope.budget.charge(entryBytes(name), `the queue "${name}"`);
    const queue: Queue = {
      name,
      sizeMax: undefined,
      items: new LinkedQueue(),
      getters: new WaitQueue(scope, () => undefined),
      putters: new WaitQueue(scope, (value) => scope.values.discard(value, ownerOf(queue))),
      members: new Members(scope.departures, () => {
        if (queue.items.size === 0) this.forget(queue);
      }),
    };
    this.queues.set(name, queue);
    return queue;
  }

  private forget(queue: Queue): void {
    if (this.queues.get(queue.name) !== queue) return;
    this.queues.delete(queue.name);
    this.scope.budget.free(entryBytes(queue.name));
  }
}

function ownerOf({ name }: Queue): string {
  return `queue-${name}`;
}
