import {
  type ClusterView,
  type NewStimulus,
  SERVICE_PREFIX,
  YardmasterError,
} from '../../core/api/index.ts';
import type { DisconnectCleanup } from './scope.ts';
import { type Budget, entryBytes } from './wait-queue.ts';

/** A value as clients serialised it. The scheduler never looks into it. */
export interface Value {
  readonly bytes: Uint8Array;
  /** Of the futures inside. */
  readonly keys: readonly string[];
}

/** A value on its way to a client. */
export interface GivenValue {
  readonly value: Uint8Array;
  readonly keys: readonly string[];
  /**
   * To be sent with `received` when the client holds the futures; undefined when there are none.
   */
  readonly handover?: number;
}

/** The services that values use. */
interface ValueScope {
  readonly cluster: ClusterView;
  readonly budget: Budget;
  readonly keeper: ResultKeeper;
  readonly departures: DisconnectCleanup;
}

interface Handover {
  readonly client: string;
  readonly end: () => void;
}

/** Values that are stored on the scheduler, and hand-overs of their futures to clients. */
export class Values {
  private readonly handovers = new Map<number, Handover>();
  private handoverCount = 0;

  constructor(private readonly scope: ValueScope) {}

  /**
   * Charges a value to the budget and keeps the results of its futures alive.
   * @param owner - in whose name: `queue-jobs`
   * @throws YardmasterError `ERR_COORDINATION` when the space is used up; `ERR_CANCELLED` when a
   *   future is of a task that the scheduler does not know
   */
  store(value: Value, owner: string): void {
    const { cluster, budget, keeper } = this.scope;
    const unknown = value.keys.find((key) => !cluster.tasks.has(key));
    if (unknown !== undefined) {
      throw new YardmasterError(
        'ERR_CANCELLED',
        `the future of "${unknown}" cannot be stored: the scheduler does not know the task (any more); it was cancelled, or released by all clients`,
        { key: unknown },
      );
    }
    budget.charge(bytesOf(value), `a value of ${owner}`);
    keeper.keep(owner, value.keys);
  }

  discard(value: Value, owner: string): void {
    this.scope.budget.free(bytesOf(value));
    this.scope.keeper.release(owner, value.keys);
  }

  /**
   * Gives a value to a client. The results of its futures stay alive until the client confirms that
   * it holds them, or leaves; the client that stored the value may discard it at once.
   */
  give({ bytes, keys }: Value, client: string): GivenValue {
    if (keys.length === 0) return { value: bytes, keys };
    const { keeper, departures } = this.scope;
    const handover = ++this.handoverCount;
    const owner = `handover-${handover}`;
    keeper.keep(owner, keys);
    const withdraw = departures.add(client, () => this.received(client, handover));
    const end = (): void => {
      withdraw();
      keeper.release(owner, keys);
    };
    this.handovers.set(handover, { client, end });
    return { value: bytes, keys, handover };
  }

  /** The client holds the futures now. No-op for what is not the client's to say. */
  received(client: string, id: number): void {
    const handover = this.handovers.get(id);
    if (handover?.client !== client) return;
    this.handovers.delete(id);
    handover.end();
  }
}

function bytesOf({ bytes, keys }: Value): number {
  const keyBytes = keys.reduce((sum, key) => sum + 2 * key.length, 0);
  return bytes.byteLength + keyBytes + entryBytes();
}

/**
 * Keeps results alive by wanting them in the name of service clients, one for each owner:
 * `service:variable-x`, `service:queue-jobs`. A key that an owner has twice is released when it has been released
 * twice.
 */
export class ResultKeeper {
  private readonly owners = new Map<string, Map<string, number>>();

  constructor(private readonly enqueue: (stimulus: NewStimulus) => void) {}

  keep(owner: string, keys: readonly string[]): void {
    if (keys.length === 0) return;
    const counts = this.owners.get(owner) ?? new Map<string, number>();
    this.owners.set(owner, counts);
    for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
    // Includes keys that are wanted already, because a restart of the cluster forgets what clients
    // want.
    this.enqueue({ op: 'client-desires-keys', client: SERVICE_PREFIX + owner, keys });
  }

  release(owner: string, keys: readonly string[]): void {
    const counts = this.owners.get(owner);
    if (counts === undefined) return;
    const released: string[] = [];
    for (const key of keys) {
      const left = (counts.get(key) ?? 0) - 1;
      if (left > 0) counts.set(key, left);
      else if (counts.delete(key)) released.push(key);
    }
    if (counts.size === 0) {
      this.owners.delete(owner);
      this.enqueue({ op: 'remove-client', client: SERVICE_PREFIX + owner });
    } else if (released.length > 0) {
      this.enqueue({ op: 'client-releases-keys', client: SERVICE_PREFIX + owner, keys: released });
    }
  }

  releaseAll(): void {
    for (const owner of this.owners.keys())
      this.enqueue({ op: 'remove-client', client: SERVICE_PREFIX + owner });
    this.owners.clear();
  }
}
