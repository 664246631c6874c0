import type { CoordinationScope } from './scope.ts';
import type { GivenValue, Value } from './values.ts';
import {
  entryBytes,
  LinkedQueue,
  Members,
  refused,
  WaitQueue,
  type WaitRequest,
} from './wait-queue.ts';

interface Variable {
  value: Value | undefined;
  readonly readers: WaitQueue<GivenValue>;
}

/** Named values. A variable exists while it is set or a call waits for it. */
export class Variables {
  private readonly variables = new Map<string, Variable>();

  constructor(private readonly scope: CoordinationScope) {}

  /**
   * @throws YardmasterError `ERR_COORDINATION` when the space is used up; then the old value stays
   */
  set(name: string, value: Value): void {
    const { values } = this.scope;
    values.store(value, variableOwner(name));
    try {
      this.replace(this.open(name), name, value);
    } catch (error) {
      values.discard(value, variableOwner(name));
      throw error;
    }
  }

  get(name: string, request: Omit<WaitRequest, 'what'>): GivenValue | Promise<GivenValue> {
    const known = this.variables.get(name);
    if (known?.value !== undefined) return this.scope.values.give(known.value, request.client);
    const variable = this.open(name);
    try {
      return variable.readers.wait({ ...request, what: `the variable "${name}"` }, undefined);
    } catch (error) {
      this.dropUnused(name, variable);
      throw error;
    }
  }

  /** No-op when it is not set. */
  delete(name: string): void {
    const variable = this.variables.get(name);
    if (variable?.value === undefined) return;
    this.scope.values.discard(variable.value, variableOwner(name));
    variable.value = undefined;
    this.dropUnused(name, variable);
  }

  private replace(variable: Variable, name: string, value: Value): void {
    const { values } = this.scope;
    const old = variable.value;
    variable.value = value;
    if (old !== undefined) values.discard(old, variableOwner(name));
    const { readers } = variable;
    while (readers.size > 0) readers.serve((client) => values.give(value, client));
  }

  private open(name: string): Variable {
    const known = this.variables.get(name);
    if (known !== undefined) return known;
    this.scope.budget.charge(entryBytes(name), `the variable "${name}"`);
    const variable: Variable = {
      value: undefined,
      readers: new WaitQueue(this.scope, () => this.dropUnused(name, variable)),
    };
    this.variables.set(name, variable);
    return variable;
  }

  private dropUnused(name: string, { value, readers }: Variable): void {
    if (value !== undefined || readers.size > 0) return;
    if (this.variables.delete(name)) this.scope.budget.free(entryBytes(name));
  }
}

function variableOwner(name: string): string {
  return `variable-${name}`;
}

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
    const owner = queueOwner(queue);
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
    for (const value of queue.items) this.scope.values.discard(value, queueOwner(queue));
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
    values.discard(value, queueOwner(queue));
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
      putters: new WaitQueue(scope, (value) => scope.values.discard(value, queueOwner(queue))),
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

function queueOwner({ name }: Queue): string {
  return `queue-${name}`;
}

/** Published values, which outlive the clients that published them. */
export class DataSets {
  private readonly dataSets = new Map<string, Value>();

  constructor(private readonly scope: CoordinationScope) {}

  /** Names in the order in which they were published. */
  get names(): readonly string[] {
    return [...this.dataSets.keys()];
  }

  /** @throws YardmasterError `ERR_COORDINATION` when the name is taken, or the space is used up */
  publish(name: string, value: Value, override: boolean): void {
    const { values, budget } = this.scope;
    const old = this.dataSets.get(name);
    if (old !== undefined && !override) {
      throw refused(
        'exists',
        `there is a data set "${name}" already; unpublish it first, or say { override: true }`,
        { name },
      );
    }
    values.store(value, dataSetOwner(name));
    if (old === undefined) {
      try {
        budget.charge(entryBytes(name), `the data set "${name}"`);
      } catch (error) {
        values.discard(value, dataSetOwner(name));
        throw error;
      }
    } else values.discard(old, dataSetOwner(name));
    this.dataSets.set(name, value);
  }

  /** @throws YardmasterError `ERR_COORDINATION` when no data set has this name */
  get(name: string, client: string): GivenValue {
    return this.scope.values.give(this.find(name), client);
  }

  /** @throws YardmasterError `ERR_COORDINATION` when no data set has this name */
  unpublish(name: string): void {
    const value = this.find(name);
    this.dataSets.delete(name);
    this.scope.values.discard(value, dataSetOwner(name));
    this.scope.budget.free(entryBytes(name));
  }

  private find(name: string): Value {
    const value = this.dataSets.get(name);
    if (value !== undefined) return value;
    const known = this.names.slice(0, 20).join(', ') || 'none';
    throw refused('unknown', `there is no data set "${name}"; there are: ${known}`, { name });
  }
}

function dataSetOwner(name: string): string {
  return `published-${name}`;
}
